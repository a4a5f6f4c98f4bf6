"""Reads JSON that a model wrote: anything that is not JSON is a ValueError, and nothing else happens."""

import json
from typing import NoReturn


def read_json(text: str) -> object:
    """The value, or ValueError; NaN, infinities and bottomless nesting are not JSON here."""
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except RecursionError as failure:
        raise ValueError("nested too deeply") from failure
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
