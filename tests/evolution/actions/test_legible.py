import pytest

from evolution.actions.legible import is_legible


@pytest.mark.parametrize("name", ["price", "双十一", "👨‍👩‍👧", "می‌خواهم", "❤️"])
def test_names_are_legible(name: str) -> None:
    assert is_legible(name)


@pytest.mark.parametrize("name", ["\u200b", "\u202egnp", "a\u2066b", "\u3164", "\ufeff \u2060", ""])
def test_what_hides_or_turns_text_round_is_not(name: str) -> None:
    assert not is_legible(name)
