"""The quick way gives the answer of the thorough one, or none: compared over texts made to differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format import yamlevents
from harness_repo.format.yamlevents import read_quickly
from harness_repo.format.yamlfile import YamlFile, parse_yaml

TOKENS = [
    "a", "b", "key", ": ", ":", "- ", "-", "\n", "\n  ", "\n    ", "'", '"', "[", "]", "{", "}", ", ", ",", "#", " #",
    "?", "!", "&x", "*x", "|", "|\n", ">", "|-\n  ", "%", "@", "~", "null", "true", "yes", "1", "010", "0o7", "1.5",
    "1e3", ".inf", ".", "=", "<<", "2020-01-01", " ", "  ", "中", "\\n", "\\/", "...", "---", "1_0", "0x1F", "\t",
    "\r", "\x85", "\u2028", "\u00a0", "\x01", "\ufeff", "😀", "1e999", "\nname: x", "\n- ",
]  # fmt: skip
INDENTS = ["", "", "", "  ", "  ", "    ", "   "]
LINES = [
    "", "a:", "b: |", "c: >-", "d: |+", "- x", "- y: 1", "text", "more # comment", "# comment", "'quoted", "end'",
    '"dq', 'dq"', "k: 'it''s'", 'l: "a\\n b"', "g: plain: no", "h: a:b", "i: http://x/y", "j: [a, b]", "m: [a,",
    "n: {a: b}", "- - a", "-", "o: -1", "0: z", "~: z", "- |", "\\", "a: &x 1", "e: *x", "f: !!str 1",
]  # fmt: skip
lines = st.tuples(st.sampled_from(INDENTS), st.sampled_from(LINES)).map("".join)
texts = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join) | st.lists(lines, max_size=8).map(
    "\n".join
)


def thoroughly(text: str) -> tuple[YamlFile | None, list[object]]:
    """The answer of ruamel alone, which knows all of YAML 1.2."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yamlevents, "_LOADER", None)
        read, problems = parse_yaml("x.yaml", text, first_line=3)
    return read, list(problems)


@settings(max_examples=400)
@given(texts | texts.map("name: {}".format))
def test_both_ways_give_the_same_values_and_lines(text: str) -> None:
    quick = read_quickly(text, 3)
    if quick is not None:
        # As text: 1, 1.0 and True are equal.
        expected, problems = thoroughly(text)
        assert (repr(YamlFile(quick.value, quick.lines)), []) == (repr(expected), problems)


@pytest.mark.parametrize(
    "text",
    ["name: a\ndescription: Use it, (now) and then.\nmetadata:\n  kind: reply\n", "", "a: >\n  b\n  c\n"],
)
def test_what_front_matter_looks_like_is_read_the_quick_way(text: str) -> None:
    assert read_quickly(text, 1) is not None


@pytest.mark.parametrize(
    "text", ["- " * 30_000, "[" * 30_000, "{a: " * 20_000, "a: &x [*x]", "---\na: 1", "? a"]
)
def test_what_is_unusual_or_without_end_is_left_to_the_other_way(text: str) -> None:
    assert read_quickly(text, 1) is None
