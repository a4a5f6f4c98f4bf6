"""What may be committed to a proposal's branch: edits inside the harness that add no problem. No git here."""

from collections import Counter
from collections.abc import Mapping

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from harness_repo.format.harness import is_harness_path, read_harness, skill_folders_of

LARGEST = 200_000

Edits = Mapping[str, bytes | None]


class EditRefused(LoopError):
    """The edits can't go on the branch; the message says why, for people and for the editor model."""


def check_edits(base: Mapping[str, bytes], before: Mapping[str, bytes], edits: Edits) -> dict[str, bytes]:
    """Return the files after the edits of `before`; raises EditRefused.

    `base` is the version that the proposal starts from: problems that it has are not held against the edit.
    """
    # Those of the base: an edit of harness.yaml opens no folder to the edits beside it.
    skill_folders = skill_folders_of(base)
    for path, content in edits.items():
        _check_file(path, content, is_ours=is_harness_path(path, skill_folders, base))
    after = {path: data for path, data in {**before, **edits}.items() if data is not None}
    if after == dict(before):
        raise EditRefused(_("the edit changes nothing"))
    check_problems(base, after)
    return after


def check_problems(base: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Raise EditRefused when `after` has a problem that `base` has not, or is of another kind."""
    old, new = read_harness(base), read_harness(after)
    # Lines move with every edit, so they do not tell one problem from another.
    known = Counter((problem.path, problem.code, problem.message) for problem in old.problems)
    added = []
    for problem in new.problems:
        key = (problem.path, problem.code, problem.message)
        known[key] -= 1
        if known[key] < 0:
            added.append(f"{problem.path}:{problem.line}: {problem.message}")
    if added:
        raise EditRefused(_("it would add problems: %(problems)s") % {"problems": "; ".join(added[:5])})
    if new.kind != old.kind:
        raise EditRefused(_("it would make the harness one of kind %(kind)s") % {"kind": new.kind})


def _check_file(path: str, content: bytes | None, *, is_ours: bool) -> None:
    parts = path.split("/")
    if not is_ours or not all(part.strip(". ") and part.isprintable() for part in parts):
        raise EditRefused(_("%(path)s is not a path inside the harness") % {"path": path})
    if content is not None and len(content) > LARGEST:
        raise EditRefused(_("%(path)s is larger than %(most)d bytes") % {"path": path, "most": LARGEST})
    if content is not None and b"\0" in content:
        raise EditRefused(_("%(path)s is not text") % {"path": path})
