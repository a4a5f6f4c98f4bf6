"""How much a version from elsewhere may change before anybody is shown it."""

import pytest

from evolution.loop import version_size
from evolution.loop.repositories import open_repository
from evolution.loop.version_size import find_size_fault
from tests.evolution.measured import make_harness, make_proposal

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, ""),
        ({"MOST_FILES": 0}, "changes 1 file, more than the 0"),
        ({"LARGEST_FILE": 21}, "prompts/role.md has 22 bytes, more than the 21"),
        ({"MOST_BYTES": 21}, "have 22 bytes together, more than the 21"),
    ],
)
def test_what_is_too_much_is_said_with_its_size(
    limits: dict[str, int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = make_proposal(make_harness(), b"knows: q1 q2 q3 q4 q5\n")
    for name, value in limits.items():
        monkeypatch.setattr(version_size, name, value)
    fault = find_size_fault(open_repository(proposal.harness), proposal.base_commit, proposal.head_commit)
    assert said in fault
    assert bool(fault) == bool(said)


def test_a_version_that_is_not_there_is_no_version_to_judge() -> None:
    proposal = make_proposal(make_harness(), b"knows: q1\n")
    assert find_size_fault(open_repository(proposal.harness), proposal.base_commit, "f" * 40)
