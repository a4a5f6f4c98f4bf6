"""One failure with what is around it: cases like it, and its record for other programs."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolution.models import DatasetCase, Embedding, FailureCase
from evolution.states import CaseState

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
