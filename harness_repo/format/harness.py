"""A harness as read from its files: all four parts and what is wrong with them."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from harness_repo.format.entries import entry_problems, is_readable_path
from harness_repo.format.hooks import Hook, parse_hook
from harness_repo.format.json_schema import SchemaUnusable, check_json_schema
from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.prompts import (
    AGENT_VARIABLES,
    JUDGE_VARIABLES,
    PromptSection,
    parse_template,
)
from harness_repo.format.skillpaths import (
    DEFAULT_SKILL_FOLDERS,
    SkillPaths,
    files_beside,
    find_listed_skills,
    find_skills_anywhere,
    is_below,
    parent_folder,
)
from harness_repo.format.skills import Skill, parse_skill
from harness_repo.format.templates import variables_of
from harness_repo.format.tools import Tool, parse_tool
from harness_repo.format.yamlfile import Location, YamlFile, check_schema, read_yaml
from harness_repo.snapshot import Snapshot

CONFIG = "harness.yaml"

_HOOK_FILE = re.compile(r"hooks/[^/]+\.ya?ml")
_TOOL_FILE = re.compile(r"tools/[^/]+\.ya?ml")
_PROMPT_FILE = re.compile(r"prompts/.+")
# The outermost key of that name, and one that is indented where there is none.
_NAME_LINES = tuple(
    re.compile(start + rb"""["']?name["']?[ \t]*:""", re.MULTILINE) for start in (rb"^", rb"^[ \t{]*")
)

HarnessKind = Literal["agent", "judge"]


@dataclass(frozen=True)
class Limits:
    """When a run ends of itself; `tool_calls` does not count load_skill."""

    turns: int = 8
    tool_calls: int = 12
    hook_retries: int = 2
    seconds: float = 20.0
    # Of all model calls together, prompt and completion; None: no limit.
    tokens: int | None = None


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
    # Folders in which <name>/SKILL.md stand, "." for the root; without harness.yaml, those where some were found.
    skill_folders: tuple[str, ...] = DEFAULT_SKILL_FOLDERS


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)
_Parser = Callable[[str, bytes], tuple[_Part | None, list[Problem]]]


def read_harness(files: Mapping[str, bytes] | Snapshot) -> Harness:
    """Read a harness from its files (path -> bytes), or from all that stands in a tree; never raises on content.

    What cannot be read is left out, and stands in `problems`. Without harness.yaml its values are the defaults, and
    the skills are those that stand anywhere.
    """
    snapshot = files if isinstance(files, Snapshot) else Snapshot(files)
    files = {path: data for path, data in snapshot.files.items() if is_readable_path(path)}
    config, values, problems = _read_config(files)
    found = _find_skills(files, values)
    skills, skill_problems = _read_skills(files, found)
    hooks, hook_problems = _read_parts(files, _matching(files, _HOOK_FILE), parse_hook)
    tools, tool_problems = _read_parts(files, _matching(files, _TOOL_FILE), parse_tool)
    prompt, prompt_problems = _read_prompt(files, config, values)
    harness = Harness(
        name=values.get("name", ""),
        kind=values.get("kind", "agent"),
        model=values.get("model", {}),
        limits=_read_limits(values.get("limits", {})),
        prompt=prompt,
        reply_skill_required=values.get("reply_skill_required", True),
        skills={skill.name: skill for skill in skills},
        hooks=hooks,
        tools={tool.name: tool for tool in tools},
        reply_schema=values.get("reply_schema"),
        skill_folders=_skill_folders(values, found),
    )
    problems += prompt_problems + skill_problems + hook_problems + tool_problems
    problems += [*_folder_problems(values, found, config), *_between_problems(harness)]
    # Of a tree without harness.yaml nobody said how it is to run.
    problems += _whole_problems(harness, config) if CONFIG in files else ()
    return replace(harness, problems=problems + list(entry_problems(snapshot)))


def _read_limits(values: Mapping[str, Any]) -> Limits:
    """The limits that are known; to JSON Schema 3.0 is an integer too."""
    known = {key: value for key, value in values.items() if key in Limits.__dataclass_fields__}
    return Limits(**{key: value if key == "seconds" else int(value) for key, value in known.items()})


def is_harness_path(
    path: str,
    skill_folders: Iterable[str] = DEFAULT_SKILL_FOLDERS,
    files: Container[str] | None = None,
) -> bool:
    """Whether a path belongs to a harness: harness.yaml, or a file of a skill folder or of one of the other three.

    Where skills stand in folders of the root, only `files` tells these folders from others.
    """
    is_ours = path == CONFIG or path.startswith(("prompts/", "hooks/", "tools/"))
    return is_ours or any(is_below(path, folder, files) for folder in skill_folders)


def skill_folders_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The skill folders of a harness, as `read_harness` finds them, without reading the rest."""
    _, values, _ = _read_config(files)
    return _skill_folders(values, _find_skills(files, values))


def _read_config(files: Mapping[str, bytes]) -> tuple[YamlFile, dict[str, Any], list[Problem]]:
    """harness.yaml without the values that are wrong, so that defaults stand in for them."""
    if CONFIG not in files:
        return YamlFile({}), {}, [_missing_config()]
    read, problems = read_yaml(CONFIG, files[CONFIG])
    if read is None or not isinstance(read.value, dict):
        return YamlFile({}), {}, problems or [error(CONFIG, 1, "schema", "the file is not a mapping")]
    more, bad = check_schema(CONFIG, read, "harness")
    values = _without(read.value, bad)
    return read, values, problems + more + _reply_schema_problems(read, values)


def _missing_config() -> Problem:
    hint = "manage.py check_harness --adopt proposes one"
    return error(CONFIG, 0, "config_missing", "there is no harness.yaml", hint)


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


def _find_skills(files: Mapping[str, bytes], values: dict[str, Any]) -> SkillPaths:
    if CONFIG not in files:
        return find_skills_anywhere(files)
    return find_listed_skills(files, values.get("skill_folders", DEFAULT_SKILL_FOLDERS))


def _skill_folders(values: dict[str, Any], found: SkillPaths) -> tuple[str, ...]:
    listed = values.get("skill_folders")
    return tuple(listed) if listed else tuple(sorted(_folders_with_skills(found))) or DEFAULT_SKILL_FOLDERS


def _folders_with_skills(found: SkillPaths) -> set[str]:
    return {parent_folder(path.rpartition("/")[0]) for path in found.paths}


def _read_skills(files: Mapping[str, bytes], found: SkillPaths) -> tuple[list[Skill], list[Problem]]:
    skills, problems = _read_parts(files, found.paths, parse_skill)
    beside = files_beside(files, found.paths)
    return [replace(skill, files=beside[skill.path]) for skill in skills], problems + found.problems


def _matching(files: Mapping[str, bytes], pattern: re.Pattern[str]) -> list[str]:
    return sorted(path for path in files if pattern.fullmatch(path))


def _read_parts(
    files: Mapping[str, bytes], paths: Sequence[str], parse: _Parser[_Part]
) -> tuple[list[_Part], list[Problem]]:
    """All parts of one kind in the order of the paths; of two with one name the first stays."""
    parts: dict[str, _Part] = {}
    problems: list[Problem] = []
    for path in paths:
        part, more = parse(path, files[path])
        problems += more
        if part is None:
            continue
        if part.name in parts:
            message = f"the name {part.name[:80]!r} is taken by {parts[part.name].path}"
            problems.append(error(path, _name_line(files[path]), "duplicate_name", message))
            continue
        parts[part.name] = part
    return list(parts.values()), problems


def _name_line(data: bytes) -> int:
    # Of Markdown, what stands above the body.
    data = data.split(b"\n---", 1)[0]
    found = next(filter(None, (pattern.search(data) for pattern in _NAME_LINES)), None)
    return data[: found.start()].count(b"\n") + 1 if found else 1


def _read_prompt(
    files: Mapping[str, bytes], config: YamlFile, values: dict[str, Any]
) -> tuple[list[PromptSection], list[Problem]]:
    known = JUDGE_VARIABLES if values.get("kind") == "judge" else AGENT_VARIABLES
    sections: list[PromptSection] = []
    problems: list[Problem] = []
    # A file is read once, however many sections name it.
    templates: dict[str, str | None] = {}
    for number, entry in enumerate(values.get("prompt", ())):
        if entry is None:
            continue
        path = entry["file"]
        if path not in files:
            line = config.line_of(("prompt", number))
            problems.append(error(CONFIG, line, "prompt_missing", f"there is no file {path}"))
            continue
        if path not in templates:
            templates[path], more = parse_template(path, files[path], known)
            problems += more
        template = templates[path]
        if template is not None:
            sections.append(PromptSection(entry["name"], path, entry.get("role", "system"), template))
    return sections, problems + _unused_prompts(files, values)


def _unused_prompts(files: Mapping[str, bytes], values: dict[str, Any]) -> list[Problem]:
    used = {entry["file"] for entry in values.get("prompt", ()) if entry}
    unused = sorted(path for path in files if _PROMPT_FILE.fullmatch(path) and path not in used)
    return [warning(path, 0, "prompt_unused", "harness.yaml does not list this section") for path in unused]


def _folder_problems(values: dict[str, Any], found: SkillPaths, config: YamlFile) -> Iterator[Problem]:
    """Folders that harness.yaml lists, and in which no skill stands."""
    inhabited = _folders_with_skills(found)
    for number, folder in enumerate(values.get("skill_folders", ())):
        if folder not in inhabited:
            line = config.line_of(("skill_folders", number))
            yield warning(CONFIG, line, "skill_folder_empty", f"no skill stands in {folder}")


def _whole_problems(harness: Harness, config: YamlFile) -> Iterator[Problem]:
    """What harness.yaml says, and the parts do not bear out."""
    kinds = {skill.kind for skill in harness.skills.values()}
    if harness.reply_skill_required and "reply" not in kinds:
        line = config.line_of(("reply_skill_required",))
        yield error(CONFIG, line, "no_reply_skill", "a reply skill is required, and there is none")
    if harness.kind == "judge" and harness.reply_schema is None:
        yield error(CONFIG, config.line_of(("kind",)), "judge_schema", "a judge needs a reply_schema")
    if harness.skills and not any("skills" in variables_of(section.template) for section in harness.prompt):
        line = config.line_of(("prompt",))
        yield warning(CONFIG, line, "skills_hidden", "no prompt section shows the descriptions of the skills")


def _between_problems(harness: Harness) -> Iterator[Problem]:
    """What is wrong between the parts."""
    for hook in harness.hooks:
        for name in hook.named_skills():
            if name not in harness.skills:
                yield error(hook.path, 0, "unknown_skill", f"there is no skill {name!r}")
