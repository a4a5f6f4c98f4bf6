"""Promises in a reply, Chinese and English, that nothing the agent was told bears out.

Two kinds of phrases are known. Those that say what they promise (假一赔十, lifetime warranty) are borne out where the
evidence has the phrase itself; those that promise whatever goes with them (保证, guaranteed) where it has the words up
to the end of the clause too. Denied (不能保证, 终身质保我们没有), asked, or asked of the viewer (请您确保), they are
none.

This is a list of phrases (`promise_phrases`) and no understanding: a promise in other words passes, and an odd sentence
may be taken for one.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import regex

from harness_repo.format.patterns import SECONDS, PatternError
from harness_repo.runtime.promise_phrases import (
    ASKED,
    ASKED_BEFORE,
    ASKING,
    DENIED_AFTER,
    DENIED_BEFORE,
    EMPHATIC,
    FORBIDS,
    NO_DENIAL,
    SPOKEN_OUT,
    TRADITIONAL,
)

_KNOWN = regex.compile(f"(?P<full>{'|'.join(SPOKEN_OUT)})|(?P<open>{'|'.join(EMPHATIC)})")
# Looked for from the end, where it has to stand.
_DENIED_BEFORE = regex.compile(f"(?r)(?:{'|'.join(DENIED_BEFORE)})\\Z")
# A mark between digits ends nothing.
_CLAUSE = regex.compile(r"(?:[^，。！？；、,.!?;:\n]|(?<=\d)[,.:](?=\d))++")
_UNSEEN = regex.compile(r"[\p{Cf}\p{Mn}]+")
_HAN = r"\p{Han}"
# Blanks, and marks that only keep the characters of a word apart.
_APART = regex.compile(rf"(?<={_HAN})[-_·•‧*~^|/\\+=#\s](?={_HAN})")
_BLANK_BESIDE_CHINESE = regex.compile(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])")
_PARTICLES = "哦哈呢啦呀的了吧啊哟噢嘛哒亲~ \t"

# How far before a promise its denial is looked for, and how far after it.
_BEFORE, _AFTER = 48, 80
_LEAST_OPEN = 2
MOST_LISTED = 20


@dataclass(frozen=True)
class _Clause:
    text: str
    # The mark after it, and the clause after that.
    mark: str = ""
    following: str = ""


def find_promises(
    text: str, evidence: Iterable[str], phrases: Sequence[str] = (), allow: Sequence[str] = ()
) -> list[str]:
    """The promises of the text, as `compared` writes them, that no text of the evidence has word for word.

    What the evidence denies, or asks, it does not have. `phrases` are promises too, and what stands in `allow` is none.
    Each is listed once, in order, MOST_LISTED at most. Raises PatternError for a text that takes too long.
    """
    said = compared(text)
    for allowed in filter(None, map(compared, allow)):
        # A mark that ends a clause, and is part of no phrase.
        said = said.replace(allowed, "\n")
    known = [compared(source) for source in evidence]
    more = [phrase for phrase in map(compared, phrases) if phrase]
    try:
        made = dict.fromkeys(_promises(said, more))
        unstated = (promise for promise in made if not any(_states(source, promise) for source in known))
        return list(islice(unstated, MOST_LISTED))
    except TimeoutError as failure:
        raise PatternError("looking for promises takes too long") from failure


def statements(prompt: str) -> list[str]:
    """The lines of a prompt that state something, and do not forbid to promise it."""
    return [line for line in prompt.splitlines() if not FORBIDS.search(compared(line))]


def compared(text: str) -> str:
    """The text as it is compared.

    NFKC, lower case, simplified where the phrases are concerned, single blanks, none beside Chinese, no characters
    that are not seen and no marks between two Chinese characters that only keep them apart.
    """
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")
    lines = plain.translate(TRADITIONAL).splitlines()
    return "\n".join(_APART.sub("", _BLANK_BESIDE_CHINESE.sub("", " ".join(line.split()))) for line in lines)


def _promises(said: str, phrases: Sequence[str]) -> Iterator[str]:
    for clause in _clauses(said):
        yield from (promise for _, promise in sorted(_in_clause(clause, phrases)))


def _clauses(said: str) -> Iterator[_Clause]:
    spans = [found.span() for found in _CLAUSE.finditer(said)]
    for number, (start, end) in enumerate(spans):
        following = said[slice(*spans[number + 1])] if number + 1 < len(spans) else ""
        yield _Clause(said[start:end], said[end : end + 1], following)


def _in_clause(clause: _Clause, phrases: Sequence[str]) -> Iterator[tuple[int, str]]:
    """What is promised in the clause, and where."""
    at = 0
    while (found := _KNOWN.search(clause.text, at, timeout=SECONDS)) is not None:
        start, at = found.span()
        if _is_none(clause, start, at):
            continue
        yield start, found["full"] or _open_promise(clause, start, at)
        if not found["full"]:
            # What follows is part of it.
            break
    for phrase in phrases:
        for found in regex.finditer(regex.escape(phrase), clause.text):
            if not _is_none(clause, *found.span()):
                yield found.start(), phrase


def _open_promise(clause: _Clause, start: int, end: int) -> str:
    """The words from the phrase to the end of the clause; where none follow, the whole clause, or the next one too."""
    promise = clause.text[start:].rstrip(_PARTICLES)
    if len(promise) - (end - start) >= _LEAST_OPEN:
        return promise
    whole = clause.text.strip(_PARTICLES)
    return whole if len(whole) - (end - start) >= _LEAST_OPEN else f"{whole}{clause.mark}{clause.following}"


def _is_none(clause: _Clause, start: int, end: int) -> bool:
    """Whether the phrase at that place of the clause is denied, a question, or a request."""
    before = NO_DENIAL.sub("□", clause.text[max(0, start - _BEFORE) : start])
    if _DENIED_BEFORE.search(before, timeout=SECONDS):
        return True
    if ASKED.match(clause.text, start) and ASKED_BEFORE.search(before):
        return True
    if clause.mark == "?" and ASKING.search(clause.text.strip()):
        return True
    is_near = len(clause.text) - end <= _AFTER
    return is_near and DENIED_AFTER.match(clause.text, end, timeout=SECONDS) is not None


def _states(source: str, promise: str) -> bool:
    """Whether the evidence has the promise, and does not deny it there."""
    at = source.find(promise)
    while at >= 0:
        start, end = _line_or_clause(source, at, at + len(promise))
        clause = _Clause(source[start:end], source[end : end + 1])
        if not _is_none(clause, at - start, at - start + _core_length(promise)):
            return True
        at = source.find(promise, at + len(promise))
    return False


def _line_or_clause(source: str, start: int, end: int) -> tuple[int, int]:
    """The bounds of the clause around a place, as far as they matter."""
    before = source[max(0, start - _BEFORE) : start]
    cut = max(before.rfind(mark) for mark in ",.!?;:\n，。！？；、")
    after = _CLAUSE.match(source, end, end + _AFTER)
    return start - len(before) + cut + 1, after.end() if after else end


def _core_length(promise: str) -> int:
    found = _KNOWN.match(promise)
    return len(found.group()) if found else len(promise)
