"""Flags added text that looks injected: phrases that give orders to models or reviewers, and encoded blobs."""

import base64
import binascii
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.phrases import PATTERNS
from evolution.loop.flags.scripts import plain_form

_BASE64 = re.compile(r"(?<![\w/+=-])[A-Za-z0-9+/_-]{40,}={0,2}(?![\w/+=-])")
_HEX = re.compile(
    r"(?:\\x[0-9a-fA-F]{2}){8,}|(?:&#x?[0-9a-fA-F]{2,6};){4,}|(?:\\u[0-9a-fA-F]{4}){6,}|(?:0x[0-9a-fA-F]{2},?\s?){8,}"
)
# Formatting within a word hides it from a search, and from no model.
_MARKUP = re.compile(r"[*`~]{1,3}(?=\w)|(?<=\w)[*`~]{1,3}|(?<!\w)_{1,3}|_{1,3}(?!\w)")
_BLANKS = re.compile(r"[ \t]{2,}")
_LONGEST = 160


def flag_injections(change: FileChange) -> Iterator[Flag]:
    """The flags of what a change adds; a phrase that the file had before is none, wherever it stands now."""
    text, starts = _join(change.new_lines)
    before = {(kind, phrase) for kind, _, phrase in _find(_join(change.old_lines)[0])}
    added = {line.number for line in change.added}
    for kind, at, phrase in _find(text):
        first = bisect_right(starts, at)
        last = bisect_right(starts, at + len(phrase) - 1)
        touched = added.intersection(range(first, last + 1))
        if touched and (kind, phrase) not in before:
            yield Flag(change.new_path, "new", min(touched), kind, " ".join(phrase.split())[:_LONGEST])
    for line in change.added:
        for detail in find_encoded(line.text):
            yield Flag(change.new_path, "new", line.number, FlagKind.ENCODED, detail)


def find_phrases(text: str) -> Iterator[tuple[FlagKind, str]]:
    """The phrases of a text that look injected."""
    for kind, _, phrase in _find(_join(text.split("\n"))[0]):
        yield kind, " ".join(phrase.split())


def find_encoded(text: str) -> Iterator[str]:
    """What of a line can't be read by people; and what it says, where that can be told."""
    for found in _BASE64.findall(text):
        if _is_blob(found):
            yield _shorten(found, _decode(found))
    for found in _HEX.findall(text):
        yield _shorten(found, "")


def _join(lines: list[str]) -> tuple[str, list[int]]:
    """The plain text of the lines, and where each of them starts in it."""
    plain = [_plain(line) for line in lines]
    starts = list(accumulate((len(line) + 1 for line in plain), initial=0))
    return "\n".join(plain), starts[: len(plain)]


def _plain(line: str) -> str:
    if line.isascii():
        return _BLANKS.sub(" ", _MARKUP.sub("", line.lower()))
    shown = "".join(one for one in line if unicodedata.category(one) not in {"Cf", "Cc", "Mn"} or one == "\t")
    return _BLANKS.sub(" ", _MARKUP.sub("", plain_form(shown)))


def _find(text: str) -> Iterator[tuple[FlagKind, int, str]]:
    for kind, pattern in PATTERNS.items():
        for found in pattern.finditer(text):
            yield kind, found.start(), found[0]


def _is_blob(text: str) -> bool:
    """Whether a run of letters is no path, name or checksum, but something encoded."""
    kinds = [any(map(test, text)) for test in (str.isupper, str.islower, str.isdigit)]
    words = re.split(r"[/_+-]", text)
    # Paths and names are made of words; what is encoded has long runs.
    return all(kinds) and max(map(len, words)) >= 24 and not re.fullmatch(r"[0-9a-fA-F]+", text)


def _decode(text: str) -> str:
    """What base64 stands for, where that is text."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(plain + "=" * (-len(plain) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return said if said.isprintable() else ""


def _shorten(found: str, said: str) -> str:
    shown = found if len(found) <= 40 else f"{found[:32]}…"
    return f"{shown} = “{said[:_LONGEST]}”" if said else shown
