"""Reads JSON that a model wrote: anything that is not JSON is a ValueError, and nothing else happens."""

import json
import math
from collections.abc import Iterable
from typing import NoReturn

# Far below what the walks over a trajectory can do, and far beyond what an answer needs.
MOST_LEVELS = 50


def read_json(text: str, *, has_unique_keys: bool = False) -> object:
    """The value, or ValueError; NaN, infinities (1e999 is one) and bottomless nesting are not JSON here.

    A key that an object has twice has its last value, or with `has_unique_keys` is a ValueError, too.
    """
    pairs = _read_once if has_unique_keys else None
    try:
        value: object = json.loads(
            text, parse_constant=_refuse, parse_float=_read_float, object_pairs_hook=pairs
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(value)
    return value


def _read_once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    read: dict[str, object] = {}
    for key, value in pairs:
        if key in read:
            raise ValueError(f"{json.dumps(key[:100])} is given twice")
        read[key] = value
    return read


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"nested more than {MOST_LEVELS} levels deep")


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
