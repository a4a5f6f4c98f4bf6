"""Proposes what a repository of skills lacks to be a harness: harness.yaml, and the prompt sections it lists.

Nothing that is there is changed: what is wrong with the skills stays as it is, and stays reported.
"""

import json
import re
from collections.abc import Mapping, Sequence

from harness_repo.format.entries import fold_name
from harness_repo.format.harness import CONFIG, Harness, read_harness
from harness_repo.format.skillpaths import is_listable
from harness_repo.format.yamlfile import MAX_CHARACTERS
from harness_repo.git.errors import HarnessRepoError
from harness_repo.snapshot import Snapshot

# As many as the schema of harness.yaml takes.
MOST_SKILL_FOLDERS = 1000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_CHINESE = re.compile("[\u4e00-\u9fff]")

_REQUEST = """{% if history %}
## HISTORY
{% for item in history %}
- {{ item.user | default(item.role) }}: {{ item.text | default(item.content) }}
{% endfor %}
{% endif %}
## REQUEST
{% for item in danmaku %}
- {{ item.user }}: {{ item.text }}
{% endfor %}
"""

_SKILLS = """## TITLE
INTRODUCTION
{% for skill in skills %}
- {{ skill.name }}: {{ skill.description }}
{% endfor %}
"""

_ENGLISH = {
    "HISTORY": "Before",
    "REQUEST": "Now",
    "TITLE": "Skills",
    "INTRODUCTION": "Load the skill that fits the request with load_skill before you answer, and follow it.",
    "ROLE": "You are an assistant. Answer with the skills and tools that you have, and say what you do not know.",
}
_CHINESE_TEXTS = {
    "HISTORY": "之前",
    "REQUEST": "现在",
    "TITLE": "技能目录",
    "INTRODUCTION": "回答前先用 load_skill 加载最合适的技能，再按技能的步骤做。",
    "ROLE": "你是一名助手。用现有的技能和工具回答请求；不知道的就说不知道。",
}


class CannotAdopt(HarnessRepoError):
    """The tree is a harness already, or has something where a file of a harness has to stand."""


def propose_harness(snapshot: Snapshot, name: str) -> dict[str, bytes]:
    """The files, path -> content, that make a tree without harness.yaml a harness: they add no error of their own.

    `name` is brought into the shape that harness.yaml wants. A skill whose folder has a name that harness.yaml cannot
    list is the one kind that is not read any more, and a problem says so. Raises CannotAdopt.
    """
    _check_free(snapshot)
    found = read_harness(snapshot)
    texts = _CHINESE_TEXTS if _is_chinese(found) else _ENGLISH
    sections = {
        "role": texts["ROLE"] + "\n",
        "skills": _fill(_SKILLS, texts),
        "request": _fill(_REQUEST, texts),
    }
    paths = {section: _free_path(snapshot, section) for section in sections}
    files = {paths[section]: text.encode() for section, text in sections.items()}
    folders = _listed_folders(found)
    config = _config(usable_name(name), folders, paths)
    if len(folders) > MOST_SKILL_FOLDERS or len(config) > MAX_CHARACTERS:
        raise CannotAdopt(
            f"skills stand in {len(folders):,} folders, more than a {CONFIG} can list ({MOST_SKILL_FOLDERS:,} folders, "
            f"{MAX_CHARACTERS // 1024} K characters): move them into fewer"
        )
    return {CONFIG: config.encode(), **files}


def _listed_folders(found: Harness) -> list[str]:
    """The folders to list; none where no skill stands, so that the default holds."""
    return [folder for folder in found.skill_folders if is_listable(folder)] if found.skills else []


def usable_name(text: str) -> str:
    """The text as a harness can be called: its letters, digits, - and _; "harness" when nothing is left."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:64]
    return name if _NAME.fullmatch(name) else "harness"


def _check_free(snapshot: Snapshot) -> None:
    if CONFIG in snapshot.files:
        raise CannotAdopt(f"there is a {CONFIG} already")
    every = _every_path(snapshot)
    for needed in (CONFIG, "prompts"):
        is_folder = needed == CONFIG and any(path.startswith(f"{CONFIG}/") for path in every)
        if needed in every or is_folder:
            raise CannotAdopt(f"{needed} is taken by something else: rename that first")
        for name in sorted({path.split("/")[0] for path in every} - {needed}):
            if fold_name(name) == needed:
                raise CannotAdopt(
                    f"{name} is taken for {needed} on some systems: rename it to something else first"
                )


def _every_path(snapshot: Snapshot) -> set[str]:
    return {*snapshot.files, *snapshot.links, *snapshot.submodules, *snapshot.skipped}


def _is_chinese(found: Harness) -> bool:
    texts = [skill.description for skill in found.skills.values()]
    return sum(bool(_CHINESE.search(text)) for text in texts) * 2 > len(texts)


def _fill(template: str, texts: Mapping[str, str]) -> str:
    for word, text in texts.items():
        template = template.replace(word, text)
    return template


def _free_path(snapshot: Snapshot, section: str) -> str:
    """A name in prompts/ that is nobody's, on systems that do not tell capitals apart either."""
    taken = {"/".join(fold_name(path).split("/")[:2]) for path in _every_path(snapshot)}
    number = 1
    name = f"prompts/{section}.md"
    while name in taken:
        number += 1
        name = f"prompts/{section}-{number}.md"
    return name


def _config(name: str, skill_folders: Sequence[str], paths: Mapping[str, str]) -> str:
    """harness.yaml as text; a JSON text is a YAML text too, so that any folder name is quoted rightly."""
    folders = "".join(f"  - {json.dumps(folder, ensure_ascii=False)}\n" for folder in skill_folders)
    listed = f"skill_folders:\n{folders}" if folders else ""
    roles = {"request": ", role: user"}
    sections = "".join(
        f"  - {{name: {section}, file: {path}{roles.get(section, '')}}}\n" for section, path in paths.items()
    )
    return (
        f"format: 1\nname: {json.dumps(name)}\nkind: agent\n{listed}prompt:\n{sections}"
        # Foreign skills were not written as the one thing that an answer needs.
        "reply_skill_required: false\n"
    )
