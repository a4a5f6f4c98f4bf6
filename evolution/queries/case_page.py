"""One failure with what is around it: cases like it, and its record for other programs."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib.auth.models import User

from evolution.loop.repositories import read_version
from evolution.models import DatasetCase, Embedding, FailureCase, Harness
from evolution.states import CaseState
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.agent import tool_definitions
from harness_repo.runtime.asked import find_asked

# Cases that are looked at for those that are like one, and of those how many are shown.
MOST_COMPARED = 500
MOST_SIMILAR = 5
# Cosine below which two failures have nothing in common that a person would see.
LEAST_LIKENESS = 0.3


@dataclass(frozen=True)
class Similar:
    """A case that failed like another; `likeness` is the cosine of their embedded texts."""

    case: FailureCase
    likeness: float


def list_similar(case: FailureCase) -> list[Similar]:
    """The open cases most like it among the newest of its cluster, or of those in none; the closest first."""
    if not case.embedded_text:
        return []
    others = FailureCase.objects.filter(
        harness_id=case.harness_id, state=CaseState.OPEN, cluster=case.cluster_id
    )
    rows = others.exclude(pk=case.pk).exclude(embedded_text="").order_by("-pk")
    listed = list(rows.only("pk", "title", "embedded_text", "harness_id", "count")[:MOST_COMPARED])
    vectors = _vectors([case, *listed])
    own = vectors.get(_digest(case))
    if own is None:
        return []
    found = [
        Similar(other, float(own @ vectors[_digest(other)])) for other in listed if _digest(other) in vectors
    ]
    alike = [similar for similar in found if similar.likeness >= LEAST_LIKENESS]
    return sorted(alike, key=lambda similar: -similar.likeness)[:MOST_SIMILAR]


def _digest(case: FailureCase) -> str:
    return hashlib.sha256(case.embedded_text.encode()).hexdigest()


def _vectors(cases: list[FailureCase]) -> dict[str, Any]:
    """Unit vectors by the digest of the text, under the model that last embedded the first case's."""
    newest = Embedding.objects.filter(digest=_digest(cases[0])).order_by("-pk").first()
    if newest is None:
        return {}
    stored = Embedding.objects.filter(model=newest.model, digest__in={_digest(case) for case in cases})
    return {row.digest: np.frombuffer(row.vector, dtype=np.float32) for row in stored}


def list_people() -> list[User]:
    """Who a case can be assigned to."""
    people = User.objects.filter(is_active=True)
    return list(people.order_by("username")[:1000])


def list_dataset_places(case: FailureCase) -> list[DatasetCase]:
    """The dataset case that the failure is tied to, as the newest version of its dataset has it; none or one."""
    if case.dataset_case is None:
        return []
    dataset = case.dataset_case.version.dataset_id
    found = DatasetCase.objects.filter(version__dataset=dataset, key=case.dataset_case.key)
    return list(found.select_related("version__dataset").order_by("-version__number")[:1])


def describe_case(case: FailureCase) -> dict[str, Any]:
    """The case as one JSON object; the import of our own format takes it."""
    return {
        "id": case.source_id,
        "source": case.source,
        "failed": True,
        "request": case.request,
        "context": case.context,
        "trajectory": case.trajectory,
        "reply": case.reply,
        "symptom": case.symptom,
        "category": case.category,
        "tags": case.tags,
        "scores": case.scores,
        "findings": case.findings,
        **(case.signals if isinstance(case.signals, dict) else {}),
        "blamed_turn": case.blamed_turn,
        "happened_at": case.happened_at.isoformat() if case.happened_at else None,
        "harness_commit": case.harness_commit,
    }


def find_value(record: Any, pointer: str) -> Any:
    """What stands in a JSON value at a JSON pointer (RFC 6901), which goes on into JSON that stands in a text.

    Raises LookupError where nothing is.
    """
    value = record
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        value = _step(json.loads(value) if isinstance(value, str) else value, name)
    return value


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value[name]
    if isinstance(value, list) and name.isascii() and name.isdigit():
        return value[int(name)]
    raise LookupError(name)


def last_turn(case: FailureCase) -> int:
    """The number of the agent's last message, 1 where there is none."""
    messages = case.trajectory.get("messages") if isinstance(case.trajectory, dict) else None
    said = messages if isinstance(messages, list) else []
    return sum(isinstance(message, dict) and message.get("role") == "assistant" for message in said) or 1


def build_chat_request(case: FailureCase, turn: int, model: str) -> dict[str, Any]:
    """What the model was sent before the agent's turn, as a chat-completions request; tools where they are known.

    `model` stands in where the case does not name one.
    """
    payload: dict[str, Any] = {
        "model": _model_of(case, turn) or model,
        "messages": find_asked(case.trajectory, case.request if isinstance(case.request, dict) else {}, turn),
    }
    tools = _tools_of(case)
    return {**payload, "tools": tools} if tools else payload


def _model_of(case: FailureCase, turn: int) -> str:
    calls = case.trajectory.get("calls") if isinstance(case.trajectory, dict) else None
    made = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    named = [
        call["model"] for call in made if call.get("turn") == turn and isinstance(call.get("model"), str)
    ]
    known = case.context.get("model") if isinstance(case.context, dict) else None
    return str(next(filter(None, [*named, known if isinstance(known, str) else ""]), ""))


def _tools_of(case: FailureCase) -> list[dict[str, Any]]:
    """What the source says that the model was offered, else the tools of the version that ran."""
    told = case.context.get("tools") if isinstance(case.context, dict) else None
    if isinstance(told, list) and told:
        return [tool for tool in told if isinstance(tool, dict)]
    if not case.harness_commit or (case.evaluation and case.evaluation.runner):
        return []
    return _version_tools(case.harness, case.harness_commit)


def _version_tools(harness: Harness, commit: str) -> list[dict[str, Any]]:
    try:
        return tool_definitions(read_version(harness, commit))
    except HarnessRepoError:
        # A production trace may name a commit of another repository.
        return []
