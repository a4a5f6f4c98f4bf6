"""The texts of a JSON value, looked at as one text in which each keeps its place, and the value with other texts.

A value under a telling key, such as `api_key`, is looked at as `key: value`, and so is that of a header in a list,
`{"name": "x-api-key", "value": ...}` or `["x-api-key", ...]`. Whole numbers are texts too, for a phone number is often
written as one. Digits and letters of full width are looked at as those of ASCII, and without what is invisible between
them.
"""

import bisect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import regex

# Between two texts; U+FDD0 is no character, so that no text of an import has it.
GAP = "\n\ufdd0\n"
_GAP = GAP.encode()
# Integers with fewer digits identify nobody.
LEAST_NUMBER = 10**6
# A double holds no whole number that is larger.
_MOST_FLOAT = 2**53
# Keys that don't say of what; the key above them does.
_VAGUE = frozenset({"id", "no", "number", "code", "value", "num", "sn", "key", "token", "secret"})
# Keys that say it of all that is below them.
_TELLING = frozenset({"cookie", "cookies"})
# How lists of headers and attributes call the name of a value.
_NAME_KEYS = ("name", "key", "header", "field")
_VALUE_KEYS = frozenset({"value", "val", "values", "stringvalue"})
_LONGEST_NAME = 64

_LISTS = (list, tuple)
_NESTED = (dict, *_LISTS)
# Also what was escaped once more, in JSON inside JSON.
_ESCAPE = regex.compile(r"\\+u([0-9a-fA-F]{4})")
_INVISIBLE = regex.compile(r"(?<=[0-9A-Za-z])[\u00ad\u200b-\u200d\u2060\ufeff]+(?=[0-9A-Za-z])")
_WIDE = {
    code + 0xFEE0: chr(code)
    for code in (
        ord("@"),
        *range(ord("0"), ord("9") + 1),
        *range(ord("A"), ord("Z") + 1),
        *range(ord("a"), ord("z") + 1),
    )
}
# What both need, looked for by the quicker package.
_MAYBE_HIDDEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff０-９Ａ-Ｚａ-ｚ＠]")
_HAS_WIDE = regex.compile("[０-９Ａ-Ｚａ-ｚ＠]")
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
        lengths = [len(piece[0]) + len(GAP) for piece in self._pieces]
        self._starts = list(accumulate(lengths, initial=0))[:-1]
        joined = GAP.join(piece[0] for piece in self._pieces)
        # Character by character, so that everything keeps its place.
        self.joined = joined.translate(_WIDE) if not joined.isascii() and _HAS_WIDE.search(joined) else joined

    @cached_property
    def encoded(self) -> bytes:
        """The joined text as UTF-8."""
        return self.joined.encode("utf-8", "surrogatepass")

    def find_pieces(self, quick: Any) -> Iterator[tuple[int, int]]:
        """Yield start and end of each text in which the RE2 expression begins to match."""
        done = -1
        for start, _end in self._find_quick(quick):
            index = bisect.bisect_right(self._starts, start) - 1
            if index > done:
                done = index
                yield self._bounds(index)

    def find_windows(self, quick: Any, before: int, after: int) -> Iterator[tuple[int, int]]:
        """Yield the surroundings of what the RE2 expression matches, joined where they touch, each within one text."""
        window = (0, 0)
        for match_start, match_end in self._find_quick(quick):
            first, last = self._bounds(bisect.bisect_right(self._starts, match_start) - 1)
            start, end = max(match_start - before, first), min(match_end + after, last)
            if start <= window[1]:
                window = (window[0], max(window[1], end))
            else:
                yield window
                window = (start, end)
        yield window

    def _bounds(self, index: int) -> tuple[int, int]:
        return self._starts[index], self._starts[index] + len(self._pieces[index][0])

    def _find_quick(self, quick: Any) -> Iterator[tuple[int, int]]:
        """Yield where the RE2 expression matches, in characters of the joined text."""
        data, at, counted = self.encoded, 0, 0
        is_ascii = len(data) == len(self.joined)
        # up to the byte `at`, in characters
        while match := quick.search(data, at):
            first, last = match.span()
            # What it matches across a border may begin a match behind it, too.
            if (border := data.find(_GAP, first, last)) >= 0:
                last = border + len(_GAP)
            if is_ascii:
                yield first, last
            else:
                start = counted + _count(data, at, first)
                counted = start + _count(data, first, last)
                yield start, counted
            at = last
            if first == last:
                return

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


def _count(data: bytes, start: int, end: int) -> int:
    """How many characters some bytes of UTF-8 are."""
    return len(data[start:end].decode("utf-8", "surrogatepass"))


def is_hidden(text: str) -> bool:
    """Say whether a text has what stands otherwise in it than it is looked at."""
    if "\\u" in text:
        return True
    if text.isascii() or not _MAYBE_HIDDEN.search(text):
        return False
    return bool(_INVISIBLE.search(text) or _HAS_WIDE.search(text))


def _change(piece: Piece, spans: Sequence[Span]) -> tuple[str | None, str | None]:
    """The new key and the new value, None for one that stays."""
    text, key_start, key_end, value_start = piece
    return _replace_in(text, key_start, key_end, spans), _replace_in(text, value_start, len(text), spans)


def _collect(value: Any, add: Callable[[Piece], None], parent: str) -> None:
    if type(value) is str:
        add((_uncover(value), 0, 0, 0))
    elif type(value) is dict:
        _collect_object(value, add, parent)
    elif type(value) in _LISTS:
        name = _name_of_pair(value)
        for place, inner in enumerate(value):
            if place and name:
                add(_say(name, _uncover(inner)))
            else:
                _collect(inner, add, parent)
    elif _is_number(value):
        add((str(int(value)), 0, 0, 0))


def _collect_object(value: dict[Any, Any], add: Callable[[Piece], None], parent: str) -> None:
    name = _name_of_value(value)
    for key, inner in value.items():
        is_value = key.lower() in _VALUE_KEYS
        above = name if name and is_value else parent
        if type(inner) is str or _is_number(inner):
            text = _uncover(inner) if type(inner) is str else str(int(inner))
            add(_say(above, text) if above and is_value else _pair(key, text, above))
        else:
            add((key, 0, len(key), len(key)))
            if type(inner) in _NESTED:
                _collect(inner, add, above if above and is_value else key)


def _name_of_pair(value: Sequence[Any]) -> str:
    """The first of two texts where it may be the name of the second; empty for other lists."""
    if len(value) != 2 or type(value[0]) is not str or type(value[1]) is not str:
        return ""
    return value[0] if _is_name(value[0]) else ""


def _name_of_value(value: dict[Any, Any]) -> str:
    """What an object says that its value is the value of; empty where it says nothing."""
    for key in _NAME_KEYS:
        name = value.get(key)
        if type(name) is str and _is_name(name):
            return name
    return ""


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME and not any(map(str.isspace, text))


def _is_number(value: Any) -> bool:
    if type(value) is float:
        return LEAST_NUMBER <= abs(value) < _MOST_FLOAT and value.is_integer()
    return type(value) is int and abs(value) >= LEAST_NUMBER


def _pair(key: str, value: str, parent: str) -> Piece:
    is_named_above = parent and (key.lower() in _VAGUE or parent.lower() in _TELLING)
    before = f"{parent} " if is_named_above else ""
    end = len(before) + len(key)
    return f"{before}{key}: {value}", len(before), end, end + 2


def _say(name: str, value: str) -> Piece:
    """A value after what stands elsewhere for its name, which is not looked at here."""
    return f"{name}: {value}", 0, 0, len(name) + 2


def _uncover(text: str) -> str:
    """A text as it is looked at, and as it is where something in it is masked."""
    if "\\u" in text:
        text = _unescape(text)
    return text if text.isascii() else _INVISIBLE.sub("", text)


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
