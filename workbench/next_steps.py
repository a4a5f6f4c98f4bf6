"""What a cluster needs next, and the page to do it on: the last link of its chain of diagnosis, proposal and step."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from evolution.models import Cluster, Diagnosis, Proposal
from evolution.queries.clusters import LIVE
from evolution.states import DiagnosisState, ProposalState


@dataclass(frozen=True)
class NextStep:
    """A link."""

    text: str
    url: str


def find_next_step(cluster: Cluster, harness_name: str, diagnoses: list[Diagnosis]) -> NextStep | None:
    """The next step of a cluster, None when it wants no work; `diagnoses` are those not rejected, best first."""
    if cluster.state not in LIVE:
        return None
    own_page = reverse("cluster", args=[harness_name, cluster.number])
    proposals = [proposal for diagnosis in diagnoses for proposal in diagnosis.proposals.all()]
    under_way = [proposal for proposal in proposals if proposal.state in _words()]
    if under_way:
        return _follow(under_way[0], harness_name)
    fresh = [diagnosis for diagnosis in diagnoses if diagnosis.state == DiagnosisState.OPEN]
    if fresh and not fresh[0].proposals.all():
        return NextStep(_("review the diagnosis"), own_page)
    return NextStep(_("diagnose again") if diagnoses or proposals else _("diagnose"), own_page)


def _follow(proposal: Proposal, harness_name: str) -> NextStep:
    if proposal.state == ProposalState.IN_STEP and proposal.step is not None:
        number = proposal.step.number
        return NextStep(
            _("see step %(number)d") % {"number": number}, reverse("step", args=[harness_name, number])
        )
    page = (
        reverse("steps", args=[harness_name])
        if proposal.state == ProposalState.CONFIRMED
        else reverse("proposal", args=[harness_name, proposal.pk])
    )
    return NextStep(_words()[ProposalState(proposal.state)] % {"number": proposal.pk}, page)


def _words() -> dict[ProposalState, str]:
    """What to do with a proposal that is not at its end."""
    return {
        ProposalState.DRAFTING: _("see proposal %(number)d"),
        ProposalState.DRAFTED: _("review proposal %(number)d"),
        ProposalState.FAILED: _("see why proposal %(number)d failed"),
        ProposalState.CONFIRMED: _("start a step with proposal %(number)d"),
        ProposalState.IN_STEP: "",
    }
