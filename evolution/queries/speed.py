"""Latency and cost of evaluations: percentiles per model call and per case, tokens, and money where it is known."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from django.db import connection
from django.db.models import Count, F, Sum
from django.db.models.functions import Coalesce

from evolution.models import CaseResult, Evaluation

# Of one evaluation or of many, each with the 50th, 95th and 99th percentile in milliseconds.
_OF_CALLS = """
    SELECT evaluation_id, count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY ms)
    FROM (SELECT evaluation_id, unnest({column}) AS ms FROM evolution_caseresult
          WHERE evaluation_id = ANY(%s)) AS calls GROUP BY 1
"""
_OF_CASES = """
    SELECT evaluation_id, count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY latency_ms)
    FROM evolution_caseresult WHERE evaluation_id = ANY(%s) AND latency_ms > 0 GROUP BY 1
"""


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
    # of these, in MODEL_CURRENCY
    money: Decimal = Decimal(0)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # the part of prompt_tokens that providers read from their own caches
    cached_tokens: int = 0

    @property
    def per_case(self) -> Decimal | None:
        """The mean over the results whose cost is known; None without any."""
        return self.money / self.priced if self.priced else None

    @property
    def unpriced(self) -> int:
        """Results whose cost is unknown."""
        return self.results - self.priced


NO_COST = Cost()


def list_latencies(evaluation: Evaluation) -> list[tuple[str, Latency]]:
    """What is known of "policy" and "judge", for one call of their models, and of a "case", for the agent's run.

    A case takes as long as the agent does, from the request to the reply. What nobody timed is left out.
    """
    ids = [evaluation.pk]
    found = {
        "policy": _read_latencies(_OF_CALLS.format(column="call_ms"), ids),
        "judge": _read_latencies(_OF_CALLS.format(column="judge_call_ms"), ids),
        "case": case_latencies(ids),
    }
    return [(name, by_id[evaluation.pk]) for name, by_id in found.items() if evaluation.pk in by_id]


def case_latencies(evaluations: Collection[int]) -> dict[int, Latency]:
    """Latency of the agent's run on one case, by evaluation id."""
    return _read_latencies(_OF_CASES, evaluations)


def measure_cost(evaluation: Evaluation) -> Cost:
    """Tokens and money over the stored results."""
    return measure_costs([evaluation.pk]).get(evaluation.pk, NO_COST)


def measure_costs(evaluations: Collection[int]) -> dict[int, Cost]:
    """The same by evaluation id; one without a result is not there."""
    rows = CaseResult.objects.filter(evaluation__in=evaluations).order_by().values("evaluation")
    costs = rows.annotate(
        results=Count("pk"),
        priced=Count("cost"),
        money=Coalesce(Sum("cost"), Decimal(0)),
        sent=Sum(F("prompt_tokens") + F("judge_prompt_tokens")),
        received=Sum(F("completion_tokens") + F("judge_completion_tokens")),
        read_again=Sum(F("cached_tokens") + F("judge_cached_tokens")),
    )
    figures = ("evaluation", "results", "priced", "money", "sent", "received", "read_again")
    return {pk: Cost(*cost) for pk, *cost in costs.values_list(*figures)}


def _read_latencies(statement: str, evaluations: Collection[int]) -> dict[int, Latency]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(evaluations)])
        return {pk: Latency(count, *percentiles) for pk, count, percentiles in cursor.fetchall()}
