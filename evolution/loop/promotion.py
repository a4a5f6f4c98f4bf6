"""Stage 7: what becomes of a measured step. Promote, revise, roll back or stop; each can be repeated until it is done.

In one transaction the state goes first, as a guarded write, then git, by compare-and-swap on main, then the other
records: whoever repeats an action that died in between finds main where it belongs and only writes the records, and
whoever decides otherwise takes main back first.
"""

from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.evaluation import ENDED, UNDISTURBED, average_scores
from evolution.loop.fetched import find_fetched, say_way_out
from evolution.loop.lineage import find_live_steps, find_unreleased_main
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.mended import OPEN_CLUSTERS, reopen_unmended, resolve_mended
from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import explain_git_errors
from evolution.loop.step_reviews import find_unreviewed
from evolution.loop.stopping import BASELINE, Advice, Measured, early_stop
from evolution.loop.verdict import Policy
from evolution.models import Cluster, Evaluation, Harness, Proposal, Release, Step
from evolution.states import (
    CaseState,
    ClusterState,
    Outcome,
    ProposalState,
    ReleaseKind,
    StepState,
)
from evolution.transitions import move, record
from harness_repo.git.errors import StaleBase
from harness_repo.git.remotes import Remote, advance_to_remote
from harness_repo.git.repository import MAIN, HarnessRepository

# Smaller clusters are long tail: one more rule for them is likelier to break something.
SMALLEST_CLUSTER = 3
LIVE_PROPOSALS = (
    ProposalState.DRAFTING,
    ProposalState.DRAFTED,
    ProposalState.CONFIRMED,
    ProposalState.IN_STEP,
)


def promote(actor: Actor, step: Step, reason: str = "") -> Release:
    """Make the step's candidate live: main, tag, release; its proposals are released, what it mended is resolved.

    Raises LoopError when the step is not measured, a second person's word is asked for and lacks, the verdict is
    another and no reason is given, or main moved.
    """
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        known = step.releases.filter(kind=ReleaseKind.PROMOTION).first()
        if step.state == StepState.PROMOTED and known is not None:
            return known
        _check_promotion(step, reason)
        _decide(actor, step, StepState.PROMOTED, reason)
        repository = open_repository(step.harness)
        # Left at the candidate by a promotion that died before its records were written.
        if repository.resolve(MAIN) != step.candidate_commit:
            repository.advance_main(step.candidate_commit, expected=step.base_commit)
        release = _write_release(
            actor,
            step.harness,
            step.candidate_commit,
            ReleaseKind.PROMOTION,
            reason=reason,
            step=step,
            evaluation=step.candidate_evaluation,
        )
        for proposal in step.proposals.filter(state=ProposalState.IN_STEP):
            move(proposal, ProposalState.RELEASED, actor)
        if step.candidate_evaluation is not None:
            resolve_mended(actor, step.candidate_evaluation)
        _hand_back_clusters(actor, step)
    return release


def _check_promotion(step: Step, reason: str) -> None:
    if step.state != StepState.EVALUATED or step.verdict is None:
        raise LoopError(_("%(step)s is not evaluated; evaluate it first") % {"step": step})
    if not _is_measured(step):
        raise LoopError(
            _("what was measured is not what %(step)s would release; evaluate it again") % {"step": step}
        )
    if unreviewed := find_unreviewed(step):
        raise LoopError(unreviewed)
    if step.verdict.outcome != Outcome.PROMOTE and not reason.strip():
        outcome = step.verdict.get_outcome_display()
        raise LoopError(
            _("the verdict is %(outcome)s; say why it is promoted all the same") % {"outcome": outcome}
        )


def _is_measured(step: Step) -> bool:
    """Whether the verdict is over these very two commits, and both were measured to the end."""
    base, candidate, verdict = step.base_evaluation, step.candidate_evaluation, step.verdict
    if base is None or candidate is None or verdict is None:
        return False
    has_ended = {base.state, candidate.state} <= set(ENDED)
    same_commits = (base.commit, candidate.commit) == (step.base_commit, step.candidate_commit)
    return has_ended and same_commits and (verdict.base_id, verdict.candidate_id) == (base.pk, candidate.pk)


def revise(actor: Actor, step: Step, reason: str) -> None:
    """End the step and send its proposals back to be amended."""
    _end(actor, step, StepState.REVISED, ProposalState.DRAFTED, reason)


def roll_back(actor: Actor, step: Step, reason: str) -> None:
    """Give the step up. Its proposals are rejected; one that is live already is taken off main, history kept."""
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        if step.state != StepState.PROMOTED:
            _end(actor, step, StepState.ROLLED_BACK, ProposalState.REJECTED, reason)
            return
        newest = step.harness.releases.first()
        if newest is None or newest.step_id != step.pk or newest.kind != ReleaseKind.PROMOTION:
            raise LoopError(
                _("%(step)s is not the newest release; roll back to a release instead") % {"step": step}
            )
        _restore(actor, step.harness, step.base_commit, reason, evaluation=step.base_evaluation, step=step)
        step.refresh_from_db()


def roll_back_to(actor: Actor, harness: Harness, release: Release, reason: str) -> Release:
    """Make the files of an older release live again, as a new version on top of main."""
    with transaction.atomic(), explain_git_errors():
        lock_harness(harness)
        return _restore(
            actor, harness, release.commit, reason, evaluation=release.evaluation, step=release.step
        )


def take_remote(actor: Actor, harness: Harness, remote: Remote) -> Release | None:
    """Make what was fetched of the remote's branch live, when it builds on ours; None when it is live already.

    Raises LoopError when main has commits of its own, is in the middle of a decision, or there is no such branch.
    """
    repository = open_repository(harness)
    with transaction.atomic(), explain_git_errors():
        lock_harness(harness)
        fetched = find_fetched(repository, remote)
        if find_unreleased_main(harness) not in ("", fetched):
            raise LoopError(_("main is in the middle of a decision; repeat that first"))
        try:
            advance_to_remote(repository, remote)
        except StaleBase as failure:
            raise LoopError(say_way_out(repository, harness, remote)) from failure
        if harness.releases.filter(commit=fetched).exists():
            return None
        reason = _("taken from %(remote)s") % {"remote": remote.name}
        return _write_release(
            actor, harness, fetched, ReleaseKind.REMOTE, reason=reason, step=None, evaluation=None
        )


def stop(actor: Actor, step: Step, reason: str) -> str:
    """Close the series with the version that the early-stop rule selects; main is brought to it. Returns its commit.

    A step that is undecided ends with it, its proposals wait for review again; promoted ones that the selected version
    does not have are rolled back.
    """
    harness = step.harness
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        if step.state == StepState.EVALUATING:
            raise LoopError(_("%(step)s is being evaluated; cancel its evaluation first") % {"step": step})
        selected = advise(harness).selected
        if step.state in {StepState.READY, StepState.EVALUATED}:
            _end(actor, step, StepState.STOPPED, ProposalState.DRAFTED, reason)
        repository = open_repository(harness)
        if find_unreleased_main(harness) or repository.changed_files(repository.resolve(MAIN), selected):
            evaluation = newest_measurement(harness, selected)
            _restore(actor, harness, selected, reason, evaluation=evaluation, step=None)
        Harness.objects.filter(pk=harness.pk).update(stopped_at=timezone.now(), selected_commit=selected)
        record(actor, "harness.stopped", harness, reason, selected=selected, step=step.number)
    return selected


def measured_versions(harness: Harness) -> list[tuple[Evaluation, Step | None]]:
    """Return the evaluation of the baseline, and of every measured step with its step, in the order of the steps.

    The baseline is what the first measured step started from, or else the first version that was measured. Where its
    evaluation has too few scores, a later one of the same commit that has enough stands for it.
    """
    steps = list(
        harness.steps.filter(candidate_evaluation__state__in=ENDED)
        .select_related("base_evaluation", "candidate_evaluation")
        .order_by("number")
    )
    baseline = steps[0].base_evaluation if steps else _first_evaluation(harness)
    if baseline is not None and (not steps or measured_scores(baseline) is None):
        # No verdict rests on it.
        baseline = newest_measurement(harness, baseline.commit) or baseline
    versions: list[tuple[Evaluation, Step | None]] = [] if baseline is None else [(baseline, None)]
    versions.extend(
        (step.candidate_evaluation, step) for step in steps if step.candidate_evaluation is not None
    )
    return versions


def newest_measurement(harness: Harness, commit: str) -> Evaluation | None:
    """The newest undisturbed evaluation of a commit that has ended with enough scores, else the newest that has ended.

    What boards, series and releases say of a version that no decision is bound to. What was measured elsewhere counts
    only where nothing was measured here; a version that nobody named is not known to be this one.
    """
    ended = harness.evaluations.filter(UNDISTURBED, commit=commit, state__in=ENDED).exclude(commit="")
    return _first_scored(sorted(ended.order_by("-pk"), key=lambda evaluation: bool(evaluation.origin)))


def measured_scores(evaluation: Evaluation) -> tuple[float, float] | None:
    """Accuracy and effectiveness, 0-100; None when too few results are scores for the harness's policy."""
    averages = average_scores(evaluation)
    scored = averages.results - averages.errors
    if scored < Policy.from_dict(evaluation.harness.policy).coverage * evaluation.total:
        return None
    if averages.accuracy is None or averages.effectiveness is None:
        return None
    return averages.accuracy, averages.effectiveness


def measured_series(harness: Harness) -> list[Measured]:
    """Return the series that the early-stop rule looks at, without versions that have too few scores."""
    series = []
    for evaluation, step in measured_versions(harness):
        scores = measured_scores(evaluation)
        if scores is not None:
            series.append(Measured(evaluation.commit, *scores, step.state if step else BASELINE))
    return series


def advise(harness: Harness) -> Advice:
    """Apply the early-stop rule to the harness; LoopError before anything that was live is measured."""
    series = measured_series(harness)
    if not any(version.is_kept for version in series):
        raise LoopError(
            _("nothing that was live is measured; evaluate it, or resume its evaluation if that has errors")
        )
    return early_stop(series, untried_clusters(harness).count())


def untried_clusters(harness: Harness) -> QuerySet[Cluster]:
    """Open clusters worth a rule of their own for which nothing was measured in vain, the largest first.

    A draft that was turned down before it was measured, for a conflict say, leaves its cluster to be tried again.
    """
    measured = Q(state=ProposalState.REJECTED, step__isnull=False)
    given_up = Proposal.objects.filter(
        measured | Q(state=ProposalState.FAILED), harness=harness, diagnosis__isnull=False
    )
    size = Count("members", filter=Q(members__state=CaseState.OPEN))
    return (
        harness.clusters.filter(state__in=OPEN_CLUSTERS)
        .annotate(size=size)
        .filter(size__gte=SMALLEST_CLUSTER)
        .exclude(pk__in=given_up.values("diagnosis__cluster"))
        .order_by("-size", "number")
    )


def _hand_back_clusters(actor: Actor, step: Step) -> None:
    """Clusters that a decided step was about, and that still fail, wait for another proposal."""
    clusters = Cluster.objects.filter(state=ClusterState.IN_PROGRESS, diagnoses__proposals__step=step)
    for cluster in clusters.distinct():
        if not Proposal.objects.filter(diagnosis__cluster=cluster, state__in=LIVE_PROPOSALS).exists():
            move(cluster, ClusterState.DIAGNOSED, actor, _("%s was decided") % step)


def _end(actor: Actor, step: Step, state: StepState, proposals: ProposalState, reason: str) -> None:
    """Decide a step against its candidate; repeated, it changes nothing."""
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        if step.state == state:
            return
        _decide(actor, step, state, reason)
        if find_unreleased_main(step.harness) == step.candidate_commit:
            # Its promotion was begun and died before its records were written.
            _restore(
                actor, step.harness, step.base_commit, reason, evaluation=step.base_evaluation, step=step
            )
        for proposal in step.proposals.filter(state=ProposalState.IN_STEP):
            move(proposal, proposals, actor, reason)
        if proposals == ProposalState.REJECTED:
            step.proposals.filter(state=proposals).update(reason=reason, decided_by=actor.name)
        _hand_back_clusters(actor, step)


def _decide(actor: Actor, step: Step, state: StepState, reason: str) -> None:
    move(step, state, actor, reason, decided_by=actor.name, decided_at=timezone.now())
    step.reason = reason
    step.save(update_fields=["reason"])


def _restore(
    actor: Actor,
    harness: Harness,
    commit: str,
    reason: str,
    *,
    evaluation: Evaluation | None,
    step: Step | None,
) -> Release:
    """Put the files of a commit on top of main, release that, and let steps and failures follow."""
    repository = open_repository(harness)
    main = repository.resolve(MAIN)
    is_released = harness.releases.filter(commit=main).exists()
    # An unreleased main with these very files was left by a roll back that died before its records were written.
    if is_released or repository.changed_files(main, commit):
        message = f"Roll back to {commit[:12]}\n\n{reason}"
        main = repository.restore(commit, expected=main, author=author_of(actor), message=message)
    release = _write_release(
        actor, harness, main, ReleaseKind.ROLL_BACK, reason=reason, step=step, evaluation=evaluation
    )
    _follow_main(actor, harness, find_live_steps(harness, commit), reason, evaluation)
    return release


def _follow_main(
    actor: Actor, harness: Harness, live: set[int], reason: str, evaluation: Evaluation | None
) -> None:
    """After a roll back: exactly the `live` steps are promoted, and what only the others mended fails again."""
    promoted = harness.steps.filter(state=StepState.PROMOTED).order_by("number")
    dropped = list(promoted.exclude(pk__in=live))
    for step in dropped:
        _decide(actor, step, StepState.ROLLED_BACK, reason)
    for step in harness.steps.filter(pk__in=live, state=StepState.ROLLED_BACK):
        _decide(actor, step, StepState.PROMOTED, reason)
    measured = evaluation or (dropped[0].base_evaluation if dropped else None)
    if measured is not None:
        reopen_unmended(actor, measured, dropped)
        resolve_mended(actor, measured)


def _write_release(
    actor: Actor,
    harness: Harness,
    commit: str,
    kind: ReleaseKind,
    *,
    reason: str,
    step: Step | None,
    evaluation: Evaluation | None,
) -> Release:
    """Tag the commit and record the release, bound to what was measured of it."""
    number = (harness.releases.aggregate(number=Max("number"))["number"] or 0) + 1
    number, tag = _tag(actor, open_repository(harness), number, commit, kind)
    release = Release.objects.create(
        harness=harness,
        number=number,
        kind=kind,
        commit=commit,
        tag=tag,
        step=step,
        evaluation=evaluation,
        dataset_version=evaluation.dataset_version if evaluation else None,
        model=evaluation.model if evaluation else "",
        judge_commit=evaluation.judge_commit if evaluation else "",
        actor=actor.name,
        reason=reason,
    )
    record(actor, f"release.{kind.value}", release, reason, commit=commit, tag=tag)
    return release


def _tag(
    actor: Actor, repository: HarnessRepository, number: int, commit: str, kind: ReleaseKind
) -> tuple[int, str]:
    """Tag the commit with the next free release number; the tag that a dead attempt left on it is taken over."""
    tags = repository.list_tags()
    while tags.get(f"release/{number}", commit) != commit:
        number += 1
    name = f"release/{number}"
    if name not in tags:
        repository.tag(name, commit, f"Release {number}: {kind.value}", author_of(actor))
    return number, name


def _first_evaluation(harness: Harness) -> Evaluation | None:
    """The first evaluation with enough scores, else the first that has ended."""
    # A version that nobody named is in no series.
    ended = harness.evaluations.filter(UNDISTURBED, state__in=ENDED).exclude(commit="")
    in_order = list(ended.order_by(F("finished_at").asc(nulls_last=True)))
    return _first_scored(in_order)


def _first_scored(evaluations: list[Evaluation]) -> Evaluation | None:
    scored = (evaluation for evaluation in evaluations if measured_scores(evaluation) is not None)
    return next(scored, evaluations[0] if evaluations else None)
