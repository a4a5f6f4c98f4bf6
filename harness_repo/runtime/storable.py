"""Makes JSON values fit for databases and encoders, which refuse some of what Python's texts and numbers can be."""

import json
import math
from typing import Any

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def make_storable(value: Any) -> Any:
    """The value itself where all of it is fit, else a copy that is.

    NUL characters and half surrogate pairs become U+FFFD; nan, inf and -inf become these words.
    """
    return value if is_storable(value) else _replaced(value)


def is_storable(value: object) -> bool:
    """Whether the value can be written as it is; False for what is no JSON value too."""
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except (ValueError, TypeError, RecursionError):
        return False
    # As the encoder writes NUL; a text that says so itself is looked at more closely, and stays.
    return "\\u0000" not in text


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
