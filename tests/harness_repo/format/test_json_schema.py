import jsonschema
import pytest

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
