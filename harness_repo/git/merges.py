"""Three-way merge of two commits, on objects. Rules that both sides add at the same place are both kept."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_repo.git.commits import read_links, write_commit
from harness_repo.git.conflicts import FileConflict, describe_conflicts, parse_conflicts
from harness_repo.git.errors import MergeConflict
from harness_repo.git.gitio import GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter

_MARKDOWN = ".md"
_NOBODY = Author("nobody", "nobody@localhost")


@dataclass(frozen=True)
class MergeCheck:
    """Whether heads can be merged, found out without writing anything."""

    # The first head that conflicts with the base and the heads before it; None: all merge.
    head: str | None = None
    conflicts: tuple[FileConflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether a merge would succeed."""
        return self.head is None


def merge_trees(git: GitRunner, ours: str, theirs: str, *, env: Mapping[str, str] | None = None) -> str:
    """Return the tree of the merge; MergeConflict where people have to decide.

    Git calls it a conflict when two branches append to one list. In Markdown, where neither side took a line
    away, both additions stand, ours first; anything else stays a conflict.
    """
    tree, fields = _merge(git, ours, theirs, env)
    if fields:
        files = sorted(parse_conflicts(fields).stages)
        if all(_only_adds(git, ours, theirs, path, env) for path in files):
            tree, fields = _merge(git, ours, theirs, env, union=files)
    if fields:
        conflicts = describe_conflicts(git, parse_conflicts(fields), (ours, theirs), env)
        names = ", ".join(conflict.path for conflict in conflicts)
        raise MergeConflict(f"{theirs[:12]} conflicts in {names}", conflicts, head=theirs)
    return tree


def check_merge(git: GitRunner, base: str, heads: Sequence[str]) -> MergeCheck:
    """Whether the commits can be merged one after the other onto the base; leaves no object behind."""
    current = base
    with _scratch_objects(git) as (env, writer):
        for place, head in enumerate(heads):
            try:
                tree = merge_trees(git, current, head, env=env)
            except MergeConflict as failure:
                return MergeCheck(head, failure.conflicts)
            if place + 1 < len(heads):
                current = write_commit(writer, tree, [current, head], _NOBODY, "")
                writer.flush()
    return MergeCheck()


def revert_tree(git: GitRunner, head: str, commit: str) -> str:
    """The tree of `head` without what a commit changed against its first parent; MergeConflict.

    The merge's base is the commit and its other side the parent. Git finds a base by ancestry only, so three
    commits are made up that have the right trees and the right ancestry, and are forgotten.
    """
    with ObjectReader(git) as reader:
        links = read_links(reader, commit)
        before = read_links(reader, links.parents[0]).tree if links.parents else None
        now = read_links(reader, head).tree
    with _scratch_objects(git) as (env, writer):
        base = write_commit(writer, links.tree, [], _NOBODY, "base")
        ours = write_commit(writer, now, [base], _NOBODY, "ours")
        theirs = write_commit(writer, before or writer.add("tree", b""), [base], _NOBODY, "theirs")
        writer.flush()
        # The tree is to stay, so what is written goes to the repository, and the made-up commits are read beside it.
        folder = env["GIT_OBJECT_DIRECTORY"]
        return merge_trees(git, ours, theirs, env={"GIT_ALTERNATE_OBJECT_DIRECTORIES": folder})


@contextmanager
def _scratch_objects(git: GitRunner) -> Iterator[tuple[dict[str, str], ObjectWriter]]:
    """A place for objects that nobody keeps: git's environment for it, and a writer into it."""
    with tempfile.TemporaryDirectory(prefix="harness-objects-") as folder:
        env = {
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(git.path / "objects")),
        }
        yield env, ObjectWriter(Path(folder), durable=False)


def _quoted(path: str) -> str:
    """A path in git's list of object folders, where a colon separates and a quoted name may hold one."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if ":" in path or '"' in path else path


def _merge(
    git: GitRunner, ours: str, theirs: str, env: Mapping[str, str] | None, union: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """Merge once; return the tree and what git says of conflicts, empty when there is none."""
    arguments = ("merge-tree", "--write-tree", "-z", "--messages", ours, theirs)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as attributes:
        attributes.writelines(f"{_pattern(path)} merge=union\n" for path in union)
        attributes.flush()
        settings = (f"core.attributesFile={attributes.name}",)
        result = git.run(*arguments, allowed=(0, 1), settings=settings, env=env)
    tree, *fields = result.out.decode("utf-8", "surrogateescape").split("\0")
    return tree.strip(), fields if result.code else []


def _only_adds(git: GitRunner, ours: str, theirs: str, path: str, env: Mapping[str, str] | None) -> bool:
    """Whether neither side took a line of this Markdown file away since their common base."""
    base = git.run("merge-base", ours, theirs, allowed=(0, 1), env=env).text
    if not base or Path(path).suffix != _MARKDOWN:
        return False
    return all(_removed_lines(git, base, side, path, env) == 0 for side in (ours, theirs))


def _removed_lines(
    git: GitRunner, base: str, side: str, path: str, env: Mapping[str, str] | None
) -> int | None:
    """How many lines of a file a side removed; None when the file is new, gone, binary or unchanged there."""
    arguments = ("diff", "--numstat", "--diff-filter=M", "--no-renames", base, side, "--", path)
    out = git.run(*arguments, env=env).text
    removed = out.split("\t")[1] if out else "-"
    return int(removed) if removed.isdigit() else None


def _pattern(path: str) -> str:
    """A path as a literal gitattributes pattern, from the root."""
    special = "".join(f"\\{sign}" if sign in "\\*?[" else sign for sign in path)
    quoted = special.replace("\\", "\\\\").replace('"', '\\"')
    return f'"/{quoted}"'
