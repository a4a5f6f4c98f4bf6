"""Flags what harness.yaml allows now and did not: limits, parameters, sections and schemas."""

from collections.abc import Iterator
from typing import Any

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.reading import Part, differing_keys, read_part
from evolution.loop.flags.schemas import find_loosened, is_number, shorten
from harness_repo.format.harness import CONFIG, Limits
from harness_repo.format.yamlfile import as_list, as_mapping
from harness_repo.format.yamlnodes import Location

# What holds where a file does not say.
_DEFAULTS = vars(Limits())
# The demands of hooks that are made again: fewer of these is looser, more of everything else.
_LOOSER_WITH_LESS = "hook_retries"
_OTHERS = ("kind", "skill_folders")


def flag_settings(change: FileChange) -> Iterator[Flag]:
    """The flags of a changed harness.yaml."""
    old = read_part(change.old_path, change.old_data, "old")
    new = read_part(change.new_path, change.new_data)
    if CONFIG not in (change.old_path, change.new_path) or not old.values:
        return
    if not new.values:
        yield (new if change.new_path else old).flag((), FlagKind.UNREADABLE, CONFIG)
        return
    yield from _limits(old, new)
    yield from _model(old, new)
    yield from _sections(old, new)
    yield from _rest(old, new)


def _limits(old: Part, new: Part) -> Iterator[Flag]:
    before = {**_DEFAULTS, **as_mapping(old.values.get("limits"))}
    after = {**_DEFAULTS, **as_mapping(new.values.get("limits"))}
    for key in differing_keys(before, after):
        if _is_looser(key, before.get(key), after.get(key)):
            detail = f"{key}: {_said(before.get(key))} → {_said(after.get(key))}"
            yield _beside(old, new, ("limits", key)).flag(("limits", key), FlagKind.LIMIT_CHANGED, detail)


def _is_looser(key: str, before: Any, after: Any) -> bool:
    # No limit at all is the loosest.
    if not is_number(before) or not is_number(after):
        return is_number(before)
    return bool(after < before) if key == _LOOSER_WITH_LESS else bool(after > before)


def _model(old: Part, new: Part) -> Iterator[Flag]:
    before, after = as_mapping(old.values.get("model")), as_mapping(new.values.get("model"))
    for key in differing_keys(before, after):
        detail = f"{key}: {_said(before.get(key))} → {_said(after.get(key))}"
        yield _beside(old, new, ("model", key)).flag(("model", key), FlagKind.MODEL_CHANGED, detail)


def _sections(old: Part, new: Part) -> Iterator[Flag]:
    """Sections that the prompt no longer has, and ones that speak in another role or at another place."""
    after = [as_mapping(entry) for entry in as_list(new.values.get("prompt"))]
    files = [entry.get("file") for entry in after]
    names = [entry.get("name") for entry in after]
    for number, entry in enumerate(map(as_mapping, as_list(old.values.get("prompt")))):
        if entry.get("file") not in files and entry.get("name") not in names:
            yield old.flag(("prompt", number), FlagKind.SECTION_REMOVED, shorten(entry.get("file")))
            continue
        at = (files if entry.get("file") in files else names).index(
            entry.get("file") if entry.get("file") in files else entry.get("name")
        )
        before, now = entry.get("role", "system"), after[at].get("role", "system")
        if before != now:
            detail = f"{entry.get('name')}: {before} → {now}"
            yield new.flag(("prompt", at), FlagKind.SETTING_CHANGED, detail)


def _rest(old: Part, new: Part) -> Iterator[Flag]:
    before, after = old.values, new.values
    if before.get("reply_skill_required", True) and not after.get("reply_skill_required", True):
        detail = "reply_skill_required: true → false"
        yield new.flag(("reply_skill_required",), FlagKind.SETTING_CHANGED, detail)
    for key in _OTHERS:
        if before.get(key) != after.get(key):
            detail = f"{key}: {_said(before.get(key))} → {_said(after.get(key))}"
            yield _beside(old, new, (key,)).flag((key,), FlagKind.SETTING_CHANGED, detail)
    if isinstance(before.get("reply_schema"), dict):
        for at, detail in find_loosened(before["reply_schema"], after.get("reply_schema")):
            place = ("reply_schema", *at)
            yield _beside(old, new, place).flag(place, FlagKind.SCHEMA_LOOSENED, detail)


def _beside(old: Part, new: Part, at: Location) -> Part:
    """The side on which the place is to be seen: the new one, unless it is gone there."""
    return new if new.has(at) or not old.has(at) else old


def _said(value: Any) -> str:
    return "−" if value is None else shorten(value)
