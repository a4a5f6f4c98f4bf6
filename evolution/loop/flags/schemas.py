"""Where a JSON Schema lets pass what another one refused."""

from collections.abc import Iterator
from typing import Any, TypeGuard

from harness_repo.format.yamlfile import as_list, as_mapping
from harness_repo.format.yamlnodes import Location

# keyword -> whether a larger number refuses less
_BOUNDS = {
    "maximum": True,
    "exclusiveMaximum": True,
    "maxLength": True,
    "maxItems": True,
    "maxProperties": True,
    "minimum": False,
    "exclusiveMinimum": False,
    "minLength": False,
    "minItems": False,
    "minProperties": False,
}
# Without it, or with another value, other things pass.
_TESTS = ("pattern", "const", "format", "not", "multipleOf", "uniqueItems", "if", "then", "else")
_COMBINED = ("allOf", "anyOf", "oneOf", "contains", "propertyNames", "dependentRequired", "$ref")
# A schema within a schema is looked at to this depth.
_DEEPEST = 20


def find_loosened(old: Any, new: Any, at: Location = ()) -> Iterator[tuple[Location, str]]:
    """Where in the new schema (the place that is left, where something is gone) it is looser, and by what.

    What is only different, such as another pattern, counts: nobody can tell by looking at it.
    """
    if not isinstance(old, dict) or len(at) > _DEEPEST or new is False:
        return
    if not isinstance(new, dict):
        yield at, "schema removed"
        return
    yield from _find_names(old, new, at)
    yield from _find_values(old, new, at)
    yield from _find_bounds(old, new, at)
    for keyword in (*_TESTS, *_COMBINED):
        if keyword in old and old[keyword] != new.get(keyword):
            yield (*at, keyword), _describe(keyword, old[keyword], new.get(keyword))
    yield from _find_inner(old, new, at)


def _find_names(old: dict[str, Any], new: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    kept = as_list(new.get("required"))
    gone = [name for name in as_list(old.get("required")) if name not in kept]
    if gone:
        yield (*at, "required"), f"required − {', '.join(map(str, gone))}"
    allowed, now = old.get("additionalProperties", True), new.get("additionalProperties", True)
    if allowed is False and now is not False:
        yield (*at, "additionalProperties"), _describe("additionalProperties", allowed, now)
    elif isinstance(allowed, dict):
        yield from find_loosened(allowed, now, (*at, "additionalProperties"))


def _find_values(old: dict[str, Any], new: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    """Values and types that pass now and did not."""
    for keyword in ("enum", "type"):
        if keyword not in old:
            continue
        before = old[keyword] if isinstance(old[keyword], list) else [old[keyword]]
        after = new.get(keyword)
        more = [value for value in (after if isinstance(after, list) else [after]) if value not in before]
        # Whole numbers are numbers.
        if more == ["integer"] and "number" in before:
            continue
        if more:
            yield (*at, keyword), _describe(keyword, old[keyword], after)


def _find_bounds(old: dict[str, Any], new: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    for keyword, larger_is_looser in _BOUNDS.items():
        before, after = old.get(keyword), new.get(keyword)
        if not is_number(before) or before == after:
            continue
        if not is_number(after) or (after > before) == larger_is_looser:
            yield (*at, keyword), _describe(keyword, before, after)


def _find_inner(old: dict[str, Any], new: dict[str, Any], at: Location) -> Iterator[tuple[Location, str]]:
    properties, now = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
    for name, schema in properties.items():
        if name in now:
            yield from find_loosened(schema, now[name], (*at, "properties", name))
        elif new.get("additionalProperties", True) is not False:
            yield (*at, "properties", name), f"{name} removed"
    for keyword in ("items", "$defs"):
        if isinstance(old.get(keyword), dict):
            yield from find_loosened(old[keyword], new.get(keyword), (*at, keyword))


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe(keyword: str, before: Any, after: Any) -> str:
    return f"{keyword}: {shorten(before)} → {'−' if after is None else shorten(after)}"


def shorten(value: Any) -> str:
    """The value as text, not too long for a line."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
