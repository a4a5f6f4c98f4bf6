from evolution.prompts.tokens import estimate_tokens


def test_a_text_without_letters_has_no_tokens() -> None:
    assert estimate_tokens("") == 0


def test_four_letters_or_one_and_a_half_chinese_characters_are_a_token() -> None:
    assert estimate_tokens("a" * 400) == 100
    assert estimate_tokens("价" * 100) == 70


def test_a_part_of_a_token_counts_as_one() -> None:
    assert estimate_tokens("a") == 1
