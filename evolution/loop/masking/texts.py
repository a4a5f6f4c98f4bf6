"""The texts of a JSON value, looked at as one text in which each keeps its place, and the value with other texts.

A value under a telling key, such as `api_key`, is looked at as `key: value`; integers are texts too, for a phone number
is often written as one.
"""

import bisect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import regex

# Between two texts; U+FDD0 is no character, so that no text of an import has it.
GAP = "\n\ufdd0\n"
# Integers with fewer digits identify nobody.
LEAST_NUMBER = 10**6
# Keys that don't say of what; the key above them does.
_VAGUE = frozenset({"id", "no", "number", "code", "value", "num", "sn", "key", "token"})

_LISTS = (list, tuple)
_NESTED = (dict, *_LISTS)
_ESCAPE = regex.compile(r"\\u([0-9a-fA-F]{4})")
_LITERAL = regex.compile(r'"(?:[^"\\]|\\.)*+"', regex.DOTALL)


# A key with its value, or one of them: the text, where the key begins and ends in it, and where the value begins.
Piece = tuple[str, int, int, int]


class Span(NamedTuple):
    """A part of the joined text, and what stands in for it."""

    start: int
    end: int
    placeholder: str


class Texts:
    """All texts of a JSON value."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._pieces: list[Piece] = []
        _collect(value, self._pieces.append, "")
        texts = [piece[0] for piece in self._pieces]
        self.joined = GAP.join(texts)
        lengths = [len(text) + len(GAP) for text in texts]
        self._starts = list(accumulate(lengths, initial=0))[:-1]

    @cached_property
    def encoded(self) -> bytes:
        """The joined text as UTF-8."""
        return self.joined.encode("utf-8", "surrogatepass")

    @cached_property
    def _encoded_starts(self) -> list[int]:
        if len(self.encoded) == len(self.joined):
            return self._starts
        gap = len(GAP.encode())
        lengths = [len(piece[0].encode("utf-8", "surrogatepass")) + gap for piece in self._pieces]
        return list(accumulate(lengths, initial=0))[:-1]

    def find_pieces(self, quick: Any) -> Iterator[tuple[int, int]]:
        """Yield start and end of each text in which the RE2 expression begins to match."""
        starts, at, size = self._encoded_starts, 0, len(self.encoded)
        while at < size and (match := quick.search(self.encoded, at)):
            index = bisect.bisect_right(starts, match.start()) - 1
            yield self._starts[index], self._starts[index] + len(self._pieces[index][0])
            at = starts[index + 1] if index + 1 < len(starts) else size

    def replace(self, spans: Sequence[Span]) -> Any:
        """The value with placeholders for the spans, which don't overlap; what has none stays the very same."""
        touched: dict[int, list[Span]] = {}
        for span in spans:
            first = max(bisect.bisect_right(self._starts, span.start) - 1, 0)
            for index in range(first, bisect.bisect_left(self._starts, span.end)):
                start = self._starts[index]
                touched.setdefault(index, []).append(
                    Span(span.start - start, span.end - start, span.placeholder)
                )
        changes = {index: _change(self._pieces[index], found) for index, found in touched.items()}
        return _Rebuilding(changes).rebuild(self._value) if changes else self._value


def _change(piece: Piece, spans: Sequence[Span]) -> tuple[str | None, str | None]:
    """The new key and the new value, None for one that stays."""
    text, key_start, key_end, value_start = piece
    return _replace_in(text, key_start, key_end, spans), _replace_in(text, value_start, len(text), spans)


def _collect(value: Any, add: Callable[[Piece], None], parent: str) -> None:
    if type(value) is str:
        add((_unescape(value) if "\\u" in value else value, 0, 0, 0))
    elif type(value) is dict:
        for key, inner in value.items():
            if type(inner) is str:
                add(_pair(key, _unescape(inner) if "\\u" in inner else inner, parent))
            elif _is_number(inner):
                add(_pair(key, str(inner), parent))
            else:
                add((key, 0, len(key), len(key)))
                if type(inner) in _NESTED:
                    _collect(inner, add, key)
    elif type(value) in _LISTS:
        for inner in value:
            _collect(inner, add, parent)
    elif _is_number(value):
        add((str(value), 0, 0, 0))


def _is_number(value: Any) -> bool:
    return type(value) is int and abs(value) >= LEAST_NUMBER


def _pair(key: str, value: str, parent: str) -> Piece:
    before = f"{parent} " if parent and key.lower() in _VAGUE else ""
    end = len(before) + len(key)
    return f"{before}{key}: {value}", len(before), end, end + 2


def _unescape(text: str) -> str:
    r"""Read what JSON inside a text writes as \uXXXX, but for quotes, backslashes and control characters."""
    return _ESCAPE.sub(_unescape_one, text)


def _unescape_one(match: regex.Match[str]) -> str:
    character = chr(int(match.group(1), 16))
    return character if character.isprintable() and character not in "\"'\\" else match.group()


class _Rebuilding:
    """Walks the value as `_collect` did, counting the pieces."""

    def __init__(self, changes: Mapping[int, tuple[str | None, str | None]]) -> None:
        self._changes = changes
        self._next = -1

    def rebuild(self, value: Any) -> Any:
        """The value with the changes in it."""
        if type(value) is str or _is_number(value):
            return self._pick(value)[1]
        if type(value) is dict:
            return self._rebuild_object(value)
        if type(value) in _LISTS:
            return [self.rebuild(inner) for inner in value]
        return value

    def _rebuild_object(self, value: dict[Any, Any]) -> dict[Any, Any]:
        rebuilt: dict[Any, Any] = {}
        for key, inner in value.items():
            new_key, new_inner = self._pick(inner, key)
            if type(inner) in _NESTED:
                new_inner = self.rebuild(inner)
            # Two ways to write one number have one placeholder.
            while new_key in rebuilt:
                new_key = f"{new_key}'"
            rebuilt[new_key] = new_inner
        return rebuilt

    def _pick(self, value: Any, key: Any = None) -> tuple[Any, Any]:
        self._next += 1
        new_key, new_value = self._changes.get(self._next, (None, None))
        return (key if new_key is None else new_key), (value if new_value is None else new_value)


def _replace_in(text: str, start: int, end: int, spans: Sequence[Span]) -> str | None:
    """The part of the text with its placeholders; None where nothing is replaced."""
    inside = [span for span in spans if span.start < end and span.end > start]
    if not inside:
        return None
    literals = _literals(text[start:end])
    parts, at = [], start
    for span in inside:
        placeholder = span.placeholder
        if literals is not None and not any(a <= span.start - start < b for a, b in literals):
            placeholder = f'"{placeholder}"'
        parts += [text[at : max(span.start, start)], placeholder]
        at = min(span.end, end)
    return "".join([*parts, text[at:end]])


def _literals(text: str) -> list[tuple[int, int]] | None:
    """Where the string literals of a JSON text are, so that it stays JSON; None for other texts."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return [match.span() for match in _LITERAL.finditer(text)]
