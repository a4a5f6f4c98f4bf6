"""JSON as it comes from outside, made fit for PostgreSQL without losing anything silently.

Integers keep every digit. NaN, infinities and numbers out of range are kept as markers while a file is
parsed, so that only the record around them is refused. NUL characters and lone surrogates, which PostgreSQL
can't store, are written out as visible escapes.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

# Deeper values come from a mistake or an attack, and would exhaust the stack of whatever walks them.
MAX_DEPTH = 100
# Python refuses longer ones by default.
MAX_DIGITS = 4000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class RecordProblem(Exception):
    """This record can't be used; the message says why."""


@dataclass(frozen=True)
class _BadNumber:
    text: str


def _read_int(text: str) -> int | _BadNumber:
    return int(text) if len(text) <= MAX_DIGITS else _BadNumber(text[:40] + "…")


def _read_float(text: str) -> float | _BadNumber:
    value = float(text)
    return value if math.isfinite(value) else _BadNumber(text[:40])


DECODER = json.JSONDecoder(parse_int=_read_int, parse_float=_read_float, parse_constant=_BadNumber)


def clean(value: Any, depth: int = 0) -> Any:
    """Return the value with unstorable characters escaped; RecordProblem on what has no right value."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, _BadNumber):
        raise RecordProblem(_("%(number)s is not a number that can be kept") % {"number": value.text})
    if depth > MAX_DEPTH:
        raise RecordProblem(_("nested more than %(levels)d levels deep") % {"levels": MAX_DEPTH})
    if isinstance(value, dict):
        return {escape(key): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, depth + 1) for item in value]
    return value


def escape(text: str) -> str:
    r"""Write NUL and lone surrogates as `\u0000` and the like."""
    return _UNSTORABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def expect(item: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """Return a field of the right type, `default` when it is missing or null; raises RecordProblem."""
    value = item.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        what = {"name": name, "found": _type_name(value), "wanted": _kind_name(kind)}
        raise RecordProblem(_("`%(name)s` is %(found)s, not %(wanted)s") % what)
    return value


# As JSON calls them.
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def _type_name(value: Any) -> str:
    return _NAMES.get(type(value), "null")


def _kind_name(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return "/".join(_NAMES[each] for each in kinds)
