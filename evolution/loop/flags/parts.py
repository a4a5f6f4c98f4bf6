"""Flags tools and skills that reach further than they did, check less, are used less often, or are gone."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind, Side
from evolution.loop.flags.reading import Part, read_part
from evolution.loop.flags.schemas import find_loosened, shorten
from harness_repo.format.frontmatter import read_front_matter
from harness_repo.format.skills import SKILL_FILE
from harness_repo.format.textfile import read_text
from harness_repo.format.tools import parse_tool
from harness_repo.format.yamlfile import YamlFile, as_list, as_mapping

# What a description is divided into: each is a case in which the skill is used.
_PHRASE = re.compile(r"[、，。；：,.;:!?！？()（）/\n]|\bor\b|\band\b|或者?|以及|时使用")
_ONLY = re.compile(
    r"\bonly\b|\bexcept\b|\bnot\b|\bunless\b|仅限?|只(?:在|有|能|限)|除了|除非|不包括|不用于", re.IGNORECASE
)
_WORDS = re.compile(r"[\W_]+")


def flag_tool(change: FileChange) -> Iterator[Flag]:
    """The flags of a new, changed or deleted tools/*.yaml."""
    old = read_part(change.old_path, change.old_data, "old") if is_tool_path(change.old_path) else None
    new = read_part(change.new_path, change.new_data) if is_tool_path(change.new_path) else None
    if new is None:
        if old is not None:
            yield old.flag((), FlagKind.TOOL_REMOVED, shorten(old.values.get("name", "")))
        return
    before = old.values if old is not None else {}
    if (
        old is not None
        and parse_tool(old.path, change.old_data)[0]
        and not parse_tool(new.path, change.new_data)[0]
    ):
        yield new.flag((), FlagKind.UNREADABLE, shorten(before.get("name", "")))
    yield from _source(new, before)
    if old is not None and new.values:
        yield from _schemas(old, new)


def is_tool_path(path: str) -> bool:
    """Whether a harness reads a tool from the path."""
    return path.startswith("tools/") and path.count("/") == 1 and path.endswith((".yaml", ".yml"))


def _source(new: Part, before: Mapping[str, Any]) -> Iterator[Flag]:
    """Where results come from; a new tool that answers from fixtures reaches nothing."""
    old_source, source = as_mapping(before.get("source")), as_mapping(new.values.get("source"))
    if not new.values or old_source == source or (not before and source.get("kind") == "fixture"):
        return
    for key in [
        key for key in dict.fromkeys([*old_source, *source]) if old_source.get(key) != source.get(key)
    ]:
        was, now = (shorten(value.get(key, "−")) for value in (old_source, source))
        detail = f"{key}: {was} → {now}" if before else f"{key}: {now}"
        yield new.flag(("source", key), FlagKind.SOURCE_CHANGED, detail)


def _schemas(old: Part, new: Part) -> Iterator[Flag]:
    for key in ("parameters", "result_schema"):
        if not isinstance(old.values.get(key), dict):
            continue
        for at, detail in find_loosened(old.values[key], new.values.get(key)):
            place = (key, *at)
            side = new if new.has(place) or not old.has(place) else old
            yield side.flag(place, FlagKind.SCHEMA_LOOSENED, detail)


def flag_skill(change: FileChange) -> Iterator[Flag]:
    """The flags of a new, changed or deleted SKILL.md."""
    old = _read_skill(change.old_path, change.old_data, "old")
    new = _read_skill(change.new_path, change.new_data, "new")
    if old.values and not is_skill_path(change.new_path):
        yield Flag(old.path, "old", 1, FlagKind.SKILL_REMOVED, shorten(old.values.get("name", "")))
        return
    if old.values and not new.values:
        yield Flag(new.path, "new", 1, FlagKind.UNREADABLE, shorten(old.values.get("name", "")))
        return
    grants = sorted(_grants(new) - _grants(old))
    if grants:
        yield new.flag(("allowed-tools",), FlagKind.GRANT_CHANGED, f"allowed-tools + {', '.join(grants)}")
    if old.values:
        yield from _usage(old, new)


def is_skill_path(path: str) -> bool:
    """Whether a skill stands in the file."""
    return path.rpartition("/")[2] == SKILL_FILE


def _usage(old: Part, new: Part) -> Iterator[Flag]:
    """When the skill is used: for less than before, or as another kind."""
    before, after = (str(part.values.get("description") or "") for part in (old, new))
    lost = lost_phrases(before, after)
    if lost:
        yield new.flag(("description",), FlagKind.DESCRIPTION_NARROWED, " · ".join(lost))
    kinds = [as_mapping(part.values.get("metadata")).get("kind", "reply") for part in (old, new)]
    if kinds[0] != kinds[1]:
        yield new.flag(("metadata", "kind"), FlagKind.SETTING_CHANGED, f"kind: {kinds[0]} → {kinds[1]}")


def lost_phrases(before: str, after: str) -> list[str]:
    """The cases of a description that the new one no longer names, and restrictions that it adds."""
    kept = _WORDS.sub("", after).casefold()
    phrases = [phrase.strip() for phrase in _PHRASE.split(before)]
    lost = [phrase for phrase in phrases if _WORDS.sub("", phrase).casefold() not in kept]
    known = {found.casefold() for found in _ONLY.findall(before)}
    return lost + sorted({found for found in _ONLY.findall(after) if found.casefold() not in known})


def _grants(part: Part) -> set[str]:
    value = part.values.get("allowed-tools")
    return set(value.replace(",", " ").split()) if isinstance(value, str) else set(map(str, as_list(value)))


def _read_skill(path: str, data: bytes, side: Side) -> Part:
    """The front matter of a skill; without values where there is none."""
    text = read_text(path, data)[0] if is_skill_path(path) else None
    front = read_front_matter(path, text)[0] if text else None
    return Part(path, side, front.read if front is not None else YamlFile({}))
