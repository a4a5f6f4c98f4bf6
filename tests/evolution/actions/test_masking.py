from dataclasses import replace
from typing import Any

import pytest

from evolution.actions.masking import find_shipped, restore_rule, save_rule, set_rule_enabled
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError
from evolution.loop.masking import Rule, current_masker
from evolution.models import Event, MaskingRule
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db
OPERATOR = Actor("op", Role.OPERATOR)
BADGE = Rule("badge", "badge", r"emp-(?P<secret>\d+)", "numbers of staff")


def test_a_saved_rule_masks_from_the_next_import_on() -> None:
    save_rule(OPERATOR, BADGE)
    assert current_masker().mask_text("emp-42") == "emp-[badge 1]"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pattern": "("}, "broken"),
        ({"pattern": "x*"}, "empty text"),
        ({"pattern": r"(?P<card>\d+)"}, "group card"),
        ({"pattern": r"(?:a|a)+$"}, "too long"),
        ({"label": "[x]"}, "label"),
        ({"label": ""}, "label"),
        ({"name": "Bad Name"}, "name"),
        ({"name": "new"}, "name"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(LoopError, match=reason):
        save_rule(OPERATOR, replace(BADGE, **change))
    assert not MaskingRule.objects.exists()


def test_only_operators_change_rules() -> None:
    for act in (
        lambda: save_rule(DEV, BADGE),
        lambda: set_rule_enabled(DEV, "phone", is_enabled=False),
        lambda: restore_rule(DEV, "phone"),
    ):
        with pytest.raises(NotAllowed):
            act()


def test_the_audit_trail_has_who_and_which_but_not_the_pattern() -> None:
    save_rule(OPERATOR, replace(BADGE, pattern="the-secret-project"))
    event = Event.objects.get()
    assert (event.actor, event.verb, event.data["name"]) == ("op", "maskingrule.changed", "badge")
    assert "the-secret" not in str(event.data)


def test_a_shipped_rule_is_switched_off_and_on_again() -> None:
    set_rule_enabled(OPERATOR, "phone", is_enabled=False)
    assert current_masker().mask_text("13812345678") == "13812345678"
    set_rule_enabled(OPERATOR, "phone", is_enabled=True)
    assert current_masker().mask_text("13812345678") == "[phone 1]"
    with pytest.raises(LoopError, match="no masking rule"):
        set_rule_enabled(OPERATOR, "unknown", is_enabled=False)


def test_a_changed_rule_is_taken_as_it_ships_again() -> None:
    save_rule(OPERATOR, replace(find_shipped("phone"), pattern="never", quick=""))
    restore_rule(OPERATOR, "phone")
    assert current_masker().mask_text("13812345678") == "[phone 1]"
    assert Event.objects.first().verb == "maskingrule.restored"  # type: ignore[union-attr]  # newest first
