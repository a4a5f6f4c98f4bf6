"""Where skills stand in a tree: in the skill folders of harness.yaml, or anywhere when there is no harness.yaml."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness_repo.format.problems import Problem, warning
from harness_repo.format.skills import SKILL_FILE

DEFAULT_SKILL_FOLDERS = ("skills",)
# As a skill folder: skills stand in folders of the root, and one may stand at the root itself.
ROOT = "."

# What the specification has beside SKILL.md; a SKILL.md in there is a template or an example of that skill.
_MATERIAL = frozenset({"scripts", "references", "assets"})


@dataclass
class SkillPaths:
    """The files to read as skills, sorted, and what is wrong with where others stand."""

    paths: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def find_listed_skills(files: Mapping[str, bytes], skill_folders: Sequence[str]) -> SkillPaths:
    """`<name>/SKILL.md` in one of the folders; every other SKILL.md is a problem, and not read."""
    folders = frozenset(skill_folders)
    candidates = _candidates(files)
    found = SkillPaths()
    for folder, path in candidates.items():
        if parent_folder(folder) in folders:
            found.paths.append(path)
        elif path.endswith(SKILL_FILE):
            found.problems.append(_unread_problem(path, folder, folders))
    found.problems += _missing_problems(files, candidates, skill_folders)
    return found


def find_skills_anywhere(files: Mapping[str, bytes]) -> SkillPaths:
    """Every SKILL.md, and every file of almost that name with front matter, but for the material of a skill."""
    candidates = _candidates(files)
    found = SkillPaths()
    for folder, path in candidates.items():
        if not path.endswith(SKILL_FILE) and not _has_front_matter(files[path]):
            continue
        around = _skill_around(folder, candidates)
        is_material = around is not None and folder[len(around) + 1 :].split("/")[0] in _MATERIAL
        if not is_material:
            found.paths.append(path)
        if around is not None:
            found.problems.append(_nested_problem(path, around, is_read=not is_material))
    return found


def parent_folder(folder: str) -> str:
    """The skill folder in which a skill's own folder stands."""
    return folder.rpartition("/")[0] or ROOT


def is_below(path: str, skill_folder: str, files: Container[str] | None = None) -> bool:
    """Whether a path is a skill of a skill folder, or lies in the folder of one.

    Folders of the root have other uses too: with `files`, only those in which a skill stands count.
    """
    if skill_folder != ROOT:
        return path.startswith(f"{skill_folder}/")
    folder, slash, rest = path.partition("/")
    if not slash or folder.startswith("."):
        return path == SKILL_FILE
    return files is None or rest == SKILL_FILE or f"{folder}/{SKILL_FILE}" in files


def files_beside(files: Mapping[str, bytes], paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Path of a SKILL.md -> the other files in its folder, relative to it; those of a skill inside are not its own."""
    owners = {path.rpartition("/")[0]: path for path in paths}
    # Everything lies beside a skill at the root.
    owners.pop("", None)
    beside: dict[str, list[str]] = {path: [] for path in paths}
    for path in sorted(files):
        folder = path.rpartition("/")[0]
        while folder and folder not in owners:
            folder = folder.rpartition("/")[0]
        if folder and owners[folder] != path:
            beside[owners[folder]].append(path[len(folder) + 1 :])
    return {path: tuple(names) for path, names in beside.items()}


def _candidates(files: Mapping[str, bytes]) -> dict[str, str]:
    """Folder -> its skill file, in the order of the folders; of several of almost the name, SKILL.md."""
    found: dict[str, str] = {}
    # Reversed, so that the lower-case names come first and SKILL.md replaces them.
    for path in sorted((path for path in files if path[-8:].lower() == "skill.md"), reverse=True):
        folder, _, name = path.rpartition("/")
        if len(name) == len(SKILL_FILE) and (name == SKILL_FILE or folder not in found):
            found[folder] = path
    # Folder by folder, so that skills/a comes before skills/a-copy.
    return dict(sorted(found.items(), key=lambda item: item[1].split("/")))


def _has_front_matter(data: bytes) -> bool:
    return data[:200].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"---")


def _skill_around(folder: str, candidates: Mapping[str, str]) -> str | None:
    """The nearest folder of a skill around a folder; the root is around everything, and does not count."""
    around = folder.rpartition("/")[0]
    while around and around not in candidates:
        around = around.rpartition("/")[0]
    return around or None


def _unread_problem(path: str, folder: str, folders: frozenset[str]) -> Problem:
    if not folder:
        hint = f"move it into a folder that bears its name, or list {ROOT} in skill_folders"
        message = "the skill stands at the root, and is not read"
        return warning(path, 0, "skill_at_root", message, hint)
    hint = f"list {parent_folder(folder)} in skill_folders of harness.yaml"
    around = next((other for other in sorted(folders) if is_below(path, other)), None)
    if around is not None:
        message = f"the skill stands deeper than {around}/<name>, and is not read"
        return warning(path, 0, "skill_nested", message, hint)
    return warning(path, 0, "skill_outside", "the skill stands in no skill folder, and is not read", hint)


def _nested_problem(path: str, around: str, *, is_read: bool) -> Problem:
    end = "" if is_read else ", is material of it, and is not read"
    return warning(path, 0, "skill_nested", f"the skill stands inside the skill {around}{end}")


def _missing_problems(
    files: Mapping[str, bytes], candidates: Mapping[str, str], skill_folders: Sequence[str]
) -> Iterator[Problem]:
    """Folders in a skill folder without any SKILL.md: a skill that somebody began, or moved away."""
    inhabited = {prefix for folder in candidates for prefix in _with_parents(folder)}
    told: set[str] = set()
    # What lies in the folder of a skill is that skill's.
    named = [folder for folder in skill_folders if folder != ROOT and folder not in candidates]
    for path in sorted(files):
        for folder in named:
            rest = path[len(folder) + 1 :] if is_below(path, folder) else ""
            own = f"{folder}/{rest.split('/')[0]}" if "/" in rest else ""
            if own and own not in inhabited and own not in told:
                told.add(own)
                yield warning(path, 0, "skill_file_missing", f"there is no {SKILL_FILE} in {own}")


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
