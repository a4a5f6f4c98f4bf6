"""The repeats of an evaluation: how each case fared over its trials, the flakiest first."""

from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from evolution.loop.stability import CaseStability, Stability, sum_up
from evolution.models import Evaluation

# Cases stay in the database, but for the flaky ones that are shown.
_BY_CASE = """
    SELECT case_id, count(*) FILTER (WHERE error_kind = '') AS trials,
           count(*) FILTER (WHERE accuracy = 1 AND effectiveness = 1) AS passes,
           avg(accuracy) AS accuracy, avg(effectiveness) AS effectiveness,
           count(*) FILTER (WHERE error_kind <> '') AS errors
    FROM evolution_caseresult WHERE evaluation_id = %s GROUP BY case_id
"""
_COUNTED = f"SELECT trials, passes, count(*) FROM ({_BY_CASE}) AS by_case GROUP BY 1, 2"  # noqa: S608  our own text
# The flakiest first, as `CaseStability.flakiness` has it, then those that fail most.
_FLAKIEST = f"""
    SELECT case_id, key, category, trials, passes, accuracy, effectiveness, errors
    FROM ({_BY_CASE}) AS by_case JOIN evolution_datasetcase one ON one.id = case_id
    WHERE passes > 0 AND passes < trials
    ORDER BY passes * (trials - passes) / (trials * (trials - 1) / 2.0) DESC, passes / trials::float, key LIMIT %s
"""  # noqa: S608  our own text


@dataclass(frozen=True)
class StabilityTable:
    """What a page shows of the repeats: the sums over all cases, and the first of its rows."""

    summary: Stability
    rows: list[CaseStability]
    # flaky cases that are not among the rows
    left_out: int


def sum_stability(evaluation: Evaluation) -> Stability:
    """All cases with a result together."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [evaluation.pk])
        return sum_up({(trials, passes): cases for trials, passes, cases in cursor.fetchall()})


def list_flaky(evaluation: Evaluation, most: int) -> list[CaseStability]:
    """The flakiest cases, at most so many of them."""
    with connection.cursor() as cursor:
        cursor.execute(_FLAKIEST, [evaluation.pk, most])
        return [CaseStability(*row) for row in cursor.fetchall()]


def tabulate_stability(evaluation: Evaluation, most: int = 50) -> StabilityTable | None:
    """The flaky cases of an evaluation with repeats, at most so many of them; None where each case has one trial."""
    if evaluation.repeats < 2:
        return None
    summary = sum_stability(evaluation)
    rows = list_flaky(evaluation, most)
    return StabilityTable(summary, rows, max(0, summary.flaky - len(rows)))


class Trial(NamedTuple):
    """One repeat of a case; scores 0-1, None with an error."""

    repeat: int
    result_id: int
    accuracy: float | None
    effectiveness: float | None
    error_kind: str

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.accuracy == self.effectiveness == 1


def list_trials(evaluation: Evaluation, case_id: int) -> list[Trial]:
    """The trials of a case that have a result, by repeat."""
    trials = evaluation.results.filter(case=case_id).order_by("repeat")
    return [
        Trial(*row)
        for row in trials.values_list("repeat", "id", "accuracy", "effectiveness", "error_kind").iterator()
    ]
