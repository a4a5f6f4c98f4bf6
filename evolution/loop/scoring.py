"""Inside an evaluation: one case is answered by the harness and scored by the judge. Pure async; no records written.

A reply that a limit or a hook left behind is judged like any other; only where there is nothing to judge, or no
valid judgement, the outcome is an error, which is never a score.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from evolution.models import DatasetCase
from evolution.ports import NamedModel
from harness_repo.harness import Harness as HarnessState
from harness_repo.json_schema import SchemaUnusable, find_violation
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.trajectory import Trajectory

POLICY_ERROR = "policy_error"
JUDGE_ERROR = "judge_error"
JUDGE_OUTPUT = "judge_output"
LONGEST_ERROR = 2000
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
    """The two harnesses of an evaluation with the models that drive them."""

    agent: HarnessState
    judge: HarnessState
    policy: NamedModel
    judge_model: NamedModel


@dataclass(frozen=True)
class CaseOutcome:
    """What is stored of one (case, repeat): the fields of CaseResult, cleaned for PostgreSQL."""

    accuracy: float | None = None
    effectiveness: float | None = None
    reasons: dict[str, Any] = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)
    reply: str = ""
    trajectory: dict[str, Any] = field(default_factory=dict)
    judge_trajectory: dict[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0
    error_kind: str = ""
    error: str = ""

    def to_fields(self) -> dict[str, Any]:
        """Field name -> value."""
        return asdict(self)


async def score_case(case: DatasetCase, scorer: Scorer) -> CaseOutcome:
    """Answer and judge one case; whatever goes wrong is in the outcome, and nothing is raised."""
    # One case that can't be run or judged says so on its result; the others go on.
    try:
        answered, outcome = await _answer(case, scorer)
    except Exception as failure:  # noqa: BLE001
        return CaseOutcome(error_kind=POLICY_ERROR, error=_describe(failure))
    if outcome.error_kind:
        return outcome
    try:
        return replace(outcome, **await _judge(case, answered, scorer))
    except Exception as failure:  # noqa: BLE001
        return replace(outcome, error_kind=JUDGE_ERROR, error=_describe(failure))


async def _answer(case: DatasetCase, scorer: Scorer) -> tuple[Trajectory, CaseOutcome]:
    """The agent's run, and its fields; an error when it left nothing to judge."""
    answered = await run_agent(
        scorer.agent,
        build_variables(case.request, case.context),
        scorer.policy.model,
        model_name=scorer.policy.name,
        sandbox=ToolSandbox(scorer.agent.tools, case.fixtures),
    )
    outcome = CaseOutcome(**_run_fields(answered))
    if answered.status == "model_error" or _never_answered(answered):
        outcome = replace(outcome, error_kind=POLICY_ERROR, error=_shorten(answered.error or ""))
    return answered, outcome


async def _judge(case: DatasetCase, answered: Trajectory, scorer: Scorer) -> dict[str, Any]:
    """The fields that the judgement fills, or those of its error."""
    variables = {
        "case": {"request": case.request, "context": case.context, "category": case.category},
        "reply": answered.reply or "",
        "evidence": answered.evidence(),
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


def _never_answered(answered: Trajectory) -> bool:
    """Whether the time ran out before the model said anything: an outage, and not the harness's doing."""
    return answered.status == "time_limit" and not answered.calls


def _run_fields(answered: Trajectory) -> dict[str, Any]:
    return {
        "reply": clean_json(answered.reply or ""),
        "trajectory": clean_json(answered.to_dict()),
        "prompt_tokens": _count(answered.usage.prompt_tokens),
        "completion_tokens": _count(answered.usage.completion_tokens),
        "latency_ms": answered.latency_ms if math.isfinite(answered.latency_ms) else 0.0,
    }


def _count(tokens: int) -> int:
    """Tokens as a model counted them, as far as they can be stored: what it says is not always sound."""
    return min(max(tokens, 0), MOST_TOKENS)


def _describe(failure: Exception) -> str:
    return _shorten(f"{type(failure).__name__}: {failure}")


def _shorten(text: str) -> str:
    return str(clean_json(text))[:LONGEST_ERROR]
