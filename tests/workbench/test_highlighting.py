import pytest

from workbench.highlighting import MOST_CHARACTERS, colour_lines, has_colours


def coloured(path: str, text: str) -> list[set[tuple[str, str]]]:
    lines = text.split("\n")
    return [
        {(line[start:end], css) for start, end, css in colours}
        for line, colours in zip(lines, colour_lines(path, text), strict=True)
    ]


def test_front_matter_prose_and_fences_have_their_own_colours() -> None:
    text = '---\nname: x\n---\n# Title\n- call `get`\n```json\n{"a": 1}\n```\n{{ room.name }}'

    lines = coloured("skills/x/SKILL.md", text)

    assert ("name", "hl-key") in lines[1]
    assert ("# Title", "hl-heading") in lines[3]
    assert ("`get`", "hl-code") in lines[4]
    assert ("1", "hl-number") in lines[6]
    assert ("{{ room.name }}", "hl-tag") in lines[8]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.yaml", "on: [reply]  # when", ("# when", "hl-comment")),
        ("a.json", '{"a": "b"}', ('"b"', "hl-string")),
        ("a.py", "def f(): pass", ("def", "hl-keyword")),
        ("a.md", "**must**", ("**must**", "hl-strong")),
    ],
)
def test_languages_of_a_harness_have_colours(path: str, text: str, expected: tuple[str, str]) -> None:
    assert expected in coloured(path, text)[0]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "---", "---\n---", "```", "~~~yaml\na: [", "a\r\nb", "\ufeff---\nx: 1"]
)
def test_odd_texts_have_as_many_lines_as_they_have(text: str) -> None:
    assert len(colour_lines("a.md", text)) == len(text.split("\n"))


def test_what_is_unknown_or_large_has_no_colours() -> None:
    assert not has_colours("a.bin", "x")
    assert not has_colours("a.md", "x\n" * MOST_CHARACTERS)
    assert colour_lines("a.yaml", "x" * 10_000) == []


def test_of_a_text_made_to_be_slow_only_the_beginning_has_colours() -> None:
    colours = colour_lines("a.yaml", "\n".join(["a: 1 " + "&a " * 1_000] * 40))

    assert colours[0]
    assert colours[-1] == []
