"""Which script a letter belongs to, and which plain Latin letter it can be taken for (Unicode's confusables)."""

import re
import unicodedata
from functools import lru_cache

from confusable_homoglyphs import categories, confusables

# Scripts with letters that look Latin. Others are never taken for it.
LATIN_LIKE = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "GEORGIAN"})
# Latin letters drawn in another style: 𝐛𝐨𝐥𝐝, 𝒮𝒸𝓇𝒾𝓅𝓉, 🅂🅀🅄🄰🅁🄴; and Ⓒⓘⓡⓒⓛⓔⓓ.
STYLED = re.compile("[\U0001d400-\U0001d7ff\U0001f130-\U0001f189\u24b6-\u24e9\u2100-\u214f]")
# The digits and pairs that are taken for letters in names and hosts.
_ASCII_TWINS = (("rn", "m"), ("vv", "w"), ("0", "o"), ("1", "l"), ("i", "l"), ("5", "s"))


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The script's name as Unicode has it (LATIN, CYRILLIC, HAN, …); COMMON for digits, signs and the like."""
    return str(categories.alias(character))


@lru_cache(maxsize=4096)
def latin_twin(character: str) -> str:
    """The ASCII letters or digit that the character looks like, "" when it looks like none."""
    if character.isascii():
        return character
    plain = unicodedata.normalize("NFKC", character)
    if plain.isascii() and plain.isalnum():
        return plain
    found = confusables.is_confusable(character, greedy=True, preferred_aliases=[]) or [{}]
    twins: list[str] = [twin["c"] for twin in found[0].get("homoglyphs", ())]
    plain_ones = [twin for twin in twins if twin.isascii() and twin.isalnum()]
    # The table has one form for l, 1 and I; a letter that is called I is taken for that.
    if "l" in plain_ones and unicodedata.name(character, "").endswith((" I", " IOTA")):
        return "i"
    return plain_ones[0] if plain_ones else ""


def plain_form(text: str) -> str:
    """The text in ordinary letters, for comparison: compatibility forms resolved, look-alikes of Latin replaced."""
    folded = unicodedata.normalize("NFKC", text)
    if folded.isascii():
        return folded.lower()
    return "".join(latin_twin(one) or one if _is_latin_like(one) else one for one in folded).lower()


def looks_as(name: str) -> str:
    """A form that names share which are easily taken for each other, such as examp1e.com and example.com."""
    form = plain_form(name)
    for twin, letter in _ASCII_TWINS:
        form = form.replace(twin, letter)
    return form


def _is_latin_like(character: str) -> bool:
    return not character.isascii() and script_of(character) in LATIN_LIKE
