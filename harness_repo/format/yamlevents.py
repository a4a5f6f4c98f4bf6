"""The quick way to read YAML: libyaml's events, for documents made of plain mappings, lists and scalars.

It gives the answer that yamlfile's own way gives, or none: whatever is broken, unusual or too large is left to it.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import Resolver

from harness_repo.format.yamlnodes import MAX_DEPTH, MAX_NODES, Location, Scalar, scalar_value

# A build of PyYAML without libyaml has none; then everything goes the other way.
_LOADER: Any = getattr(yaml, "CBaseLoader", None)

# What libyaml, of YAML 1.1, and ruamel, of YAML 1.2, read differently, found by comparing them: directives and
# markers, tabs, line ends other than \n, marks that touch a text inside flow collections, and block texts that start
# with an empty line, a comment or a number.
_READ_DIFFERENTLY = re.compile(
    r"[\t\r\x85\u2028\u2029\ufeff\ud800-\udfff]|^%|^---|^\.\.\.|\?"
    # From the start of a line, so that a long line is not searched from each of its marks anew.
    r"|^[^\n\[\]{},]*[\[\]{},][^\n]*[:!&*|>%@`#]\S"
    r"|[|>][+-]?[0-9]|^[^\n|>]*[|>][^\n]*(?:#|\n *(?:[\n#]|\Z))",
    re.MULTILINE,
)

_RESOLVER = Resolver()
# What a plain text that is not simply a text can begin with.
_RESOLVED = frozenset("~nNtTfF-+.0123456789<=")


@dataclass
class QuickResult:
    """JSON values, and the line of each."""

    value: Any = None
    lines: dict[Location, int] = field(default_factory=dict)


class _NotQuick(Exception):
    """The document is for the other way."""


def read_quickly(text: str, first_line: int) -> QuickResult | None:
    """What the text says, its first line counted as `first_line`; None when it is not of the plain kind."""
    if _LOADER is None or _READ_DIFFERENTLY.search(text):
        return None
    try:
        return _EventReader(text, first_line).read()
    except Exception:  # noqa: BLE001  whatever the library stumbles over, the other way says what it is
        return None


def line_too_much(text: str) -> int | None:
    """The line, counted from 0, on which a text goes beyond the limits; None when it does not, or is no YAML.

    ruamel would spend seconds on what libyaml runs through at once. Aliases are not followed here.
    """
    if _LOADER is None:
        return None
    # For each collection that is open whether its next node is a key, which does not count; None in a sequence.
    is_key: list[bool | None] = []
    values = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionEndEvent):
                is_key.pop()
            elif isinstance(event, yaml.NodeEvent):
                values += _count_value(event, is_key)
            if len(is_key) > MAX_DEPTH + 1 or values > MAX_NODES:
                return _line_of(event.start_mark)
    except yaml.MarkedYAMLError as failure:
        # libyaml has a limit of its own, and sees that far ahead.
        return _line_of(failure.problem_mark) if "nesting depth" in str(failure.problem) else None
    except Exception:  # noqa: BLE001  no YAML, which is told elsewhere
        return None
    return None


def _count_value(event: yaml.NodeEvent, is_key: list[bool | None]) -> int:
    """1 for a value, 0 for a key; `is_key` is brought up to the next node."""
    counts = not (is_key and is_key[-1])
    if is_key and is_key[-1] is not None:
        is_key[-1] = not is_key[-1]
    if isinstance(event, yaml.CollectionStartEvent):
        is_key.append(True if isinstance(event, yaml.MappingStartEvent) else None)
    return int(counts)


def _line_of(mark: Any) -> int:
    return mark.line if mark is not None else 0


class _EventReader:
    """Builds values from the stream of events; libyaml keeps no stack of its own that a file could exhaust."""

    def __init__(self, text: str, first_line: int) -> None:
        self._events = _events(text)
        self._result = QuickResult()
        self._first = first_line
        self._nodes = 0

    def read(self) -> QuickResult:
        """One document, or none."""
        event = next(self._events)
        if not isinstance(event, yaml.DocumentStartEvent):
            return self._result
        self._result.value = self._value(next(self._events), ())
        # The end of the document, and of the stream: a second document is an error that is told elsewhere.
        next(self._events)
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise _NotQuick
        return self._result

    def _value(self, event: Any, at: Location) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or len(at) > MAX_DEPTH:
            raise _NotQuick
        self._result.lines.setdefault(at, self._first + event.start_mark.line)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        _refuse_unusual(event)
        return self._mapping(at) if isinstance(event, yaml.MappingStartEvent) else self._sequence(at)

    def _mapping(self, at: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = _key(event)
            if key in result:
                raise _NotQuick
            self._result.lines[*at, key] = self._first + event.start_mark.line
            result[key] = self._value(next(self._events), (*at, key))
        return result

    def _sequence(self, at: Location) -> list[Any]:
        result: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            result.append(self._value(event, (*at, len(result))))
        return result


def _events(text: str) -> Iterator[Any]:
    """The events but for the start of the stream."""
    events = yaml.parse(text, Loader=_LOADER)
    next(events)
    return events


def _refuse_unusual(event: Any) -> None:
    """Aliases, anchors and tags go the other way."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None or event.tag is not None:
        raise _NotQuick


def _key(event: Any) -> str:
    if not isinstance(event, yaml.ScalarEvent) or event.value == "<<":
        raise _NotQuick
    _refuse_unusual(event)
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> Scalar:
    _refuse_unusual(event)
    # The first of the two: whether a plain text stands here, which may be a number.
    return _resolve(event.value) if event.implicit[0] else event.value


@functools.lru_cache(maxsize=4096)
def _resolve(text: str) -> Scalar:
    if text and text[0] not in _RESOLVED:
        return text
    return scalar_value(str(_RESOLVER.resolve(ScalarNode, text, (True, False))), text)
