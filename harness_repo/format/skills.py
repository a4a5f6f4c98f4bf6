"""Skills of a harness (<name>/SKILL.md): front matter that is always visible, a body loaded on demand.

The front matter follows the Agent Skills specification (agentskills.io/specification); `metadata.kind` is ours.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_repo.format.frontmatter import FrontMatter, read_front_matter
from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.textfile import read_text
from harness_repo.format.yamlfile import YamlFile, check_schema

SKILL_FILE = "SKILL.md"

SkillKind = Literal["reply", "strategy"]

# The specification advises to stay below 500 lines and 5,000 tokens, some 20,000 characters of English.
LONG_BODY_LINES = 500
LONG_BODY_CHARACTERS = 20_000
# What is read of them.
LONGEST_ALLOWED_TOOLS = 4096

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# One tool, whose parentheses may hold spaces and commas: Bash(git add:*, git diff:*).
_ALLOWED_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\))?")


@dataclass(frozen=True)
class Skill:
    """One skill; at least one of kind "reply" has to be loaded before a reply."""

    name: str
    description: str
    kind: SkillKind
    body: str
    path: str
    license: str = ""
    # What it needs around it, in words.
    compatibility: str = ""
    # Told to whoever runs the skill; our runtime offers the harness's tools.
    allowed_tools: tuple[str, ...] = ()
    # All of the front matter's metadata whose values are texts.
    metadata: dict[str, str] = field(default_factory=dict)
    # What lies beside SKILL.md (scripts/, references/, assets/), relative to the skill's folder, sorted.
    files: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The folder of the skill; empty for one at the root."""
        return self.path.rpartition("/")[0]


def parse_skill(path: str, data: bytes) -> tuple[Skill | None, list[Problem]]:
    """Read a SKILL.md; None when it has no usable description. What could be mended is still a problem."""
    problems = list(_place_problems(path))
    text, more = read_text(path, data)
    problems += more
    if text is None:
        return None, problems
    front, more = read_front_matter(path, text)
    problems += more
    if front is None:
        return None, problems
    more, _ = check_schema(path, front.read, "skill")
    problems += [*more, *_name_problems(path, front.read), *_tools_problems(path, front.read)]
    skill = _build(path, front.read.value, front.body)
    return skill, problems + list(_body_problems(path, front))


def _build(path: str, values: Any, body: str) -> Skill | None:
    description = values.get("description")
    name = _text(values, "name") or _folder_name(path)
    if not isinstance(description, str) or not description.strip() or not name:
        return None
    metadata = _metadata(values)
    return Skill(
        name=name,
        description=" ".join(description.split()),
        kind="strategy" if metadata.get("kind") == "strategy" else "reply",
        body=body.strip("\n"),
        path=path,
        license=_text(values, "license"),
        compatibility=_text(values, "compatibility"),
        allowed_tools=_allowed_tools(values.get("allowed-tools")),
        metadata=metadata,
    )


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value.strip() if isinstance(value, str) else ""


def _metadata(values: dict[str, Any]) -> dict[str, str]:
    metadata = values.get("metadata")
    pairs = metadata.items() if isinstance(metadata, dict) else ()
    return {key: value for key, value in pairs if isinstance(value, str)}


def _allowed_tools(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(_ALLOWED_TOOL.findall(value[:LONGEST_ALLOWED_TOOLS]))
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _folder_name(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2]


def _place_problems(path: str) -> Iterator[Problem]:
    folder, _, name = path.rpartition("/")
    if name != SKILL_FILE:
        message = f"the file of a skill is called {SKILL_FILE}, exactly"
        yield error(path, 0, "skill_file_name", message, f"rename it to {SKILL_FILE}")
    if not folder:
        hint = "move it into a folder that bears its name"
        yield warning(
            path, 0, "skill_at_root", "the skill stands at the root, without a folder of its own", hint
        )


def _name_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    name = read.value.get("name") if isinstance(read.value, dict) else None
    if not isinstance(name, str):
        return
    line = read.line_of(("name",))
    folder = _folder_name(path)
    if len(name) > 64 or not _NAME.fullmatch(name):
        hint = "1-64 of a-z, 0-9 and -, no - at an end or twice in a row"
        yield error(path, line, "skill_name", f"{name[:80]!r} is not a skill name", hint)
    if folder and name != folder:
        message = f"the skill is called {name[:80]!r}, its folder {folder!r}"
        yield error(path, line, "skill_folder", message, "use the same name for both")


def _tools_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    value = read.value.get("allowed-tools") if isinstance(read.value, dict) else None
    has_commas = isinstance(value, str) and "," in _ALLOWED_TOOL.sub("", value[:LONGEST_ALLOWED_TOOLS])
    if isinstance(value, list) or has_commas:
        what = "a list" if isinstance(value, list) else "separated by commas"
        hint = "one text, the tools separated by spaces"
        yield warning(path, read.line_of(("allowed-tools",)), "allowed_tools", f"the tools are {what}", hint)


def _body_problems(path: str, front: FrontMatter) -> Iterator[Problem]:
    body = front.body.strip()
    if not body:
        yield warning(path, front.line, "skill_body_empty", "the skill has no instructions")
    if len(body) > LONG_BODY_CHARACTERS or body.count("\n") >= LONG_BODY_LINES:
        message = f"the body is longer than {LONG_BODY_LINES} lines or {LONG_BODY_CHARACTERS:,} characters"
        hint = "move details into references/, which are read when they are needed"
        yield warning(path, front.body_line, "skill_long", message, hint)
