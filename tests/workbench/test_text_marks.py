import pytest

from workbench.text_marks import mark_words, render_markdown, reveal


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
