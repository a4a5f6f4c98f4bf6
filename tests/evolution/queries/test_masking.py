import pytest

from evolution.loop.masking import Masker, Rule
from evolution.models import MaskingRule
from evolution.queries.masking import find_rule, list_rules, mark_text, try_on_cases
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db
MASKER = Masker([Rule("badge", "badge", r"emp-(?P<secret>\d+)")])


def test_rules_are_listed_with_what_people_did_to_them() -> None:
    MaskingRule.objects.create(name="phone", label="tel", pattern="x", is_enabled=False, updated_by="op")
    MaskingRule.objects.create(name="badge", label="badge", pattern="y")
    lines = {line.rule.name: line for line in list_rules()}
    assert (lines["phone"].is_enabled, lines["phone"].is_changed, lines["phone"].updated_by) == (
        False,
        True,
        "op",
    )
    assert (lines["badge"].is_shipped, lines["email"].is_changed) == (False, False)
    assert find_rule("nobody") is None


def test_a_text_is_marked_piece_by_piece() -> None:
    marked = mark_text(MASKER, "a emp-1 b emp-2")
    assert [(piece.text, piece.placeholder) for piece in marked] == [
        ("a emp-", ""), ("1", "[badge 1]"), (" b emp-", ""), ("2", "[badge 2]"),
    ]  # fmt: skip


def test_a_trial_counts_hits_and_cases_and_shows_some() -> None:
    harness = make_harness()
    for text in ("emp-1 and emp-2", "emp-3", "nothing"):
        make_failure(harness, text)
    trial = try_on_cases(MASKER)
    assert (trial.looked_at, trial.cases, trial.total) == (3, 2, 3)
    assert "emp-" in trial.examples[0][0].text
