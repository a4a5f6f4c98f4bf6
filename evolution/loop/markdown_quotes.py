"""Puts what models and users wrote into Markdown that others' systems read: it can call nobody, close nothing and show
no markup. Pull requests end up in mails and in commit messages, where a code fence alone protects nobody.
"""

import re
import unicodedata

# What a forge takes for a person, an issue, a link, or a word to its CI.
_MENTION = re.compile(r"@(?=[\w/-])")
_REFERENCE = re.compile(r"(?:#|\bGH-|![ \t]*)(?=[0-9])", re.IGNORECASE)
_ADDRESS = re.compile(r"://")
_TO_CI = re.compile(r"\[(?=[ \t]*(?:skip|ci|no|actions)\b)", re.IGNORECASE)
_FULL_WIDTH = str.maketrans({"@": "＠", "#": "＃", "!": "！", "-": "－", "[": "［"})
_FENCE = re.compile(r"`+")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def tame(text: str) -> str:
    """The text with what calls people, closes issues, links or stops a CI written so that it does not.

    Such signs become full width, `://` becomes `[:]//`, and characters that nobody sees are spelled out.
    """
    for pattern in (_MENTION, _REFERENCE, _TO_CI):
        text = pattern.sub(lambda found: found.group().translate(_FULL_WIDTH), text)
    return "".join(map(_show, _ADDRESS.sub("[:]//", text.replace("\r\n", "\n"))))


def quote_inline(text: str, longest: int = 200) -> str:
    """A short text on one line, as code."""
    line = " ".join(tame(text).split())
    if len(line) > longest:
        line = f"{line[: longest - 1]}…"
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else "–"


def quote_block(text: str, longest: int = 2_000, indent: str = "") -> str:
    """A text in a fence of its own, which nothing in it ends; a long one is cut, and says so."""
    shown = tame(text)
    if len(shown) > longest:
        shown = f"{shown[:longest]}\n[… {len(shown) - longest} characters cut …]"
    fence = "`" * max(3, _longest_run(shown) + 1)
    lines = [f"{fence}text", *shown.split("\n"), fence]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def title_line(text: str, longest: int = 120) -> str:
    """A text as the title of something: one line without markup that means anything there."""
    line = " ".join(tame(text).split())
    return f"{line[: longest - 1]}…" if len(line) > longest else line


def _longest_run(text: str) -> int:
    return max((len(run) for run in _FENCE.findall(text)), default=0)


def _show(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _UNSEEN:
        return character
    return f"‹U+{ord(character):04X}›"
