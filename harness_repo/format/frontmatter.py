"""Finds the front matter of a Markdown file, and reads it as YAML; mends what a person would read all the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.yamlfile import Location, YamlFile, parse_yaml

_SIMPLE_LINE = re.compile(r"(\s*)([A-Za-z_-][A-Za-z0-9_-]*):(?:\s+(.*))?")
# What people close a front matter with instead of ---.
_WRONG_FENCE = re.compile(r"\s*-{2,}\s*|[—–]+|\.{3}")


@dataclass(frozen=True)
class FrontMatter:
    """What stands between the two `---` lines, as YAML, and the text after it."""

    read: YamlFile
    # 1-based, of the first line between the fences, and of the first one after them.
    line: int
    body: str
    body_line: int


@dataclass(frozen=True)
class _Split:
    """The two halves of a file and the lines on which they start."""

    text: str
    line: int
    body: str
    body_line: int


def read_front_matter(path: str, text: str) -> tuple[FrontMatter | None, list[Problem]]:
    """The front matter and the body, or None when there is no mapping; what was mended is still a problem."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[start].strip() != "---":
        hint = "start the file with ---, name, description, ---"
        return None, [error(path, start + 1, "front_matter_missing", "the file has no front matter", hint)]
    problems: list[Problem] = []
    if start or lines[start] != "---":
        problems.append(warning(path, 1, "front_matter_position", "--- must be the very start of the file"))
    split, more = _split(path, lines, start)
    read, yaml_problems = _read(path, split)
    if any(problem.code == "yaml_syntax" for problem in yaml_problems):
        shorter = _split_at_key_end(lines, start)
        if _closes_too_late(path, shorter, split):
            split, more = shorter, [_unclosed(path, start)]
            read, yaml_problems = _read(path, split)
    problems += more + yaml_problems
    if read is None or not isinstance(read.value, dict):
        if not any(problem.is_error for problem in yaml_problems):
            problems.append(error(path, split.line - 1, "front_matter", "the front matter has no keys"))
        return None, problems
    return FrontMatter(read, split.line, split.body, split.body_line), problems


def _split(path: str, lines: list[str], start: int) -> tuple[_Split, list[Problem]]:
    """Divide the file at its first two `---` lines, so the body may have rules of its own."""
    rest = range(start + 1, len(lines))
    closing = next((number for number in rest if lines[number].rstrip() == "---"), len(lines))
    wrong = _wrong_fence(lines, start)
    if wrong is not None and wrong < closing:
        message = f"the front matter is closed by {lines[wrong].rstrip()[:20]!r}"
        problem = error(path, wrong + 1, "front_matter_fence", message, "close it with a line that is ---")
        return _cut(lines, start, wrong, wrong + 1), [problem]
    if closing < len(lines):
        return _cut(lines, start, closing, closing + 1), []
    return _split_at_key_end(lines, start), [_unclosed(path, start)]


def _unclosed(path: str, start: int) -> Problem:
    return error(path, start + 1, "front_matter_unclosed", "the front matter is never closed by ---")


def _cut(lines: list[str], start: int, end: int, body: int) -> _Split:
    return _Split("\n".join(lines[start + 1 : end]), start + 2, "\n".join(lines[body:]), body + 1)


def _wrong_fence(lines: list[str], start: int) -> int | None:
    """The line that was meant to close the front matter: the first one after its keys."""
    end = _key_end(lines, start)
    while end < len(lines) and not lines[end].strip():
        end += 1
    is_wrong = end < len(lines) and lines[end].rstrip() != "---" and _WRONG_FENCE.fullmatch(lines[end])
    return end if is_wrong else None


def _key_end(lines: list[str], start: int) -> int:
    """The first line after those that look like keys and what belongs to them."""
    end = start + 1
    while end < len(lines) and _belongs_to_keys(lines[end]):
        end += 1
    return end


def _belongs_to_keys(line: str) -> bool:
    is_inside = line.startswith((" ", "\t", "- ")) and line.strip(" \t-") != ""
    return is_inside or _SIMPLE_LINE.fullmatch(line) is not None


def _split_at_key_end(lines: list[str], start: int) -> _Split:
    end = _key_end(lines, start)
    return _cut(lines, start, end, end)


def _closes_too_late(path: str, shorter: _Split, split: _Split) -> bool:
    """Whether the `---` that was found is a rule in the body: what looks like keys is sound, what follows is not."""
    between = split.text.split("\n")[len(shorter.text.split("\n")) :]
    has_text = any(line.strip() and not _belongs_to_keys(line) for line in between)
    is_before_a_gap = shorter.body.startswith(("\n", "#")) and shorter.body_line < split.body_line
    read, problems = parse_yaml(path, shorter.text, first_line=shorter.line)
    return has_text and is_before_a_gap and not problems and read is not None and isinstance(read.value, dict)


def _read(path: str, split: _Split) -> tuple[YamlFile | None, list[Problem]]:
    """The front matter as YAML; when it is not YAML, line by line, as most tools read it."""
    read, problems = parse_yaml(path, split.text, first_line=split.line)
    if read is None and problems[-1].code == "yaml_syntax":
        read = _read_simple_lines(split)
    return read, problems


# After so many keys nothing is tried as YAML any more, which takes time where it is none.
_MOST_TRIED = 200
_BLOCK = re.compile(r"([|>])[+-]?[0-9]?[+-]?(?:\s+#.*)?")


@dataclass
class _Entry:
    """A key at the start of a line, and all lines up to the next one."""

    key: str
    # What stands behind the colon, and the lines that follow.
    first: str
    rest: list[str]
    line: int


def _read_simple_lines(split: _Split) -> YamlFile:
    values, lines = _read_entries(split.text.split("\n"), split.line, is_outermost=True)
    return YamlFile(values, lines)


def _read_entries(
    texts: Sequence[str], line: int, *, is_outermost: bool
) -> tuple[dict[str, Any], dict[Location, int]]:
    """The value of each key, and the lines of all; of two with one name the first stays."""
    values: dict[str, Any] = {}
    lines: dict[Location, int] = {}
    for entry in _entries(texts, line):
        if entry.key in values:
            continue
        value, inner = _read_entry(entry, try_yaml=len(values) < _MOST_TRIED, may_nest=is_outermost)
        values[entry.key] = value
        lines |= {(entry.key, *at): number for at, number in inner.items()}
        lines[entry.key,] = entry.line
    return values, lines


def _entries(texts: Sequence[str], line: int) -> list[_Entry]:
    found: list[_Entry] = []
    for number, text in enumerate(texts, line):
        match = _SIMPLE_LINE.fullmatch(text)
        if match is not None and not match.group(1):
            found.append(_Entry(match.group(2), (match.group(3) or "").strip(), [], number))
        elif found and not text.startswith("#"):
            found[-1].rest.append(text)
    return found


def _read_entry(entry: _Entry, *, try_yaml: bool, may_nest: bool) -> tuple[Any, dict[Location, int]]:
    """As YAML, if this much of it is; else as a person would read it."""
    if try_yaml:
        text = "\n".join([f"{entry.key}: {entry.first}", *entry.rest])
        read, problems = parse_yaml("", text, first_line=entry.line)
        if read is not None and not problems and isinstance(read.value, dict) and len(read.value) == 1:
            return read.value[entry.key], {at[1:]: line for at, line in read.lines.items() if at}
    block = _BLOCK.fullmatch(entry.first)
    if block is not None:
        return _block_text(entry.rest, is_folded=block.group(1) == ">"), {}
    said = [text for text in entry.rest if text.strip() and not text.lstrip().startswith("#")]
    if may_nest and not entry.first and said and _SIMPLE_LINE.fullmatch(said[0]):
        indent = len(said[0]) - len(said[0].lstrip())
        return _read_entries(
            [_dedent(text, indent) for text in entry.rest], entry.line + 1, is_outermost=False
        )
    return _unquote(" ".join([entry.first, *(text.strip() for text in said)])), {}


def _block_text(texts: Sequence[str], *, is_folded: bool) -> str:
    """A block scalar without its indentation; folded, its lines are joined, and blank ones divide."""
    lines = [text.strip() for text in texts] if is_folded else [text.rstrip() for text in texts]
    if not is_folded:
        filled = [text for text in lines if text]
        indent = min((len(text) - len(text.lstrip()) for text in filled), default=0)
        return "\n".join(text[indent:] for text in lines).strip("\n")
    return "\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).strip("\n").split("\n\n"))


def _dedent(text: str, indent: int) -> str:
    """The text without so much white space, and without what it has less."""
    return text[min(indent, len(text) - len(text.lstrip())) :]


def _unquote(value: str) -> str:
    text = value.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
