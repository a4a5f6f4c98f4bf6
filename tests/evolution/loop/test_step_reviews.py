"""What a step would release was looked at by a second person, where the harness asks for it by now."""

import pytest
from django.contrib.auth.models import Group, User

from evolution.actions.reviews import approve_proposal
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop import promotion, steps
from evolution.loop.confirmations import confirm_resolution
from evolution.loop.conflict_resolutions import store_resolution
from evolution.loop.reviews import is_approved
from evolution.loop.step_merges import preview_merge
from evolution.loop.step_reviews import find_unreviewed
from evolution.models import ConflictResolution, Harness, HarnessRole, Proposal, Step
from evolution.states import ProposalState, RoleName, StepState
from tests.evolution.measured import (
    ANNA,
    DEV,
    MANY,
    make_harness,
    make_measured_step,
    make_proposal,
    make_version,
    measure,
    teach,
)

pytestmark = pytest.mark.django_db

CAROL = Actor("carol", Role.DEVELOPER)


def ask_for_a_second_reviewer(harness: Harness) -> None:
    Harness.objects.filter(pk=harness.pk).update(needs_second_reviewer=True)
    harness.refresh_from_db()


def approve(proposal: Proposal, by: Actor) -> None:
    Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.DRAFTED)
    approve_proposal(by, Proposal.objects.get(pk=proposal.pk))


def test_what_nobody_else_has_approved_is_not_promoted() -> None:
    step = make_measured_step(teach(*range(1, 21)))
    ask_for_a_second_reviewer(step.harness)
    with pytest.raises(LoopError, match=f"#{step.proposals.get().pk} has no approval"):
        promotion.promote(ANNA, step)
    assert Step.objects.get().state == StepState.EVALUATED
    assert step.harness.releases.count() == 1


def test_what_somebody_else_has_approved_is_promoted() -> None:
    harness = make_harness()
    make_version(harness, MANY)
    proposal = make_proposal(harness, teach(*range(1, 21)))
    approve(proposal, CAROL)
    step = measure(steps.merge_step(DEV, harness, [proposal]))
    ask_for_a_second_reviewer(step.harness)
    promotion.promote(ANNA, step)
    assert step.state == StepState.PROMOTED


def make_settled_step() -> tuple[Step, ConflictResolution]:
    """Measured, of two proposals that others approved, and of a conflict that dev alone has settled."""
    harness = make_harness()
    make_version(harness, MANY)
    proposals = [make_proposal(harness, teach(*numbers)) for numbers in (range(1, 12), range(8, 20))]
    for proposal in proposals:
        approve(proposal, CAROL)
    conflict = preview_merge(harness, proposals).conflict
    assert conflict is not None
    settled = store_resolution(DEV, proposals, conflict.files[0], teach(*range(1, 20)))
    step = measure(steps.merge_step(DEV, harness, [Proposal.objects.get(pk=each.pk) for each in proposals]))
    ask_for_a_second_reviewer(step.harness)
    return step, settled


def test_what_one_person_settled_alone_is_not_promoted_before_another_confirms_it() -> None:
    step, settled = make_settled_step()
    with pytest.raises(LoopError, match=r"how prompts/role\.md was settled"):
        promotion.promote(ANNA, step)
    settled.refresh_from_db()
    confirm_resolution(ANNA, settled, list(step.merged.all()))
    promotion.promote(ANNA, step)
    assert step.state == StepState.PROMOTED


def test_a_text_that_was_confirmed_after_it_was_settled_otherwise_is_not_the_one_in_the_step() -> None:
    step, settled = make_settled_step()
    ConflictResolution.objects.filter(pk=settled.pk).update(content="knows: q1\n", confirmed_by="anna")
    assert "settled otherwise" in find_unreviewed(step)
    with pytest.raises(LoopError, match="rebuild it"):
        promotion.promote(ANNA, step)


def test_a_harness_that_asks_for_nobody_else_lacks_nothing() -> None:
    step, _settled = make_settled_step()
    Harness.objects.update(needs_second_reviewer=False)
    assert find_unreviewed(Step.objects.get(pk=step.pk)) == ""


@pytest.mark.parametrize("is_closed", [True, False], ids=["account closed", "viewer here"])
def test_the_word_of_somebody_who_is_no_developer_now_does_not_count(*, is_closed: bool) -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(3))
    carol = User.objects.create_user("carol")
    carol.groups.add(Group.objects.get_or_create(name="developer")[0])
    approve(proposal, CAROL)
    proposal.refresh_from_db()
    assert is_approved(proposal)
    if is_closed:
        User.objects.update(is_active=False)
    else:
        HarnessRole.objects.create(harness=harness, user=carol, role=RoleName.VIEWER)
    assert not is_approved(proposal)
    ask_for_a_second_reviewer(harness)
    with pytest.raises(LoopError, match="needs the approval of a developer"):
        steps.merge_step(DEV, harness, [proposal])
