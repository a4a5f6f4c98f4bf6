"""A prompt section as text: what its template says outright, and under which of its tags it says the rest.

Split by the template language's own lexer, so that nothing reads otherwise here than where it is rendered. Nothing is
computed. What has no syntax of a template is text from end to end.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import jinja2

from harness_repo.format.templates import template_environment

# What stands in these a template repeats, says only sometimes, elsewhere or not at all, or changes first.
BLOCKS = frozenset({"for", "if", "macro", "set", "block", "filter", "call", "with"})
_BRANCHES = frozenset({"else", "elif"})
# Of tags in each other, told one after the other; beyond that a digest tells them apart.
LONGEST_CONDITION = 240

# 1-based line, "text", "expression" or "tag", the source, and of a tag its words without white space
_Piece = tuple[int, str, str, list[str]]


@dataclass
class TemplateText:
    """Every line keeps its number, from 0."""

    # without tags, comments and what stands in loops; expressions stay, each on one line
    shown: str
    # line -> the tags around what it says, the outermost first
    around: dict[int, str]


@dataclass
class _Open:
    """A block that has begun."""

    name: str
    # with that of the blocks around it
    opening: str
    condition: str
    is_repeated: bool


@dataclass
class _Reading:
    parts: list[str] = field(default_factory=list)
    around: dict[int, str] = field(default_factory=dict)
    open: list[_Open] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    line: int = 0

    def say(self, number: int, text: str) -> None:
        """Take what the template says on its line of that number, 1-based, and the next ones."""
        self.parts.append("\n" * (number - 1 - self.line))
        block = self.open[-1] if self.open else _Open("", "", "", is_repeated=False)
        for at, content in enumerate(text.split("\n"), number - 1):
            if block.condition and content.strip():
                self.around.setdefault(at, block.condition)
        self.parts.append("\n" * text.count("\n") if block.is_repeated else text)
        self.line = max(self.line, number - 1) + text.count("\n")

    def follow(self, source: str, words: list[str]) -> None:
        """Note that a block begins, goes on or ends; an end without a beginning is none."""
        name = words[0] if words else ""
        if name in BLOCKS and not (name == "set" and _is_value(words)):
            self._begin(name, source)
        elif name in _BRANCHES and self.open:
            self.open[-1].condition = _shorten(f"{self.open[-1].opening} {source}")
        elif self.names[name.removeprefix("end")] and name.startswith("end"):
            while self.open:
                block = self.open.pop()
                self.names[block.name] -= 1
                if name == f"end{block.name}":
                    return

    def _begin(self, name: str, source: str) -> None:
        outside = self.open[-1] if self.open else None
        opening = _shorten(f"{outside.condition} {source}" if outside else source)
        is_repeated = name == "for" or (outside is not None and outside.is_repeated)
        self.open.append(_Open(name, opening, opening, is_repeated))
        self.names[name] += 1


def read_template_text(source: str) -> TemplateText:
    """Tell what is said from what is not; a text that is no template is said as it is."""
    reading = _Reading()
    try:
        for number, kind, text, words in _pieces(source):
            if kind == "tag":
                reading.follow(text, words)
            else:
                reading.say(number, text if kind == "text" else _one_line(text))
    except (jinja2.TemplateSyntaxError, RecursionError):
        return TemplateText(source, {})
    return TemplateText("".join(reading.parts), reading.around)


def _pieces(source: str) -> Iterator[_Piece]:
    """The template's text, expressions and tags in order; raises TemplateSyntaxError."""
    inside: list[str] = []
    words: list[str] = []
    first, is_open = 0, False
    for number, piece, value in template_environment().lexer.tokeniter(source, None):
        if piece == "data":
            yield number, "text", value, []
        elif piece in {"variable_begin", "block_begin"}:
            inside, words, first, is_open = [value], [], number, True
        elif piece in {"variable_end", "block_end"}:
            inside.append(value)
            is_open = False
            kind = "tag" if piece == "block_end" else "expression"
            yield first, kind, " ".join("".join(inside).split()), words
        elif not piece.startswith(("comment", "raw")):
            inside.append(value)
            words += [] if piece == "whitespace" else [value]
    if is_open:
        raise jinja2.TemplateSyntaxError("a tag without an end", first)


def _shorten(condition: str) -> str:
    if len(condition) <= LONGEST_CONDITION:
        return condition
    digest = hashlib.sha256(condition.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{condition[: LONGEST_CONDITION - 13]}…{digest}"


def _is_value(words: list[str]) -> bool:
    """Whether a set gives a value at once, and has no end: there is a sign of equality outside of all brackets."""
    depth = 0
    for word in words:
        depth += (word in {"(", "[", "{"}) - (word in {")", "]", "}"})
        if word == "=" and not depth:
            return True
    return False


def _one_line(expression: str) -> str:
    """The expression with no sign inside it that would end it."""
    inner = expression[2:-2].replace("{{", "{ {").replace("}}", "} }")
    return f"{{{{{inner}}}}}"
