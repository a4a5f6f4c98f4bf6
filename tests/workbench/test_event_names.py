import pytest
from django.utils.translation import override

from workbench.event_names import name_deed, name_kind


@pytest.mark.parametrize(
    ("verb", "english", "chinese"),
    [
        ("proposal.drafted", "waits for review", "待审阅"),
        ("release.promotion", "promotion", "发布"),
        ("harness.cases_imported", "failures imported", "导入失败用例"),
        ("harness.stopped", "evolution stopped", "进化已停止"),
    ],
)
def test_events_are_told_in_the_readers_language(verb: str, english: str, chinese: str) -> None:
    with override("en"):
        assert name_deed(verb) == english
    with override("zh-hans"):
        assert name_deed(verb) == chinese


def test_what_nobody_named_is_shown_as_it_is() -> None:
    assert (name_deed("robot.exploded"), name_kind("robot")) == ("exploded", "robot")
