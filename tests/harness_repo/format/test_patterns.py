import pytest
import regex

from harness_repo.format.patterns import MOST_CHARACTERS, PatternError, search, substitute


@pytest.mark.parametrize(
    ("pattern", "replacement", "text"),
    [
        ("b+", "c", "abba"),
        ("x*", "-", "abxd"),
        (r"(\w)(\d)", r"\2\1", "a1 b2"),
        ("^", "> ", "one"),
        ("q", "", "x"),
    ],
)
def test_a_replacement_is_that_of_regex(pattern: str, replacement: str, text: str) -> None:
    assert substitute(pattern, replacement, text) == regex.sub(pattern, replacement, text)


def test_a_text_that_doubles_is_stopped() -> None:
    text = "x" * (MOST_CHARACTERS // 4)
    with pytest.raises(PatternError, match="too long"):
        substitute("(?s)^(.+)$", r"\1\1\1\1", text)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "broken"),
        ("(" * 1900 + ")" * 1900, "nested"),
        ("a" * 5000, "more than"),
        (r"(a|aa)+$", "takes too long"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(pattern: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        search(pattern, "a" * 60 + "b")


def test_a_group_that_is_not_there_is_an_error_of_the_pattern() -> None:
    with pytest.raises(PatternError, match="cannot be applied"):
        substitute("a", r"\7", "a")
