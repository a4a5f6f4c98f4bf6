"""What a reviewer must not overlook in a change, each with the line beside which to say so.

Four questions are asked of the files before and after, and nothing is asked of a model: what of it can't be seen or
reads otherwise (`characters`); where does it lead (`addresses`); was it written by whoever wrote the failures
(`injection`, `transcripts`); and what does the harness no longer demand (`obligations`, `hooks`, `parts`, `settings`).
A flag is no verdict: it says where to look. Nothing in a file raises.
"""

from evolution.loop.flags.finding import find_flags
from evolution.loop.flags.flag import Flag, FlagKind, Side

__all__ = ["Flag", "FlagKind", "Side", "find_flags"]
