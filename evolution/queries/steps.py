"""Evolution steps, what each decision rests on, and what stopping would bring."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from evolution.errors import LoopError
from evolution.loop.promotion import advise, measured_versions
from evolution.loop.repositories import open_repository
from evolution.loop.steps import UNDECIDED, StepConflict, find_conflict
from evolution.models import DatasetCase, Harness, Proposal, Step
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import MAIN


@dataclass(frozen=True)
class StopForecast:
    """The version that stopping now would leave live."""

    commit: str
    # None for the baseline
    step_number: int | None
    # main does not have its files yet
    moves_main: bool


@dataclass(frozen=True)
class NamedGuard:
    """A guard case that a verdict speaks of."""

    case_id: int
    key: str
    # guard_broken, guard_unsteady or guard_failing
    what: str


GUARD_KINDS = ("guard_broken", "guard_unsteady", "guard_failing")


def list_steps(harness: Harness) -> QuerySet[Step]:
    """Steps, newest first, with their proposals and verdicts."""
    columns = ("id", "title", "state", "step_id", "harness_id", "diagnosis__cluster__number")
    proposals = Proposal.objects.order_by("id").select_related("diagnosis__cluster").only(*columns)
    return (
        Step.objects.filter(harness=harness)
        .select_related("verdict", "base_evaluation", "candidate_evaluation")
        .prefetch_related(Prefetch("merged", proposals))
        .order_by("-number")
    )


def list_step_proposals(step: Step) -> list[Proposal]:
    """The proposals that a step's candidate was made of, wherever they went since, with their clusters."""
    proposals = step.merged.select_related("diagnosis__cluster").defer("diagnosis__cluster__centroid")
    return list(proposals.order_by("id"))


@dataclass(frozen=True)
class MergeForecast:
    """What merging proposals on what is live would bring; `is_known` is False when git can't be asked."""

    is_known: bool
    conflict: StepConflict | None


def foresee_merge(harness: Harness, proposals: Sequence[Proposal]) -> MergeForecast:
    """Whether the proposals can be put together; writes nothing."""
    if not proposals:
        return MergeForecast(is_known=False, conflict=None)
    try:
        return MergeForecast(is_known=True, conflict=find_conflict(harness, proposals))
    except HarnessRepoError:
        return MergeForecast(is_known=False, conflict=None)


def foresee_conflict(harness: Harness, proposals: Sequence[Proposal]) -> StepConflict | None:
    """What would keep the proposals from being merged on what is live; None also when git can't be asked."""
    return foresee_merge(harness, proposals).conflict


def undecided_step(harness: Harness) -> Step | None:
    """The step that has to be decided before another can start."""
    return harness.steps.filter(state__in=UNDECIDED).first()


def foresee_stop(harness: Harness) -> StopForecast | None:
    """What stopping now would select; None before anything is measured, or when git can't be asked."""
    try:
        selected = advise(harness).selected
        moves = bool(open_repository(harness).changed_files(MAIN, selected))
    except (LoopError, HarnessRepoError):
        return None
    numbers = {
        evaluation.commit: step.number if step else None for evaluation, step in measured_versions(harness)
    }
    return StopForecast(selected, numbers.get(selected), moves)


def list_guards(step: Step) -> list[NamedGuard]:
    """The guard cases that the verdict speaks of, the broken ones first."""
    if step.verdict is None or step.candidate_evaluation is None:
        return []
    figures = step.verdict.figures
    kinds = {key: what for what in GUARD_KINDS for key in figures.get(what, [])}
    cases = DatasetCase.objects.filter(version=step.candidate_evaluation.dataset_version_id, key__in=kinds)
    found = [NamedGuard(pk, key, kinds[key]) for pk, key in cases.values_list("pk", "key")]
    return sorted(found, key=lambda guard: (GUARD_KINDS.index(guard.what), guard.key))
