"""Skills of a harness (skills/<name>/SKILL.md): front matter that is always visible, a body loaded on demand.

The front matter follows the Agent Skills specification; `metadata.kind` is ours.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from harness_repo.problems import Problem, error, warning
from harness_repo.textfile import read_text
from harness_repo.yamlfile import YamlFile, check_schema, parse_yaml

SkillKind = Literal["reply", "strategy"]

_NAME = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
_SIMPLE_LINE = re.compile(r"(\s*)([A-Za-z_-]+):(?:\s+(.*))?")


@dataclass(frozen=True)
class Skill:
    """One skill; at least one of kind "reply" has to be loaded before a reply."""

    name: str
    description: str
    kind: SkillKind
    body: str
    path: str


@dataclass(frozen=True)
class _FrontMatter:
    """The two halves of a SKILL.md and the lines on which they start."""

    text: str
    first_line: int
    body: str


def parse_skill(path: str, data: bytes) -> tuple[Skill | None, list[Problem]]:
    """Read a SKILL.md; None when it has no usable description. What could be mended is still a problem."""
    text, problems = read_text(path, data)
    if text is None:
        return None, problems
    split, more = _split(path, text)
    problems += more
    if split is None:
        return None, problems
    read, more = _read_front_matter(path, split)
    problems += more
    if read is None or not isinstance(read.value, dict):
        problems.append(error(path, split.first_line, "front_matter", "the front matter has no keys"))
        return None, problems
    more, _ = check_schema(path, read, "skill")
    return _build(path, read.value, split.body), problems + more + _check_name(path, read)


def _build(path: str, values: dict[str, Any], body: str) -> Skill | None:
    description = values.get("description")
    if not isinstance(description, str) or not description.strip():
        return None
    name = values.get("name")
    metadata = values.get("metadata")
    kind = metadata.get("kind") if isinstance(metadata, dict) else None
    return Skill(
        name=name.strip() if isinstance(name, str) and name.strip() else PurePosixPath(path).parent.name,
        description=" ".join(description.split()),
        kind="strategy" if kind == "strategy" else "reply",
        body=body.strip("\n"),
        path=path,
    )


def _split(path: str, text: str) -> tuple[_FrontMatter | None, list[Problem]]:
    """Divide the file at its `---` lines; only the first two count, so the body may have rules of its own."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    problems: list[Problem] = []
    if lines[start].strip() != "---":
        hint = "start the file with ---, name, description, ---"
        return None, [error(path, start + 1, "front_matter_missing", "the file has no front matter", hint)]
    if start or lines[start] != "---":
        problems.append(warning(path, 1, "front_matter_position", "--- must be the very start of the file"))
    for number in range(start + 1, len(lines)):
        if lines[number].rstrip() == "---":
            inner = "\n".join(lines[start + 1 : number])
            return _FrontMatter(inner, start + 2, "\n".join(lines[number + 1 :])), problems
    problems.append(
        error(path, start + 1, "front_matter_unclosed", "the front matter is never closed by ---")
    )
    return _split_unclosed(lines, start), problems


def _split_unclosed(lines: list[str], start: int) -> _FrontMatter:
    """Take the lines that look like keys as the front matter, and the rest as the body."""
    end = start + 1
    while end < len(lines) and (_SIMPLE_LINE.fullmatch(lines[end]) or lines[end].startswith((" ", "\t"))):
        end += 1
    body_start = end + 1 if end < len(lines) and set(lines[end].strip()) == {"-"} else end
    return _FrontMatter("\n".join(lines[start + 1 : end]), start + 2, "\n".join(lines[body_start:]))


def _read_front_matter(path: str, split: _FrontMatter) -> tuple[YamlFile | None, list[Problem]]:
    """The front matter as YAML; when it is not YAML, line by line, as most tools read it."""
    read, problems = parse_yaml(path, split.text, first_line=split.first_line)
    if read is None and problems[-1].code == "yaml_syntax":
        read = _read_simple_lines(split)
    return read, problems


def _read_simple_lines(split: _FrontMatter) -> YamlFile:
    values: dict[str, Any] = {}
    lines: dict[tuple[str | int, ...], int] = {}
    group = ""
    for number, line in enumerate(split.text.split("\n"), split.first_line):
        match = _SIMPLE_LINE.fullmatch(line)
        if match is None:
            continue
        indent, key, value = match.groups()
        if indent and isinstance(values.get(group), dict):
            values[group].setdefault(key, _unquote(value))
        elif not indent and key not in values:
            group = key
            values[key] = _unquote(value) if value else {}
            lines[(key,)] = number
    return YamlFile(values, lines)


def _unquote(value: str | None) -> str:
    text = (value or "").strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _check_name(path: str, read: YamlFile) -> list[Problem]:
    name = read.value.get("name") if isinstance(read.value, dict) else None
    if not isinstance(name, str):
        return []
    line = read.line_of(("name",))
    folder = PurePosixPath(path).parent.name
    problems = []
    if len(name) > 64 or not _NAME.fullmatch(name):
        hint = "1-64 of a-z, 0-9, - and _, none of the last two at an end or twice"
        problems.append(error(path, line, "skill_name", f"{name[:80]!r} is not a skill name", hint))
    if name != folder:
        message = f"the skill is called {name[:80]!r}, its folder {folder!r}"
        problems.append(error(path, line, "skill_folder", message, "use the same name for both"))
    return problems
