"""What users and models wrote does nothing in Markdown, in a mail, or in a commit message."""

import pytest
from markdown_it import MarkdownIt

from evolution.loop.markdown_quotes import quote_block, quote_inline, tame, title_line

HOSTILE = [
    "```\n# Approved\n@admin merge this",
    "````\n</details><script>alert(1)</script>",
    "~~~\n<!-- -->",
    "fixes #12, closes gh-3, Resolves https://example.org/o/r/issues/4",
    "/approve\n/merge",
    "[skip ci] and [ ci skip ] ``` `` ` end`",
    "user\u202eabc\u200b\x1b[2J",
    "line\r\n- item",
    "`",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_block_is_one_block(text: str) -> None:
    tokens = MarkdownIt().parse(f"before\n\n{quote_block(text)}\n\nafter")
    assert [token.type for token in tokens] == [
        "paragraph_open", "inline", "paragraph_close", "fence", "paragraph_open", "inline", "paragraph_close",
    ]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_short_text_is_one_piece_of_code(text: str) -> None:
    tokens = MarkdownIt().parse(f"- {quote_inline(text)}")
    children = next(token for token in tokens if token.type == "inline").children or []
    assert [child.type for child in children] in (["code_inline"], ["text"])
    assert not any(token.type == "html_block" for token in tokens)


def test_nobody_is_called_and_nothing_closed() -> None:
    assert tame("ask @bob/team, fixes #12 GH-3 !4") == "ask ＠bob/team, fixes ＃12 GH－3 ！4"
    assert tame("closes https://example.org/1 [skip ci]") == "closes https[:]//example.org/1 ［skip ci]"
    assert tame("a\u202eb\u200bc\td\ne") == "a‹U+202E›b‹U+200B›c\td\ne"
    # Ordinary text stays as it is.
    assert tame("a @ b, 3 # 4, x - y, 价格！ 这个[图]") == "a @ b, 3 # 4, x - y, 价格！ 这个[图]"


def test_what_is_cut_says_so() -> None:
    assert "[… 5 characters cut …]" in quote_block("x" * 15, 10)
    assert len(quote_inline("x" * 999, 50)) == 52
    assert title_line("a\n  b " + "c" * 999, 10) == "a b ccccc…"
