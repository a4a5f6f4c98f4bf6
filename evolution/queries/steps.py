"""Evolution steps, what each decision rests on, and what stopping would bring."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from evolution.errors import LoopError
from evolution.loop.conflict_resolutions import (
    earlier_settlements,
    known_resolutions,
    list_resolutions,
    recall_places,
)
from evolution.loop.evaluation import ENDED
from evolution.loop.people import find_barred
from evolution.loop.promotion import advise, measured_versions
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import approvals
from evolution.loop.step_builds import Build, list_builds
from evolution.loop.step_merges import StepConflict, preview_merge
from evolution.loop.step_reviews import find_unreviewed
from evolution.loop.steps import UNDECIDED
from evolution.models import ConflictResolution, DatasetCase, Evaluation, Harness, Proposal, Review, Step
from evolution.queries.scores import ScoreRow, score_overall
from evolution.states import EvaluationState
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.markedfile import Clash
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
    related = ("harness", "step", "diagnosis__cluster", "alone_base", "alone_candidate")
    proposals = step.merged.select_related(*related).defer("diagnosis__cluster__centroid")
    return list(proposals.order_by("id"))


@dataclass(frozen=True)
class MergeForecast:
    """What merging proposals on what is live would bring; `is_known` is False when git can't be asked."""

    is_known: bool
    conflict: StepConflict | None = None
    # what people settled before
    settled: tuple[FileConflict, ...] = ()
    # id of the merged files' tree; empty where they clash
    tree: str = ""


def foresee_merge(harness: Harness, proposals: Sequence[Proposal]) -> MergeForecast:
    """Whether the proposals can be put together; writes nothing."""
    if not proposals:
        return MergeForecast(is_known=False)
    try:
        preview = preview_merge(harness, proposals)
    except HarnessRepoError:
        return MergeForecast(is_known=False)
    return MergeForecast(True, preview.conflict, preview.settled, preview.tree)


def list_settled(harness: Harness, forecast: MergeForecast) -> list[tuple[FileConflict, ConflictResolution]]:
    """The conflicts of a forecast that people settled, each once, and how."""
    once = {file.key: file for file in forecast.settled}
    return list_resolutions(harness, list(once.values()))


def list_idle(step: Step, proposals: Sequence[Proposal]) -> set[int]:
    """Ids of those in a step of several without which its files would be the same: nothing of them is in it alone."""
    if len(proposals) < len(("this one", "another")):
        return set()
    idle = set()
    with contextlib.suppress(HarnessRepoError):
        repository = open_repository(step.harness)
        files = repository.tree_of(step.candidate_commit)
        for proposal in proposals:
            others = [other for other in proposals if other != proposal]
            heads = [other.head_commit for other in others]
            known = known_resolutions(step.harness, others)
            if repository.check_merge(step.base_commit, heads, resolutions=known).tree == files:
                idle.add(proposal.pk)
    return idle


def list_step_settled(step: Step) -> list[tuple[FileConflict, ConflictResolution]]:
    """The conflicts that people settled among what an undecided step is made of."""
    is_decided = step.state not in UNDECIDED
    forecast = foresee_merge(step.harness, [] if is_decided else list_step_proposals(step))
    return list_settled(step.harness, forecast)


def list_waiting(harness: Harness, forecast: MergeForecast) -> list[tuple[FileConflict, ConflictResolution]]:
    """The open conflicts of a forecast that somebody has settled, and somebody else has to confirm."""
    return list_resolutions(harness, forecast.conflict.files if forecast.conflict else ())


@dataclass(frozen=True)
class Recalled:
    """What stood at the places of a conflict, from 1, when the file was settled before, and who decided that."""

    by: str
    places: dict[int, str]
    # those of the places where the text lacks a side's new lines, or has what a side took out
    incomplete: frozenset[int] = frozenset()


def recall_conflict(harness: Harness, conflict: FileConflict) -> Recalled | None:
    """A proposal for settling a conflict of a file that was settled before in other versions."""
    for earlier in earlier_settlements(harness, conflict.path, conflict.key):
        found = recall_places(conflict, (earlier.content or "").encode())
        places = {
            number: text.decode("utf-8", "replace")
            for number, text in enumerate(found, 1)
            if text is not None
        }
        if places:
            return Recalled(earlier.decided_by, places, _list_incomplete(conflict, places))
    return None


def _list_incomplete(conflict: FileConflict, places: Mapping[int, str]) -> frozenset[int]:
    clashes = [part for part in conflict.parts if isinstance(part, Clash)]
    return frozenset(number for number, text in places.items() if _undoes(clashes[number - 1], text))


def _undoes(clash: Clash, text: str) -> bool:
    """Whether a text lacks a line that a side has and the base has not, or has one that a side took out."""
    base, *sides = (_read_lines(side) for side in (clash.base, clash.ours, clash.theirs))
    lines = {line.rstrip() for line in text.split("\n")} - {""}
    return any((side - base) - lines or (base - side) & lines for side in sides)


def _read_lines(side: bytes) -> set[str]:
    return {line.rstrip() for line in side.decode("utf-8", "replace").split("\n")} - {""}


def is_outdated(step: Step, forecast: MergeForecast) -> bool:
    """Whether merging its proposals gives something else now than the candidate: a conflict was settled otherwise."""
    if not forecast.is_known or (not forecast.settled and forecast.conflict is None):
        return False
    try:
        return forecast.tree != open_repository(step.harness).tree_of(step.candidate_commit)
    except HarnessRepoError:
        return False


@dataclass(frozen=True)
class AloneScores:
    """Accuracy and effectiveness of a proposal measured by itself, 0-100, before and after."""

    base: ScoreRow
    candidate: ScoreRow


@dataclass(frozen=True)
class StepProposal:
    """A proposal of a step, with what is known of it by itself."""

    proposal: Proposal
    approvals: list[Review]
    # None: not measured to the end as it is now
    alone: AloneScores | None
    # it was made for another version than what is live
    base_moved: bool
    # those who approved it and are no developers here any more: their word does not count
    barred: frozenset[str] = frozenset()


def describe_proposals(proposals: Sequence[Proposal], live: str) -> list[StepProposal]:
    """Who approved each, and how it does alone."""
    return [_describe_proposal(proposal, live) for proposal in proposals]


def _describe_proposal(proposal: Proposal, live: str) -> StepProposal:
    given = approvals(proposal)
    barred = find_barred(proposal.harness, [review.reviewer for review in given])
    has_moved = proposal.base_commit != live
    return StepProposal(proposal, given, _score_alone(proposal), has_moved, frozenset(barred))


def _score_alone(proposal: Proposal) -> AloneScores | None:
    base, candidate = proposal.alone_base, proposal.alone_candidate
    if base is None or candidate is None or not {base.state, candidate.state} <= set(ENDED):
        return None
    if (base.commit, candidate.commit) != (proposal.base_commit, proposal.head_commit):
        return None
    return AloneScores(score_overall(base), score_overall(candidate))


@dataclass(frozen=True)
class EarlierBuild:
    """What a step was made of before, and what was measured of that."""

    # ids
    proposals: tuple[int, ...]
    evaluation: Evaluation
    scores: ScoreRow


def list_earlier_builds(step: Step) -> list[EarlierBuild]:
    """The measured builds of a step that are not its candidate now, the newest first, each evaluation of them."""
    builds = {build.commit: build for build in list_builds(step) if build.commit != step.candidate_commit}
    measured = step.harness.evaluations.filter(commit__in=builds, state__in=ENDED).order_by("-pk")
    return [
        EarlierBuild(_list_ids(builds[evaluation.commit]), evaluation, score_overall(evaluation))
        for evaluation in measured
    ]


def _list_ids(build: Build) -> tuple[int, ...]:
    return tuple(sorted(build.heads))


def list_measured(step: Step) -> list[Evaluation]:
    """For a step that nothing is bound to: the newest full evaluations of its candidate, which it may take up again."""
    finished = step.harness.evaluations.filter(
        commit=step.candidate_commit, state=EvaluationState.FINISHED, answers_from=None, origin={}, faults=[]
    )
    return list(finished.order_by("-pk")[:1])


def find_gap(step: Step) -> str:
    """Which second person's word a step lacks before it can be promoted; empty where it lacks none."""
    try:
        return find_unreviewed(step)
    except HarnessRepoError as failure:
        return str(failure)


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
