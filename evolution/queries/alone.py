"""One proposal measured by itself: how far that is, and what came of it."""

from dataclasses import dataclass, field

from evolution.loop.alone import MEASURABLE
from evolution.loop.evaluation import ACTIVE, ENDED
from evolution.models import Evaluation, Proposal
from evolution.queries.compared_figures import ComparedFigures, compare_figures
from evolution.queries.comparison import compare
from evolution.queries.progress import Progress, measure_progress
from evolution.states import EvaluationState


@dataclass(frozen=True)
class AloneSide:
    """One of the two evaluations."""

    # "base" or "candidate"
    role: str
    evaluation: Evaluation
    progress: Progress


@dataclass(frozen=True)
class Alone:
    """What is known of a proposal by itself."""

    sides: list[AloneSide] = field(default_factory=list)
    is_running: bool = False
    # the branch or its base has moved since
    is_outdated: bool = False
    # flip -> number of cases, and the figures, once both have ended
    counts: dict[str, int] = field(default_factory=dict)
    figures: ComparedFigures | None = None
    # why they can't be compared
    obstacles: list[str] = field(default_factory=list)
    # whether there is something to evaluate that is not measured to the end, or under way
    may_start: bool = False


def read_alone(proposal: Proposal) -> Alone:
    """How the proposal does alone, as far as that is measured."""
    base, candidate = proposal.alone_base, proposal.alone_candidate
    can_start = proposal.state in MEASURABLE and bool(proposal.head_commit)
    if base is None or candidate is None:
        return Alone(may_start=can_start)
    both = (base, candidate)
    is_running = any(one.state in ACTIVE for one in both)
    is_outdated = (base.commit, candidate.commit) != (proposal.base_commit, proposal.head_commit)
    is_finished = all(one.state == EvaluationState.FINISHED for one in both)
    has_ended = {one.state for one in both} <= set(ENDED)
    compared = compare(base, candidate) if has_ended else None
    return Alone(
        sides=[
            AloneSide(role, one, measure_progress(one))
            for role, one in zip(("base", "candidate"), both, strict=True)
        ],
        is_running=is_running,
        is_outdated=is_outdated,
        counts=compared.counts if compared else {},
        figures=compare_figures(base, candidate) if has_ended else None,
        obstacles=compared.obstacles if compared else [],
        may_start=can_start and not (is_running and not is_outdated) and (is_outdated or not is_finished),
    )
