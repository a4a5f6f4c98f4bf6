"""Values of OpenTelemetry as they stand in JSON of many writers: attributes, ids, times, states."""

import base64
import binascii
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_list, as_text

_HEX = re.compile(r"[0-9a-f]+")
_NANO = 10**9
# Attributes may nest, but no deeper than `values.clean` lets them.
_MOST_NESTING = 100
_STATES = {"0": "", "1": "ok", "2": "error"}
# A number of these sizes is seconds, milliseconds or microseconds since 1970; a larger one is nanoseconds.
_SCALES = ((10**11, _NANO), (10**14, 10**6), (10**17, 10**3))


def read_attributes(given: Any) -> dict[str, Any]:
    """Attributes by key: a list of {key, value} as in OTLP, or an object of plain values; else none."""
    if isinstance(given, dict):
        return given
    return dict(_read_pair(as_dict(pair)) for pair in as_list(given) if _has_key(pair))


def _has_key(pair: Any) -> bool:
    return isinstance(pair, dict) and isinstance(pair.get("key", pair.get("Key")), str)


def _read_pair(pair: dict[str, Any]) -> tuple[str, Any]:
    if "Key" in pair:
        # Go's SDK writes {"Key": …, "Value": {"Type": …, "Value": …}}.
        return pair["Key"], as_dict(pair.get("Value")).get("Value")
    return pair["key"], read_value(pair.get("value"))


def read_value(value: Any, depth: int = 0) -> Any:
    """An AnyValue as a plain one; 64-bit integers stand in texts and keep every digit."""
    if not isinstance(value, dict) or depth > _MOST_NESTING:
        return value
    for name, inner in value.items():
        kind = name.replace("_", "").lower()
        if kind in {"stringvalue", "boolvalue", "doublevalue", "bytesvalue"}:
            return inner
        if kind == "intvalue":
            return _read_int(inner)
        if kind == "arrayvalue":
            return [read_value(item, depth + 1) for item in as_list(as_dict(inner).get("values"))]
        if kind == "kvlistvalue":
            pairs = [as_dict(pair) for pair in as_list(as_dict(inner).get("values")) if _has_key(pair)]
            return {pair["key"]: read_value(pair.get("value"), depth + 1) for pair in pairs}
    return None


def _read_int(value: Any) -> Any:
    text = as_text(value)
    # int() takes no more digits than these by default.
    is_number = text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 4000
    return int(text) if is_number else value


def read_id(value: Any, size: int) -> str:
    """An id in lower-case hex, from hex, base64 or a list of bytes; empty for none, and for one that is all zeros.

    `size` is its length in bytes. What is in none of these encodings stays as it stands.
    """
    if isinstance(value, dict):
        value = value.get("data")
    text = _hex_of(value) if isinstance(value, list) else as_text(value).strip()
    plain = text.lower().removeprefix("0x").replace("-", "")
    if _HEX.fullmatch(plain) and len(plain) in {size * 2, size}:
        return plain if plain.strip("0") else ""
    decoded = _decode_base64(text)
    if decoded is not None and len(decoded) == size:
        return decoded.hex() if any(decoded) else ""
    return text


def _hex_of(values: list[Any]) -> str:
    try:
        return bytes(values).hex()
    except (TypeError, ValueError):
        return ""


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, altchars=b"-_" if set("-_") & set(text) else None, validate=True)
    except (binascii.Error, ValueError):
        return None


def read_nanoseconds(value: Any) -> int:
    """A time of OTLP, nanoseconds since 1970 as a number or text; 0 for what is none."""
    number = _read_int(value)
    is_time = isinstance(number, int) and not isinstance(number, bool) and number > 0
    return int(number) if is_time else 0


def read_moment(value: Any) -> int:
    """Nanoseconds since 1970 of [seconds, nanoseconds], ISO 8601, or a number in whatever unit; 0 for none."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, int)]
        return parts[0] * _NANO + parts[1] if len(parts) == 2 else 0
    number = read_nanoseconds(value)
    if number:
        return number * next((scale for most, scale in _SCALES if number < most), 1)
    try:
        return int(datetime.fromisoformat(as_text(value)).timestamp() * 10**6) * 1000
    except (ValueError, OverflowError, OSError):
        return 0


def read_state(code: Any) -> str:
    """The code of a span's status, a number or a name: "ok", "error", or "" for unset."""
    name = as_text(code).rpartition(".")[2].lower().removeprefix("status_code_")
    return name if name in {"ok", "error"} else _STATES.get(name, "")


def first_of(values: dict[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that is there and not null."""
    return next((values[name] for name in names if values.get(name) is not None), None)
