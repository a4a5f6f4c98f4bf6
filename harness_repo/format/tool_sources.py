"""What a schema cannot say of a tool's source: where arguments and secrets may stand, and what compiles."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from harness_repo.format.placeholders import PLACEHOLDER, has_dot_segment, names_in
from harness_repo.format.problems import Problem, error
from harness_repo.format.selection import SelectionError, check_selection, selection_names
from harness_repo.format.yamlfile import YamlFile, as_list, as_mapping
from harness_repo.format.yamlnodes import Location

# In a header's value: stands for a secret that the operator keeps.
SECRET = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")
# The client's own business; set by a file they would change where a request goes or where it ends.
_OWN_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "accept-encoding",
    }
)

# As the schema has it.
_WEB = re.compile(r"https?://[^/?#\s]")

_KEYS = {
    "fixture": {"kind", "select"},
    "http": {"kind", "method", "url", "query", "headers", "body", "seconds", "select"},
    "mcp": {"kind", "url", "command", "tool", "headers", "seconds", "select"},
}


def known_source(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source without what its kind does not know, which is a warning in the file and nothing to go by."""
    kind = source.get("kind")
    known = _KEYS.get(kind, set()) if isinstance(kind, str) else set()
    return {key: value for key, value in source.items() if key in known}


def source_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    """Problems of the source of a tool file, of all parts that are what they should be."""
    values = as_mapping(read.value)
    source = known_source(as_mapping(values.get("source")))
    parameters = values.get("parameters")
    arguments = _arguments(parameters)
    if arguments is not None:
        required = set(map(str, as_list(as_mapping(parameters).get("required"))))
        yield from _placeholder_problems(path, read, source, arguments, required)
    yield from _url_problems(path, read, source.get("url"))
    for key in ("url", "query", "body", "command", "select"):
        if "${secret:" in str(source.get(key, "")):
            message = "a secret can only stand in a header"
            yield error(path, read.line_of(("source", key)), "tool_secret", message)
    for name, value in as_mapping(source.get("headers")).items():
        yield from _header_problems(path, read.line_of(("source", "headers", name)), name, value)
    yield from _select_problems(path, read, source.get("select"), arguments)


def _arguments(parameters: object) -> set[str] | None:
    """The names of the tool's arguments; None when nobody can tell."""
    properties = as_mapping(parameters).get("properties", {})
    return set(properties) if isinstance(parameters, dict) and isinstance(properties, dict) else None


def _placeholder_problems(
    path: str, read: YamlFile, source: Mapping[str, Any], arguments: set[str], required: set[str]
) -> Iterator[Problem]:
    """Placeholders that name no argument, or in a URL one that may be missing; a server of MCP has none at all."""
    known = arguments if source.get("kind") == "http" else set()
    used: dict[Location, set[str]] = {
        ("source", key): set(names_in(source[key]))
        for key in ("url", "query", "body", "command")
        if key in source
    }
    for location, names in used.items():
        for name in sorted(names - known):
            message = f"{{{name}}} is no argument of the tool"
            yield error(path, read.line_of(location), "tool_template", message)
    optional = used.get(("source", "url"), set()) & known - required
    for name in sorted(optional):
        hint = "put it into query, where an argument that is not given is left out"
        message = f"the URL needs {name}, which is not a required argument"
        yield error(path, read.line_of(("source", "url")), "tool_template", message, hint)


def _url_problems(path: str, read: YamlFile, template: object) -> Iterator[Problem]:
    # Another beginning is a matter of the schema.
    if not isinstance(template, str) or not _WEB.match(template):
        return
    message = _wrong_url(template)
    if message:
        yield error(path, read.line_of(("source", "url")), "tool_url", message)


def _wrong_url(template: str) -> str | None:
    authority = re.split(r"[/?#]", template.split("://", 1)[1], maxsplit=1)[0]
    if PLACEHOLDER.search(authority):
        return "an argument cannot stand in the host"
    if "@" in authority:
        return "no name or password in a URL; use a secret in a header"
    if "#" in template:
        return "a URL with a fragment is not a place that can be asked"
    if has_dot_segment(template):
        return "no segment of the path can be . or .."
    try:
        httpx2.URL(PLACEHOLDER.sub("x", template))
    except (httpx2.InvalidURL, ValueError) as failure:
        return f"not a URL: {failure}"
    return None


def _header_problems(path: str, line: int, name: str, value: object) -> Iterator[Problem]:
    if name.lower() in _OWN_HEADERS:
        yield error(path, line, "tool_header", f"the header {name} is the client's own")
    if isinstance(value, str) and "${" in SECRET.sub("", value):
        hint = "write ${secret:NAME}"
        yield error(path, line, "tool_secret", "a reference that is no secret's", hint)


def _select_problems(
    path: str, read: YamlFile, select: object, arguments: set[str] | None
) -> Iterator[Problem]:
    if not isinstance(select, str) or not select:
        return
    line = read.line_of(("source", "select"))
    try:
        check_selection(select)
    except SelectionError as failure:
        yield error(path, line, "select_syntax", str(failure))
    for name in sorted(set(selection_names(select)) - arguments if arguments is not None else ()):
        yield error(path, line, "tool_template", f"{{{name}}} is no argument of the tool")
