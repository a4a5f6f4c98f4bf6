"""Makes a sentence of a harness shorter and leaves it whole: no open bracket, no condition without its consequence."""

import re
from collections.abc import Callable

from evolution.adapters.rehearsal.text import BRACKETS

EXAMPLES = re.compile(
    r"[，,]?\s*(?:例如|比如|for example)\s*(?:「[^」]*」|\"[^\"]*\"(?:, )?)+", re.IGNORECASE
)
_SCRIPT = re.compile(
    r"^((?:话术|script)\s*(?:[（(][^）)]*[）)])?\s*[:：]\s*[「“\"])(.+)([」”\"])$", re.IGNORECASE
)
_QUOTES = re.compile(r"「[^」]*」(?:、?「[^」]*」)+|\"[^\"]*\"(?:, \"[^\"]*\")+")
_QUOTE = re.compile(r"「[^」]*」|\"[^\"]*\"")
_LABEL = re.compile(r"(?<=[a-z_])\s?[（(][^（）()]*[）)]")
# A clause that says what to do stands without those after it; one that says when does not.
_TELLS = re.compile(
    r"不要|不得|别|禁止|必须|先|调用|说明|回答|never|do not|don't|call|state|tell|answer|check", re.IGNORECASE
)
_WHEN = re.compile(
    r"^(?:如果|若|要是|当|没有|观众|同时|只有)|[时后前]$|^(?:when|if|before|after|once)\b", re.IGNORECASE
)
_BRIEFER = (
    ("不要对观众承诺", "别承诺"),
    ("不要对观众说", "别说"),
    ("Do not tell viewers", "Never say"),
    ("Do not promise things such as", "Never promise"),
)
_SENTENCE_ENDS = "。！？!?；;"
_CLAUSE_ENDS = "，,"


def shorten_sentence(text: str) -> str:
    """The text in fewer words; as it is when nothing can go without breaking it."""
    ways: tuple[Callable[[str], str], ...] = (
        lambda told: EXAMPLES.sub("", told),
        _shorten_script,
        lambda told: _QUOTES.sub(_half_of, told),
        lambda told: _LABEL.sub("", told),
        _drop_last_clauses,
        _say_briefly,
    )
    return next((short for way in ways if 0 < len(short := way(text)) < len(text)), text)


def _shorten_script(text: str) -> str:
    match = _SCRIPT.match(text)
    return match[1] + _drop_last_clauses(match[2]) + match[3] if match else text


def _half_of(match: re.Match[str]) -> str:
    """The first half of a list of quoted phrases, its separators kept."""
    phrases = _QUOTE.findall(match.group())
    between = match.group()[len(phrases[0]) : match.group().index(phrases[1], len(phrases[0]))]
    return between.join(phrases[: max(1, len(phrases) // 2)])


def _drop_last_clauses(text: str) -> str:
    """The first half of the sentences; of a single sentence, of its clauses, if they stand alone."""
    parts = _split(text, _SENTENCE_ENDS)
    if len(parts) > 1:
        return _closed(parts[: (len(parts) + 1) // 2], text)
    parts = _split(text, _CLAUSE_ENDS)
    kept = parts[: max(2, (len(parts) + 1) // 2)] if len(parts) > 2 else parts[:1]
    bare = kept[-1].strip(" ，,。.")
    if len(parts) == 1 or _WHEN.search(bare) or (len(kept) == 1 and not _TELLS.search(bare)):
        return text
    return _closed(kept, text)


def _split(text: str, ends: str) -> list[str]:
    """The parts of a text that end with one of the characters, outside of brackets and quotation marks."""
    parts, waiting = [""], ""
    for i, character in enumerate(text):
        parts[-1] += character
        if waiting and character == waiting[-1]:
            waiting = waiting[:-1]
        elif character == '"' or character in BRACKETS:
            waiting += BRACKETS.get(character, '"')
        elif not waiting and (
            character in ends or (character == "." and text[i + 1 : i + 2] == " " and "。" in ends)
        ):
            parts.append("")
    return [part for part in parts if part.strip()]


def _closed(parts: list[str], whole: str) -> str:
    kept = "".join(parts).rstrip(" ，,；;。.")
    if kept.endswith(tuple("！？!?")):
        return kept
    return kept + (whole.rstrip()[-1] if whole.rstrip()[-1] in "。." else "")


def _say_briefly(text: str) -> str:
    for long, brief in _BRIEFER:
        text = text.replace(long, brief)
    return text
