"""Attributes of a span by their conventions' names, whether a writer keeps them flat, in lists or nested.

llm.input_messages.0.message.role = user         flat
llm.input_messages = [{"message.role": "user"}]  a list of flat objects
{"llm": {"input_messages": [{"message": {…}}]}}  nested
"""

from collections.abc import Mapping
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_text, unpack_json

# An index beyond this is no place in a list, but a mistake or an attack.
_MOST_DIGITS = 9


def find(attributes: Mapping[str, Any], *names: str) -> Any:
    """The first of these attributes that is there and not null."""
    for name in names:
        value = attributes.get(name)
        # Writers that nest do so at the first dot.
        if value is None and isinstance(attributes.get(name.partition(".")[0]), dict):
            value = _find_nested(attributes, name)
        if value is not None:
            return value
    return None


def find_text(attributes: Mapping[str, Any], *names: str) -> str:
    """The first of these attributes that is a text or a number and not empty, as text."""
    return next((text for name in names if (text := as_text(find(attributes, name)))), "")


def list_entries(attributes: Mapping[str, Any], name: str) -> list[Any]:
    """The list of an attribute: its own value, JSON in a text, or flattened indexes, in their order."""
    value = unpack_json(find(attributes, name))
    if isinstance(value, list):
        return [unflatten(entry) if isinstance(entry, dict) else entry for entry in value]
    below = _below(attributes, name)
    return listed(unflatten(below)) if below else []


def listed(value: Any) -> list[Any]:
    """A list, or an object with indexes for keys as the list that it is; empty for everything else."""
    if isinstance(value, list):
        return value
    numbered = {int(key): item for key, item in as_dict(value).items() if _is_index(key)}
    return [numbered[index] for index in sorted(numbered)]


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with dots as objects in objects; a value that stands where an object has to is left out."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        node = nested
        for part in path:
            inner = node.get(part)
            if not isinstance(inner, dict):
                inner = node[part] = {}
            node = inner
        known = node.get(last)
        if isinstance(value, dict) and not isinstance(known, dict):
            node[last] = unflatten(value) if any("." in inner for inner in value) else dict(value)
        elif not isinstance(known, dict):
            node[last] = value
    return nested


def _find_nested(attributes: Mapping[str, Any], name: str) -> Any:
    """The value under a dotted name in objects whose keys may have dots themselves."""
    at = name.find(".")
    while at > 0:
        inner = attributes.get(name[:at])
        if isinstance(inner, dict):
            rest = name[at + 1 :]
            found = inner[rest] if rest in inner else _find_nested(inner, rest)
            if found is not None:
                return found
        at = name.find(".", at + 1)
    return None


def _below(attributes: Mapping[str, Any], name: str) -> dict[str, Any]:
    prefix = f"{name}."
    return {key[len(prefix) :]: value for key, value in attributes.items() if key.startswith(prefix)}


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= _MOST_DIGITS
