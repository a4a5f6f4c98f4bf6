"""Three-way merge of two commits, on objects. Rules that both sides add at the same place are both kept."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness_repo.errors import MergeConflict
from harness_repo.gitio import GitRunner

_MARKDOWN = ".md"


def merge_trees(git: GitRunner, ours: str, theirs: str) -> str:
    """Return the tree of the merge; MergeConflict(files) where people have to decide.

    Git calls it a conflict when two branches append to one list. In Markdown, where neither side took a line
    away, both additions stand, ours first; anything else stays a conflict.
    """
    tree, files = _merge(git, ours, theirs)
    if files and all(_only_adds(git, ours, theirs, path) for path in files):
        tree, files = _merge(git, ours, theirs, union=files)
    if files:
        raise MergeConflict(f"{theirs[:12]} conflicts in {', '.join(files)}", files)
    return tree


def _merge(git: GitRunner, ours: str, theirs: str, union: Sequence[str] = ()) -> tuple[str, list[str]]:
    """Merge once; return the tree and the files in conflict, sorted."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as attributes:
        attributes.writelines(f"{_pattern(path)} merge=union\n" for path in union)
        attributes.flush()
        arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
        result = git.run(*arguments, allowed=(0, 1), settings=(f"core.attributesFile={attributes.name}",))
    tree, *names = result.out.decode("utf-8", "surrogateescape").split("\0")
    return tree.strip(), sorted({name for name in names if name}) if result.code else []


def _only_adds(git: GitRunner, ours: str, theirs: str, path: str) -> bool:
    """Whether neither side took a line of this Markdown file away since their common base."""
    base = git.run("merge-base", ours, theirs, allowed=(0, 1)).text
    if not base or Path(path).suffix != _MARKDOWN:
        return False
    return all(_removed_lines(git, base, side, path) == 0 for side in (ours, theirs))


def _removed_lines(git: GitRunner, base: str, side: str, path: str) -> int | None:
    """How many lines of a file a side removed; None when the file is new, gone, binary or unchanged there."""
    out = git.run("diff", "--numstat", "--diff-filter=M", "--no-renames", base, side, "--", path).text
    removed = out.split("\t")[1] if out else "-"
    return int(removed) if removed.isdigit() else None


def _pattern(path: str) -> str:
    """A path as a literal gitattributes pattern, from the root."""
    special = "".join(f"\\{sign}" if sign in "\\*?[" else sign for sign in path)
    quoted = special.replace("\\", "\\\\").replace('"', '\\"')
    return f'"/{quoted}"'
