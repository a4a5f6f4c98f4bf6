import random
import subprocess
from pathlib import Path

import pytest

from workbench.word_changes import compare_words


def test_what_is_between_changes_joins_them_when_it_is_blank() -> None:
    changes = compare_words("say old words here now", "say new terms here now")

    assert changes
    assert (changes.old, changes.new) == ([(4, 13)], [(4, 13)])


def test_texts_with_little_in_common_are_not_compared() -> None:
    assert compare_words("abc def", "完全不同") is None


def test_a_lower_bar_compares_them() -> None:
    assert compare_words("a b c d e f", "a x y z", 0.1) is not None


@pytest.mark.parametrize("seed", range(20))
def test_the_pieces_make_up_both_texts(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  no secret
    old = "".join(dice.choices("ab c。\n", k=40))
    new = "".join(dice.choices("ab c。\n", k=40))

    changes = compare_words(old, new, 0)

    assert changes
    assert "".join(old[slice(*left)] for _, left, _ in changes.pieces) == old
    assert "".join(new[slice(*right)] for _, _, right in changes.pieces) == new
    same = [(old[slice(*left)], new[slice(*right)]) for is_same, left, right in changes.pieces if is_same]
    assert all(left == right for left, right in same)


EDITS = [
    ("Never promise a refund that is not allowed.\n", "Do not promise any refund that the policy forbids.\n"),
    ("Say the price,\nthen the stock.\n", "Say the final price, then the stock and the date.\n"),
    ("- 先查订单，再说政策。\n", "- 先查订单和物流，再说明退换政策。\n"),
    ("limits: {turns: 8, seconds: 20}\n", "limits: {turns: 12, seconds: 20, tool_calls: 4}\n"),
]


@pytest.mark.parametrize("edit", EDITS)
def test_the_words_that_git_marks_are_marked(edit: tuple[str, str], tmp_path: Path) -> None:
    names = [tmp_path / "old", tmp_path / "new"]
    for name, text in zip(names, edit, strict=True):
        name.write_text(text)
    words = "--word-diff-regex=[A-Za-z0-9_]+|[^[:space:]]"
    command = ["git", "diff", "--no-index", "-U9", "--word-diff=porcelain", words, *map(str, names)]
    git = (
        subprocess.run(command, capture_output=True, text=True, check=False)
        .stdout.split("@@\n")[1]
        .split("\n")
    )

    changes = compare_words(*edit, 0)

    assert changes
    for spans, text, sign in ((changes.old, edit[0], "-"), (changes.new, edit[1], "+")):
        ours = "".join(text[start:end] for start, end in spans)
        theirs = "".join(line[1:] for line in git if line.startswith(sign))
        assert "".join(ours.split()) == "".join(theirs.split())
