"""Shared by what ends a diagnosis: nothing that people approved may be left behind that rests on it."""

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.models import Diagnosis
from evolution.states import ProposalState


def check_nothing_rests_on(diagnosis: Diagnosis) -> None:
    """Raise LoopError, with the way out, while a proposal for the diagnosis is in a step or approved."""
    in_step = diagnosis.proposals.filter(state=ProposalState.IN_STEP).select_related("step").first()
    if in_step is not None:
        text = _("%(proposal)s is in %(step)s; take it out of the step first")
        raise LoopError(text % {"proposal": in_step, "step": in_step.step})
    approved = diagnosis.proposals.filter(state=ProposalState.CONFIRMED).first()
    if approved is not None:
        raise LoopError(_("%(proposal)s is approved; reject it first") % {"proposal": approved})
