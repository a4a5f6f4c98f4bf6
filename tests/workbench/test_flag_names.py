import pytest
from django.utils import translation

from evolution.loop.flags import Flag, FlagKind
from workbench.flag_names import name_flag


@pytest.mark.parametrize("kind", list(FlagKind))
def test_every_kind_has_words_of_its_own(kind: FlagKind) -> None:
    with translation.override("en"):
        view = name_flag(Flag("a", "new", 1, kind, "<b>"))
    assert view.title
    assert view.explanation.endswith(".")
    # As it was written: whoever shows it escapes it.
    assert view.detail == "<b>"


def test_titles_tell_kinds_apart() -> None:
    titles = [name_flag(Flag("a", "new", 1, kind)).title for kind in FlagKind]
    assert len(set(titles)) == len(titles)


def test_what_may_do_harm_is_told_louder() -> None:
    levels = {kind: name_flag(Flag("a", "new", 1, kind)).level for kind in FlagKind}
    assert levels[FlagKind.HOOK_REMOVED] == "danger"
    assert levels[FlagKind.NEW_URL] == "warn"
