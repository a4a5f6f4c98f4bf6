"""What stands against a version is found once, and not at all where there is too much of it."""

from typing import Any

import pytest
from django.utils.translation import override

from evolution.actions.reviews import approve_proposal
from evolution.loop import version_faults, version_size
from evolution.loop.edits import EditRefused
from evolution.loop.outside_files import find_version_faults
from evolution.loop.version_faults import list_version_faults
from evolution.models import Proposal
from evolution.states import ProposalState
from tests.evolution.measured import DEV, make_harness, make_proposal, teach

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The versions that were looked at."""
    asked: list[Any] = []

    def find(*sides: Any) -> list[str]:
        asked.append(sides)
        return find_version_faults(*sides)

    monkeypatch.setattr(version_faults, "find_version_faults", find)
    return asked


@pytest.fixture
def proposal() -> Proposal:
    proposal = make_proposal(make_harness(), teach(1, 7), path="notes.txt")
    Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.DRAFTED)
    proposal.refresh_from_db()
    return proposal


def test_a_version_is_looked_at_once_in_each_language(proposal: Proposal, asked: list[Any]) -> None:
    for language in ("en", "zh-hans"):
        for _time in range(2):
            with override(language):
                assert "notes.txt" in list_version_faults(proposal)[0]
    assert len(asked) == 2


def test_an_approval_looks_before_it_makes_others_wait(
    proposal: Proposal, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_lock: list[int] = []
    monkeypatch.setattr("evolution.actions.reviews.lock_record", lambda _given: at_lock.append(len(asked)))
    with pytest.raises(EditRefused, match=r"notes\.txt"):
        approve_proposal(DEV, proposal)
    assert (at_lock, len(asked)) == ([1], 1)


def test_what_is_too_much_is_refused_unread(
    proposal: Proposal, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_size, "MOST_FILES", 0)
    with pytest.raises(EditRefused, match="changes 1 file"):
        approve_proposal(DEV, proposal)
    assert asked == []
