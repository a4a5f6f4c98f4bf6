"""Commit messages with trailers (`Key: value` lines at the end, as git interpret-trailers reads them)."""

import re
from collections.abc import Iterable, Mapping

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)[ \t]*:[ \t]*(.*)")

TrailerValue = str | int | Iterable[str | int]


def message_with_trailers(message: str, trailers: Mapping[str, TrailerValue]) -> str:
    """The message with trailers at its end, one line for each value; values lose their line ends.

    Trailers that the message has already stay, ahead of the new ones. ValueError for a key that git would not read.
    """
    lines = [f"{_key(key)}: {_line(value)}" for key, found in trailers.items() for value in _values(found)]
    text = message.strip("\n")
    if not lines:
        return text + "\n"
    gap = "\n" if read_trailers(text) else "\n\n"
    return f"{text}{gap if text else ''}" + "\n".join(lines) + "\n"


def read_trailers(message: str) -> list[tuple[str, str]]:
    """The trailers of a message in order: its last paragraph, when that is not its first and has nothing else."""
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", message.strip()) if part.strip()]
    if len(paragraphs) < 2:
        return []
    matches = [_TRAILER.fullmatch(line.rstrip()) for line in paragraphs[-1].split("\n")]
    found = [(match[1], match[2]) for match in matches if match]
    return found if len(found) == len(matches) else []


def _key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"not a trailer's key: {key!r}")
    return key


def _values(found: TrailerValue) -> list[str | int]:
    return [found] if isinstance(found, str | int) else list(found)


def _line(value: str | int) -> str:
    return " ".join(str(value).split())
