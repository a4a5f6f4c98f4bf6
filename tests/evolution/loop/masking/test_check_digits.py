import pytest

from evolution.loop.masking.check_digits import passes_cn_id, passes_luhn


# The numbers that card networks publish for tests, and the one of the patent's article in encyclopaedias.
@pytest.mark.parametrize(
    "number", ["4111 1111 1111 1111", "5555555555554444", "378282246310005", "79927398713"]
)
def test_published_card_numbers_pass(number: str) -> None:
    assert passes_luhn(number)


@pytest.mark.parametrize("number", ["4111 1111 1111 1112", "79927398710", "0000000000000000", ""])
def test_other_numbers_do_not(number: str) -> None:
    assert not passes_luhn(number)


# The two examples of GB 11643-1999.
@pytest.mark.parametrize("number", ["11010519491231002X", "11010519491231002x", "440524188001010014"])
def test_the_examples_of_the_standard_pass(number: str) -> None:
    assert passes_cn_id(number)


@pytest.mark.parametrize(
    "number", ["110105194912310021", "44052418800101001X", "44052418800101001", "1101051949123100XX"]
)
def test_a_wrong_check_character_or_length_does_not(number: str) -> None:
    assert not passes_cn_id(number)
