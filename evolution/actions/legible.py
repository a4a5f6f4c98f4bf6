"""Names that people give things and others have to tell apart."""

import re

# Characters that turn the order of a text round, for all that stands behind them.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Joiners and the like: nothing to see on their own, and right between letters of some scripts and in emoji.
_UNSEEN = re.compile(
    "[\\s\u00ad\u115f\u1160\u180e\u200b-\u200d\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0]+"
)


def is_legible(name: str) -> bool:
    """Whether something of a name is to be seen, and nothing turns the text behind it round."""
    return bool(_UNSEEN.sub("", name)) and not _TURNING.search(name)
