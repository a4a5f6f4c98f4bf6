"""Flags characters that a reader does not see, or takes for others: hidden, bidirectional and confusable ones.

Ordinary Chinese, Japanese and full-width text, emojis, and whole words of Russian or Greek are none of them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

from evolution.loop.flags.changes import FileChange, Line
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.scripts import LATIN_LIKE, STYLED, latin_twin, plain_form, script_of

BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Letters that show nothing: fillers of Korean, the blank of Braille.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_ORDINARY_SPACES = frozenset(" \u3000")
_WORD = re.compile(r"[\w\u0300-\u036f]+")
# As of skills and tools, with the full-width forms of _ and -.
_NAME = re.compile(r"[\w\u0300-\u036f\uff3f\uff0d-]+")
# A word ends where these scripts begin; they stand beside Latin without a space.
_EAST_ASIAN = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+")
# Where a joiner or a style (U+200D, U+FE0F) belongs: between and after the signs of an emoji.
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff0-9#*]\ufe0f?\u20e3?[\U0001f3fb-\U0001f3ff]?"
    "(?:\u200d[\u2600-\u27bf\U0001f000-\U0001faff]\ufe0f?[\U0001f3fb-\U0001f3ff]?)*"
    "(?:[\U000e0020-\U000e007e]{2,6}\U000e007f)?"
)
# Scripts in which joiners are part of the spelling.
_JOINING = frozenset(
    {"ARABIC", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "KHMER"}
)
_JOINERS = frozenset("\u200c\u200d")
_FLAG_OF_REGION = "\U0001f3f4"
_MOST_SHOWN = 8


def flag_characters(change: FileChange, known_names: Iterable[str]) -> Iterator[Flag]:
    """The flags of the lines that a change adds, and of a new path.

    `known_names` are those of skills, tools and hosts of both versions: what looks like one of them and is written
    otherwise is flagged wherever it stands.
    """
    names = {name.lower() for name in known_names}
    old_words = set(_WORD.findall("\n".join(change.old_lines)))
    path = [Line(0, change.new_path)] if change.new_path != change.old_path else []
    for line in [*path, *change.added]:
        if line.text.isascii() and line.text.isprintable():
            continue
        for kind, detail in _look_at(line.text, names, old_words):
            yield Flag(change.new_path, "new", line.number, kind, detail)


def _look_at(text: str, names: set[str], old_words: set[str]) -> Iterator[tuple[FlagKind, str]]:
    hidden = list(find_hidden(text))
    for kind in (FlagKind.BIDIRECTIONAL, FlagKind.HIDDEN, FlagKind.UNUSUAL_SPACE):
        found = Counter(character for each, character in hidden if each is kind)
        if found:
            yield kind, _name_all(found) + (_smuggled(text) if kind is FlagKind.HIDDEN else "")
    for kind, word in find_confusable(text, names):
        if word not in old_words:
            yield kind, f"{word} → {plain_form(word)} ({_name_all(_strange_letters(word))})"


def find_hidden(text: str) -> Iterator[tuple[FlagKind, str]]:
    """The characters of a line that do not show, with what they are."""
    # A byte order mark at the very start is no news to a reader of files.
    rest = _EMOJI.sub(lambda found: "" if _is_plain_emoji(found[0]) else found[0], text)
    for at, character in enumerate(rest):
        if character.isascii() and (character.isprintable() or character == "\t"):
            continue
        kind = _kind_of(character)
        if kind and not _belongs(rest, at):
            yield kind, character


def _is_plain_emoji(text: str) -> bool:
    """Tags belong after a black flag only."""
    return text.startswith(_FLAG_OF_REGION) or not re.search("[\U000e0000-\U000e007f]", text)


def _kind_of(character: str) -> FlagKind | None:
    if BIDIRECTIONAL.match(character):
        return FlagKind.BIDIRECTIONAL
    category = unicodedata.category(character)
    if category == "Zs":
        return None if character in _ORDINARY_SPACES else FlagKind.UNUSUAL_SPACE
    is_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    is_private = category in {"Co", "Cn"} and not unicodedata.name(character, "")
    is_hidden = (
        category in {"Cc", "Cf", "Zl", "Zp"} or character in _BLANK_LETTERS or is_selector or is_private
    )
    return FlagKind.HIDDEN if is_hidden else None


def _belongs(text: str, at: int) -> bool:
    """Whether a joiner or a selector stands where the script or the character before it needs it."""
    before = text[at - 1] if at else ""
    if text[at] in _JOINERS:
        return bool(before) and script_of(before) in _JOINING
    # The shape of one ideograph; a row of them carries something else.
    is_shape = "\ufe00" <= text[at] <= "\ufe0f" or "\U000e0100" <= text[at] <= "\U000e01ef"
    return is_shape and bool(before) and script_of(before) == "HAN"


def _name_all(found: Counter[str]) -> str:
    named = [
        f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()
        + (f" ×{count}" if count > 1 else "")
        for character, count in found.most_common(_MOST_SHOWN)
    ]
    return ", ".join(named) + (", …" if len(found) > _MOST_SHOWN else "")


def _strange_letters(word: str) -> Counter[str]:
    """The letters of a word that are not what they look like."""
    return Counter(one for one in word if latin_twin(one) and not one.isascii())


def _smuggled(text: str) -> str:
    """The text that tag characters spell, which models read and people don't."""
    spelled = "".join(chr(ord(one) - 0xE0000) for one in text if 0xE0020 <= ord(one) <= 0xE007E)
    return f": “{spelled}”" if spelled else ""


def find_confusable(text: str, names: set[str]) -> Iterator[tuple[FlagKind, str]]:
    """The words of a line that look like other words."""
    words = [part for word in _WORD.findall(text) for part in _EAST_ASIAN.split(word) if part]
    strange = [word for word in words if not word.isascii()]
    is_foreign_text = _has_foreign_words(strange)
    for word in strange:
        scripts = {script_of(character) for character in word} & (LATIN_LIKE | {"LATIN"})
        if "LATIN" in scripts and len(scripts) > 1 and _has_twins(word):
            yield FlagKind.MIXED_SCRIPT, word
        elif (
            _is_styled(word)
            or _is_named_otherwise(word, names)
            or (not is_foreign_text and _is_whole_twin(word))
        ):
            yield FlagKind.LOOK_ALIKE, word
    for name in _NAME.findall(text):
        # One of mixed scripts is told already.
        if not name.isascii() and name not in words and _is_named_otherwise(name, names):
            yield FlagKind.LOOK_ALIKE, name


def _is_styled(word: str) -> bool:
    return len(STYLED.findall(word)) > 1


def _is_named_otherwise(word: str, names: set[str]) -> bool:
    """Whether a word reads as a known name, and is written with other letters."""
    form = plain_form(word)
    return form in names and form != word.lower()


def _has_foreign_words(words: Iterable[str]) -> bool:
    """Whether the line has words that are plainly of another script, so that short ones among them are no disguise."""
    foreign = [word for word in words if {script_of(one) for one in word} & LATIN_LIKE]
    return any(len(word) > 1 and not all(latin_twin(one) for one in word) for word in foreign)


def _has_twins(word: str) -> bool:
    return any(latin_twin(one) for one in word if script_of(one) in LATIN_LIKE)


def _is_whole_twin(word: str) -> bool:
    """A word of another script all of whose letters look Latin; one Greek letter is mathematics."""
    scripts = {script_of(one) for one in word} & LATIN_LIKE
    is_sign = len(word) == 1 and scripts == {"GREEK"}
    return bool(scripts) and not is_sign and all(latin_twin(one) for one in word)
