"""What may be committed to a proposal's branch: edits inside the harness that add no problem. No git here."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from harness_repo.format.harness import is_harness_path, read_harness, skill_folders_of
from harness_repo.format.problems import Problem

LARGEST = 200_000
# Of the problems that an edit would add; the rest is said to be there.
MOST_LISTED = 8

Edits = Mapping[str, bytes | None]


class EditRefused(LoopError):
    """The edits can't go on the branch; the message says why, for people and for the editor model."""


def check_edits(base: Mapping[str, bytes], before: Mapping[str, bytes], edits: Edits) -> dict[str, bytes]:
    """Return the files after the edits of `before`; raises EditRefused, which names all that is wrong.

    `base` is the version that the proposal starts from: problems that it has are not held against the edit.
    """
    after = apply_changes(before, edits)
    faults = find_edit_faults(base, before, edits)
    if faults:
        raise EditRefused("\n".join(faults))
    return after


def apply_changes(before: Mapping[str, bytes], edits: Edits) -> dict[str, bytes]:
    """The files with the edits; None takes a file out."""
    return {path: data for path, data in {**before, **edits}.items() if data is not None}


def find_edit_faults(base: Mapping[str, bytes], before: Mapping[str, bytes], edits: Edits) -> list[str]:
    """What stands against the edits, empty for nothing; see `check_edits`."""
    # Those of the base: an edit of harness.yaml opens no folder to the edits beside it.
    skill_folders = skill_folders_of(base)
    faults = [
        fault
        for path, content in edits.items()
        if (fault := _find_file_fault(path, content, is_ours=is_harness_path(path, skill_folders, base)))
    ]
    if faults:
        return faults
    after = apply_changes(before, edits)
    return [_("the edit changes nothing")] if after == dict(before) else find_problem_faults(base, after)


def list_added(old: Iterable[Problem], new: Iterable[Problem]) -> list[Problem]:
    """The new problems that are none of the old ones, as often as they are more."""
    # Lines move with every edit, so they do not tell one problem from another.
    known = Counter((problem.path, problem.code, problem.message) for problem in old)
    added = []
    for problem in new:
        key = (problem.path, problem.code, problem.message)
        known[key] -= 1
        if known[key] < 0:
            added.append(problem)
    return added


def describe_added(problems: Sequence[Problem]) -> str:
    """That an edit adds these problems, the first of them by name."""
    told = [f"{problem.path}:{problem.line}: {problem.message}" for problem in problems[:MOST_LISTED]]
    listed = "; ".join(told) + (" …" if len(problems) > MOST_LISTED else "")
    return _("it would add problems: %(problems)s") % {"problems": listed}


def find_problem_faults(base: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """The problems that `after` has and `base` has not, as one text, and another kind of harness."""
    old, new = read_harness(base), read_harness(after)
    added = list_added(old.problems, new.problems)
    faults = [describe_added(added)] if added else []
    if new.kind != old.kind:
        faults.append(_("it would make the harness one of kind %(kind)s") % {"kind": new.kind})
    return faults


def is_editable(path: str, files: Mapping[str, bytes]) -> bool:
    """Whether an edit may go to this path: a file of the harness, or one that may be made in it."""
    return is_harness_path(path, skill_folders_of(files), files) and _is_plain(path)


def _is_plain(path: str) -> bool:
    return all(part.strip(". ") and part.isprintable() for part in path.split("/"))


def _find_file_fault(path: str, content: bytes | None, *, is_ours: bool) -> str:
    if not is_ours or not _is_plain(path):
        return _("%(path)s is not a path inside the harness") % {"path": path}
    if content is not None and len(content) > LARGEST:
        return _("%(path)s is larger than %(most)d bytes") % {"path": path, "most": LARGEST}
    if content is not None and b"\0" in content:
        return _("%(path)s is not text") % {"path": path}
    return ""
