"""JSON as it comes from outside, made fit for PostgreSQL without losing anything silently.

Integers keep every digit. A decimal that a double can't hold is kept as its text, which `number` reads. NaN, infinities
and numbers out of range are kept as markers while a file is parsed, so that only the record around them is refused. NUL
characters and lone surrogates, which PostgreSQL can't store, are written out as visible escapes. Of a key that stands
twice in an object the last value counts, as in nearly every program that reads JSON.
"""

import json
import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

# Deeper values come from a mistake or an attack, and would exhaust the stack of whatever walks them.
MAX_DEPTH = 100
# Python neither reads nor writes longer integers.
MAX_DIGITS = 4300

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# How the same characters may stand in JSON; other characters are found too, and do no harm.
_SUSPICIOUS = ("\\u0000", "\\ud", "\\uD", "\x00")
# Decimals up to this many characters, without an exponent, have at most 15 digits and survive a double.
_SAFE_LENGTH = 16


class RecordProblem(Exception):
    """This record can't be used; the message says why."""


@dataclass(frozen=True)
class _BadNumber:
    text: str


def _read_int(text: str) -> int | _BadNumber:
    return int(text) if len(text) <= MAX_DIGITS else _BadNumber(text[:40] + "…")


def _read_float(text: str) -> float | str | _BadNumber:
    """The number, or its text where a double would round it."""
    value = float(text)
    if len(text) <= _SAFE_LENGTH and "e" not in text and "E" not in text:
        return value
    if not math.isfinite(value):
        return _BadNumber(text[:40])
    return value if _is_exact(text, value) else text


def _is_exact(text: str, value: float) -> bool:
    """Say whether a text means a double: as its shortest form, or as the double itself to that many digits."""
    if repr(value) == text:
        return True
    written = Decimal(text)
    digits = len(written.as_tuple().digits)
    return Decimal(repr(value)) == written or Context(prec=digits).plus(Decimal(value)) == written


# Control characters within strings are let pass; NUL is escaped afterwards.
DECODER = json.JSONDecoder(
    parse_int=_read_int, parse_float=_read_float, parse_constant=_BadNumber, strict=False
)


def _is_suspicious(text: str, start: int, end: int) -> bool:
    """Whether a part of a JSON text may have characters that PostgreSQL can't store."""
    if text.find("\\u", start, end) < 0:
        return text.find("\x00", start, end) >= 0
    return any(text.find(piece, start, end) >= 0 for piece in _SUSPICIOUS)


class Parsed(NamedTuple):
    """A JSON value out of a longer text."""

    value: Any
    # position behind it
    end: int
    # whether there are neither bad numbers in it nor more than MAX_DEPTH levels
    is_clean: bool


class Parser:
    """Parses JSON values with the C scanner; texts come out fit for PostgreSQL.

    With `strict`, control characters within strings are errors, so that a string that is not closed ends at its line.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._marks = 0
        # Integers without a hook: Python's own are exact, and reading them is twice as fast.
        self._fast = json.JSONDecoder(
            parse_float=self._read_float, parse_constant=self._mark, strict=strict
        ).raw_decode

    def parse(self, text: str, position: int = 0) -> Parsed:
        """Parse the value at a position without space before it; JSONDecodeError, or RecursionError."""
        self._marks = 0
        try:
            value, end = self._fast(text, position)
        except json.JSONDecodeError:
            raise
        except ValueError:
            # An integer that is too long for Python.
            self._marks = 1
            value, end = DECODER.raw_decode(text, position)
        if _is_suspicious(text, position, end):
            value = _escape_all(value)
        levels = text.count("{", position, end) + text.count("[", position, end)
        is_deep = levels > MAX_DEPTH and _is_deeper(value, MAX_DEPTH)
        return Parsed(value, end, not self._marks and not is_deep)

    def _read_float(self, text: str) -> Any:
        value = _read_float(text)
        self._marks += isinstance(value, _BadNumber)
        return value

    def _mark(self, text: str) -> _BadNumber:
        self._marks += 1
        return _BadNumber(text)


def _refuse(text: str) -> Any:
    raise _describe_bad(text)


def _read_sure_float(text: str) -> float | str:
    value = _read_float(text)
    if isinstance(value, _BadNumber):
        raise _describe_bad(text)
    return value


_SURE = json.JSONDecoder(parse_float=_read_sure_float, parse_constant=_refuse, strict=False)


def parse_value(text: str) -> Any:
    """Parse a text that is one JSON value, fit for PostgreSQL; ValueError, RecursionError, RecordProblem."""
    value = _SURE.decode(text)
    if _is_suspicious(text, 0, len(text)):
        value = _escape_all(value)
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise _describe_depth()
    return value


def _describe_bad(text: Any) -> RecordProblem:
    return RecordProblem(_("%(number)s is not a number that can be kept") % {"number": text})


def _describe_depth() -> RecordProblem:
    return RecordProblem(_("nested more than %(levels)d levels deep") % {"levels": MAX_DEPTH})


def _escape_all(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {escape(key): _escape_all(item) for key, item in value.items()}
    return [_escape_all(item) for item in value] if isinstance(value, list) else value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether arrays and objects stand in one another more than so many times."""
    level = [value] if isinstance(value, dict | list) else []
    for _level in range(levels):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def clean(value: Any, depth: int = 0) -> Any:
    """Return the value with unstorable characters escaped; RecordProblem on what has no right value."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, _BadNumber):
        raise _describe_bad(value.text)
    if isinstance(value, float) and not math.isfinite(value):
        raise _describe_bad(value)
    if depth > MAX_DEPTH:
        raise _describe_depth()
    if isinstance(value, dict):
        return {escape(key): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, depth + 1) for item in value]
    return value


def with_nan(value: Any) -> Any:
    """Return the value with bad numbers as the floats they are, for readers that know what to do with NaN."""
    if isinstance(value, _BadNumber):
        return float(value.text.rstrip("…"))
    if isinstance(value, dict):
        return {key: with_nan(item) for key, item in value.items()}
    return [with_nan(item) for item in value] if isinstance(value, list) else value


def number(value: Any) -> int | float | None:
    """Return a number, also of a text that is one; None for anything else, NaN and infinities included."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found if isinstance(found, int) or math.isfinite(found) else None


def escape(text: str) -> str:
    r"""Write NUL and lone surrogates as `\u0000` and the like."""
    return _UNSTORABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def expect(item: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """Return a field of the right type, `default` when it is missing or null; raises RecordProblem."""
    value = item.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and not _takes_bool(kind)):
        what = {"name": name, "found": _type_name(value), "wanted": _kind_name(kind)}
        raise RecordProblem(_("`%(name)s` is %(found)s, not %(wanted)s") % what)
    return value


def _takes_bool(kind: type | tuple[type, ...]) -> bool:
    return kind is bool or (isinstance(kind, tuple) and bool in kind)


# As JSON calls them.
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def _type_name(value: Any) -> str:
    return _NAMES.get(type(value), "null")


def _kind_name(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return "/".join(_NAMES[each] for each in kinds)
