"""Inside an evaluation: one case is answered by the agent and scored by the judge. Pure async; no records written.

A reply that a limit or a hook left behind is judged like any other (a hook_limit's too,
though hooks refused it); only where there is nothing to judge, or no
valid judgement, the outcome is an error, which is never a score.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from evolution.models import DatasetCase
from evolution.ports import NamedModel
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.json_schema import SchemaUnusable, find_violation
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.conversation import run_conversation
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase, Runner
from harness_repo.runtime.simulated_user import is_conversation
from harness_repo.runtime.trajectory import Trajectory

POLICY_ERROR = "policy_error"
RUNNER_ERROR = "runner_error"
USER_ERROR = "user_error"
JUDGE_ERROR = "judge_error"
JUDGE_OUTPUT = "judge_output"
LONGEST_ERROR = 2000
# Characters of a text, and of a list of them, that a judge is shown.
LONGEST_FOR_JUDGE = 20_000
MOST_FOR_JUDGE = 200_000
MOST_ENTRIES_FOR_JUDGE = 500
# The most that the columns of tokens hold.
MOST_TOKENS = 2**31 - 1

# What every judge's reply has to have, whatever else its harness asks for.
SCORES_SCHEMA = {
    "type": "object",
    "required": ["accuracy", "effectiveness"],
    "properties": {
        "accuracy": {"enum": [0, 1]},
        "effectiveness": {"enum": [0, 0.5, 1]},
        "reasons": {"type": "object"},
        "findings": {"type": "array", "items": {"type": "object"}},
    },
}


@dataclass(frozen=True)
class Scorer:
    """The agent of an evaluation, its judge with the model that drives it, and what is the same for every case."""

    runner: Runner
    judge: HarnessState
    judge_model: NamedModel
    # Plays the user of conversation cases; None where there are none.
    user: NamedModel | None = None
    # The version that is measured.
    commit: str = ""
    # Strike tool calls after the faults of the case itself; see harness_repo.runtime.faults.
    faults: tuple[Mapping[str, Any], ...] = ()

    def connections(self) -> list[AbstractAsyncContextManager[Any]]:
        """What keeps connections open for as long as it is entered, each once."""
        parts: list[Any] = [self.runner, self.judge_model.model]
        if isinstance(self.runner, NativeRunner):
            parts.append(self.runner.model)
        if self.user is not None:
            parts.append(self.user.model)
        unique = {id(part): part for part in parts}.values()
        return [part for part in unique if isinstance(part, AbstractAsyncContextManager)]


@dataclass(frozen=True)
class CaseOutcome:
    """What is stored of one (case, repeat): the fields of CaseResult, cleaned for PostgreSQL."""

    accuracy: float | None = None
    effectiveness: float | None = None
    reasons: dict[str, Any] = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)
    reply: str = ""
    trajectory: dict[str, Any] = field(default_factory=dict)
    run_status: str = ""
    judge_trajectory: dict[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0
    error_kind: str = ""
    error: str = ""

    def to_fields(self) -> dict[str, Any]:
        """Field name -> value."""
        return asdict(self)


async def score_case(case: DatasetCase, scorer: Scorer, repeat: int = 0) -> CaseOutcome:
    """Answer and judge one case; whatever goes wrong is in the outcome, and nothing is raised."""
    # One case that can't be run or judged says so on its result; the others go on.
    try:
        answered = await _answer(_run_case(case, scorer, repeat), scorer)
        outcome = CaseOutcome(**_run_fields(answered))
    except Exception as failure:  # noqa: BLE001
        return CaseOutcome(error_kind=POLICY_ERROR, error=_describe(failure))
    if outcome.error_kind:
        return outcome
    try:
        return replace(outcome, **await _judge(case, answered, scorer))
    except Exception as failure:  # noqa: BLE001
        return replace(outcome, error_kind=JUDGE_ERROR, error=_describe(failure))


def seed_of(case_key: str, repeat: int) -> int:
    """The seed of one (case, repeat), 31 bits: the same in every evaluation, so that two of them can be paired."""
    digest = hashlib.sha256(f"{case_key}\n{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _run_case(case: DatasetCase, scorer: Scorer, repeat: int) -> RunCase:
    """What the agent is given: never what a right answer states."""
    return RunCase(
        key=case.key,
        request=case.request,
        context=case.context,
        fixtures=case.fixtures,
        faults=(*case.faults, *scorer.faults),
        commit=scorer.commit,
        repeat=repeat,
        seed=seed_of(case.key, repeat),
    )


async def _answer(case: RunCase, scorer: Scorer) -> Trajectory:
    """The agent's run, or its conversation with the simulated user."""
    if not is_conversation(case.request):
        return await scorer.runner.run(case)
    if scorer.user is None:
        return Trajectory("user_error", None, error="no model plays the user")
    return await run_conversation(scorer.runner.run, case, scorer.user.model, scorer.user.name)


async def _judge(case: DatasetCase, answered: Trajectory, scorer: Scorer) -> dict[str, Any]:
    """The fields that the judgement fills, or those of its error."""
    # An agent that says more than a judge can read has a score and no error of the judge's.
    variables = {
        "case": {"request": case.request, "context": case.context, "category": case.category},
        "reply": cut_text(_shown_reply(answered)),
        "conversation": cut_json([asdict(turn) for turn in answered.conversation]),
        "evidence": cut_json(answered.evidence()),
        "expected": case.expected,
    }
    name = scorer.judge_model.name
    judged = await run_agent(scorer.judge, variables, scorer.judge_model.model, model_name=name)
    fields = {"judge_trajectory": clean_json(judged.to_dict())}
    if judged.reply is None:
        text = judged.error or f"the judge gave no reply: {judged.status}"
        return {**fields, "error_kind": JUDGE_ERROR, "error": _shorten(text)}
    try:
        read = Allowance().spend("reading the judge's reply", read_scores, judged.reply, scorer.judge)
    except (ValueError, TooMuchComputing) as failure:
        return {**fields, "error_kind": JUDGE_OUTPUT, "error": _shorten(str(failure))}
    return {**fields, **read}


def cut_text(text: str, most: int = LONGEST_FOR_JUDGE) -> str:
    """A text as the judge is shown it: one that is too long ends with a word about that."""
    return text if len(text) <= most else f"{text[:most]}… [cut: {len(text)} characters]"


def cut_json(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a list: long texts in it are cut, and entries that there is no more room for say so."""
    left, shown = MOST_FOR_JUDGE, []
    for entry in entries:
        cut: Any = _cut_inside(entry, LONGEST_FOR_JUDGE)
        size = len(json.dumps(cut, ensure_ascii=False, default=str))
        left -= size
        shown.append(cut if left >= 0 else {**_names_of(entry), "cut": f"{size} characters"})
        if len(shown) == MOST_ENTRIES_FOR_JUDGE:
            break
    return shown


def _cut_inside(value: object, most: int) -> object:
    if isinstance(value, str):
        return cut_text(value, most)
    if isinstance(value, dict):
        return {key: _cut_inside(inner, most) for key, inner in value.items()}
    return [_cut_inside(inner, most) for inner in value] if isinstance(value, list) else value


def _names_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cut_text(str(entry[name]), 200) for name in ("tool", "error") if name in entry}


def read_scores(reply: str, judge: HarnessState) -> dict[str, Any]:
    """The scores, reasons and findings of a judge's reply; ValueError when it breaks its schema."""
    scores: Any = read_json(reply)
    for schema in filter(None, (judge.reply_schema, SCORES_SCHEMA)):
        try:
            wrong = find_violation(schema, scores)
        except SchemaUnusable as failure:
            raise ValueError(str(failure)) from failure
        if wrong:
            raise ValueError(wrong)
    return {
        "accuracy": float(scores["accuracy"]),
        "effectiveness": float(scores["effectiveness"]),
        "reasons": clean_json(scores.get("reasons", {})),
        "findings": clean_json(scores.get("findings", [])),
    }


def clean_json(value: Any) -> Any:
    """The same JSON without what PostgreSQL can't keep.

    NUL characters and half surrogate pairs become U+FFFD; nan, inf and -inf become these words.
    """
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {clean_json(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _run_fields(answered: Trajectory) -> dict[str, Any]:
    """The fields of the agent's run; with an error when it left nothing to judge."""
    kind = _error_kind(answered)
    return {
        "reply": clean_json(_shown_reply(answered)),
        "trajectory": clean_json(answered.to_dict()),
        "run_status": answered.status,
        "prompt_tokens": _count(answered.usage.prompt_tokens),
        "completion_tokens": _count(answered.usage.completion_tokens),
        "latency_ms": answered.latency_ms if math.isfinite(answered.latency_ms) else 0.0,
        "error_kind": kind,
        "error": _shorten(answered.error or answered.status) if kind else "",
    }


def _shown_reply(answered: Trajectory) -> str:
    """What the viewer read: of a conversation all replies, each on a line of its own."""
    return "\n".join(answered.replies())


def _error_kind(answered: Trajectory) -> str:
    """Whose failure left nothing to judge; empty when there is something."""
    if answered.status in (RUNNER_ERROR, USER_ERROR):
        return answered.status
    if answered.status == "model_error":
        return POLICY_ERROR
    if answered.status == "time_limit" and answered.reply is None and not answered.calls:
        # The time ran out before anybody said anything: an outage, and not the harness's doing.
        return RUNNER_ERROR if answered.runner else POLICY_ERROR
    return ""


def _count(tokens: int) -> int:
    """Tokens as a model counted them, as far as they can be stored: what it says is not always sound."""
    return min(max(tokens, 0), MOST_TOKENS)


def _describe(failure: Exception) -> str:
    return _shorten(f"{type(failure).__name__}: {failure}")


def _shorten(text: str) -> str:
    return str(clean_json(text))[:LONGEST_ERROR]
