"""Values of which a format promises a shape that files don't always keep: taken as what they are, else as nothing."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evolution.adapters.formats.values import RecordProblem, parse_value

# Seconds since 1970 of the year 5138; larger numbers are milliseconds, microseconds or nanoseconds.
_MOST_SECONDS = 1e11
_STEP = 1000
# What a JSON value begins with; most texts are none.
_STARTS = frozenset('{["-0123456789tfnNI')


def as_dict(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value when it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A text or a number as text; empty for everything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)


def kind_of(part: Mapping[str, Any]) -> str:
    """The `type` of an object; empty where it is none or no text."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def parse_json(value: Any) -> Any:
    """A text that is a JSON value as that value, cleaned; anything else as it stands."""
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] not in _STARTS:
        return value
    try:
        return parse_value(value.strip())
    except (ValueError, RecursionError, RecordProblem):
        return value


def unpack_json(value: Any) -> Any:
    """An object or array that stands in a text, in a text in a text too; anything else as it stands."""
    unpacked = value
    for _layer in range(3):
        if not isinstance(unpacked, str) or unpacked.lstrip()[:1] not in {"{", "[", '"'}:
            break
        parsed = parse_json(unpacked)
        if parsed is unpacked:
            break
        unpacked = parsed
    # A text in quotes is no structure; it may be what somebody said.
    return unpacked if isinstance(unpacked, dict | list) else value


def read_time(value: Any) -> datetime | None:
    """A moment: ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970, also as text. Without a zone: UTC."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return _read_epoch(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _read_epoch(value)


def _read_epoch(value: Any) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    while seconds > _MOST_SECONDS:
        seconds /= _STEP
    return datetime.fromtimestamp(seconds, UTC)
