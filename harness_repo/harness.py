"""A harness as read from its files: all four parts and what is wrong with them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from harness_repo.hooks import Hook, parse_hook
from harness_repo.json_schema import SchemaUnusable, check_json_schema
from harness_repo.problems import Problem, error, warning
from harness_repo.prompts import AGENT_VARIABLES, JUDGE_VARIABLES, PromptSection, parse_template, variables_of
from harness_repo.skills import Skill, parse_skill
from harness_repo.tools import Tool, parse_tool
from harness_repo.yamlfile import Location, YamlFile, check_schema, read_yaml

CONFIG = "harness.yaml"

_SKILL_FILE = re.compile(r"skills/[^/]+/SKILL\.md")
_HOOK_FILE = re.compile(r"hooks/[^/]+\.ya?ml")
_TOOL_FILE = re.compile(r"tools/[^/]+\.ya?ml")
_PROMPT_FILE = re.compile(r"prompts/.+")

HarnessKind = Literal["agent", "judge"]


@dataclass(frozen=True)
class Limits:
    """When a run ends of itself; `tool_calls` does not count load_skill."""

    turns: int = 8
    tool_calls: int = 12
    hook_retries: int = 2
    seconds: float = 20.0


@dataclass(frozen=True)
class Harness:
    """The state of a harness at one commit."""

    name: str
    kind: HarnessKind = "agent"
    # Sampling parameters for the model, such as temperature and max_tokens.
    model: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prompt: list[PromptSection] = field(default_factory=list)
    reply_skill_required: bool = True
    skills: dict[str, Skill] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    tools: dict[str, Tool] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    # JSON Schema that a reply must satisfy; a judge's scores are read by it.
    reply_schema: dict[str, Any] | None = None


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)
_Parser = Callable[[str, bytes], tuple[_Part | None, list[Problem]]]


def read_harness(files: Mapping[str, bytes]) -> Harness:
    """Read a harness from its files (path -> bytes); never raises on content.

    What cannot be read is left out, and stands in `problems`, in the order of the files.
    """
    config, values, problems = _read_config(files)
    skills, skill_problems = _read_parts(files, _SKILL_FILE, parse_skill)
    hooks, hook_problems = _read_parts(files, _HOOK_FILE, parse_hook)
    tools, tool_problems = _read_parts(files, _TOOL_FILE, parse_tool)
    prompt, prompt_problems = _read_prompt(files, config, values)
    harness = Harness(
        name=values.get("name", ""),
        kind=values.get("kind", "agent"),
        model=values.get("model", {}),
        limits=Limits(**{key: value for key, value in values.get("limits", {}).items() if key in _LIMITS}),
        prompt=prompt,
        reply_skill_required=values.get("reply_skill_required", True),
        skills={skill.name: skill for skill in skills},
        hooks=hooks,
        tools={tool.name: tool for tool in tools},
        reply_schema=values.get("reply_schema"),
    )
    problems += prompt_problems + skill_problems + hook_problems + tool_problems
    return replace(harness, problems=problems + list(_whole_problems(harness, config)))


_LIMITS = frozenset(Limits.__dataclass_fields__)


def is_harness_path(path: str) -> bool:
    """Whether a path belongs to a harness: harness.yaml, or a file of one of its four folders."""
    return path == CONFIG or path.startswith(("prompts/", "skills/", "hooks/", "tools/"))


def _read_config(files: Mapping[str, bytes]) -> tuple[YamlFile, dict[str, Any], list[Problem]]:
    """harness.yaml without the values that are wrong, so that defaults stand in for them."""
    if CONFIG not in files:
        return YamlFile({}), {}, [error(CONFIG, 0, "config_missing", "there is no harness.yaml")]
    read, problems = read_yaml(CONFIG, files[CONFIG])
    if read is None or not isinstance(read.value, dict):
        return YamlFile({}), {}, problems or [error(CONFIG, 1, "schema", "the file is not a mapping")]
    more, bad = check_schema(CONFIG, read, "harness")
    values = _without(read.value, bad)
    return read, values, problems + more + _reply_schema_problems(read, values)


def _without(values: dict[str, Any], bad: list[Location]) -> dict[str, Any]:
    """The values without those at the bad locations; below the second level, what is around them goes."""
    kept = dict(values)
    for at in bad:
        if not at or at[0] not in kept:
            continue
        first = str(at[0])
        inner = kept[first]
        if first == "limits" and len(at) > 1 and isinstance(inner, dict):
            kept[first] = {key: value for key, value in inner.items() if key != at[1]}
        elif first == "prompt" and len(at) > 1 and isinstance(inner, list):
            # A hole keeps the numbers of the other sections.
            kept[first] = [None if number == at[1] else item for number, item in enumerate(inner)]
        else:
            del kept[first]
    return kept


def _reply_schema_problems(read: YamlFile, values: dict[str, Any]) -> list[Problem]:
    """Check the reply schema, and drop it from the values when it is none."""
    try:
        check_json_schema(values.get("reply_schema", {}))
    except SchemaUnusable as failure:
        del values["reply_schema"]
        return [error(CONFIG, read.line_of(("reply_schema",)), "reply_schema", str(failure))]
    return []


def _read_parts(
    files: Mapping[str, bytes], pattern: re.Pattern[str], parse: _Parser[_Part]
) -> tuple[list[_Part], list[Problem]]:
    """All parts of one kind in path order; of two with one name the first stays."""
    parts: dict[str, _Part] = {}
    problems: list[Problem] = []
    for path in sorted(path for path in files if pattern.fullmatch(path)):
        part, more = parse(path, files[path])
        problems += more
        if part is None:
            continue
        if part.name in parts:
            message = f"the name {part.name!r} is taken by {parts[part.name].path}"
            problems.append(error(path, 1, "duplicate_name", message))
            continue
        parts[part.name] = part
    return list(parts.values()), problems


def _read_prompt(
    files: Mapping[str, bytes], config: YamlFile, values: dict[str, Any]
) -> tuple[list[PromptSection], list[Problem]]:
    known = JUDGE_VARIABLES if values.get("kind") == "judge" else AGENT_VARIABLES
    sections: list[PromptSection] = []
    problems: list[Problem] = []
    for number, entry in enumerate(values.get("prompt", ())):
        if entry is None:
            continue
        path = entry["file"]
        if path not in files:
            line = config.line_of(("prompt", number))
            problems.append(error(CONFIG, line, "prompt_missing", f"there is no file {path}"))
            continue
        template, more = parse_template(path, files[path], known)
        problems += more
        if template is not None:
            sections.append(PromptSection(entry["name"], path, entry.get("role", "system"), template))
    return sections, problems + _unused_prompts(files, values)


def _unused_prompts(files: Mapping[str, bytes], values: dict[str, Any]) -> list[Problem]:
    used = {entry["file"] for entry in values.get("prompt", ()) if entry}
    unused = sorted(path for path in files if _PROMPT_FILE.fullmatch(path) and path not in used)
    return [warning(path, 0, "prompt_unused", "harness.yaml does not list this section") for path in unused]


def _whole_problems(harness: Harness, config: YamlFile) -> Iterator[Problem]:
    """What is wrong between the parts."""
    kinds = {skill.kind for skill in harness.skills.values()}
    if harness.reply_skill_required and "reply" not in kinds:
        line = config.line_of(("reply_skill_required",))
        yield error(CONFIG, line, "no_reply_skill", "a reply skill is required, and there is none")
    if harness.kind == "judge" and harness.reply_schema is None:
        yield error(CONFIG, config.line_of(("kind",)), "judge_schema", "a judge needs a reply_schema")
    if harness.skills and not any("skills" in variables_of(section.template) for section in harness.prompt):
        line = config.line_of(("prompt",))
        yield warning(CONFIG, line, "skills_hidden", "no prompt section shows the descriptions of the skills")
    for hook in harness.hooks:
        for name in hook.check.get("skills", ()):
            if name not in harness.skills:
                yield error(hook.path, 0, "unknown_skill", f"there is no skill {name!r}")
