"""The repeats of an evaluation: how each case fared over its trials, the flakiest first."""

from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Avg, Count, Q

from evolution.loop.stability import CaseStability, Stability, order_by_flakiness, sum_up
from evolution.models import Evaluation
from evolution.queries.results import ERROR, OUTCOMES

SCORED = Q(error_kind="")


@dataclass(frozen=True)
class StabilityTable:
    """What a page shows of the repeats: the sums over all cases, and the first of its rows."""

    summary: Stability
    rows: list[CaseStability]
    # flaky cases that are not among the rows
    left_out: int


def measure_stability(evaluation: Evaluation) -> list[CaseStability]:
    """Every case with a result, with its trials counted, in order of flakiness."""
    counted = (
        evaluation.results.order_by()
        .values_list("case_id", "case__key", "case__category")
        .annotate(
            trials=Count("id", filter=SCORED),
            passes=Count("id", filter=SCORED & OUTCOMES["passed"]),
            accuracy_mean=Avg("accuracy", filter=SCORED),
            effectiveness_mean=Avg("effectiveness", filter=SCORED),
            errors=Count("id", filter=ERROR),
        )
    )
    return order_by_flakiness([CaseStability(*row) for row in counted])


def tabulate_stability(evaluation: Evaluation, most: int = 50) -> StabilityTable | None:
    """The flaky cases of an evaluation with repeats, at most so many of them; None where each case has one trial."""
    if evaluation.repeats < 2:
        return None
    cases = measure_stability(evaluation)
    flaky = [case for case in cases if case.is_flaky]
    return StabilityTable(sum_up(cases), flaky[:most], max(0, len(flaky) - most))


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
