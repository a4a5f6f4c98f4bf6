"""What a draft has changed so far, read back from the files as change sentences, so that it can be drafted anew."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.reading import HEADING, ITEM
from evolution.adapters.rehearsal.sentences import Change
from evolution.adapters.rehearsal.wording import listed
from evolution.prompts.edit_blocks import BadEdit, EditBlock, replace_blocks
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
) -> list[dict[str, Any]]:
    """The edits that make the paths as wanted, from what they are now."""
    edits: list[dict[str, Any]] = []
    for path in dict.fromkeys(paths):
        new, old = wanted.get(path), now.get(path)
        if new is None and old is not None:
            edits.append({"path": path, "action": "delete"})
        elif new is not None and old is None:
            edits.append({"path": path, "action": "create", "content": new})
        elif new is not None and old is not None and new != old:
            edits.append(change_text(path, old, new))
    return edits


def change_text(path: str, old: str, new: str) -> dict[str, Any]:
    """The edit that makes one text of another: by blocks, or as a whole where these would be longer."""
    blocks = _blocks_between(old, new)
    if blocks and sum(len(text) for block in blocks for text in block.values()) < len(new):
        return {"path": path, "action": "search_replace", "blocks": blocks}
    return {"path": path, "action": "replace", "content": new}


def _blocks_between(old: str, new: str) -> list[dict[str, str]]:
    """Blocks that lead from one text to the other; none where a passage can't be told from others."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    blocks = []
    for tag, start, end, first, last in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            low, high = _widen(before, start, end)
            replacement = [*before[low:start], *after[first:last], *before[end:high]]
            blocks.append({"search": "".join(before[low:high]), "replace": "".join(replacement)})
    try:
        made = replace_blocks(old, [EditBlock.model_validate(block) for block in blocks])
    except (BadEdit, ValidationError):
        return []
    return blocks if made == new else []


def _widen(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """As many lines more around a passage as it takes to find it only once."""
    text = "".join(lines)
    while not "".join(lines[start:end]).strip() or text.count("".join(lines[start:end])) > 1:
        if start == 0 and end == len(lines):
            break
        start, end = max(0, start - 1), end + (start == 0)
    return start, end
