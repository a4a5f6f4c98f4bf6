"""Stage 5 once more: the answers of an evaluation scored by another version of the judge; no agent is asked.

Makes the record; `stored_answers` stands where the agent would be, and the work is done as that of any evaluation.
"""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.evaluation import ACTIVE, ENDED, create_shards
from evolution.loop.repositories import open_repository, read_version
from evolution.models import Evaluation, Harness
from evolution.states import EvaluationState
from evolution.transitions import record

# What is measured, and stays as it was.
_KEPT = (
    "harness", "commit", "dataset_version", "splits", "model", "user_model", "runner", "faults", "live_tools",
    "repeats", "concurrency",
)  # fmt: skip


def create_rejudgement(
    actor: Actor, source: Evaluation, judge_ref: str, *, judge_model: str, is_fresh: bool = False
) -> Evaluation:
    """Create the evaluation that judges the source's answers, or return the one that does or has done just that.

    With `is_fresh` there is always a new one, whose judge is asked anew. Answers that were judged anew before are
    taken from where they were given. Raises LoopError while the source is under way, and without such a judge.
    """
    if source.state in ACTIVE:
        raise LoopError(_("%(evaluation)s has not ended yet") % {"evaluation": source})
    if source.harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": source.harness})
    judge_commit = open_repository(source.harness.judge).resolve(judge_ref)
    # What can't be read would be no judge for any case.
    read_version(source.harness.judge, judge_commit)
    wanted: dict[str, Any] = {
        "answers_from": source.answers_from or source,
        "judge_commit": judge_commit,
        "judge_model": judge_model,
    }
    with transaction.atomic():
        # Two clicks at once would both find nothing.
        Harness.objects.select_for_update(no_key=True).get(pk=source.harness_id)
        known = Evaluation.objects.filter(**wanted, state__in=(EvaluationState.FINISHED, *ACTIVE)).first()
        if known is not None and not is_fresh:
            return known
        kept = {name: getattr(source, name) for name in _KEPT}
        made = Evaluation.objects.create(**kept, **wanted, is_fresh=is_fresh, created_by=actor.name)
        made.total = create_shards(made)
        made.save(update_fields=["total"])
        record(actor, "evaluation.rejudged", made, answers_from=wanted["answers_from"].pk, judge=judge_commit)
    return made


def can_be_rejudged(evaluation: Evaluation) -> bool:
    """Whether its answers are all there, and a judge is."""
    return evaluation.harness.judge_id is not None and (
        evaluation.state in ENDED or evaluation.state == EvaluationState.CANCELLED
    )
