"""All flags of a change, in the order of its files and lines."""

from collections.abc import Iterator, Mapping, Sequence

from evolution.loop.flags.addresses import Known, flag_addresses, read_addresses
from evolution.loop.flags.changes import FileChange, list_changes
from evolution.loop.flags.characters import flag_characters
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.hooks import flag_hook, is_hook_path
from evolution.loop.flags.injection import flag_injections
from evolution.loop.flags.obligations import flag_messages, flag_rules
from evolution.loop.flags.parts import flag_skill, flag_tool, is_skill_path, is_tool_path
from evolution.loop.flags.rendering import flag_unsaid
from evolution.loop.flags.settings import flag_settings
from evolution.loop.flags.transcripts import flag_copies, read_shown
from harness_repo.format.harness import CONFIG


def find_flags(
    base: Mapping[str, bytes], head: Mapping[str, bytes], transcripts: Sequence[str] = ()
) -> list[Flag]:
    """The flags of the change from `base` to `head`, by path and line, each once.

    `transcripts` are the texts of the cases that the drafter was shown, one per case.
    """
    changes = list_changes(base, head)
    if not changes:
        return []
    known = read_addresses(base)
    names = _known_names(base, known)
    shown = read_shown(transcripts, base)
    found = set(flag_rules(base, head))
    found.update(flag_unsaid(base, head, list(found)))
    for change in changes:
        found.update(_flag_text(change, known, names))
        found.update(flag_copies(change, shown))
        found.update(_flag_part(change, head))
    gone = {change.old_path for change in changes if not change.new_path}
    # That all of a file is gone is one thing to say; what it forbade is said line by line.
    return sorted(flag for flag in found if flag.kind is not FlagKind.RULE_REMOVED or flag.path not in gone)


def _flag_text(change: FileChange, known: Known, names: set[str]) -> Iterator[Flag]:
    yield from flag_characters(change, names)
    yield from flag_addresses(change, known)
    yield from flag_injections(change)


def _flag_part(change: FileChange, head: Mapping[str, bytes]) -> Iterator[Flag]:
    paths = (change.old_path, change.new_path)
    if any(map(is_hook_path, paths)):
        yield from flag_hook(change, head)
    if any(map(is_tool_path, paths)):
        yield from flag_tool(change)
    if all(map(is_hook_path, paths)) or all(map(is_tool_path, paths)):
        yield from flag_messages(change)
    if any(map(is_skill_path, paths)):
        yield from flag_skill(change)
    if CONFIG in paths:
        yield from flag_settings(change)


def _known_names(base: Mapping[str, bytes], known: Known) -> set[str]:
    """The names that text of the harness refers to: of skills, tools, hooks and hosts."""
    stems = {path.rpartition("/")[2].rpartition(".")[0] for path in base}
    folders = {part for path in base for part in path.split("/")[:-1]}
    return {name for name in stems | folders | known.hosts if len(name) > 2}
