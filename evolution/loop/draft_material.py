"""Beside stage 4: which files and cases the editor is shown, within a budget of tokens; the rest by name.

What is shown may be replaced as a whole; what is not, only where a passage of it is known.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evolution.loop.diagnosis import build_brief
from evolution.loop.trimming import trim_cases
from evolution.loop.visibility import known_keys, shown_members
from evolution.models import Diagnosis, FailureCase
from evolution.prompts.diagnosis import CaseBrief
from evolution.prompts.tokens import estimate_tokens
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.format.skills import SKILL_FILE

SHOWN_CASES = 6
# Of the cases together; they only illustrate what the diagnosis says.
CASE_TOKENS = 3_000
LONGEST_NOTE = 200


@dataclass(frozen=True)
class Files:
    """Files with their text, and of those there was no room for what they are about."""

    shown: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    # their lengths
    characters: dict[str, int] = field(default_factory=dict)

    def cuts(self) -> list[dict[str, Any]]:
        """What is missing, as exchanges keep it."""
        return [{"path": path, "characters": count} for path, count in self.characters.items()]


@dataclass(frozen=True)
class Cases:
    """Failures as they are shown, their ids, the dataset keys of what they ask, and what was cut."""

    briefs: list[CaseBrief]
    ids: list[int]
    keys: list[str]
    cuts: list[dict[str, Any]]


def choose_files(files: Mapping[str, str], named: str, needed: Iterable[str], budget: int) -> Files:
    """The files that are needed or named in a text, and harness.yaml; of the others as many as `budget` tokens allow.

    Of these, prompts and hooks come first, then tools, then skills.
    """
    wanted = {CONFIG, *needed, *(path for path in files if _is_named(path, named))}
    shown, spent = wanted & set(files), 0
    for path in sorted(set(files) - wanted, key=lambda path: (_rank(path), path)):
        tokens = estimate_tokens(files[path])
        if spent + tokens <= budget:
            shown.add(path)
            spent += tokens
    left_out = [path for path in files if path not in shown]
    about = _describe_skills(files) if left_out else {}
    return Files(
        {path: text for path, text in files.items() if path in shown},
        {path: about.get(path, "")[:LONGEST_NOTE] for path in left_out},
        {path: len(files[path]) for path in left_out},
    )


def choose_cases(diagnosis: Diagnosis) -> Cases:
    """The failures that the editor sees: those that the diagnosis quotes first, none that is hidden from drafters."""
    quoted = {item["case"] for item in diagnosis.evidence}
    members = sorted(shown_members(diagnosis.cluster), key=lambda case: case.pk not in quoted)[:SHOWN_CASES]
    trimmed = trim_cases([_without_trajectory(case) for case in members], CASE_TOKENS, {})
    return Cases(
        [each.brief for each in trimmed],
        [case.pk for case in members],
        known_keys(diagnosis.harness, members),
        [cut for each in trimmed for cut in each.cuts],
    )


def _is_named(path: str, text: str) -> bool:
    """Whether a text names the file, or the skill or tool that it is of; sentences may stop right after it."""
    parts = path.split("/")
    name = parts[-2] if parts[-1] == SKILL_FILE and len(parts) > 1 else parts[-1].rsplit(".", 1)[0]
    is_part = path.startswith("tools/") or parts[-1] == SKILL_FILE
    return path in text or (is_part and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None)


def _rank(path: str) -> int:
    if path.startswith(("prompts/", "hooks/")):
        return 0
    if path.startswith("tools/"):
        return 1
    return 2 if path.endswith(SKILL_FILE) else 3


def _describe_skills(files: Mapping[str, str]) -> dict[str, str]:
    harness = read_harness({path: text.encode() for path, text in files.items()})
    return {skill.path: skill.description for skill in harness.skills.values()}


def _without_trajectory(case: FailureCase) -> CaseBrief:
    return build_brief(case).model_copy(update={"trajectory": None, "context": {}, "findings": []})
