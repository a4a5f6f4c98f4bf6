import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.loop.flags.schemas import find_loosened

OLD: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"type": "string", "enum": ["S", "M"], "maxLength": 3},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
}


def change(path: str, value: Any) -> dict[str, Any]:
    new = copy.deepcopy(OLD)
    *around, last = path.split(".")
    place = new
    for key in around:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return new


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("required", [], "required − id"),
        ("additionalProperties", True, "additionalProperties: False → True"),
        ("properties.id.type", "number", "type: integer → number"),
        ("properties.id.maximum", 10, "maximum: 9 → 10"),
        ("properties.id.minimum", None, "minimum: 1 → −"),
        ("properties.size.enum", ["S", "M", "L"], "enum: ['S', 'M'] → ['S', 'M', 'L']"),
        ("properties.tags.items", None, "schema removed"),
        ("properties.tags.items", {"type": ["string", "null"]}, "type: string → ['string', 'null']"),
    ],
)
def test_what_lets_more_pass_is_found_at_its_place(path: str, value: Any, told: str) -> None:
    ((at, detail),) = find_loosened(OLD, change(path, value))
    assert detail == told
    assert ".".join(map(str, at)).startswith(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("required", ["id", "size"]),
        ("properties.id.maximum", 5),
        ("properties.size.enum", ["S"]),
        ("properties.size", None),
        ("properties.tags.minItems", 1),
    ],
)
def test_what_lets_less_pass_is_not(path: str, value: Any) -> None:
    assert list(find_loosened(OLD, change(path, value))) == []


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-3, 12) | st.none() | st.floats(0, 9),
        "size": st.sampled_from(["S", "L", "XXXL", 1]),
        "tags": st.lists(st.text(max_size=1) | st.none(), max_size=4),
        "more": st.none(),
    },
)
CHANGES = st.sampled_from(
    [
        change("required", []),
        change("additionalProperties", None),
        change("properties.id.maximum", 11),
        change("properties.size.enum", ["M", "L"]),
        change("properties.tags.items", {}),
        change("properties.tags.maxItems", None),
        change("properties.id.type", ["integer", "null"]),
        change("properties.id.minimum", 2),
        change("required", ["id", "tags"]),
    ]
)


@given(VALUES, CHANGES)
def test_a_value_that_passes_now_and_did_not_is_never_unflagged(
    value: dict[str, Any], new: dict[str, Any]
) -> None:
    """By the validator: whatever the comparison says is not looser lets nothing more pass."""
    if jsonschema.Draft202012Validator(new).is_valid(value) and not jsonschema.Draft202012Validator(
        OLD
    ).is_valid(value):
        assert list(find_loosened(OLD, new))
