"""Inside an evaluation: whether one that measures the same stands for a new one, or is gone on with instead."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.budgets import CALLS, MONEY, SECONDS, TOKENS
from evolution.models import Evaluation, Step
from evolution.states import EvaluationState, StepState

DECIDED = (StepState.PROMOTED, StepState.REVISED, StepState.ROLLED_BACK, StepState.STOPPED)


def find_resumable(same: QuerySet[Evaluation]) -> Evaluation | None:
    """The newest of these that ended with errors and may be gone on with by itself.

    Not one that somebody cancelled, none whose amounts are in another currency than prices are now, and none that the
    verdict of a decided step rests on: that keeps its errors.
    """
    rests = Q(base_evaluation=OuterRef("pk")) | Q(candidate_evaluation=OuterRef("pk"))
    decided = Step.objects.filter(rests, state__in=DECIDED, verdict__isnull=False)
    same = same.filter(currency__in=("", settings.MODEL_CURRENCY))
    return same.filter(~Exists(decided), state=EvaluationState.PARTIAL).first()


def check_same_budget(evaluation: Evaluation, budget: Mapping[str, Any]) -> None:
    """Raise LoopError when an evaluation that is under way would stand for another one with this budget.

    Without a budget it does, whatever its own is.
    """
    if budget and budget != evaluation.budget:
        text = _(
            "%(evaluation)s measures the same, is under way, and its budget is another one (%(budget)s): wait for it, "
            "cancel it, or ask without a budget"
        )
        raise LoopError(text % {"evaluation": evaluation, "budget": describe_budget(evaluation.budget)})


def describe_budget(budget: Mapping[str, Any]) -> str:
    """Such as "calls: 900, money: 2.5"."""
    return ", ".join(f"{part}: {limit}" for part, limit in budget.items()) or _("none")


def extend_budget(evaluation: Evaluation, budget: Mapping[str, Any]) -> dict[str, Any]:
    """The budget under which an evaluation that has ended may use so much more; no limit for parts without one."""
    used = count_used(evaluation)
    return {part: used[part] + limit for part, limit in budget.items()}


def count_used(evaluation: Evaluation) -> dict[str, Any]:
    """What it has used of each part of a budget, whether it has one or not; a try that failed is a call, too.

    What processes that are gone had under way counts as used.
    """
    spent = evaluation.usage.aggregate(
        calls=Sum(F("made") + F("failed"), default=0),
        tokens=Sum(F("prompt_tokens") + F("completion_tokens"), default=0),
        money=Sum("cost", default=0),
    )
    held = evaluation.holds.aggregate(
        calls=Sum("calls", default=0), tokens=Sum("tokens", default=0), money=Sum("money", default=0)
    )
    return {
        CALLS: spent["calls"] + held["calls"],
        TOKENS: spent["tokens"] + held["tokens"],
        MONEY: float(spent["money"] + held["money"]),
        SECONDS: evaluation.running_seconds,
    }
