"""JSON Schema as a harness may use it, and the format's own: nothing is fetched, and no pattern takes for ever.

The validator is jsonschema's (draft 2020-12) with the three keywords that match patterns replaced: its own use `re`,
which has no time-out, and for which a text may go on with a line break after its `$`. And multipleOf, which it divides
as floats: 19.99 is a multiple of 0.01 here, and a number too large for a float can be divided.
"""

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import Any

import jsonschema
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

from harness_repo.format.patterns import PatternError, compile_pattern, search
from harness_repo.format.quick_schema import is_plainly_valid

Schema = Mapping[str, Any]
Failures = Iterator[jsonschema.ValidationError]
# A schema, and the number of the one around it in the same list.
_Part = tuple[Schema, int]

_META = jsonschema.Draft202012Validator(
    jsonschema.Draft202012Validator.META_SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)

# A `$` that is no part of an escape or a class.
_END = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\$", re.DOTALL)


class SchemaUnusable(Exception):
    """A schema by which nothing can be validated; the text says why."""


def check_json_schema(schema: Any) -> None:
    """Raise SchemaUnusable unless values can be validated by the schema: all it refers to stands in it."""
    try:
        _Check(schema).run()
    except SchemaUnusable:
        raise
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None
    except Exception as failure:
        # Such as a $id that is no address: the libraries raise what they stumble over.
        raise SchemaUnusable(f"cannot be used: {str(failure)[:200] or type(failure).__name__}") from failure


def find_violation(schema: Schema, value: object) -> str | None:
    """Where and why the value breaks the schema, or None. Raises SchemaUnusable."""
    try:
        if is_plainly_valid(schema, value):
            return None
        failure = jsonschema.exceptions.best_match(find_violations(schema, value))
    except (Unresolvable, jsonschema.SchemaError, PatternError) as error:
        raise SchemaUnusable(str(error)[:300]) from error
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None
    except MemoryError:
        raise
    except Exception as error:
        # Such as a number that is no multiple of anything, being too large to divide.
        raise SchemaUnusable(f"cannot be applied: {error}"[:300]) from error
    return f"{failure.json_path}: {failure.message[:300]}" if failure else None


def find_violations(schema: Schema, value: object) -> Failures:
    """All that breaks the schema, as jsonschema tells it. Raises what jsonschema and `patterns` raise."""
    # Under a root that names its dialect, jsonschema would go on with its own validator.
    root = {name: inner for name, inner in schema.items() if name != "$schema"}
    failures: Failures = _Validator(root, registry=EMPTY_REGISTRY).iter_errors(value)
    return failures


@functools.cache
def load_schema(name: str) -> dict[str, Any]:
    """The published schema of that name, such as "tool" or "trajectory"."""
    text = resources.files("harness_repo").joinpath(f"schemas/{name}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


# Where schemas stand in a schema: as a value, in a list, or in an object by any name.
_AS_VALUE = frozenset({
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_IN_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_BY_NAME = frozenset({
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
})  # fmt: skip


class _Check:
    """One pass over a schema, in which each of its parts is looked at once, however many references lead there."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._seen: set[int] = set()

    def run(self) -> None:
        """Check the schema, and what is a schema only because something refers to it."""
        parts = self._check_tree(self._root)
        resource = DRAFT202012.create_resource(self._root)
        uri = resource.id() or ""
        # Crawled once: otherwise each reference to an address or an anchor would do it again.
        left = [(parts, EMPTY_REGISTRY.with_resource(uri, resource).crawl().resolver(uri))]
        while left:
            parts, resolver = left.pop()
            left += [
                (self._check_tree(found.contents), found.resolver) for found in _resolve(parts, resolver)
            ]

    def _check_tree(self, schema: Any) -> list[_Part]:
        """Check what stands in known places of a schema; its parts that are new, outer ones before inner ones."""
        if not isinstance(schema, dict):
            _check_meta(schema)
        parts: list[_Part] = []
        left: list[tuple[Any, int]] = [(schema, -1)]
        while left:
            one, around = left.pop()
            if not isinstance(one, dict) or id(one) in self._seen:
                continue
            self._seen.add(id(one))
            inner = list(_inner_schemas(one))
            _check_meta(_without(one, inner))
            _check_keywords(one, is_root=one is self._root)
            left += [(schema, len(parts)) for schema in inner]
            parts.append((one, around))
        return parts


def _resolve(parts: Sequence[_Part], resolver: Any) -> Iterator[Any]:
    """What the references of a tree's parts lead to; each part may change the address that they start from."""
    resolvers: list[Any] = []
    for schema, around in parts:
        own = resolver
        if around >= 0:
            own = resolvers[around].in_subresource(DRAFT202012.create_resource(schema))
        resolvers.append(own)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                yield _look_up(schema[keyword], own)


def _look_up(reference: str, resolver: Any) -> Any:
    try:
        return resolver.lookup(reference)
    except Exception as failure:
        # Unresolvable, and whatever an address that is none, or a list asked for a name, leads to.
        message = f"the reference {reference[:200]!r} leads nowhere inside the schema"
        raise SchemaUnusable(message) from failure


def _inner_schemas(schema: Schema) -> Iterator[Schema]:
    """The schemas that stand directly inside one; what is none there is left to the meta-schema."""
    for keyword, value in schema.items():
        if keyword in _AS_VALUE:
            found: Iterable[Any] = (value,)
        elif keyword in _IN_LIST and isinstance(value, list):
            found = value
        elif keyword in _BY_NAME and isinstance(value, dict):
            found = value.values()
        else:
            continue
        yield from (one for one in found if isinstance(one, dict))


def _without(schema: Schema, inner: Sequence[Schema]) -> Schema:
    """The schema with an empty one for each of those inside, which are checked by themselves."""
    known = {id(one) for one in inner}

    def emptied(value: Any) -> Any:
        return {} if id(value) in known else value

    result: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _IN_LIST and isinstance(value, list):
            result[keyword] = list(map(emptied, value))
        elif keyword in _BY_NAME and isinstance(value, dict):
            result[keyword] = {name: emptied(one) for name, one in value.items()}
        else:
            result[keyword] = emptied(value)
    return result


def _check_meta(schema: Any) -> None:
    if isinstance(schema, dict):
        _check_names(schema)
    failure = jsonschema.exceptions.best_match(_META.iter_errors(schema))
    if failure is not None:
        raise SchemaUnusable(failure.message)


def _check_names(schema: Schema) -> None:
    """Refuse early what is no list of names: jsonschema compares all pairs of what it cannot sort."""
    by_name = [schema.get(keyword) for keyword in ("dependencies", "dependentRequired")]
    values = [one for value in by_name if isinstance(value, dict) for one in value.values()]
    for value in (schema.get("required"), schema.get("type"), *values):
        if isinstance(value, list) and not all(isinstance(name, str) for name in value):
            raise SchemaUnusable(f"{str(value)[:100]} is no list of names")


def _check_keywords(schema: Schema, *, is_root: bool) -> None:
    """What the meta-schema does not say of one schema."""
    # Under another dialect, and for this keyword, jsonschema would match patterns by itself.
    if "$schema" in schema and not is_root:
        raise SchemaUnusable("only the outermost schema can have $schema")
    if "unevaluatedProperties" in schema:
        raise SchemaUnusable("unevaluatedProperties is not supported; use additionalProperties")
    if isinstance(schema.get("multipleOf"), float) and not math.isfinite(schema["multipleOf"]):
        raise SchemaUnusable("multipleOf is not a number")
    for pattern in [schema.get("pattern", ""), *schema.get("patternProperties", ())]:
        try:
            compile_pattern(pattern)
        except PatternError as failure:
            raise SchemaUnusable(str(failure)) from failure


def _matches(pattern: str, text: str) -> bool:
    return search(_to_the_very_end(pattern), text) is not None


@functools.lru_cache(maxsize=1024)
def _to_the_very_end(pattern: str) -> str:
    """The pattern with `$` as JSON Schema (ECMA 262) has it; Python's is met before a last line break too."""
    return _END.sub(lambda found: found.group(1) or r"\Z", pattern)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Schema) -> Failures:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Schema, instance: Any, _schema: Schema) -> Failures:
    if not validator.is_type(instance, "object"):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Schema) -> Failures:
    if not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    rest = {
        name: value
        for name, value in instance.items()
        if name not in schema.get("properties", {})
        and not any(_matches(pattern, name) for pattern in patterns)
    }
    original = jsonschema.Draft202012Validator.VALIDATORS["additionalProperties"]
    yield from original(validator, allowed, rest, {}) or ()


def _multiple_of(validator: Any, divisor: Any, instance: Any, _schema: Schema) -> Failures:
    if validator.is_type(instance, "number") and not _is_multiple(instance, divisor):
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def _is_multiple(number: Any, divisor: Any) -> bool:
    """By the numbers as they are written in decimals, exactly."""
    try:
        return _exactly(number) % _exactly(divisor) == 0
    except (ValueError, ArithmeticError):
        # Infinite, or no number at all.
        return False


def _exactly(number: Any) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _unique_items(validator: Any, is_unique: bool, instance: Any, _schema: Schema) -> Failures:  # noqa: FBT001
    if (
        is_unique
        and validator.is_type(instance, "array")
        and len(set(map(_hashable, instance))) < len(instance)
    ):
        yield jsonschema.ValidationError("the same value stands here twice")


def _hashable(value: Any) -> Any:
    """Equal for JSON values that are equal: 1 and 1.0 are, and 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value


_Validator = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    },
)
