from collections.abc import Callable
from unittest import mock

import pytest

from evolution.errors import LoopError
from evolution.loop import promotion, steps
from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Diagnosis, Evaluation, FailureCase, Harness, Proposal, Release, Step
from evolution.states import (
    CaseState,
    ClusterState,
    EvaluationState,
    ProposalState,
    ReleaseKind,
    StepState,
)
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import (
    ANNA,
    DEV,
    MANY,
    make_harness,
    make_measured_step,
    make_proposal,
    make_version,
    measure,
    outage,
    run,
    teach,
)

pytestmark = pytest.mark.django_db

GOOD = teach(*range(1, 21))
BAD = teach(1)


def repository_of(step: Step) -> HarnessRepository:
    return open_repository(step.harness)


def test_promotion_moves_main_tags_and_releases() -> None:
    step = make_measured_step(GOOD)
    release = promotion.promote(ANNA, step)
    repository = repository_of(step)
    assert repository.resolve("main") == repository.list_tags()["release/2"] == step.candidate_commit
    assert (release.number, release.commit, release.evaluation) == (
        2,
        step.candidate_commit,
        step.candidate_evaluation,
    )
    assert (release.model, release.kind, release.actor) == ("m", ReleaseKind.PROMOTION, "anna")
    assert (step.state, step.decided_by) == (StepState.PROMOTED, "anna")
    assert step.proposals.get().state == ProposalState.RELEASED


def test_promotion_repeated_changes_nothing() -> None:
    step = make_measured_step(GOOD)
    assert promotion.promote(ANNA, step) == promotion.promote(ANNA, step)
    assert Release.objects.filter(harness=step.harness).count() == 2


def test_promotion_against_the_verdict_needs_a_reason() -> None:
    step = make_measured_step(BAD)
    with pytest.raises(LoopError, match="say why"):
        promotion.promote(ANNA, step)
    assert promotion.promote(ANNA, step, "the case is wrong").reason == "the case is wrong"
    step.refresh_from_db()
    assert step.reason == "the case is wrong"


def test_promotion_of_an_unmeasured_step_is_refused() -> None:
    step = make_measured_step(GOOD)
    steps.rebuild_step(DEV, step)
    with pytest.raises(LoopError, match="not evaluated"):
        promotion.promote(ANNA, step, "hurry")


def test_promotion_on_a_main_that_moved_is_refused_and_leaves_no_trace() -> None:
    step = make_measured_step(GOOD)
    repository = repository_of(step)
    author = author_of(DEV)
    moved = repository.commit(
        "main", {"prompts/a.md": b"x\n"}, parent="main", author=author, message="by hand"
    )
    with pytest.raises(LoopError, match="main moved"):
        promotion.promote(ANNA, step)
    step.refresh_from_db()
    assert (step.state, repository.resolve("main")) == (StepState.EVALUATED, moved)
    assert list(repository.list_tags()) == ["release/1"]


@pytest.mark.parametrize("dies_in", ["record", "resolve_mended"])
def test_promotion_that_died_between_git_and_records_is_finished_by_repeating_it(dies_in: str) -> None:
    step = make_measured_step(GOOD)
    with mock.patch.object(promotion, dies_in, side_effect=RuntimeError), pytest.raises(RuntimeError):
        promotion.promote(ANNA, step)
    assert repository_of(step).resolve("main") == step.candidate_commit
    assert Release.objects.filter(harness=step.harness).count() == 1
    release = promotion.promote(ANNA, step)
    assert (release.tag, step.state) == ("release/2", StepState.PROMOTED)


def test_what_a_promotion_mends_is_resolved() -> None:
    step = make_measured_step(GOOD)
    mended = add_failures(step.harness, "q3", "q4")
    partly = add_failures(step.harness, "q5", "q30")
    Proposal.objects.update(diagnosis=diagnose(partly))
    promotion.promote(ANNA, step)
    mended.refresh_from_db()
    partly.refresh_from_db()
    assert (mended.state, partly.state) == (ClusterState.RESOLVED, ClusterState.DIAGNOSED)
    still_open = FailureCase.objects.filter(state=CaseState.OPEN)
    assert list(still_open.values_list("dataset_case__key", flat=True)) == ["q30"]


def test_revision_sends_the_proposals_back() -> None:
    step = make_measured_step(BAD)
    for _ in range(2):
        promotion.revise(DEV, step, "too broad")
    assert (step.state, step.proposals.get().state) == (StepState.REVISED, ProposalState.DRAFTED)


def test_rolling_back_a_measured_step_leaves_main_alone() -> None:
    step = make_measured_step(BAD)
    promotion.roll_back(DEV, step, "breaks q2")
    proposal = step.proposals.get()
    assert repository_of(step).resolve("main") == step.base_commit
    assert (step.state, proposal.state, proposal.reason) == (
        StepState.ROLLED_BACK,
        ProposalState.REJECTED,
        "breaks q2",
    )


def test_rolling_back_a_promoted_step_restores_the_base_and_keeps_history() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    promotion.roll_back(ANNA, step, "complaints")
    repository = repository_of(step)
    main = repository.resolve("main")
    assert repository.files("main") == repository.files(step.base_commit)
    assert repository.is_ancestor(step.candidate_commit, main)
    newest = step.harness.releases.first()
    assert newest is not None
    assert (newest.kind, newest.commit, newest.evaluation) == (
        ReleaseKind.ROLL_BACK,
        main,
        step.base_evaluation,
    )


def test_roll_back_that_died_before_its_records_is_finished_by_repeating_it() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    with mock.patch.object(promotion, "record", side_effect=RuntimeError), pytest.raises(RuntimeError):
        promotion.roll_back(ANNA, step, "complaints")
    restored = repository_of(step).resolve("main")
    step.refresh_from_db()
    promotion.roll_back(ANNA, step, "complaints")
    assert step.harness.releases.filter(kind=ReleaseKind.ROLL_BACK).get().commit == restored


def test_only_the_newest_release_is_rolled_back_by_its_step() -> None:
    first = make_measured_step(teach(*range(1, 15)))
    promotion.promote(ANNA, first)
    second = measure(
        steps.merge_step(DEV, first.harness, [make_proposal(first.harness, teach(*range(1, 30)))])
    )
    promotion.promote(ANNA, second)
    with pytest.raises(LoopError, match="not the newest"):
        promotion.roll_back(ANNA, first, "late")


def test_older_release_is_made_live_again() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    first = step.harness.releases.get(number=1)
    release = promotion.roll_back_to(ANNA, step.harness, first, "complaints")
    repository = repository_of(step)
    assert repository.files("main") == repository.files(first.commit)
    assert (release.number, release.tag) == (3, "release/3")
    with pytest.raises(LoopError, match="already"):
        promotion.roll_back_to(ANNA, step.harness, first, "again")


def test_stopping_after_a_rolled_back_step_keeps_what_is_live() -> None:
    step = make_measured_step(BAD)
    promotion.roll_back(DEV, step, "worse")
    assert promotion.stop(ANNA, step, "enough") == step.base_commit
    harness = Harness.objects.get(pk=step.harness_id)
    assert (harness.selected_commit, harness.stopped_at is not None) == (step.base_commit, True)
    assert step.state == StepState.ROLLED_BACK


def test_stopping_brings_main_to_the_version_that_no_other_dominates() -> None:
    first = make_measured_step(GOOD)
    promotion.promote(ANNA, first)
    worse = measure(
        steps.merge_step(DEV, first.harness, [make_proposal(first.harness, teach(*range(1, 18)))])
    )
    promotion.promote(ANNA, worse, "was asked for")
    assert promotion.stop(ANNA, worse, "enough") == first.candidate_commit
    repository = repository_of(first)
    assert repository.files("main") == repository.files(first.candidate_commit)
    worse.refresh_from_db()
    assert worse.state == StepState.ROLLED_BACK


def test_stopping_an_undecided_step_ends_it_and_a_new_step_starts_again() -> None:
    step = make_measured_step(BAD)
    promotion.stop(ANNA, step, "enough")
    step.refresh_from_db()
    proposal = step.proposals.get()
    assert (step.state, proposal.state) == (StepState.STOPPED, ProposalState.DRAFTED)
    Proposal.objects.update(state=ProposalState.CONFIRMED)
    steps.merge_step(DEV, step.harness, [proposal_again := Proposal.objects.get()])
    assert Harness.objects.get(pk=step.harness_id).stopped_at is None
    assert proposal_again.state == ProposalState.IN_STEP


def test_stopping_waits_for_a_running_evaluation() -> None:
    step = make_measured_step(BAD)
    Step.objects.update(state=StepState.EVALUATING)
    with pytest.raises(LoopError, match="being evaluated"):
        promotion.stop(ANNA, step, "enough")
    assert Harness.objects.get(pk=step.harness_id).stopped_at is None


def test_series_starts_with_the_baseline_and_has_every_measured_step() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    series = promotion.measured_series(step.harness)
    assert [(item.accuracy, item.decision) for item in series] == [(5, "baseline"), (50, "promoted")]


def test_clusters_too_small_or_tried_in_vain_are_not_left_to_try() -> None:
    harness = make_measured_step(BAD).harness
    add_failures(harness, "q3", "q4")
    tried, left = add_failures(harness, "q5", "q6", "q7"), add_failures(harness, "q8", "q9", "q10")
    Proposal.objects.update(diagnosis=diagnose(tried), state=ProposalState.REJECTED)
    assert list(promotion.untried_clusters(harness)) == [left]
    # Turned down before it was measured: nothing is known of the cluster yet.
    Proposal.objects.update(step=None)
    assert list(promotion.untried_clusters(harness)) == [tried, left]


def begin_promotion(step: Step) -> None:
    """A promotion that dies when git has moved and the records have not."""
    with mock.patch.object(promotion, "record", side_effect=RuntimeError), pytest.raises(RuntimeError):
        promotion.promote(ANNA, step)
    step.refresh_from_db()


@pytest.mark.parametrize("end", [promotion.revise, promotion.roll_back, promotion.stop])
def test_other_decision_takes_back_a_promotion_that_died(end: Callable[..., object]) -> None:
    step = make_measured_step(GOOD)
    begin_promotion(step)
    end(ANNA, step, "no")
    repository = repository_of(step)
    newest = step.harness.releases.first()
    assert newest is not None
    assert repository.files("main") == repository.files(step.base_commit)
    assert newest.commit == repository.resolve("main")


def test_step_whose_promotion_died_is_not_rebuilt_on_itself() -> None:
    step = make_measured_step(GOOD)
    begin_promotion(step)
    with pytest.raises(LoopError, match="no release names"):
        steps.rebuild_step(DEV, step)


def test_unmeasured_commit_is_not_promoted_on_the_verdict_of_another() -> None:
    step = make_measured_step(GOOD)
    other = make_proposal(step.harness, BAD).head_commit
    Step.objects.update(candidate_commit=other)
    with pytest.raises(LoopError, match="not what"):
        promotion.promote(ANNA, step, "hurry")
    assert repository_of(step).resolve("main") == step.base_commit


def test_step_whose_evaluation_is_resumed_is_not_promoted() -> None:
    step = make_measured_step(GOOD)
    Evaluation.objects.filter(candidate_of=step).update(state=EvaluationState.QUEUED)
    with pytest.raises(LoopError, match="evaluate it again"):
        promotion.promote(ANNA, step, "hurry")


def test_stop_that_died_before_its_release_is_finished_by_repeating_it() -> None:
    first = make_measured_step(GOOD)
    promotion.promote(ANNA, first)
    worse = measure(steps.merge_step(DEV, first.harness, [make_proposal(first.harness, teach(1))]))
    promotion.promote(ANNA, worse, "was asked for")
    died = mock.patch.object(promotion, "_write_release", side_effect=RuntimeError)
    with died, pytest.raises(RuntimeError):
        promotion.stop(ANNA, worse, "enough")
    promotion.stop(ANNA, worse, "enough")
    newest = first.harness.releases.first()
    assert newest is not None
    assert (newest.number, newest.commit) == (4, repository_of(first).resolve("main"))


def test_stopping_does_not_bring_back_what_was_rolled_back() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    promotion.roll_back_to(ANNA, step.harness, step.harness.releases.get(number=1), "it insults viewers")
    step.refresh_from_db()
    assert (step.state, step.reason) == (StepState.ROLLED_BACK, "it insults viewers")
    second = measure(steps.merge_step(DEV, step.harness, [make_proposal(step.harness, teach(1, 2, 3))]))
    promotion.stop(ANNA, second, "enough")
    assert repository_of(step).read_file("main", "prompts/role.md") == b"knows: q1 q2\n"


def test_release_that_is_live_again_makes_its_step_promoted_again() -> None:
    step = make_measured_step(GOOD)
    promotion.promote(ANNA, step)
    promotion.roll_back(ANNA, step, "complaints")
    promotion.roll_back_to(ANNA, step.harness, step.harness.releases.get(number=2), "it was good")
    step.refresh_from_db()
    assert step.state == StepState.PROMOTED
    assert promotion.advise(step.harness).selected == step.candidate_commit


def test_version_with_too_many_errors_is_neither_scored_nor_selected() -> None:
    harness = make_harness()
    make_version(harness, MANY)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1))])
    base, candidate = steps.measure_step(DEV, step, model="m", judge_model="j")
    run(base)
    run(candidate, answer=lambda s, u: "right" if u == "q1" else outage()(s, u))
    steps.settle_step(step)
    promotion.promote(ANNA, step, "we trust it")
    assert [item.accuracy for item in promotion.measured_series(harness)] == [5]
    assert promotion.advise(harness).selected == step.base_commit


def test_nothing_is_advised_when_nothing_that_was_live_is_measured() -> None:
    step = make_measured_step(BAD)
    assert step.base_evaluation is not None
    step.base_evaluation.results.update(error_kind="policy_error", accuracy=None, effectiveness=None)
    with pytest.raises(LoopError, match="resume"):
        promotion.advise(step.harness)


def add_failures(harness: Harness, *keys: str) -> Cluster:
    """An open cluster with a failure for each dataset case."""
    number = harness.clusters.count() + 1
    cluster = Cluster.objects.create(harness=harness, number=number, name=f"c{number}")
    evaluation: Evaluation = harness.evaluations.order_by("pk")[0]
    for key in keys:
        case = evaluation.dataset_version.cases.get(key=key)
        FailureCase.objects.create(
            harness=harness, source="evaluation", source_id=key, title=key, dataset_case=case, cluster=cluster
        )
    return cluster


def diagnose(cluster: Cluster) -> Diagnosis:
    Cluster.objects.filter(pk=cluster.pk).update(state=ClusterState.IN_PROGRESS)
    return Diagnosis.objects.create(harness=cluster.harness, cluster=cluster, part="prompt", hypothesis="h")
