"""JSON Schema as a harness may use it: nothing is fetched, and no pattern takes for ever.

The validator is jsonschema's (draft 2020-12) with the three keywords that match patterns replaced: its own use `re`,
which has no time-out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

from harness_repo.format.patterns import PatternError, compile_pattern, search

Schema = Mapping[str, Any]
Failures = Iterator[jsonschema.ValidationError]


class SchemaUnusable(Exception):
    """A schema by which nothing can be validated; the text says why."""


def check_json_schema(schema: Any) -> None:
    """Raise SchemaUnusable unless values can be validated by the schema: all it refers to stands in it."""
    try:
        _check_meta(schema)
        resolver = EMPTY_REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
        for inner in _walk(schema, resolver, set()):
            _check_keywords(inner, is_root=inner is schema)
    except Unresolvable as failure:
        raise SchemaUnusable(f"the reference {failure.ref!r} leads nowhere inside the schema") from failure
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None


def find_violation(schema: Schema, value: object) -> str | None:
    """Where and why the value breaks the schema, or None. Raises SchemaUnusable."""
    # Under a root that names its dialect, jsonschema would go on with its own validator.
    root = {name: inner for name, inner in schema.items() if name != "$schema"}
    try:
        failure = jsonschema.exceptions.best_match(
            _Validator(root, registry=EMPTY_REGISTRY).iter_errors(value)
        )
    except (Unresolvable, jsonschema.SchemaError, PatternError) as error:
        raise SchemaUnusable(str(error)[:300]) from error
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None
    return f"{failure.json_path}: {failure.message[:300]}" if failure else None


def _walk(schema: Any, resolver: Any, seen: set[int]) -> Iterator[Schema]:
    """The schema and every schema inside it or behind a reference, each once; true and false left out."""
    if id(schema) in seen or not isinstance(schema, dict):
        return
    seen.add(id(schema))
    yield schema
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            found = resolver.lookup(schema[keyword])
            # What stands in no known place is a schema only because something refers to it.
            _check_meta(found.contents)
            yield from _walk(found.contents, found.resolver, seen)
    for inner in DRAFT202012.create_resource(schema).subresources():
        yield from _walk(inner.contents, resolver.in_subresource(inner), seen)


def _check_meta(schema: Any) -> None:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as failure:
        raise SchemaUnusable(failure.message) from failure


def _check_keywords(schema: Schema, *, is_root: bool) -> None:
    """What the meta-schema does not say of one schema."""
    # Under another dialect, and for this keyword, jsonschema would match patterns by itself.
    if "$schema" in schema and not is_root:
        raise SchemaUnusable("only the outermost schema can have $schema")
    if "unevaluatedProperties" in schema:
        raise SchemaUnusable("unevaluatedProperties is not supported; use additionalProperties")
    for pattern in [schema.get("pattern", ""), *schema.get("patternProperties", ())]:
        try:
            compile_pattern(pattern)
        except PatternError as failure:
            raise SchemaUnusable(str(failure)) from failure


def _matches(pattern: str, text: str) -> bool:
    return search(pattern, text) is not None


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


_Validator = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    },
)
