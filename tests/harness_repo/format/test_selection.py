import json
import time
from contextlib import suppress

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format.selection import SelectionError, check_selection, select, selection_names

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_argument_arrives_in_the_expression_as_it_is(value: object) -> None:
    assert select("{value}", {}, {"value": value}) == value


@given(st.text())
def test_a_text_from_a_model_is_never_read_as_an_expression(text: str) -> None:
    data = {"items": [{"name": text, "n": 1}, {"name": text + "x", "n": 2}], "secret": "s"}
    assert select("items[?name == {name}].n", data, {"name": text}) == [1]


@given(st.text() | st.text("ab.[]?*|&'\"`{}()@!=<>01-,: \\", max_size=30))
@settings(max_examples=500)
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    with suppress(SelectionError):
        json.dumps(select(text, {"a": [1, {"b": None}], "b": "x"}, {"a": 1}))


def test_without_placeholders_it_is_the_library() -> None:
    data = {"a": [{"b": 1, "c": "x"}, {"b": 3, "c": "y"}]}
    expression = """sort_by(a, &b)[-1].{first: c, text: `"{no}"`, "raw": '{no}'}"""
    assert select(expression, data, {"no": 1}) == jmespath.search(expression, data)
    assert list(selection_names(expression)) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a[", "Incomplete"),
        ("a b", "Parse error at column 2"),
        ("nowhere(@)", "Unknown function"),
        ("&a", "not JSON serializable"),
        ("abs(a)", "invalid type"),
        ("`{broken`", "is not JSON"),
        ("a[" + "9" * 5000 + "]", "Exceeds the limit"),
        ("(" * 3000, "nested too deeply"),
        ("a." * 60_000 + "a", "too long"),
    ],
)
def test_what_cannot_be_applied_is_said_in_a_line(source: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        select(source, {"a": "text"}, {})


def test_a_file_is_checked_without_data_or_arguments() -> None:
    check_selection("context.products[?link_id == {link_id}] | [0]")
    assert list(selection_names("a[?b == {x}] | '{y}' | {z}")) == ["x", "z"]
    assert json.dumps(select("a", {"a": 1}, {})) == "1"
    with pytest.raises(SelectionError):
        check_selection("context.products[?")


@pytest.mark.parametrize(
    "source", ["'a\\" * 20_000, "'\\'" * 20_000, "`a\\" * 20_000, '"\\' * 20_000, "{a" * 20_000]
)
def test_an_expression_that_is_never_closed_is_refused_at_once(source: str) -> None:
    began = time.process_time()
    with pytest.raises(SelectionError):
        check_selection(source)
    assert time.process_time() - began < 2
