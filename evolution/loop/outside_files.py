"""What stands against a version that was put together elsewhere, where nobody checked the edits. No git here."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from evolution.loop.edits import find_edit_faults
from harness_repo.runtime.storable import make_storable
from harness_repo.snapshot import Snapshot

# Of the paths of one kind that a text lists.
MOST_LISTED = 8


def find_version_faults(base: Snapshot, head: Snapshot) -> list[str]:
    """Why a branch can't be merged as it is, empty for nothing: texts for people.

    All that it changes against `base` has to be what an edit may do, and nothing but files. Names that are not UTF-8
    are told so that a page can hold them.
    """
    faults: list[str] = make_storable(_find_faults(base, head))
    return faults


def _find_faults(base: Snapshot, head: Snapshot) -> list[str]:
    faults = [
        *_list_changed(_("symbolic links: %(paths)s"), base.links, head.links),
        *_list_changed(_("submodules: %(paths)s"), base.submodules, head.submodules),
        *_list_changed(_("files that can't be read: %(paths)s"), base.skipped, head.skipped),
    ]
    programs = {path: True for path in head.executables - base.executables if path in base.files}
    faults += _list_changed(_("files made executable: %(paths)s"), {}, programs)
    edits = _read_edits(base.files, head.files)
    if not edits:
        return faults or [_("the branch changes nothing")]
    return [*faults, *find_edit_faults(base.files, base.files, edits)]


def _read_edits(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> dict[str, bytes | None]:
    paths = sorted(base.keys() | head.keys())
    return {path: head.get(path) for path in paths if base.get(path) != head.get(path)}


def _list_changed(text: str, base: Mapping[str, Any], head: Mapping[str, Any]) -> list[str]:
    """The text with the paths that are not the same on both sides; none without any."""
    paths = sorted(path for path in base.keys() | head.keys() if base.get(path) != head.get(path))
    listed = ", ".join(paths[:MOST_LISTED]) + (" …" if len(paths) > MOST_LISTED else "")
    return [text % {"paths": listed}] if paths else []
