"""Arguments of a tool call put into the URL, query and body of its source: {name} stands for an argument."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

Arguments = Mapping[str, Any]
_DOTS = frozenset({".", ".."})


class PlaceholderError(Exception):
    """Arguments that cannot stand where the template has them; the text says which."""


def names_in(template: object) -> Iterator[str]:
    """The arguments that a template names, with what is inside lists and mappings."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from names_in(value)
    elif isinstance(template, list):
        for value in template:
            yield from names_in(value)


def fill_url(template: str, arguments: Arguments) -> str:
    """The URL with each argument percent-encoded. Raises PlaceholderError.

    An argument cannot leave its place: not with a slash, and not by making a path segment "..", "." or empty.
    """
    path, mark, query = template.partition("?")
    filled = PLACEHOLDER.sub(lambda found: quote(_path_text(found.group(1), arguments), safe=""), path)
    if has_dot_segment(filled):
        raise PlaceholderError("the arguments make a path that leads elsewhere")
    rest = PLACEHOLDER.sub(lambda found: quote(_text(found.group(1), arguments), safe=""), query)
    return f"{filled}{mark}{rest}"


def has_dot_segment(url: str) -> bool:
    """Whether the path of a URL has a segment that leads upwards or nowhere."""
    return any(segment in _DOTS for segment in url.partition("?")[0].split("/"))


def fill_query(template: Mapping[str, Any], arguments: Arguments) -> dict[str, list[str]]:
    """The query parameters; one whose argument is not given is left out, a list is repeated."""
    query: dict[str, list[str]] = {}
    for key, value in template.items():
        filled = fill_value(value, arguments)
        items = filled if isinstance(filled, list) else [filled]
        query[key] = [to_text(key, item) for item in items if item is not None]
    return query


def fill_value(template: Any, arguments: Arguments) -> Any:
    """The JSON value with placeholders filled: a text that is only one becomes the argument itself.

    A text with an argument that is not given is None, and left out of a mapping or list around it.
    """
    if isinstance(template, str):
        return _fill_text(template, arguments)
    if isinstance(template, Mapping):
        filled = ((key, value, fill_value(value, arguments)) for key, value in template.items())
        return {key: value for key, was, value in filled if value is not None or was is None}
    if isinstance(template, list):
        items = [(was, fill_value(was, arguments)) for was in template]
        return [value for was, value in items if value is not None or was is None]
    return template


def to_text(name: str, value: object) -> str:
    """A scalar as a URL has it. Raises PlaceholderError for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise PlaceholderError(f"{name} has to be a text or a number here")


def _fill_text(template: str, arguments: Arguments) -> Any:
    names = PLACEHOLDER.findall(template)
    if any(arguments.get(name) is None for name in names):
        return None
    if len(names) == 1 and template == f"{{{names[0]}}}":
        return arguments[names[0]]
    return PLACEHOLDER.sub(lambda found: _text(found.group(1), arguments), template)


def _text(name: str, arguments: Arguments) -> str:
    if name not in arguments:
        raise PlaceholderError(f"{name} is missing")
    return to_text(name, arguments[name])


def _path_text(name: str, arguments: Arguments) -> str:
    text = _text(name, arguments)
    if not text:
        raise PlaceholderError(f"{name} is empty")
    return text
