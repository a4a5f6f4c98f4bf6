import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness_repo.runtime.storable import is_storable, make_storable


def test_nul_half_pairs_and_numbers_that_are_none_are_replaced() -> None:
    assert make_storable({"a\0": ["b\udc00", 1, None, "好😀"]}) == {"a\ufffd": ["b\ufffd", 1, None, "好😀"]}
    assert make_storable([float("nan"), float("-inf"), 0.5]) == ["nan", "-inf", 0.5]


def test_what_is_fit_stays_the_same_object() -> None:
    value = {"a": ["好😀", 1.5, None, True, "\\u0000 as text"]}
    assert make_storable(value) == value
    fit = {"a": ["好😀", 1.5, None, True]}
    assert make_storable(fit) is fit


def test_nesting_and_kinds_that_no_encoder_takes_are_not_fit() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not is_storable(deep)
    assert not is_storable({"a": object()})


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(ANY)
def test_whatever_comes_can_be_written(value: Any) -> None:
    text = json.dumps(make_storable(value), ensure_ascii=False, allow_nan=False)
    text.encode()
    assert json.loads(text) == make_storable(json.loads(text))
