"""Inside an evaluation: what is stored of one (case, repeat), and whose failure it is when there is no score."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from evolution.loop.prices import cost_of
from evolution.loop.usage import count_tokens
from harness_repo.runtime.storable import make_storable
from harness_repo.runtime.trajectory import CallRecord, Trajectory, sum_usage

# Nothing was left to judge: the agent's model failed, a model or the run ran out of time, an agent that is not ours
# failed, the simulated user's model failed, the case can't be read.
POLICY_ERROR = "policy_error"
TIMEOUT = "timeout"
RUNNER_ERROR = "runner_error"
USER_ERROR = "user_error"
CASE_ERROR = "case_error"
# There is something to judge, and no judgement: the judge's model failed, ran out of time, or said what is none.
JUDGE_ERROR = "judge_error"
JUDGE_TIMEOUT = "judge_timeout"
JUDGE_OUTPUT = "judge_output"
# What may be spent was spent, by whichever model would have been asked.
BUDGET = "budget"
# It was not scored at all: the workers died, something it needs is not there, or the database refused the result.
WORKER_LOST = "worker_lost"
NOT_STARTED = "not_started"
NOT_STORED = "not_stored"
# Outages, which a later try may find over.
RETRYABLE_KINDS = frozenset(
    {POLICY_ERROR, TIMEOUT, RUNNER_ERROR, USER_ERROR, JUDGE_ERROR, JUDGE_TIMEOUT, NOT_STARTED}
)

LONGEST_ERROR = 2000
# The most that the column of costs holds.
MOST_COST = Decimal(999_999)


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
    cached_tokens: int = 0
    judge_prompt_tokens: int = 0
    judge_completion_tokens: int = 0
    judge_cached_tokens: int = 0
    latency_ms: float = 0.0
    calls: int = 0
    calls_cached: int = 0
    call_ms: list[float] = field(default_factory=list)
    judge_call_ms: list[float] = field(default_factory=list)
    # None when the price of a call is not known.
    cost: Decimal | None = None
    error_kind: str = ""
    error: str = ""

    def to_fields(self) -> dict[str, Any]:
        """Field name -> value; the values are the outcome's own."""
        return dict(vars(self))


def run_fields(answered: Trajectory, model: str, user_model: str = "") -> dict[str, Any]:
    """The fields of the agent's run; with an error when it left nothing to judge.

    `model` is the name that prices know the agent's model by, "" for that of an agent that is not ours.
    """
    kind = kind_of_run(answered)
    usage = answered.usage
    return {
        "reply": make_storable(shown_reply(answered)),
        "trajectory": answered.to_dict(),
        # What a budget cut off is no failure of the model's.
        "run_status": BUDGET if kind == BUDGET else answered.status,
        "prompt_tokens": count_tokens(usage.prompt_tokens),
        "completion_tokens": count_tokens(usage.completion_tokens),
        "cached_tokens": count_tokens(usage.cached_tokens),
        "latency_ms": answered.latency_ms if math.isfinite(answered.latency_ms) else 0.0,
        "call_ms": _times(answered.calls),
        **_sum_calls(_price_run(answered, model, user_model), answered.calls, answered.user_calls),
        "error_kind": kind,
        "error": shorten(answered.error or answered.status) if kind else "",
    }


def judgement_fields(judged: Trajectory, model: str, before: CaseOutcome) -> dict[str, Any]:
    """The fields of the judge's run, its calls added to those before it; scores and errors stand elsewhere."""
    usage = sum_usage(judged.calls)
    added = _sum_calls(_price(judged.calls, model), judged.calls)
    cost = None if before.cost is None or added["cost"] is None else before.cost + added["cost"]
    return {
        "judge_trajectory": judged.to_dict(),
        "judge_prompt_tokens": count_tokens(usage.prompt_tokens),
        "judge_completion_tokens": count_tokens(usage.completion_tokens),
        "judge_cached_tokens": count_tokens(usage.cached_tokens),
        "judge_call_ms": _times(judged.calls),
        "calls": before.calls + added["calls"],
        "calls_cached": before.calls_cached + added["calls_cached"],
        "cost": None if cost is None else min(cost, MOST_COST),
    }


def shown_reply(answered: Trajectory) -> str:
    """What the viewer read: of a conversation all replies, each on a line of its own."""
    return "\n".join(answered.replies())


def kind_of_run(answered: Trajectory) -> str:
    """Whose failure left nothing to judge; empty when there is something."""
    if answered.status in ("model_error", RUNNER_ERROR, USER_ERROR):
        if answered.error_kind == "budget":
            return BUDGET
        if answered.error_kind == "case":
            return CASE_ERROR
        if answered.status == "model_error":
            return TIMEOUT if answered.error_kind == "timeout" else POLICY_ERROR
        return answered.status
    if answered.status != "time_limit" or answered.reply is not None or answered.calls:
        return ""
    # The time ran out before anybody said anything: an outage, unless the harness has used it up itself.
    return POLICY_ERROR if answered.error_kind == "configuration" else TIMEOUT


def kind_of_judgement(judged: Trajectory) -> str:
    """What kept the judge from a verdict that it stands by; empty when it has given one.

    One that its own hooks, or who reads it, still refuse after the last retry is none.
    """
    if judged.status == "model_error" and judged.error_kind == "budget":
        return BUDGET
    if judged.status == "time_limit" or (judged.status, judged.error_kind) == ("model_error", "timeout"):
        return JUDGE_TIMEOUT
    if judged.status in ("ok", "blocked") and judged.reply is not None:
        return ""
    return JUDGE_OUTPUT if judged.status.endswith("_limit") else JUDGE_ERROR


def describe(failure: BaseException) -> str:
    """What was raised, as the error of a result."""
    return shorten(f"{type(failure).__name__}: {failure}")


def shorten(text: str) -> str:
    """A text that the column of errors holds."""
    return str(make_storable(text))[:LONGEST_ERROR]


def _price_run(answered: Trajectory, model: str, user_model: str) -> list[Decimal | None]:
    """The price of each call of a run; of an agent that tells none of its calls, one that is not known."""
    if answered.runner and not answered.calls:
        return [None]
    return [*_price(answered.calls, model), *_price(answered.user_calls, user_model)]


def _price(calls: Iterable[CallRecord], model: str) -> list[Decimal | None]:
    return [
        cost_of(model or call.model, call.prompt_tokens, call.completion_tokens, call.cached_tokens)
        for call in calls
    ]


def _sum_calls(costs: Sequence[Decimal | None], *calls: Sequence[CallRecord]) -> dict[str, Any]:
    """How many calls, how many of them kept ones, and what they cost."""
    known = [cost for cost in costs if cost is not None]
    made = list(itertools.chain(*calls))
    return {
        "calls": len(made),
        "calls_cached": sum(call.is_cached for call in made),
        "cost": min(sum(known, Decimal(0)), MOST_COST) if len(known) == len(costs) else None,
    }


def _times(calls: Iterable[CallRecord]) -> list[float]:
    return [float(call.ms) if math.isfinite(call.ms) else 0.0 for call in calls]
