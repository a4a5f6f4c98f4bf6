from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.format.quick_schema import is_plainly_valid

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.0, 0.5, 1.0])
    | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "null", "boolean"])
NUMBERS = st.integers(0, 3)


def with_keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=4),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "additionalProperties": st.booleans() | inner,
            "items": st.booleans() | inner,
            "minLength": NUMBERS,
            "maxLength": NUMBERS,
            "minItems": NUMBERS,
            "maxItems": NUMBERS,
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "not": inner,
            "title": st.text(max_size=2),
        },
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), with_keywords, max_leaves=5)


@given(SCHEMAS, VALUES)
def test_what_is_called_valid_is_valid(schema: Any, value: Any) -> None:
    if is_plainly_valid(schema, value):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)


VERDICT = {
    "type": "object",
    "required": ["accuracy"],
    "additionalProperties": False,
    "properties": {
        "accuracy": {"type": "integer", "enum": [0, 1]},
        "findings": {"type": "array", "items": {"type": "object", "required": ["text"]}},
    },
}


@pytest.mark.parametrize(
    ("value", "is_plain"),
    [
        ({"accuracy": 1, "findings": [{"text": "x"}]}, True),
        ({"accuracy": 0}, True),
        ({"accuracy": 2}, False),
        ({"accuracy": True}, False),
        ({"accuracy": 1, "more": 1}, False),
        ({"accuracy": 1, "findings": [{}]}, False),
        ({}, False),
    ],
)
def test_verdicts_are_told_apart(value: object, *, is_plain: bool) -> None:
    assert is_plainly_valid(VERDICT, value) is is_plain


@pytest.mark.parametrize(
    "schema",
    [{"type": 5}, {"required": "ab"}, {"properties": []}, {"minLength": "1"}, {"enum": "ab"}, {"$ref": "#"}],
)
def test_what_is_no_plain_schema_is_left_to_others(schema: Any) -> None:
    assert not is_plainly_valid(schema, "ab")
    assert not is_plainly_valid(schema, {"a": 1})
