import time
import unicodedata

import pytest

from workbench.text_marks import has_hidden, mark_words, render_markdown, reveal, spell


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\u200bb", "U+200B"),
        ("\u202egpj.exe", "U+202E"),
        ("\ufeffx", "U+FEFF"),
        ("\x1b[31m", "U+001B"),
        ("x\r", "U+000D"),
    ],
)
def test_hidden_characters_are_named(text: str, code: str) -> None:
    assert code in reveal(text)


@pytest.mark.parametrize("text", ["3号链接 多少钱？", "a\tb\nc", "全角　空格", "émoji 🎉"])
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert reveal(text) == text


def test_markup_is_escaped() -> None:
    assert reveal("<b>&") == "&lt;b&gt;&amp;"


def test_changed_words_are_marked_on_both_sides() -> None:
    old, new = mark_words("price 89 yuan", "price 79 yuan")

    assert (old, new) == ("price <del>89</del> yuan", "price <ins>79</ins> yuan")


def test_texts_without_much_in_common_are_not_marked() -> None:
    assert mark_words("abc", "完全不同的一句话") == ("abc", "完全不同的一句话")


def test_marked_text_is_escaped_too() -> None:
    _, new = mark_words("a b c", "a <i> c")

    assert "<i>" not in new


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](http://evil.example/a.png)",
        "[x](javascript:alert(1))",
        "<img src=x onerror=y>",
    ],
)
def test_markdown_brings_nothing_that_runs_or_loads(text: str) -> None:
    html = render_markdown(text)

    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html


def test_markdown_is_rendered() -> None:
    assert render_markdown("**b** and `c`") == "<p><strong>b</strong> and <code>c</code></p>\n"


def test_every_control_format_and_separator_character_is_named() -> None:
    kinds = {"Cc", "Cf", "Zl", "Zp", "Zs"}
    of_kind = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in kinds]

    # Arabic, Syriac and Kaithi number signs are of the kind Cf, and are seen.
    seen = set("\t\n \u3000\u06dd\u070f\u08e2\u0890\u0891\U000110bd\U000110cd") | set(
        map(chr, range(0x600, 0x606))
    )
    assert {character for character in of_kind if not has_hidden(character)} == seen


@pytest.mark.parametrize("text", ["x\ufe0f", "好\ufe01", "\u2800", "\u115f", "1\ufe0f", "❤\ufe0f\ufe0f"])
def test_fillers_and_misplaced_selectors_are_hidden(text: str) -> None:
    assert has_hidden(text)


@pytest.mark.parametrize("text", ["❤\ufe0f", "1\ufe0f\u20e3", "☎\ufe0e", "🌶\ufe0f"])
def test_a_selector_that_belongs_to_its_symbol_is_ordinary(text: str) -> None:
    assert reveal(text) == text


def test_an_attribute_gets_codes_without_markup() -> None:
    assert spell("a\u202eb") == "a‹U+202E›b"


@pytest.mark.parametrize("repeated", ["哈", "哈呵", "ab cd ef gh "])
def test_repetitive_texts_take_no_longer_than_others(repeated: str) -> None:
    # The unbounded comparison of the second took 9 seconds at a ninth of the length.
    started = time.process_time()
    mark_words(repeated * (9_000 // len(repeated)), "呵 cd 哈 ab " * 800)

    assert time.process_time() - started < 1
