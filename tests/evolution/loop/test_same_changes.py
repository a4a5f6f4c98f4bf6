"""Proposals that repeat one another."""

import pytest

from evolution.loop.same_changes import Likeness, find_repeats
from evolution.models import Proposal
from tests.evolution.measured import make_harness, make_proposal, move_live, teach

pytestmark = pytest.mark.django_db

RULE = "Answer in the language of the question."


def adding(proposal: Proposal, *texts: str) -> Proposal:
    """The proposal with a manifest that says which rules are new."""
    proposal.manifest = {"rules": {"added": [{"path": "prompts/role.md", "text": text} for text in texts]}}
    proposal.save()
    return proposal


def test_the_same_change_is_told_on_whatever_base_it_was_made() -> None:
    harness = make_harness()
    first = make_proposal(harness, b"hi\n", path="hooks/a.txt")
    move_live(harness, {"hooks/b.txt": b"other\n"})
    others = [
        make_proposal(harness, b"hi\n", path="hooks/a.txt", title="x"),
        make_proposal(harness, teach(1)),
    ]
    found = find_repeats([*others, first])
    assert [(one.proposal, one.other, one.likeness) for one in found.values()] == [
        (others[0].pk, first.pk, Likeness.CHANGE)
    ]


def test_a_rule_that_another_adds_word_for_word_is_told() -> None:
    harness = make_harness()
    first = adding(make_proposal(harness, teach(1)), "Be kind.", RULE)
    second = adding(
        make_proposal(harness, teach(2)), " Answer in the language of the question. ", "Be short."
    )
    third = adding(make_proposal(harness, teach(3)), "Be kind!")
    found = find_repeats([first, second, third])
    assert list(found) == [second.pk]
    assert (found[second.pk].other, found[second.pk].rule) == (first.pk, RULE)


def test_what_git_has_no_longer_repeats_nothing() -> None:
    harness = make_harness()
    pair = [make_proposal(harness, teach(1)) for _time in range(2)]
    for proposal in pair:
        proposal.base_commit = "1" * 40
    assert find_repeats(pair) == {}
