"""Stage 5: a harness commit measured on a dataset version: one result for every (case, repeat), whatever happens.

Makes the records and says when they are complete; `shards` does the work, `scoring` a single case.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Avg, Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError, StaleState
from evolution.loop.repositories import check_has_agent, open_repository, read_version
from evolution.loop.runners import build_runner, describe_runner, reaches_the_world
from evolution.loop.scoring import Scorer
from evolution.models import DatasetVersion, Evaluation, EvaluationShard, Harness
from evolution.ports import NamedModel
from evolution.states import EvaluationState, ShardState, Split
from evolution.transitions import move, record
from harness_repo.git.repository import MAIN
from harness_repo.runtime.access import NO_ACCESS, ToolAccess
from harness_repo.runtime.faults import Fault, read_faults, unknown_fault_tools

SHARD_PAIRS = 16
DEFAULT_SPLITS = (Split.DEV, Split.GUARD)
ACTIVE = (EvaluationState.QUEUED, EvaluationState.RUNNING)
ENDED = (EvaluationState.FINISHED, EvaluationState.PARTIAL)
# What a version is judged by; an evaluation under faults says how it bears them.
UNDISTURBED = Q(faults=[])

Pair = tuple[int, int]


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
    model: str,
    judge_model: str,
    user_model: str = "",
    splits: Iterable[str] = DEFAULT_SPLITS,
    repeats: int = 1,
    faults: Iterable[Fault] = (),
) -> Evaluation:
    """Create the evaluation with its shards, or return the one that measures or has measured exactly the same.

    One that ended with errors, or was cancelled, is not taken again. `user_model` plays the user of conversation
    cases, and is needed if there are any. Where another agent than our runtime is measured, it stands for `model`.
    Raises LoopError without a judge, a case, a user or an agent, and for faults of tools that are not there.
    """
    faults = tuple(faults)
    if harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": harness})
    wanted: dict[str, Any] = {
        "commit": open_repository(harness).resolve(commit),
        "dataset_version": version,
        "splits": sorted(set(splits)),
        "model": model,
        "judge_commit": open_repository(harness.judge).resolve(MAIN),
        "judge_model": judge_model,
        "user_model": _choose_user(version, splits, user_model),
        "repeats": repeats,
        "faults": [fault.to_dict() for fault in faults],
    }
    with transaction.atomic():
        # Two clicks at once would both find nothing.
        runner = Harness.objects.select_for_update(no_key=True).get(pk=harness.pk).runner
        wanted |= {
            "runner": runner,
            "model": describe_runner(runner)[:200] or model,
            "live_tools": reaches_the_world(runner),
        }
        _check_agent(harness, wanted["commit"], runner, faults)
        reusable = Evaluation.objects.filter(harness=harness, **wanted)
        known = reusable.filter(state__in=(EvaluationState.FINISHED, *ACTIVE)).first()
        if known is not None:
            return known
        evaluation = Evaluation.objects.create(harness=harness, created_by=actor.name, **wanted)
        evaluation.total = _create_shards(evaluation)
        evaluation.save(update_fields=["total"])
        record(actor, "evaluation.created", evaluation, commit=evaluation.commit, pairs=evaluation.total)
    return evaluation


def _check_agent(harness: Harness, commit: str, runner: Mapping[str, Any], faults: Iterable[Fault]) -> None:
    """Raise LoopError when nothing could be measured, or not what was asked for."""
    check_has_agent(harness, commit, runner)
    if runner:
        # Its tools are its own.
        return
    unknown = unknown_fault_tools(faults, read_version(harness, commit).tools)
    if unknown:
        values = {"harness": harness, "tools": ", ".join(unknown)}
        raise LoopError(_("%(harness)s has no such tool that a fault could strike: %(tools)s") % values)


def faults_that_never_strike(evaluation: Evaluation) -> list[str]:
    """Tools that faults of the cases name and that the harness has not: for a warning, as later versions may."""
    if evaluation.runner:
        return []
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits).exclude(faults=[])
    faults = [fault for listed in cases.values_list("faults", flat=True) for fault in read_faults(listed)]
    return unknown_fault_tools(faults, read_version(evaluation.harness, evaluation.commit).tools)


def has_conversations(version: DatasetVersion, splits: Iterable[str] = DEFAULT_SPLITS) -> bool:
    """Whether a case of these splits is a conversation, which needs a model that plays the user."""
    return version.cases.filter(split__in=list(splits), request__has_key="user").exists()


def _choose_user(version: DatasetVersion, splits: Iterable[str], user_model: str) -> str:
    if not has_conversations(version, splits):
        return ""
    if not user_model:
        raise LoopError(
            _("%(version)s has conversations, and no model plays the user") % {"version": version}
        )
    return user_model


def describe_faults(faults: Iterable[Mapping[str, Any]]) -> str:
    """The faults of an evaluation as a command line has them, such as "timeout:*:0.5"; empty without any."""
    return ", ".join(_describe_fault(fault) for fault in faults)


def _describe_fault(fault: Mapping[str, Any]) -> str:
    bound = f" (at most {fault['times']})" if fault.get("times") else ""
    return f"{fault['kind']}:{fault.get('tool', '*')}:{fault.get('rate', 1):g}{bound}"


def _create_shards(evaluation: Evaluation) -> int:
    """Deal the pairs out to shards; returns how many pairs there are."""
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits)
    ids = list(cases.order_by("key").values_list("pk", flat=True))
    if not ids or evaluation.repeats < 1:
        raise LoopError(_("there is nothing to evaluate: no case in these splits, or no repeat"))
    pairs = list(itertools.product(range(evaluation.repeats), ids))
    chunks = [pairs[start : start + SHARD_PAIRS] for start in range(0, len(pairs), SHARD_PAIRS)]
    EvaluationShard.objects.bulk_create(
        EvaluationShard(
            evaluation=evaluation, number=number, pairs=[[case, repeat] for repeat, case in chunk]
        )
        for number, chunk in enumerate(chunks, 1)
    )
    return len(pairs)


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

    Any number of workers may call it at once: one of them ends it.
    """
    evaluation.refresh_from_db(fields=["state"])
    if evaluation.state not in ACTIVE:
        return evaluation.state in ENDED
    if evaluation.shards.exclude(state=ShardState.DONE).exists():
        return False
    if requeue_incomplete(evaluation):
        return False
    has_errors = evaluation.results.exclude(error_kind="").exists()
    state = EvaluationState.PARTIAL if has_errors else EvaluationState.FINISHED
    try:
        move(evaluation, state, SYSTEM, finished_at=timezone.now())
    except StaleState:
        evaluation.refresh_from_db()
    return evaluation.state in ENDED


def cancel_evaluation(actor: Actor, evaluation: Evaluation) -> None:
    """End the evaluation before its time; what is measured stays, and it can be resumed."""
    move(evaluation, EvaluationState.CANCELLED, actor, finished_at=timezone.now())


def resume_evaluation(actor: Actor, evaluation: Evaluation) -> int:
    """Queue what has no score: results that are errors are thrown away, scores stay. Returns the pairs to be made."""
    with transaction.atomic():
        move(evaluation, EvaluationState.QUEUED, actor, finished_at=None, heartbeat_at=None)
        evaluation.results.exclude(error_kind="").delete()
        requeue_incomplete(evaluation)
    return evaluation.total - evaluation.results.count()


def requeue_incomplete(evaluation: Evaluation) -> int:
    """Queue every shard that lacks a result and that nobody works on; returns how many."""
    done = stored_pairs(evaluation)
    shards = evaluation.shards.exclude(state=ShardState.RUNNING)
    incomplete = [shard.pk for shard in shards if missing_pairs(shard, done)]
    return EvaluationShard.objects.filter(pk__in=incomplete).update(
        state=ShardState.QUEUED, holder="", lease_until=None, attempts=0
    )


def stored_pairs(evaluation: Evaluation) -> set[Pair]:
    """Return the (case id, repeat) pairs that have a result."""
    return set(evaluation.results.values_list("case_id", "repeat"))


def missing_pairs(shard: EvaluationShard, done: set[Pair]) -> list[Pair]:
    """Return the shard's pairs that are not among those done, in order."""
    return [(case, repeat) for case, repeat in shard.pairs if (case, repeat) not in done]


def average_scores(evaluation: Evaluation) -> Averages:
    """The averages that boards and commands show; guard cases decide by themselves and are left out of them."""
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
    """Return the newest version of the harness's dataset: the named one, or its first. Raises LoopError."""
    versions = DatasetVersion.objects.filter(dataset__harness=harness).select_related("dataset")
    if name:
        versions = versions.filter(dataset__name=name)
    version = versions.order_by("dataset_id", "-number").first()
    if version is None:
        said = _("%(harness)s has no dataset %(name)s; import one first")
        values = {"harness": harness, "name": name}
        raise LoopError((said if name else _("%(harness)s has no dataset; import one first")) % values)
    return version
