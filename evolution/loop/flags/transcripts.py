"""Flags added text that stands in the transcripts which the drafter was shown: copied passages, facts of one case.

A harness that has learnt its failures by heart mends them and nothing else; and what a transcript says may have been
put there to be copied. What the base says already is in every transcript, and is none of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind

# Characters in a row that have to be the same for a passage to begin.
WINDOW = 8
# Differences of so many characters do not end a passage.
GAP = 4
# How long a passage is, when an East Asian character counts as two: 20 of these, or some seven English words.
LONG = 40
# More of the transcripts, and of the base, is not looked at.
MOST_CHARACTERS = 3_000_000
_LONGEST_SHOWN = 120

_SIGNS = re.compile(r"[\W_]+")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
# Prices, ids, long numbers and days. Chinese has no blank before any of them.
_FACTS = re.compile(
    r"[¥￥$€£]\s?\d(?:[\d,.]*\d)?"
    r"|(?<![\d.])\d[\d,]*(?:\.\d+)?\s?(?:元|块钱?|美元|(?:dollars?|usd|cny|rmb|yuan|eur)(?![a-z]))"
    r"|(?<![A-Za-z0-9_-])#?(?=[A-Za-z_-]{0,39}\d)(?=[\d_-]{0,39}[A-Za-z])[A-Za-z0-9][A-Za-z0-9_-]{4,40}(?![A-Za-z0-9_-])"
    r"|(?<![\w.-])\d{4}-\d{2}-\d{2}(?![\w-])|(?<![A-Za-z0-9.-])\d{5,20}(?![A-Za-z0-9.-])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Shown:
    """What the drafter was shown, and what the base says, in a form without white space and signs."""

    texts: tuple[str, ...]
    windows: frozenset[str]
    base: str
    base_facts: frozenset[str]
    # of each transcript
    facts: tuple[frozenset[str], ...]


def read_shown(transcripts: Sequence[str], base: Mapping[str, bytes]) -> Shown:
    """Prepare the transcripts for looking up."""
    texts = tuple(_flatten(text[:MOST_CHARACTERS]) for text in transcripts)
    windows = {text[at : at + WINDOW] for text in texts for at in range(len(text) - WINDOW + 1)}
    said = "\n".join(data.decode("utf-8", "replace") for data in base.values() if b"\0" not in data)
    said = said[:MOST_CHARACTERS]
    facts = tuple(frozenset(_facts(text[:MOST_CHARACTERS])) for text in transcripts)
    return Shown(texts, frozenset(windows), _flatten(said), frozenset(_facts(said)), facts)


def flag_copies(change: FileChange, shown: Shown) -> Iterator[Flag]:
    """The flags of the lines that a change adds."""
    if not shown.texts:
        return
    for line in change.added:
        passage = _longest_copy(line.text, shown)
        if passage:
            yield Flag(change.new_path, "new", line.number, FlagKind.FROM_TRANSCRIPT, passage)
        facts = [fact for fact in dict.fromkeys(_FACTS.findall(line.text)) if _is_of_one_case(fact, shown)]
        if facts:
            yield Flag(change.new_path, "new", line.number, FlagKind.CASE_FACT, ", ".join(facts))


def _longest_copy(text: str, shown: Shown) -> str:
    """The longest passage of a line that stands in a transcript and not in the base, as the line has it; or ""."""
    flat, places = _flatten_with_places(text)
    best = (0, 0, 0)
    for start, end in _runs(flat, shown.windows):
        weight = _weigh(flat[start:end])
        if weight >= LONG and weight > best[0] and flat[start:end] not in shown.base:
            best = (weight, start, end)
    if not best[0]:
        return ""
    return text[places[best[1]] : places[best[2] - 1] + 1][:_LONGEST_SHOWN]


def _runs(flat: str, windows: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where text begins and ends that is covered by known windows, small differences aside."""
    start = end = -1
    for at in range(len(flat) - WINDOW + 1):
        if flat[at : at + WINDOW] not in windows:
            continue
        if start < 0 or at > end + GAP:
            if start >= 0:
                yield start, end
            start = at
        end = at + WINDOW
    if start >= 0:
        yield start, end


def _is_of_one_case(fact: str, shown: Shown) -> bool:
    """Whether a fact comes from the transcripts, from one of them or few, and is not the base's."""
    fact = _plain(fact)
    if fact in shown.base_facts:
        return False
    count = sum(fact in facts for facts in shown.facts)
    return 0 < count <= max(1, len(shown.facts) // 3)


def _facts(text: str) -> Iterator[str]:
    yield from map(_plain, _FACTS.findall(text))


def _plain(fact: str) -> str:
    return fact.replace(" ", "").replace("￥", "¥").lower()


def _flatten(text: str) -> str:
    return _SIGNS.sub("", text).casefold()


def _flatten_with_places(text: str) -> tuple[str, list[int]]:
    """The flat text, and where each of its characters stands in the text."""
    flat: list[str] = []
    places: list[int] = []
    for at, character in enumerate(text):
        for one in _flatten(character):
            flat.append(one)
            places.append(at)
    return "".join(flat), places


def _weigh(text: str) -> int:
    return len(text) + len(_WIDE.findall(text))
