"""How long something took, as records have it."""

import time


def ms_since(began: float) -> float:
    """Milliseconds since that reading of time.monotonic()."""
    return round((time.monotonic() - began) * 1000, 2)
