"""Beside stage 5: one proposal measured by itself, against the version that its branch began on."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.evaluation import create_evaluation, newest_version
from evolution.loop.locks import lock_record
from evolution.models import Evaluation, Proposal
from evolution.states import ProposalState
from evolution.transitions import record

MEASURABLE = (ProposalState.DRAFTED, ProposalState.CONFIRMED, ProposalState.IN_STEP)


def measure_alone(actor: Actor, proposal: Proposal, **models: str) -> list[Evaluation]:
    """Bind the proposal to an evaluation of its base and one of its branch; what is measured already is not again.

    Returns both. Raises LoopError when there is nothing to measure, or no dataset.
    """
    with transaction.atomic():
        lock_record(proposal)
        if proposal.state not in MEASURABLE or not proposal.head_commit:
            raise LoopError(_("%(proposal)s has no change to evaluate now") % {"proposal": proposal})
        asked: dict[str, Any] = dict(models)
        version = newest_version(proposal.harness)
        base = create_evaluation(
            actor, proposal.harness, proposal.base_commit, version, resumes=True, **asked
        )
        candidate = create_evaluation(
            actor, proposal.harness, proposal.head_commit, version, base=base, resumes=True, **asked
        )
        if (proposal.alone_base, proposal.alone_candidate) != (base, candidate):
            proposal.alone_base, proposal.alone_candidate = base, candidate
            proposal.save(update_fields=["alone_base", "alone_candidate", "updated_at"])
            record(
                actor,
                "proposal.measured",
                proposal,
                base=base.pk,
                candidate=candidate.pk,
                commit=candidate.commit,
            )
    return [base, candidate]
