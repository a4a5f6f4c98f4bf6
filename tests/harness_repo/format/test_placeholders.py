from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.format.placeholders import PlaceholderError, fill_query, fill_url, fill_value, names_in


@given(st.text(min_size=1))
def test_whatever_the_argument_it_stays_one_segment_of_the_path(text: str) -> None:
    try:
        url = fill_url("https://shop.example/items/{name}/stock?x={name}", {"name": text})
    except PlaceholderError:
        assert text in {".", ".."}
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "shop.example", "")
    assert parts.path.count("/") == 3
    assert parts.path.endswith("/stock")


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{n}", 3),
        ("no. {n}", "no. 3"),
        ("{n}{flag}", "3true"),
        ("{gone}", None),
        ("a {gone}", None),
        ({"a": "{n}", "b": "{gone}", "c": None, "d": ["{gone}", "{list}"]}, {"a": 3, "c": None, "d": [[1]]}),
        ("{not a name}", "{not a name}"),
        (5, 5),
    ],
)
def test_a_value_is_filled_at_any_depth(template: Any, filled: object) -> None:
    assert fill_value(template, {"n": 3, "flag": True, "list": [1]}) == filled


def test_a_query_leaves_out_what_is_not_given_and_repeats_lists() -> None:
    query = fill_query({"a": "{a}", "b": "{b}", "c": "{c}", "d": 1.5}, {"a": [1, "x"], "c": False})
    assert query == {"a": ["1", "x"], "b": [], "c": ["false"], "d": ["1.5"]}


@pytest.mark.parametrize("arguments", [{"a": {"b": 1}}, {"a": [[1]]}])
def test_an_object_cannot_stand_in_a_query(arguments: dict[str, object]) -> None:
    with pytest.raises(PlaceholderError, match="a has to be a text or a number"):
        fill_query({"a": "{a}"}, arguments)


def test_names_are_found_at_any_depth() -> None:
    assert list(names_in({"a": "{x}/{y}", "b": [1, "{z}"]})) == ["x", "y", "z"]
