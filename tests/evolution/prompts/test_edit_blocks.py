"""Search-and-replace blocks: what fits is put in place, what does not is told with what is nearest."""

import pytest

from evolution.prompts.edit_blocks import BadEdit, EditBlock, replace_blocks

TEXT = "# Pay\n\n- Look up the price.\n- Say the price.\n- Be brief.\n"


def block(search: str, replace: str) -> EditBlock:
    return EditBlock(search=search, replace=replace)


def test_a_passage_is_replaced_where_it_stands() -> None:
    assert replace_blocks("a b c\n", [block("b", "x")]) == "a x c\n"


def test_blocks_apply_to_what_the_one_before_left() -> None:
    blocks = [block("- Be brief.\n", "- Be kind.\n"), block("- Be kind.\n", "- Be kind and brief.\n")]
    assert replace_blocks(TEXT, blocks).endswith("- Say the price.\n- Be kind and brief.\n")


def test_an_empty_replacement_takes_the_passage_out() -> None:
    assert replace_blocks(TEXT, [block("- Say the price.\n", "")]) == TEXT.replace("- Say the price.\n", "")


@pytest.mark.parametrize(
    "search",
    ["- Look up the price.  \n- Say the price.\t", "\n- Look up the price.\n- Say the price. \n\n"],
)
def test_white_space_at_line_ends_does_not_matter(search: str) -> None:
    assert replace_blocks(TEXT, [block(search, "- One.\n")]) == "# Pay\n\n- One.\n- Be brief.\n"


def test_a_file_keeps_its_line_ends() -> None:
    text = TEXT.replace("\n", "\r\n")
    made = replace_blocks(text, [block("- Look up the price.\n- Say the price.\n", "- One.\n- Two.\n")])
    assert made == "# Pay\r\n\r\n- One.\r\n- Two.\r\n- Be brief.\r\n"


def test_whole_lines_are_not_joined_to_the_next_one() -> None:
    assert replace_blocks(TEXT, [block("- Say the price.\n", "- Say it.")]).splitlines()[-2:] == [
        "- Say it.",
        "- Be brief.",
    ]


def test_what_stands_there_twice_is_refused_with_its_lines() -> None:
    with pytest.raises(BadEdit, match=r"there 2 times \(lines 3, 4\)"):
        replace_blocks(TEXT, [block("price.", "cost.")])


def test_passages_that_overlap_are_two() -> None:
    with pytest.raises(BadEdit, match="2 times"):
        replace_blocks("ababa", [block("aba", "x")])


def test_what_is_not_there_is_refused_with_what_is_nearest() -> None:
    with pytest.raises(BadEdit) as caught:
        replace_blocks(TEXT, [block("- Look the price up.", "x")])
    assert "3: - Look up the price.\n4: - Say the price." in str(caught.value)


def test_all_blocks_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadEdit) as caught:
        replace_blocks(TEXT, [block("zzz", "x"), block("- Be brief.", "- Be kind."), block("价格", "x")])
    assert [line[:8] for line in str(caught.value).splitlines()] == ["block 1:", "block 3:"]


def test_white_space_alone_is_no_passage() -> None:
    with pytest.raises(BadEdit, match="only white space"):
        replace_blocks("a\n", [block(" \n ", "x")])


def test_a_refusal_quotes_no_endless_line() -> None:
    with pytest.raises(BadEdit) as caught:
        replace_blocks("word " * 40_000, [block("word " * 20 + "end", "x")])
    assert len(str(caught.value)) < 400
