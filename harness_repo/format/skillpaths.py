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
# Where others' packages lie, and what is built from them or from the rest: nobody writes skills in there.
_VENDORED = frozenset({
    ".git", ".tox", ".venv", "__pycache__", "bower_components", "build", "dist", "node_modules", "site-packages",
    "third_party", "vendor", "venv",
})  # fmt: skip
# Those that may be the name of a skill.
_PLAIN_WORDS = frozenset({"build", "dist", "vendor", "venv"})


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
    vendored: dict[str, list[str]] = {}
    for folder, path in candidates.items():
        around, place = _owner_of_material(folder, candidates, folders), _vendored_folder(folder)
        is_listed = parent_folder(folder) in folders
        if around is not None:
            found.problems.append(_nested_problem(path, around, is_read=False))
        elif place and (not is_listed or place == folder):
            vendored.setdefault(place, []).append(path)
        elif is_listed:
            found.paths.append(path)
        else:
            found.problems.append(_unread_problem(path, folder, folders))
    found.problems += _vendored_problems(vendored)
    found.problems += _missing_problems(files, candidates, skill_folders)
    return found


def find_skills_anywhere(files: Mapping[str, bytes]) -> SkillPaths:
    """Every SKILL.md, and every file of almost that name with front matter.

    Not so the material of a skill, and what stands where others' packages lie (node_modules and the like).
    """
    candidates = _candidates(files)
    found = SkillPaths()
    vendored: dict[str, list[str]] = {}
    for folder, path in candidates.items():
        owner, place = _owner_of_material(folder, candidates), _vendored_folder(folder)
        around = owner or _skill_around(folder, candidates)
        if place:
            vendored.setdefault(place, []).append(path)
            continue
        if owner is None:
            found.paths.append(path)
        if around is not None:
            found.problems.append(_nested_problem(path, around, is_read=owner is None))
    found.problems += _vendored_problems(vendored)
    return found


def parent_folder(folder: str) -> str:
    """The skill folder in which a skill's own folder stands."""
    return folder.rpartition("/")[0] or ROOT


def is_listable(folder: str) -> bool:
    """Whether skill_folders can name a folder: no backslash, and nothing that cannot be seen."""
    return folder.isprintable() and "\\" not in folder


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
    """Folder -> its skill file, in the order of the folders; of several of almost the name, SKILL.md.

    A file of almost the name counts if it has front matter: skill.md may be a page about skills.
    """
    found: dict[str, str] = {}
    # Reversed, so that the lower-case names come first and SKILL.md replaces them.
    for path in sorted((path for path in files if path[-8:].lower() == "skill.md"), reverse=True):
        folder, _, name = path.rpartition("/")
        is_almost = len(name) == len(SKILL_FILE) and folder not in found and _has_front_matter(files[path])
        if name == SKILL_FILE or is_almost:
            found[folder] = path
    # Folder by folder, so that skills/a comes before skills/a-copy.
    return dict(sorted(found.items(), key=lambda item: item[1].split("/")))


def _has_front_matter(data: bytes) -> bool:
    # In UTF-16 and UTF-32 too, whose marks and zeros are no text.
    return data[:400].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").replace(b"\0", b"").startswith(b"---")


def _skill_around(folder: str, candidates: Mapping[str, str]) -> str | None:
    """The nearest folder of a skill around a folder; the root is around everything, and does not count."""
    around = folder.rpartition("/")[0]
    while around and around not in candidates:
        around = around.rpartition("/")[0]
    return around or None


def _owner_of_material(
    folder: str, candidates: Mapping[str, str], listed: frozenset[str] = frozenset()
) -> str | None:
    """The folder of the skill whose scripts, references or assets these are; None when they are nobody's.

    What harness.yaml lists inside of them is a skill folder, and no material.
    """
    parent = parent_folder(folder)
    around = _skill_around(folder, candidates)
    while around is not None:
        is_material = folder[len(around) + 1 :].split("/", maxsplit=1)[0] in _MATERIAL
        if is_material and (parent == around or parent not in listed):
            return around
        around = _skill_around(around, candidates)
    return None


def _vendored_folder(folder: str) -> str:
    """The outermost folder of others' packages that a skill's folder is, or lies in; empty when there is none."""
    parts = folder.split("/")
    for number, part in enumerate(parts, 1):
        if part in _VENDORED and (number < len(parts) or part not in _PLAIN_WORDS):
            return "/".join(parts[:number])
    return ""


def _vendored_problems(vendored: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """One for each such folder: it may hold hundreds of skills."""
    for place, paths in sorted(vendored.items()):
        is_one = len(paths) == 1
        what = "a skill stands" if is_one else f"{len(paths)} skills stand"
        parent = parent_folder(paths[0].rpartition("/")[0])
        is_possible = place != paths[0].rpartition("/")[0] and is_listable(parent)
        hint = (
            f"if {'it is' if is_one else 'they are'} yours, list {parent} in skill_folders of harness.yaml"
            if is_possible
            else ""
        )
        end = "is not read" if is_one else "are not read"
        message = f"{what} in {place}, where others' packages lie, and {end}"
        yield warning(paths[0], 0, "skill_vendored", message, hint)


def _unread_problem(path: str, folder: str, folders: frozenset[str]) -> Problem:
    if not folder:
        hint = f"move it into a folder that bears its name, or list {ROOT} in skill_folders"
        message = "the skill stands at the root, and is not read"
        return warning(path, 0, "skill_at_root", message, hint)
    parent = parent_folder(folder)
    hint = f"list {parent} in skill_folders of harness.yaml"
    if not is_listable(parent):
        hint = f"rename {parent!r}, which skill_folders of harness.yaml cannot name"
    around = next((other for other in _with_parents(folder) if other in folders), None)
    if around is None and ROOT in folders and is_below(path, ROOT):
        around = ROOT
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
    # What lies in the folder of a skill is that skill's.
    named = {folder for folder in skill_folders if folder != ROOT and folder not in candidates}
    for path in sorted(files):
        for own in _with_parents(path.rpartition("/")[0]):
            if own not in inhabited and own.rpartition("/")[0] in named:
                # Once for each folder.
                inhabited.add(own)
                yield warning(path, 0, "skill_file_missing", f"there is no {SKILL_FILE} in {own}")


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
