"""Finds the front matter of a Markdown file, and reads it as YAML; mends what a person would read all the same."""

import re
from dataclasses import dataclass
from typing import Any

from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.yamlfile import YamlFile, parse_yaml

_SIMPLE_LINE = re.compile(r"(\s*)([A-Za-z_-]+):(?:\s+(.*))?")
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
    is_before_a_gap = shorter.body.startswith(("\n", "#")) and shorter.body_line < split.body_line
    read, problems = parse_yaml(path, shorter.text, first_line=shorter.line)
    return is_before_a_gap and not problems and read is not None and isinstance(read.value, dict)


def _read(path: str, split: _Split) -> tuple[YamlFile | None, list[Problem]]:
    """The front matter as YAML; when it is not YAML, line by line, as most tools read it."""
    read, problems = parse_yaml(path, split.text, first_line=split.line)
    if read is None and problems[-1].code == "yaml_syntax":
        read = _read_simple_lines(split)
    return read, problems


def _read_simple_lines(split: _Split) -> YamlFile:
    values: dict[str, Any] = {}
    lines: dict[tuple[str | int, ...], int] = {}
    group = ""
    for number, line in enumerate(split.text.split("\n"), split.line):
        match = _SIMPLE_LINE.fullmatch(line)
        if match is None:
            continue
        indent, key, value = match.groups()
        if indent and isinstance(values.get(group), dict):
            values[group].setdefault(key, _unquote(value))
            lines.setdefault((group, key), number)
        elif not indent and key not in values:
            group = key
            values[key] = _unquote(value) if value else {}
            lines[key,] = number
    return YamlFile(values, lines)


def _unquote(value: str | None) -> str:
    text = (value or "").strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
