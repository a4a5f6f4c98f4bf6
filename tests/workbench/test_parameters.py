import pytest

from workbench.parameters import read_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_a_number_is_read(text: str, number: int) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "²", "٣", "一", "9" * 19, "9" * 5000, "1\0", " 1"])
def test_anything_else_is_none(text: str) -> None:
    assert read_number(text) is None
