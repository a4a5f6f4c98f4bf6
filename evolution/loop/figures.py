"""Beside stage 5: what the results of evaluations came to: means, latency, tokens, money. Nothing here judges.

Adding up a large evaluation takes a good part of a second, and boards and lists ask for fifty at a time: what has ended
is added up once, and kept with the evaluation.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Avg, Count, F, Q, Sum
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from evolution.models import CaseResult, Evaluation
from evolution.states import Split

# A worker that was cut off from the database may still store a batch after the end; see EVALUATION_DATABASE_PATIENCE.
SETTLED = timedelta(minutes=10)

# Evaluation, number, and the 50th, 95th and 99th percentile in milliseconds.
_OF_CALLS = """
    SELECT evaluation_id, count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY ms)
    FROM (SELECT evaluation_id, unnest({column}) AS ms FROM evolution_caseresult
          WHERE evaluation_id = ANY(%s)) AS calls GROUP BY 1
"""
_OF_CASES = """
    SELECT evaluation_id, count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY latency_ms)
    FROM evolution_caseresult WHERE evaluation_id = ANY(%s) AND latency_ms > 0 GROUP BY 1
"""
_LATENCIES = {
    "policy": _OF_CALLS.format(column="call_ms"),
    "judge": _OF_CALLS.format(column="judge_call_ms"),
    "case": _OF_CASES,
}


@dataclass(frozen=True)
class Latency:
    """Percentiles in milliseconds over `count` calls or cases."""

    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Cost:
    """What the results of an evaluation take when every call is made, calls answered from kept ones included."""

    results: int = 0
    # results whose cost is known
    priced: int = 0
    # of these, in `currency`
    money: Decimal = Decimal(0)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # the part of prompt_tokens that providers read from their own caches
    cached_tokens: int = 0
    # the evaluation's; empty for one that was made before currencies were kept
    currency: str = ""

    @property
    def per_case(self) -> Decimal | None:
        """The mean over the results whose cost is known; None without any."""
        return self.money / self.priced if self.priced else None

    @property
    def sent_per_case(self) -> int:
        """Tokens to the models, the mean over the results."""
        return round(self.prompt_tokens / self.results) if self.results else 0

    @property
    def received_per_case(self) -> int:
        """Tokens from the models, the mean over the results."""
        return round(self.completion_tokens / self.results) if self.results else 0

    @property
    def unpriced(self) -> int:
        """Results whose cost is unknown."""
        return self.results - self.priced


NO_COST = Cost()


@dataclass(frozen=True)
class Figures:
    """What is stored of an evaluation, added up; scores are means on the 0-1 scale, guard cases left out of them."""

    # over all splits: cases with a result, results, and results that are errors
    cases: int = 0
    results: int = 0
    errors: int = 0
    accuracy: float | None = None
    effectiveness: float | None = None
    # of one call of "policy" and "judge", and of the agent's run on a "case"; what nobody timed is not there
    latencies: dict[str, Latency] = field(default_factory=dict)
    cost: Cost = NO_COST

    @property
    def scored(self) -> int:
        """Results with scores."""
        return self.results - self.errors


NO_FIGURES = Figures()


def figures_of(evaluations: Iterable[Evaluation]) -> dict[int, Figures]:
    """Evaluation id -> its figures, with a few questions to the database for all; kept ones are not added up again."""
    listed = list(evaluations)
    found = {one.pk: kept for one in listed if (kept := kept_figures(one)) is not None}
    missing = [one for one in listed if one.pk not in found]
    if missing:
        found |= _add_up([one.pk for one in missing])
        for one in missing:
            _keep(one, found[one.pk])
    return found


def kept_figures(evaluation: Evaluation) -> Figures | None:
    """The figures that are kept with an evaluation, if they are those of its last end."""
    if not evaluation.figures or evaluation.figures["end"] != _name_end(evaluation):
        return None
    stored = {**evaluation.figures}
    del stored["end"]
    timed = stored.pop("latencies")
    # The database has an order of its own.
    latencies = {name: Latency(**timed[name]) for name in _LATENCIES if name in timed}
    cost = stored.pop("cost")
    return Figures(**stored, latencies=latencies, cost=Cost(**{**cost, "money": Decimal(cost["money"])}))


def _keep(evaluation: Evaluation, figures: Figures) -> None:
    """Keep what can't change any more, unless somebody resumes it; that takes the end away, or gives it another."""
    if evaluation.finished_at is None or evaluation.finished_at > timezone.now() - SETTLED:
        return
    stored = asdict(figures)
    stored["cost"]["money"] = str(figures.cost.money)
    stored["end"] = _name_end(evaluation)
    settled = Evaluation.objects.filter(pk=evaluation.pk, finished_at=evaluation.finished_at)
    settled.filter(finished_at__lt=Now() - SETTLED).update(figures=stored)


def _name_end(evaluation: Evaluation) -> str:
    return evaluation.finished_at.isoformat() if evaluation.finished_at else ""


def _add_up(ids: Collection[int]) -> dict[int, Figures]:
    latencies = {name: _read_latencies(statement, ids) for name, statement in _LATENCIES.items()}
    sums = _sum_results(ids)
    return {
        pk: Figures(
            **sums.get(pk, {}),
            latencies={name: by_id[pk] for name, by_id in latencies.items() if pk in by_id},
        )
        for pk in ids
    }


def _read_latencies(statement: str, ids: Collection[int]) -> dict[int, Latency]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(ids)])
        return {pk: Latency(count, *percentiles) for pk, count, percentiles in cursor.fetchall()}


def _sum_results(ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Evaluation id -> fields of its Figures; one without a result is not there."""
    outside_guard = ~Q(case__split=Split.GUARD)
    rows = (
        CaseResult.objects.filter(evaluation__in=ids).order_by().values("evaluation", "evaluation__currency")
    )
    summed = rows.annotate(
        results=Count("pk"),
        cases=Count("case", distinct=True),
        errors=Count("pk", filter=~Q(error_kind="")),
        mean_accuracy=Avg("accuracy", filter=outside_guard),
        mean_effectiveness=Avg("effectiveness", filter=outside_guard),
        priced=Count("cost"),
        money=Coalesce(Sum("cost"), Decimal(0)),
        sent=Sum(F("prompt_tokens") + F("judge_prompt_tokens")),
        received=Sum(F("completion_tokens") + F("judge_completion_tokens")),
        read_again=Sum(F("cached_tokens") + F("judge_cached_tokens")),
    )
    return {row["evaluation"]: _name_sums(row) for row in summed}


def _name_sums(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("results", "priced", "money", "sent", "received", "read_again", "evaluation__currency")
    cost = Cost(*(row[name] for name in names))
    return {
        **{name: row[name] for name in ("cases", "results", "errors")},
        "accuracy": row["mean_accuracy"],
        "effectiveness": row["mean_effectiveness"],
        "cost": cost,
    }
