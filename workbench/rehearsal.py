"""Which parts the rehearsal model played in an evaluation: its figures say nothing about a real model there."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.models import Evaluation


@dataclass(frozen=True)
class Cast:
    """Who is the rehearsal model, and who is not, in words."""

    rehearsed: list[str]
    others: list[str]


def is_rehearsal(model: str) -> bool:
    """Whether a model's name is that of the rehearsal model."""
    return model.startswith("rehearsal")


def cast_of(evaluation: Evaluation) -> Cast:
    """The parts of an evaluation; an agent that is not our runtime is never the rehearsal model."""
    return _sort_parts(
        {
            _("agent"): "" if evaluation.runner else evaluation.model,
            _("judge"): evaluation.judge_model,
            **({_("simulated user"): evaluation.user_model} if evaluation.user_model else {}),
        }
    )


def cast_in_use(agent: str, judge: str) -> Cast:
    """The same for the models that an evaluation would be made with now; `agent` is "" for an agent not ours."""
    return _sort_parts({_("agent"): agent, _("judge"): judge})


def join_casts(evaluations: Iterable[Evaluation]) -> Cast:
    """The parts of several evaluations; one that is rehearsed in any of them counts as rehearsed."""
    casts = [cast_of(evaluation) for evaluation in evaluations]
    rehearsed = dict.fromkeys(part for cast in casts for part in cast.rehearsed)
    others = dict.fromkeys(part for cast in casts for part in cast.others if part not in rehearsed)
    return Cast(list(rehearsed), list(others))


def _sort_parts(models: dict[str, str]) -> Cast:
    rehearsed = [part for part, model in models.items() if is_rehearsal(model)]
    return Cast(rehearsed, [part for part in models if part not in rehearsed])
