"""Regular expressions that a harness brings: every use has a time-out, and what they make has a largest size."""

import functools

import regex

SECONDS = 0.2
# Of a text after a replacement: no reply that a viewer reads is longer.
MOST_CHARACTERS = 100_000
MOST_PATTERN_CHARACTERS = 4000


class PatternError(Exception):
    """A pattern that is broken or takes too long; the text says which."""


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """The compiled pattern. Raises PatternError."""
    if len(pattern) > MOST_PATTERN_CHARACTERS:
        raise PatternError(f"a pattern of more than {MOST_PATTERN_CHARACTERS} characters")
    try:
        return _compile(pattern)
    except regex.error as failure:
        raise PatternError(f"the pattern {_short(pattern)} is broken: {failure}") from failure
    except (RecursionError, OverflowError, MemoryError):
        raise PatternError(f"the pattern {_short(pattern)} is too large or nested too deeply") from None
    except Exception as failure:
        raise PatternError(f"the pattern {_short(pattern)} cannot be used: {failure}"[:300]) from failure


# regex keeps what it has compiled too, and takes long to find it.
@functools.lru_cache(maxsize=512)
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def search(pattern: str, text: str) -> str | None:
    """The first match, given up after SECONDS. Raises PatternError."""
    try:
        match = compile_pattern(pattern).search(text, timeout=SECONDS)
    except TimeoutError as failure:
        raise PatternError(f"the pattern {_short(pattern)} takes too long") from failure
    return match.group() if match else None


def substitute(pattern: str, replacement: str, text: str) -> str:
    """The text with all matches replaced, given up after SECONDS or MOST_CHARACTERS. Raises PatternError."""
    parts: list[str] = []
    size, at = len(text), 0
    try:
        for match in compile_pattern(pattern).finditer(text, timeout=SECONDS):
            # At most: each backslash may stand for all that was matched.
            size += len(replacement) + replacement.count("\\") * len(match.group())
            if size > MOST_CHARACTERS:
                raise PatternError(f"the pattern {_short(pattern)} makes the text too long")
            parts += [text[at : match.start()], match.expand(replacement)]
            at = match.end()
    except TimeoutError as failure:
        raise PatternError(f"the pattern {_short(pattern)} takes too long") from failure
    except (regex.error, IndexError) as failure:
        raise PatternError(f"the replacement {_short(replacement)} cannot be applied: {failure}") from failure
    return "".join([*parts, text[at:]])


def _short(pattern: str) -> str:
    return repr(pattern[:100])
