import math
from decimal import Decimal
from unittest.mock import Mock

import jsonschema
import pytest

from harness_repo.format import json_schema
from harness_repo.format.json_schema import SchemaUnusable, check_json_schema, find_violation

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SLOW = "^(a+)+$|(a|aa)+$"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nothing"}, "not valid"),
        ({"$ref": "http://127.0.0.1:9/x"}, "leads nowhere"),
        ({"$ref": "file:///etc/passwd"}, "leads nowhere"),
        ({"$id": "http://127.0.0.1:9/", "properties": {"a": {"$ref": "b"}}}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "#/nope"}}}, "leads nowhere"),
        ({"$ref": "#/definitions/a", "definitions": {"a": 5}}, "is not of type"),
        ({"properties": {"a": {"pattern": "("}}}, "regex"),
        ({"pattern": "(" * 20_000}, "nested too deeply"),
        ({"properties": {"a": {"$schema": DRAFT}}}, "outermost"),
        ({"unevaluatedProperties": False}, "not supported"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: object, said: str) -> None:
    with pytest.raises(SchemaUnusable, match=said):
        check_json_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": DRAFT, "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"properties": {"inner": {"$ref": "#"}}},
        {"enum": [{"pattern": "("}]},
    ],
)
def test_a_schema_that_stands_on_its_own_is_fine(schema: object) -> None:
    check_json_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": SLOW},
        {"$schema": DRAFT, "$ref": "#/$defs/a", "$defs": {"a": {"pattern": SLOW}}},
        {"$ref": "http://127.0.0.1:9/x"},
        {"allOf": [{"$ref": "#"}]},
    ],
)
def test_validation_ends_whatever_the_schema(schema: dict[str, object]) -> None:
    with pytest.raises(SchemaUnusable):
        find_violation(schema, "a" * 60 + "!")


@pytest.mark.parametrize(
    "value", [{"b": 1, "x1": 2}, {"c": 3}, {"x1": "no"}, {"b": 1}, [], {"xx": 1}, {"s": "q"}]
)
def test_patterns_decide_as_in_jsonschema(value: object) -> None:
    schema = {
        "properties": {"b": {}, "s": {"type": "string", "pattern": "^[a-f]"}},
        "patternProperties": {"^x[0-9]": {"type": "integer"}},
        "additionalProperties": False,
    }
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (find_violation(schema, value) is None) is is_valid


@pytest.mark.parametrize("pattern", ["^a$", "^(b|a$)", "^[a$]$", r"^a\$?$", r"^[\]a$]$"])
def test_a_text_ends_where_a_pattern_says(pattern: str) -> None:
    assert find_violation({"pattern": pattern}, "a") is None
    assert find_violation({"pattern": pattern}, "a\n") is not None


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"multipleOf": 0.01}, 10**400, True),
        ({"multipleOf": 0.01}, 1e300, True),
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 0.01}, 19.999, False),
        ({"multipleOf": 0.5}, -(10**400), True),
        ({"multipleOf": 7}, 10**400, False),
        ({"multipleOf": 10**400}, 1.5, False),
        ({"multipleOf": 1e-320}, 1e308, True),
        ({"multipleOf": 0.1}, Decimal("1.1"), True),
        ({"multipleOf": 2}, "text", True),
        ({"multipleOf": 2}, math.inf, False),
        ({"minimum": 0.5}, 10**400, True),
        ({"const": 1.0}, 10**400, False),
        ({"type": "integer"}, 1e300, True),
        ({"maxItems": 10**400}, [1], True),
    ],
)
def test_numbers_of_any_size_are_compared(schema: dict[str, object], value: object, *, fits: bool) -> None:
    assert (find_violation(schema, value) is None) == fits


def test_a_number_that_cannot_be_written_out_is_a_violation_or_makes_the_schema_unusable() -> None:
    with pytest.raises(SchemaUnusable, match="cannot be applied"):
        find_violation({"maximum": 1}, 10**5000)


@pytest.mark.parametrize("divisor", [math.inf, math.nan])
def test_a_divisor_is_a_number(divisor: float) -> None:
    with pytest.raises(SchemaUnusable):
        check_json_schema({"multipleOf": divisor})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/required/x", "required": ["a"]},
        {"$ref": "#/enum/-5", "enum": [{}]},
        {"$ref": "#/title/0", "title": ""},
        {"$id": "a:b", "properties": {"p": {"$id": "//[x", "$ref": "y"}}},
        {"$ref": "http://["},
        {"$ref": "\ud800"},
        {"required": [{"a": number} for number in range(5)]},
        {"dependentRequired": {"a": [{}, 1]}},
        {"pattern": "a{99999999999999999999}"},
        {"properties": []},
        {"allOf": {"a": {}}},
        {"properties": {"a": {"$anchor": 3}}},
        5,
    ],
)
def test_whatever_the_libraries_stumble_over_makes_a_schema_unusable(schema: object) -> None:
    with pytest.raises(SchemaUnusable):
        check_json_schema(schema)


def test_each_part_of_a_schema_is_checked_once_however_many_references_lead_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = Mock(wraps=json_schema._check_meta)
    monkeypatch.setattr(json_schema, "_check_meta", checked)
    hidden = {"properties": {"c": {"$ref": "#/hidden"}}}
    references = {
        f"p{number}": {"$ref": ref} for number, ref in enumerate(["#", "#/hidden", "#/$defs/a"] * 50)
    }
    check_json_schema(
        {"properties": references, "hidden": hidden, "$defs": {"a": {"$ref": "#/properties/p0"}}}
    )
    # The whole, the references, $defs/a, what is hidden, and the reference in it.
    assert checked.call_count == 1 + len(references) + 1 + 2


def test_what_a_reference_alone_leads_to_is_checked_in_full() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/x/y"}},
        "x": {"y": {"items": {"properties": {"b": {"type": "no"}}}}},
    }
    with pytest.raises(SchemaUnusable, match="not valid"):
        check_json_schema(schema)


def test_a_reference_starts_from_the_address_around_it() -> None:
    inner = {"$id": "http://h/inner", "$defs": {"b": {"type": "string"}}, "$ref": "#/$defs/b"}
    check_json_schema(
        {"$defs": {"b": {}}, "properties": {"a": inner, "c": {"$ref": "http://h/inner#/$defs/b"}}}
    )
    with pytest.raises(SchemaUnusable, match="nowhere"):
        check_json_schema({"$defs": {"c": {}}, "properties": {"a": {**inner, "$ref": "#/$defs/c"}}})


@pytest.mark.parametrize(
    "items",
    [
        [1, 1.0],
        [1, True],
        [0, False],
        [{"a": [1]}, {"a": [1]}],
        [{"a": 1}, {"a": True}],
        ["1", 1],
        [[], {}],
        [],
    ],
)
def test_items_are_unique_as_in_jsonschema(items: list[object]) -> None:
    schema = {"uniqueItems": True}
    assert (find_violation(schema, items) is None) is jsonschema.Draft202012Validator(schema).is_valid(items)


def test_finding_a_value_that_stands_twice_compares_no_pairs() -> None:
    """Objects cannot be sorted, so that jsonschema compares each with each: 200 million comparisons here."""
    values = [{"n": number} for number in range(20_000)]
    assert find_violation({"uniqueItems": True}, values) is None
    found = find_violation({"uniqueItems": True}, [*values, {"n": 0}])
    assert found == "$: the same value stands here twice"
