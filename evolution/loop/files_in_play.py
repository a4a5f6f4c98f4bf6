"""Beside stage 3: the files of the harness that a diagnosis is shown, within a budget of tokens.

What the cases used comes whole, and the rest too while there is space; else by name and description alone. Where cases
ran on another version, how that differs.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.loop.sampling import character_pairs
from evolution.models import FailureCase
from evolution.prompts.tokens import estimate_tokens
from harness_repo.format.harness import Harness, is_harness_path, read_harness, skill_folders_of
from harness_repo.format.textfile import MAX_FILE_BYTES
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import HarnessRepository

# Of the budget, this part at most is for the differences to other versions.
FOR_VERSIONS = 0.15
# A file that does not fit is shown from this much space on.
FEWEST_TOKENS = 100
# Characters of a description where not even all descriptions fit.
SHORT = 80
CHARACTERS_PER_TOKEN = 3


@dataclass
class ShownFiles:
    """Path -> what is shown of it; each cut names the path and how many characters are missing."""

    texts: dict[str, str] = field(default_factory=dict)
    cuts: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0

    def add(self, path: str, text: str, missing: int = 0) -> None:
        """Show this of a file, instead of what was shown of it before."""
        before = self.texts.get(path)
        self.tokens += _count(path, text) - (0 if before is None else _count(path, before))
        self.texts[path] = text
        self.cuts = [cut for cut in self.cuts if cut["path"] != path]
        if missing > 0:
            self.cuts.append({"path": path, "characters": missing})


def readable_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files of a version that belong to the harness, as text; what lies beside a skill may be none."""
    skill_folders = skill_folders_of(files)
    return {
        path: data.decode("utf-8", "replace")
        for path, data in files.items()
        if is_harness_path(path, skill_folders, files) and b"\0" not in data and len(data) <= MAX_FILE_BYTES
    }


def choose_files(files: Mapping[str, bytes], cases: Sequence[FailureCase], budget: int) -> ShownFiles:
    """The files to show beside these cases, in at most about `budget` tokens."""
    texts, harness = readable_files(files), read_harness(files)
    used = _files_used(texts, harness, cases)
    others = _nearest_first([path for path in sorted(texts) if path not in used], harness, cases)
    shown = ShownFiles()
    for path in used:
        _add_whole(shown, path, texts[path], budget)
    for path in others:
        described = _describe(path, texts[path], harness)
        shown.add(path, described, len(texts[path]) - len(described))
    if shown.tokens > budget:
        _shorten(shown, others, texts, harness)
    for path in others:
        if shown.tokens + _count(path, texts[path]) - _count(path, shown.texts[path]) <= budget:
            shown.add(path, texts[path])
    shown.texts = {path: shown.texts[path] for path in texts if path in shown.texts}
    return shown


def compare_versions(
    repository: HarnessRepository, live: str, cases: Sequence[FailureCase], paths: Sequence[str], budget: int
) -> list[dict[str, Any]]:
    """Of the versions that cases ran on and that are not `live`: their cases, and how these files differ from it."""
    by_commit: dict[str, list[int]] = {}
    for case in cases:
        if case.harness_commit != live:
            by_commit.setdefault(case.harness_commit, []).append(case.pk)
    found = [_compare(repository, live, commit, ids, paths) for commit, ids in sorted(by_commit.items())]
    differing = [version for version in found if version is not None]
    return [_clip_diff(version, budget // len(differing)) for version in differing]


def _files_used(texts: Mapping[str, str], harness: Harness, cases: Sequence[FailureCase]) -> list[str]:
    """What is always in the prompt or checked, the skills that were loaded and the tools that were called."""
    loaded: Counter[str] = Counter()
    called: Counter[str] = Counter()
    for case in cases:
        trajectory = case.trajectory if isinstance(case.trajectory, dict) else {}
        loaded.update({str(name) for name in _list(trajectory.get("skills_loaded"))})
        calls = [call for call in _list(trajectory.get("tool_calls")) if isinstance(call, dict)]
        called.update({str(call.get("name")) for call in calls})
    always = [path for path in sorted(texts) if path.startswith(("prompts/", "hooks/"))]
    skills = [harness.skills[name].path for name, _n in loaded.most_common() if name in harness.skills]
    tools = [harness.tools[name].path for name, _n in called.most_common() if name in harness.tools]
    paths = dict.fromkeys(["harness.yaml", *always, *skills, *tools])
    return [path for path in paths if path in texts]


def _nearest_first(paths: Sequence[str], harness: Harness, cases: Sequence[FailureCase]) -> list[str]:
    """The files by how much of the cases' words they have in their name and description."""
    asked = character_pairs(" ".join(f"{case.title} {case.symptom}" for case in cases))
    known = {skill.path: skill.description for skill in harness.skills.values()}
    known |= {tool.path: tool.description for tool in harness.tools.values()}

    def distance(path: str) -> tuple[float, str]:
        pairs = character_pairs(f"{path} {known.get(path, '')}")
        return -len(pairs & asked) / len(pairs), path

    return sorted(paths, key=distance)


def _add_whole(shown: ShownFiles, path: str, text: str, budget: int) -> None:
    left = budget - shown.tokens
    if _count(path, text) <= left:
        shown.add(path, text)
        return
    room = max(left, FEWEST_TOKENS) * CHARACTERS_PER_TOKEN
    missing = max(0, len(text) - room)
    shown.add(path, f"{text[:room]}\n[… {missing:,} characters cut …]\n" if missing else text, missing)


def _describe(path: str, text: str, harness: Harness, most: int | None = None) -> str:
    """A skill or a tool by its name and description, in its own format; of another file, that it is there."""
    skill = next((skill for skill in harness.skills.values() if skill.path == path), None)
    tool = next((tool for tool in harness.tools.values() if tool.path == path), None)
    if skill is not None:
        kind = json.dumps(skill.kind)
        head = _head(skill.name, skill.description, most)
        described = (
            f"---\n{head}metadata: {{kind: {kind}}}\n---\n[… {len(skill.body):,} characters not shown …]\n"
        )
    elif tool is not None:
        properties = tool.parameters.get("properties")
        names = list(properties) if isinstance(properties, dict) else []
        takes = json.dumps({"type": "object", "properties": {name: {} for name in names}}, ensure_ascii=False)
        described = (
            f"{_head(tool.name, tool.description, most)}parameters: {takes}\n# [… the rest is not shown …]\n"
        )
    else:
        described = f"[… {len(text):,} characters not shown …]\n"
    return min(text, described, key=len)


def _head(name: str, description: str, most: int | None) -> str:
    # JSON texts are YAML too.
    said = description if most is None or len(description) <= most else description[:most] + "…"
    return (
        f"name: {json.dumps(name, ensure_ascii=False)}\ndescription: {json.dumps(said, ensure_ascii=False)}\n"
    )


def _shorten(shown: ShownFiles, others: Sequence[str], texts: Mapping[str, str], harness: Harness) -> None:
    for path in others:
        described = _describe(path, texts[path], harness, SHORT)
        shown.add(path, described, len(texts[path]) - len(described))


def _compare(
    repository: HarnessRepository, live: str, commit: str, cases: list[int], paths: Sequence[str]
) -> dict[str, Any] | None:
    """None where the files are the same."""
    if not commit:
        return {"cases": cases, "version": "not known"}
    try:
        known = repository.resolve(commit)
        diff = repository.diff(known, live, paths) if paths else ""
    except HarnessRepoError:
        return {"cases": cases, "version": f"{commit[:12]}, which the repository does not have"}
    return {"cases": cases, "version": commit[:12], "changed_since": diff} if diff else None


def _clip_diff(version: dict[str, Any], budget: int) -> dict[str, Any]:
    diff = version.get("changed_since", "")
    room = max(budget, FEWEST_TOKENS) * CHARACTERS_PER_TOKEN
    if len(diff) <= room:
        return version
    return {**version, "changed_since": f"{diff[:room]}\n[… {len(diff) - room:,} characters cut …]"}


def _count(path: str, text: str) -> int:
    return estimate_tokens(path) + estimate_tokens(json.dumps(text, ensure_ascii=False)) + 2


def _list(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else [])
