"""What a draft has changed so far, read back from the files as change sentences, so that it can be drafted anew."""

import difflib
import re
from collections.abc import Iterable, Mapping

import yaml

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.reading import HEADING, ITEM
from evolution.adapters.rehearsal.sentences import Change
from evolution.adapters.rehearsal.wording import listed
from harness_repo.format.skills import Skill

_ESCAPED = re.compile(r"\\(.)")


def read_draft(base: HarnessView, now: HarnessView, paths: Iterable[str]) -> list[Change]:
    """The changes of the paths from `base` to `now`, as far as they have a form of `sentences`."""
    return [change for path in paths for change in _changes_of(path, base, now)]


def _changes_of(path: str, base: HarnessView, now: HarnessView) -> list[Change]:
    old, new = base.files.get(path, ""), now.files.get(path, "")
    if path.startswith("hooks/"):
        return [Change("hook", path, listed(_patterns(new), chinese=base.chinese))] if not old and new else []
    skill = now.skill_at(path)
    if skill is None:
        return [Change("rule", path, item) for _, item in _added_items(old, new)]
    before = base.skill_at(path)
    return [*_described(path, before, skill), *_added_lines(path, before.body if before else "", skill.body)]


def _described(path: str, before: Skill | None, skill: Skill) -> list[Change]:
    if before is None:
        return [Change("skill", path, skill.description)]
    added = skill.description.removeprefix(before.description.strip()).strip()
    is_longer = skill.description.startswith(before.description.strip()) and added
    return [Change(sentences.DESCRIPTION, path, added)] if is_longer else []


def _added_lines(path: str, old: str, new: str) -> list[Change]:
    return [
        Change(sentences.SECTIONS[heading.lower()], path, item)
        for heading, item in _added_items(old, new)
        if heading.lower() in sentences.SECTIONS
    ]


def _added_items(old: str, new: str) -> list[tuple[str, str]]:
    """(heading, list item) of the lines that only the new text has."""
    found, heading = [], ""
    for line in difflib.ndiff(old.splitlines(), new.splitlines()):
        mark, text = line[:1], line[2:]
        if mark in {"-", "?"}:
            continue
        title, item = HEADING.match(text), ITEM.match(text)
        heading = title.group(1).strip() if title else heading
        if mark == "+" and item:
            found.append((heading, item.group(1).strip()))
    return found


def _patterns(hook: str) -> list[str]:
    """The phrases that a drafted hook looks for."""
    try:
        check = yaml.safe_load(hook)["check"]
        return [_ESCAPED.sub(r"\1", str(pattern)) for pattern in check["patterns"]]
    except (yaml.YAMLError, KeyError, TypeError):
        return []


def replacing(
    wanted: Mapping[str, str], now: Mapping[str, str], paths: Iterable[str]
) -> list[dict[str, str]]:
    """The edits that make the paths as wanted, from what they are now."""
    edits = []
    for path in dict.fromkeys(paths):
        new, old = wanted.get(path), now.get(path)
        if new == old:
            continue
        action = "delete" if new is None else "create" if old is None else "replace"
        edits.append({"path": path, "action": action, "content": new or ""})
    return edits
