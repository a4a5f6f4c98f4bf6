"""Says quickly that a value fits a schema, where that is plain; everything else is left to `json_schema`.

Nearly all values that models write fit their schemas, and the validator takes a hundred times as long to say so.
"""

from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

# Keywords that say nothing about a value. `format` asserts nothing here, as the validator is given no checker for it.
_SILENT = frozenset({
    "title", "description", "default", "examples", "$schema", "$comment", "deprecated", "format", "readOnly",
    "writeOnly",
})  # fmt: skip


def is_plainly_valid(schema: Any, value: object) -> bool:
    """True only if the value fits, by keywords that are read here; False says that somebody else has to look."""
    if not isinstance(schema, dict):
        return schema is True
    for keyword, wanted in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            if keyword not in _SILENT:
                return False
        elif not check(wanted, value, schema):
            return False
    return True


def _has_type(wanted: Any, value: object, _: Schema) -> bool:
    if isinstance(wanted, str):
        return _is_of(wanted, value)
    return isinstance(wanted, list) and any(isinstance(one, str) and _is_of(one, value) for one in wanted)


def _is_of(name: str, value: object) -> bool:
    """Whether the value is of the type; 1.0 is an integer to JSON Schema, which is left to others."""
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, ()))


_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def _is_one_of(wanted: Any, value: object, _: Schema) -> bool:
    """Texts and numbers alone: of the others it is not plain when they are equal."""
    if not isinstance(wanted, list) or isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return any(value == one for one in wanted if not isinstance(one, bool))


def _has_all(wanted: Any, value: object, _: Schema) -> bool:
    if not isinstance(wanted, list):
        return False
    return not isinstance(value, dict) or all(isinstance(name, str) and name in value for name in wanted)


def _fit_properties(wanted: Any, value: object, _: Schema) -> bool:
    if not isinstance(wanted, dict):
        return False
    if not isinstance(value, dict):
        return True
    return all(is_plainly_valid(wanted[name], inner) for name, inner in value.items() if name in wanted)


def _has_no_others(wanted: Any, value: object, schema: Schema) -> bool:
    if not isinstance(value, dict) or wanted is True:
        return wanted is True or wanted is False
    known = schema.get("properties", {})
    return wanted is False and isinstance(known, dict) and all(name in known for name in value)


def _fit_items(wanted: Any, value: object, _: Schema) -> bool:
    if not isinstance(wanted, dict):
        return False
    return not isinstance(value, list) or all(is_plainly_valid(wanted, inner) for inner in value)


def _bound(kinds: tuple[type, ...], measure: Callable[[Any], float], *, least: bool) -> "_Check":
    """A keyword that bounds values of these kinds; it says nothing of others."""

    def check(wanted: Any, value: object, _: Schema) -> bool:
        if isinstance(wanted, bool) or not isinstance(wanted, int | float):
            return False
        if isinstance(value, bool) or not isinstance(value, kinds):
            return True
        return measure(value) >= wanted if least else measure(value) <= wanted

    return check


_Check = Callable[[Any, object, Schema], bool]

_CHECKS: dict[str, _Check] = {
    "type": _has_type,
    "enum": _is_one_of,
    "required": _has_all,
    "properties": _fit_properties,
    "additionalProperties": _has_no_others,
    "items": _fit_items,
    "minLength": _bound((str,), len, least=True),
    "maxLength": _bound((str,), len, least=False),
    "minItems": _bound((list,), len, least=True),
    "maxItems": _bound((list,), len, least=False),
    "minimum": _bound((int, float), lambda number: number, least=True),
    "maximum": _bound((int, float), lambda number: number, least=False),
}
