"""Stage 5: a harness commit measured on a dataset version: one result for every (case, repeat), whatever happens.

Makes the records and says when they are complete; `shards` does the work, `scoring` a single case.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Unpack

from django.conf import settings
from django.db import transaction
from django.db.models import Avg, Count, F, Q, QuerySet
from django.db.models.functions import MD5, Now
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError, StaleState
from evolution.loop.budgets import check_budget
from evolution.loop.clock import database_time
from evolution.loop.currencies import currency_to_go_on_in
from evolution.loop.datasets import leave_out_imported
from evolution.loop.figures import kept_figures
from evolution.loop.outcomes import BUDGET, RETRYABLE_KINDS
from evolution.loop.pairs import BATCH, count_results, fill_missing, requeue_failed, requeue_incomplete
from evolution.loop.plans import Asked, Plan, plan_evaluation
from evolution.loop.repositories import read_version
from evolution.loop.reuse import check_same_budget, extend_budget, find_resumable
from evolution.loop.runners import build_runner
from evolution.loop.scoring import Scorer
from evolution.models import DatasetCase, DatasetVersion, Evaluation, EvaluationShard, Harness
from evolution.ports import NamedModel
from evolution.states import EvaluationState, ShardState, Split
from evolution.transitions import move, record
from harness_repo.runtime.access import NO_ACCESS, ToolAccess
from harness_repo.runtime.faults import read_faults, unknown_fault_tools

# Enough to store and claim by; few, so that little is left to others when a worker gives way.
SHARD_PAIRS = 8
# An evaluation that nobody has worked on for so long stands still.
STANDSTILL = timedelta(seconds=30)
ACTIVE = (EvaluationState.QUEUED, EvaluationState.RUNNING)
ENDED = (EvaluationState.FINISHED, EvaluationState.PARTIAL)
# What a version is judged by; an evaluation under faults says how it bears them.
UNDISTURBED = Q(faults=[])


@dataclass(frozen=True)
class Averages:
    """Mean scores on the 0-100 scale over the results outside the guard split; None without a score."""

    accuracy: float | None
    effectiveness: float | None
    # over all splits: cases with a result, results, results that are errors
    cases: int
    results: int
    errors: int


def create_evaluation(
    actor: Actor,
    harness: Harness,
    commit: str,
    version: DatasetVersion,
    *,
    is_fresh: bool = False,
    base: Evaluation | None = None,
    resumes: bool = False,
    **asked: Unpack[Asked],
) -> Evaluation:
    """Create the evaluation with its shards, or return the one that measures or has measured exactly the same.

    One that ended with errors is not taken again, or with `resumes` gone on with under the budget that is asked for
    now; with `is_fresh` none is taken. Where another agent than our runtime is measured, it stands for `model`. With
    `base`, both are worked on side by side. Raises LoopError without a judge, a case, a user or an agent, for faults
    of tools that are not there, for a budget that can't be kept, and for one that what is under way does not keep.
    """
    with transaction.atomic():
        # Two clicks at once would both find nothing.
        runner = Harness.objects.select_for_update(no_key=True).get(pk=harness.pk).runner
        plan = plan_evaluation(harness, runner, commit, version, **asked)
        known = None if is_fresh else _find_known(actor, harness, plan, resumes=resumes)
        if known is not None:
            return _compare_with(known, base)
        fields = {**plan.measured, **plan.means, "is_fresh": is_fresh, "base": base}
        fields["currency"] = settings.MODEL_CURRENCY
        evaluation = Evaluation.objects.create(harness=harness, created_by=actor.name, **fields)
        evaluation.total = create_shards(evaluation)
        evaluation.save(update_fields=["total"])
        record(actor, "evaluation.created", evaluation, commit=evaluation.commit, pairs=evaluation.total)
    return evaluation


def _find_known(actor: Actor, harness: Harness, plan: Plan, *, resumes: bool) -> Evaluation | None:
    """The evaluation that measures the same: finished or under way, else one that is resumed for it."""
    same = Evaluation.objects.filter(harness=harness, answers_from=None, origin={}, **plan.measured)
    budget = plan.means["budget"]
    known = same.filter(state__in=(EvaluationState.FINISHED, *ACTIVE)).first()
    if known is not None and known.state in ACTIVE:
        check_same_budget(known, budget)
    if known is None and resumes and (known := find_resumable(same)) is not None:
        resume_evaluation(actor, known, extend_budget(known, budget))
    return known


def _compare_with(evaluation: Evaluation, base: Evaluation | None) -> Evaluation:
    """Have both worked on side by side, if the one has no other base yet."""
    if base is not None and base != evaluation and evaluation.base_id is None:
        evaluation.base = base
        evaluation.save(update_fields=["base"])
    return evaluation


def list_batch(evaluation: Evaluation) -> list[Evaluation]:
    """The evaluation and those that it is compared with, as far as they have not ended: they are worked on together."""
    compared = Q(pk=evaluation.base_id) | Q(base=evaluation.pk)
    if evaluation.base_id:
        compared |= Q(base=evaluation.base_id)
    batch = Evaluation.objects.filter(Q(pk=evaluation.pk) | compared, state__in=ACTIVE)
    found = list(batch.select_related("harness__judge").order_by("pk"))
    return sorted(found, key=lambda one: one.pk != evaluation.pk)


def faults_that_never_strike(evaluation: Evaluation) -> list[str]:
    """Tools that faults of the cases name and that the harness has not: for a warning, as later versions may."""
    if evaluation.runner:
        return []
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits).exclude(faults=[])
    faults = [fault for listed in cases.values_list("faults", flat=True) for fault in read_faults(listed)]
    return unknown_fault_tools(faults, read_version(evaluation.harness, evaluation.commit).tools)


def describe_faults(faults: Iterable[Mapping[str, Any]]) -> str:
    """The faults of an evaluation as a command line has them, such as "timeout:*:0.5"; empty without any."""
    return ", ".join(_describe_fault(fault) for fault in faults)


def _describe_fault(fault: Mapping[str, Any]) -> str:
    bound = f" (at most {fault['times']})" if fault.get("times") else ""
    return f"{fault['kind']}:{fault.get('tool', '*')}:{fault.get('rate', 1):g}{bound}"


def create_shards(evaluation: Evaluation) -> int:
    """Deal the pairs out to shards, batch by batch; returns how many pairs there are."""
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits)
    count = cases.count()
    if not count or evaluation.repeats < 1:
        raise LoopError(_("there is nothing to evaluate: no case in these splits, or no repeat"))
    shards = (
        EvaluationShard(evaluation=evaluation, number=number, pairs=pairs)
        for number, pairs in enumerate(_deal(_shuffle(cases), evaluation.repeats), 1)
    )
    while batch := list(itertools.islice(shards, BATCH)):
        EvaluationShard.objects.bulk_create(batch)
    return count * evaluation.repeats


def _shuffle(cases: QuerySet[DatasetCase]) -> QuerySet[DatasetCase]:
    """In an order that has nothing to do with what the cases are about, so that the first ones stand for all.

    It is the same for all evaluations of a version: those that are worked on side by side meet at the same cases.
    """
    return cases.order_by(MD5("key"), "key")


def _deal(cases: QuerySet[DatasetCase], repeats: int) -> Iterator[list[list[int]]]:
    """The pairs of each shard: all cases once, then again."""
    pairs = (
        [case, repeat]
        for repeat in range(repeats)
        for case in cases.values_list("pk", flat=True).iterator(chunk_size=BATCH)
    )
    while shard := list(itertools.islice(pairs, SHARD_PAIRS)):
        yield shard


def build_scorer(
    evaluation: Evaluation,
    policy: NamedModel | None,
    judge: NamedModel,
    user: NamedModel | None = None,
    access: ToolAccess = NO_ACCESS,
) -> Scorer:
    """Return what scores a case of this evaluation: the commits and the model names that it is bound to.

    Another agent than our runtime needs no `policy`, and an evaluation without conversations no `user`.
    """
    if evaluation.harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": evaluation.harness})
    return Scorer(
        runner=build_runner(evaluation, policy, access),
        judge=read_version(evaluation.harness.judge, evaluation.judge_commit),
        judge_model=NamedModel(judge.model, evaluation.judge_model),
        user=NamedModel(user.model, evaluation.user_model) if user else None,
        commit=evaluation.commit,
        faults=tuple(evaluation.faults),
    )


def finish_evaluation(evaluation: Evaluation) -> bool:
    """End the evaluation when nothing is missing; say whether it has ended, now or before.

    Errors that were outages are tried again first, EVALUATION_RETRY_ROUNDS times. What is missing when a budget is
    used up becomes errors. Any number of workers may call it at once: one of them ends it.
    """
    try:
        evaluation.refresh_from_db(fields=["state", "stopped_by"])
    except Evaluation.DoesNotExist:
        # Nothing is left to be done for what is deleted.
        return True
    if evaluation.state not in ACTIVE:
        return evaluation.state in ENDED
    if evaluation.stopped_by:
        _give_up_the_rest(evaluation)
    if evaluation.shards.exclude(state=ShardState.DONE).exists():
        return False
    if count_results(evaluation) < evaluation.total and requeue_incomplete(evaluation):
        return False
    if _begin_retry_round(evaluation):
        return False
    has_errors = evaluation.results.exclude(error_kind="").exists()
    state = EvaluationState.PARTIAL if has_errors else EvaluationState.FINISHED
    try:
        move(evaluation, state, SYSTEM, finished_at=database_time())
    except StaleState:
        evaluation.refresh_from_db()
    return evaluation.state in ENDED


def _give_up_the_rest(evaluation: Evaluation) -> None:
    """End what a budget has left undone, but for what workers still have under way."""
    lost = evaluation.shards.filter(state=ShardState.RUNNING, lease_until__lt=Now())
    lost.update(state=ShardState.QUEUED, holder="", lease_until=None)
    fill_missing(evaluation, BUDGET, f"the budget of {evaluation.stopped_by} is used up")


def _begin_retry_round(evaluation: Evaluation) -> bool:
    """Queue what failed of an outage once more; False when there is nothing, or it has been tried often enough."""
    with transaction.atomic():
        locked = Evaluation.objects.select_for_update(no_key=True).get(pk=evaluation.pk)
        if locked.state not in ACTIVE or locked.stopped_by:
            return False
        if locked.shards.exclude(state=ShardState.DONE).exists():
            # Another worker was quicker.
            return True
        if locked.retry_rounds >= settings.EVALUATION_RETRY_ROUNDS or not _is_passing(locked):
            return False
        if not requeue_failed(locked, RETRYABLE_KINDS):
            return False
        Evaluation.objects.filter(pk=locked.pk).update(retry_rounds=F("retry_rounds") + 1)
    return True


def _is_passing(evaluation: Evaluation) -> bool:
    """Whether what failed is likely to work now: where nothing has worked at all, it is not."""
    return evaluation.results.filter(error_kind="").exists()


def stop_for_budget(evaluation_id: int, part: str) -> None:
    """Say to all workers that a part of the budget is used up: they begin nothing any more."""
    running = Evaluation.objects.filter(pk=evaluation_id, state__in=ACTIVE, stopped_by="")
    running.update(stopped_by=part)


def _check_is_ours(evaluation: Evaluation) -> None:
    if evaluation.origin:
        raise LoopError(_("these results were made elsewhere and can't be made here"))


def cancel_evaluation(actor: Actor, evaluation: Evaluation) -> None:
    """End the evaluation before its time; what is measured stays, and it can be resumed.

    Raises LoopError for results that were made elsewhere.
    """
    _check_is_ours(evaluation)
    move(evaluation, EvaluationState.CANCELLED, actor, finished_at=database_time())


def resume_evaluation(actor: Actor, evaluation: Evaluation, budget: Mapping[str, Any] | None = None) -> int:
    """Queue what has no score: results that are errors are thrown away, scores stay. Returns the pairs to be made.

    With `budget` it may use so much from its beginning on, in place of the budget that it has. Raises LoopError for
    results that were made elsewhere, for a budget that can't be kept, and when prices are in another currency now.
    """
    _check_is_ours(evaluation)
    fields: dict[str, Any] = {"finished_at": None, "heartbeat_at": None, "queued_at": database_time()}
    fields |= {"stopped_by": "", "retry_rounds": 0, "currency": currency_to_go_on_in(evaluation)}
    if budget is not None:
        fields["budget"] = check_budget(budget, _list_asked(evaluation))
    with transaction.atomic():
        move(evaluation, EvaluationState.QUEUED, actor, **fields)
        requeue_failed(evaluation)
        requeue_incomplete(evaluation)
    return evaluation.total - count_results(evaluation)


def _list_asked(evaluation: Evaluation) -> list[str]:
    """The models that are asked for it; "" where one is not needed."""
    if evaluation.answers_from_id is not None:
        return [evaluation.judge_model]
    policy = [] if evaluation.runner else [evaluation.model]
    return [*policy, evaluation.judge_model, evaluation.user_model]


def is_standing_still(evaluation: Evaluation, now: datetime) -> bool:
    """Whether nobody works on an evaluation that has not ended; the sweep sees to that when it can."""
    if evaluation.state not in ACTIVE:
        return False
    return last_sign_of_life(evaluation) < now - STANDSTILL


def last_sign_of_life(evaluation: Evaluation) -> datetime:
    """When a worker was last at an evaluation, or when it was queued if none has been since."""
    return evaluation.heartbeat_at or evaluation.queued_at or evaluation.created_at


def average_scores(evaluation: Evaluation) -> Averages:
    """The averages that boards and commands show; guard cases decide by themselves and are left out of them."""
    if (kept := kept_figures(evaluation)) is not None:
        means = (kept.accuracy, kept.effectiveness)
        accuracy, effectiveness = (None if mean is None else 100 * mean for mean in means)
        return Averages(accuracy, effectiveness, kept.cases, kept.results, kept.errors)
    scored = ~Q(case__split=Split.GUARD) & Q(error_kind="")
    row = evaluation.results.aggregate(
        accuracy=Avg("accuracy", filter=scored),
        effectiveness=Avg("effectiveness", filter=scored),
        cases=Count("case", distinct=True),
        results=Count("pk"),
        errors=Count("pk", filter=~Q(error_kind="")),
    )
    for metric in ("accuracy", "effectiveness"):
        row[metric] = None if row[metric] is None else 100 * row[metric]
    return Averages(**row)


def newest_version(harness: Harness, name: str = "") -> DatasetVersion:
    """Return the newest version of the harness's dataset: the named one, or its first. Raises LoopError.

    Case sets that came with results made elsewhere are taken by name only.
    """
    versions = DatasetVersion.objects.filter(dataset__harness=harness).select_related("dataset")
    versions = versions.filter(dataset__name=name) if name else leave_out_imported(versions)
    version = versions.order_by("dataset_id", "-number").first()
    if version is None:
        said = _("%(harness)s has no dataset %(name)s; import one first")
        values = {"harness": harness, "name": name}
        raise LoopError((said if name else _("%(harness)s has no dataset; import one first")) % values)
    return version
