"""Colours for the files of a harness, line by line: which characters are a key, a string, a heading.

Only spans and the names of CSS classes come from here; the text itself is escaped by whoever shows it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import PurePosixPath

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.shell import BashLexer
from pygments.lexers.templates import DjangoLexer
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    String,
    Text,
    _TokenType,
)

# Start, end and CSS class of a piece of a line.
Colour = tuple[int, int, str]
# What is larger is shown without colours, and what has more tokens, without those after these: with them a text
# that was made to be slow takes Pygments half a second. Ordinary ones have a token for every four characters.
MOST_CHARACTERS = 150_000
MOST_TOKENS = 40_000
# Some of Pygments' patterns take the square of a line's length.
LONGEST_LINE = 4_000

# The nearest of these that holds a token gives its class; the others have the colour of the text.
_CLASSES = {
    Comment: "hl-comment",
    Comment.Preproc: "hl-tag",
    Keyword: "hl-keyword",
    Keyword.Constant: "hl-number",
    Number: "hl-number",
    String: "hl-string",
    String.Backtick: "hl-code",
    Name.Tag: "hl-key",
    Name.Attribute: "hl-key",
    Name.Function: "hl-name",
    Name.Class: "hl-name",
    Name.Decorator: "hl-name",
    Name.Label: "hl-name",
    Generic.Heading: "hl-heading",
    Generic.Strong: "hl-strong",
    Generic.Emph: "hl-emph",
    Operator.Word: "hl-keyword",
}


class ProseLexer(RegexLexer):
    """Markdown with the tags of Jinja in it, a line at a time; fences and front matter are cut out before."""

    name = "Harness prose"
    tokens = {
        "root": [
            (r"^#{1,6}[ \t][^\n]*", Generic.Heading),
            (r"^[ \t]{0,12}(?:[-*+]|[0-9]{1,9}[.)])[ \t]", Keyword),
            (r"^[ \t]{0,3}>[ \t]?", Keyword),
            (r"\{\{[^{}\n]{0,500}\}\}|\{%[^%\n]{0,500}%\}", Comment.Preproc),
            (r"\{#[^#\n]{0,500}#\}|<!--[^\n]{0,2000}?-->", Comment),
            (r"`[^`\n]{1,500}`", String.Backtick),
            (r"\*\*[^*\n]{1,500}\*\*", Generic.Strong),
            (r"(?<![\w*])\*[^\s*][^*\n]{0,500}\*(?!\w)", Generic.Emph),
            (r"https?://[^\s)>\]\"'`]{1,500}", Name.Attribute),
            (r"[^\n#\-*+0-9>{<`h]+", Text),
            (r".|\n", Text),
        ],
    }


_LEXERS: dict[str, type[Lexer]] = {
    "md": ProseLexer, "markdown": ProseLexer, "yaml": YamlLexer, "yml": YamlLexer, "json": JsonLexer,
    "py": PythonLexer, "python": PythonLexer, "sh": BashLexer, "bash": BashLexer, "j2": DjangoLexer,
    "jinja": DjangoLexer, "jinja2": DjangoLexer,
}  # fmt: skip
_PROSE = {"md", "markdown"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)")


def name_language(path: str) -> str:
    """The language of a file by its name, as one of the names that fences use; empty for one that has no colours."""
    ending = PurePosixPath(path).suffix.removeprefix(".").lower()
    return ending if ending in _LEXERS else ""


def is_prose(path: str) -> bool:
    """Whether a file is read as prose: Markdown."""
    return name_language(path) in _PROSE


def has_colours(path: str, text: str) -> bool:
    """Whether the file has colours: a language that is known, and not too large."""
    return bool(name_language(path)) and len(text) <= MOST_CHARACTERS and _longest_line(text) <= LONGEST_LINE


def _longest_line(text: str) -> int:
    return max(map(len, text.split("\n")))


def colour_lines(path: str, text: str) -> list[list[Colour]]:
    """The coloured pieces of each line (as parted by LF), in order; none for a text that has no colours."""
    if not has_colours(path, text):
        return []
    return _colour(name_language(path), text)


# Unfolding a file piece by piece asks for the same text again and again.
@lru_cache(maxsize=32)
def _colour(language: str, text: str) -> list[list[Colour]]:
    lines = text.split("\n")
    found: list[list[Colour]] = []
    for name, first, last in _cut_prose(lines) if language in _PROSE else [(language, 0, len(lines))]:
        found += _colour_part(name, lines[first:last])
    return found


def _cut_prose(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """The parts of a Markdown file: the language of each, and its first line and the one after its last."""
    names = _find_edges(lines)
    edges = [0, *sorted(names), len(lines)]
    for first, last in pairwise(edges):
        yield names.get(first, "md"), first, last


def _find_edges(lines: list[str]) -> dict[int, str]:
    """Line at which another language begins -> its name."""
    edges: dict[int, str] = {}
    start = _end_of_front_matter(lines)
    if start:
        edges |= {1: "yaml", start: "md"}
    fence = ""
    for at in range(start, len(lines)):
        opening = _FENCE.match(lines[at])
        if opening is None:
            continue
        if not fence:
            fence, language = opening[1], opening[2].lower()
            edges[at + 1] = language if language in _LEXERS else "text"
        elif lines[at].strip().startswith(fence) and not lines[at].strip().strip(fence[0]):
            fence = ""
            edges[at] = "md"
    return edges


def _end_of_front_matter(lines: list[str]) -> int:
    """The line that closes the front matter; 0 when there is none."""
    if lines[0].rstrip() != "---":
        return 0
    return next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)


def _colour_part(language: str, lines: list[str]) -> list[list[Colour]]:
    coloured: list[list[Colour]] = [[] for _ in lines]
    if language not in _LEXERS or not lines:
        return coloured
    at, column = 0, 0
    tokens = _LEXERS[language]().get_tokens_unprocessed("\n".join(lines))
    for _, kind, value in islice(tokens, MOST_TOKENS):
        css = _name_class(kind)
        for number, piece in enumerate(value.split("\n")):
            if number:
                at, column = at + 1, 0
            if css and piece:
                coloured[at].append((column, column + len(piece), css))
            column += len(piece)
    return coloured


@lru_cache(maxsize=512)
def _name_class(kind: _TokenType) -> str:
    return next((_CLASSES[each] for each in reversed(kind.split()) if each in _CLASSES), "")
