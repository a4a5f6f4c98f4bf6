from tests.workbench.diff_view.diffs import make_diff
from workbench.diff_view import Layout, view_diff
from workbench.diff_view.rows import HunkView


def lay_out(old: str, new: str, layout: Layout, path: str = "a.txt") -> HunkView:
    return view_diff(*make_diff({path: (old, new)}), layout=layout)[0].hunks[0]


def test_lines_that_belong_together_stand_side_by_side() -> None:
    pairs = lay_out("a\nsay the price\nb\n", "a\nbe kind\nsay the final price\nb\n", "split").pairs

    texts = [(pair.left and pair.left.text, pair.right and pair.right.text) for pair in pairs]
    assert texts == [
        ("a", "a"),
        (None, "be kind"),
        ("say the price", "say the final price"),
        ("b", "b"),
    ]


def test_lines_that_have_no_partner_share_a_row() -> None:
    pairs = lay_out("one two three\n", "一二三四五\n", "split").pairs

    assert [(pair.left and pair.left.kind, pair.right and pair.right.kind) for pair in pairs] == [("-", "+")]


def test_words_of_a_text_that_was_wrapped_anew_are_not_marked() -> None:
    old = "Look up the order first and say\nwhat the policy allows.\n"
    new = "Look up the order first\nand say what the policy allows.\n"

    html = lay_out(old, new, "words").words[0].html

    assert html.count("<del>") == html.count("<ins>") == 2
    assert "policy allows." in html
    assert "↵" in html


def test_texts_with_nothing_in_common_are_shown_one_after_the_other() -> None:
    words = lay_out("alpha beta gamma\n", "一二三四五六七\n", "words").words

    assert [word.html for word in words] == ["<del>alpha beta gamma</del>", "<ins>一二三四五六七</ins>"]


def test_markup_is_escaped_in_every_layout() -> None:
    for layout in ("unified", "split", "words"):
        hunk = lay_out("<b>x</b> y\n", "<i>x</i> y\n", layout)
        shown = [
            *(row.html for row in hunk.rows),
            *(word.html for word in hunk.words),
            *(row.html for pair in hunk.pairs for row in (pair.left, pair.right) if row),
        ]
        assert shown
        assert not any("<b>" in html or "<i>" in html for html in shown)


def test_colours_and_marked_words_stand_in_each_other() -> None:
    rows = lay_out("limit: 3 # few\n", "limit: 30 # few\n", "unified", "a.yaml").rows

    assert rows[1].html == (
        '<span class="hl-key">limit</span>: <ins>30</ins> <span class="hl-comment"># few</span>'
    )


def test_hidden_characters_are_named_among_colours() -> None:
    rows = lay_out("name: a\n", "name: a\u202eb # c\u200b\n", "unified", "a.yaml").rows

    assert "U+202E" in rows[1].html
    assert "U+200B" in rows[1].html
