"""Stage 5 once more: the answers of an evaluation scored by another version of the judge; no agent is asked.

Makes the record; `stored_answers` stands where the agent would be, and the work is done as that of any evaluation.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.budgets import check_budget
from evolution.loop.evaluation import ACTIVE, ENDED, create_shards
from evolution.loop.repositories import open_repository, read_version
from evolution.loop.reuse import check_same_budget
from evolution.models import Evaluation, Harness
from evolution.states import EvaluationState
from evolution.transitions import record

# What is measured, and stays as it was.
_KEPT = (
    "harness", "commit", "dataset_version", "splits", "model", "user_model", "runner", "faults", "live_tools",
    "repeats", "concurrency",
)  # fmt: skip


def create_rejudgement(
    actor: Actor,
    source: Evaluation,
    judge_ref: str,
    *,
    judge_model: str,
    budget: Mapping[str, Any] | None = None,
    is_fresh: bool = False,
) -> Evaluation:
    """Create the evaluation that judges the source's answers, or return the one that does or has done just that.

    With `is_fresh` there is always a new one, whose judge is asked anew. Answers that were judged anew before are
    taken from where they were given. Raises LoopError while the source is under way, without such a judge, for a
    budget that can't be kept, and for one that what is under way does not keep.
    """
    wanted: dict[str, Any] = {
        "answers_from": source.answers_from or source,
        "judge_commit": _resolve_judge(source, judge_ref),
        "judge_model": judge_model,
    }
    money = {"currency": settings.MODEL_CURRENCY}
    limits = check_budget(budget, [judge_model])
    with transaction.atomic():
        # Two clicks at once would both find nothing.
        Harness.objects.select_for_update(no_key=True).get(pk=source.harness_id)
        known = None if is_fresh else _find_known(wanted, limits)
        if known is not None:
            return known
        fields = {name: getattr(source, name) for name in _KEPT} | wanted | money
        made = Evaluation.objects.create(**fields, budget=limits, is_fresh=is_fresh, created_by=actor.name)
        made.total = create_shards(made)
        made.save(update_fields=["total"])
        commit, answers = made.judge_commit, wanted["answers_from"].pk
        record(actor, "evaluation.rejudged", made, answers_from=answers, judge=commit)
    return made


def _resolve_judge(source: Evaluation, judge_ref: str) -> str:
    """The commit of the judge; LoopError where nothing can be judged."""
    for given in filter(None, (source, source.answers_from)):
        # Where it is judged anew, the answers are another one's.
        if given.state in ACTIVE:
            raise LoopError(_("%(evaluation)s has not ended yet") % {"evaluation": given})
    if source.harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": source.harness})
    commit = open_repository(source.harness.judge).resolve(judge_ref)
    # What can't be read would be no judge for any case.
    read_version(source.harness.judge, commit)
    return commit


def _find_known(wanted: Mapping[str, Any], budget: Mapping[str, Any]) -> Evaluation | None:
    """The one that judges or has judged just so."""
    known = Evaluation.objects.filter(**wanted, state__in=(EvaluationState.FINISHED, *ACTIVE)).first()
    if known is not None and known.state in ACTIVE:
        check_same_budget(known, budget)
    return known


def can_be_rejudged(evaluation: Evaluation) -> bool:
    """Whether its answers are all there, and a judge is."""
    return evaluation.harness.judge_id is not None and (
        evaluation.state in ENDED or evaluation.state == EvaluationState.CANCELLED
    )
