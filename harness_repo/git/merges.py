"""Three-way merge of two commits, on objects. Rules that both sides add at the same place are both kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from harness_repo.git.commits import read_links, write_commit
from harness_repo.git.conflicts import FileConflict, parse_conflicts, settle_conflicts
from harness_repo.git.errors import MergeConflict
from harness_repo.git.gitio import GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter
from harness_repo.git.scratch import Scratch, scratch_objects
from harness_repo.git.trees import edit_tree

# What is thrown away need not be on the disk.
_FORGOTTEN = ("core.fsync=none",)
_NOBODY = Author("nobody", "nobody@localhost")


@dataclass(frozen=True)
class MergeCheck:
    """Whether heads can be merged, found out without writing anything."""

    # The first head that conflicts with the base and the heads before it; None: all merge.
    head: str | None = None
    conflicts: tuple[FileConflict, ...] = ()
    # Those that known resolutions settled on the way.
    settled: tuple[FileConflict, ...] = ()
    # Id of the tree that the merge would have; empty when it would fail, or nothing is to be merged.
    tree: str = ""
    # With `rebasing`: it conflicts with the base itself, whatever came before it.
    is_alone: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether a merge would succeed."""
        return self.head is None


# Key of a conflict -> what its file becomes, None: it goes.
Resolutions = Mapping[str, bytes | None]
NO_RESOLUTIONS: Resolutions = MappingProxyType({})


def merge_trees(
    git: GitRunner, writer: ObjectWriter, ours: str, theirs: str, resolutions: Resolutions = NO_RESOLUTIONS
) -> str:
    """Return the tree of the merge; MergeConflict where people have to decide, and have not yet.

    Git calls it a conflict when two branches append to one list. In Markdown below the front matter both additions
    stand, ours first, whatever else of the file merged; anything else stays a conflict. What git does not write itself
    waits in the writer.
    """
    return _Merge(git, writer, resolutions=resolutions).run(ours, theirs).tree


def check_merge(
    git: GitRunner,
    base: str,
    heads: Sequence[str],
    resolutions: Resolutions = NO_RESOLUTIONS,
    *,
    rebasing: bool = False,
) -> MergeCheck:
    """Whether the commits can be merged one after the other onto the base; leaves no object behind.

    With `rebasing`, each takes the base in first, as take_in of `merging` does it.
    """
    current, tree = base, ""
    settled: list[FileConflict] = []
    with scratch_objects(git) as scratch:
        writer = ObjectWriter(scratch.folder, durable=False)
        merge = _Merge(git, writer, scratch, scratch.env, _FORGOTTEN, resolutions)
        for head in heads:
            is_alone = rebasing and not contains(git, head, base)
            try:
                start = merge.commit(base, head, settled)[0] if is_alone else head
                is_alone = False
                current, tree = merge.commit(current, start, settled)
            except MergeConflict as failure:
                return MergeCheck(head, failure.conflicts, tuple(settled), is_alone=is_alone)
    return MergeCheck(settled=tuple(settled), tree=tree)


def contains(git: GitRunner, descendant: str, ancestor: str) -> bool:
    """Whether a commit leads to another; it leads to itself."""
    arguments = ("merge-base", "--is-ancestor", ancestor, descendant)
    return descendant == ancestor or git.run(*arguments, allowed=(0, 1)).code == 0


def revert_tree(git: GitRunner, writer: ObjectWriter, head: str, commit: str) -> str:
    """The tree of `head` without what a commit changed against its first parent; MergeConflict.

    The merge's base is the commit and its other side the parent. Git finds a base by ancestry only, so three
    commits are made up that have the right trees and the right ancestry, and are forgotten.
    """
    with ObjectReader(git) as reader:
        links = read_links(reader, commit)
        before = read_links(reader, links.parents[0]).tree if links.parents else None
        now = read_links(reader, head).tree
    with scratch_objects(git) as scratch:
        made_up = ObjectWriter(scratch.folder, durable=False)
        base = write_commit(made_up, links.tree, [], _NOBODY, "base")
        ours = write_commit(made_up, now, [base], _NOBODY, "ours")
        empty = made_up.add("tree", b"")
        theirs = write_commit(made_up, before or empty, [base], _NOBODY, "theirs")
        made_up.flush()
        # The tree is to stay, so what is written goes to the repository, and the made-up commits are read beside it.
        return _Merge(git, writer, scratch, scratch.reading_env).run(ours, theirs).tree


@dataclass(frozen=True)
class _Merged:
    """A merge that succeeded: its tree, and the conflicts that known resolutions settled."""

    tree: str
    known: tuple[FileConflict, ...] = ()


@dataclass(frozen=True)
class _Merge:
    """How two commits are merged: where git writes, and where what it does not write waits."""

    git: GitRunner
    writer: ObjectWriter
    scratch: Scratch | None = None
    env: Mapping[str, str] | None = None
    settings: Sequence[str] = ()
    resolutions: Resolutions = field(default_factory=dict)

    def commit(self, ours: str, theirs: str, settled: list[FileConflict]) -> tuple[str, str]:
        """A forgotten commit of the merge, and its tree; adds to what known resolutions settled."""
        merged = self.run(ours, theirs)
        settled.extend(merged.known)
        made = write_commit(self.writer, merged.tree, [ours, theirs], _NOBODY, "")
        self.writer.flush()
        return made, merged.tree

    def run(self, ours: str, theirs: str) -> _Merged:
        arguments = ("merge-tree", "--write-tree", "-z", "--messages", ours, theirs)
        result = self.git.run(*arguments, allowed=(0, 1), env=self.env, settings=self.settings)
        tree, *fields = result.out.decode("utf-8", "surrogateescape").split("\0")
        if not result.code:
            return _Merged(tree.strip())
        output = parse_conflicts(fields)
        settled = settle_conflicts(self.git, output, (ours, theirs), self.scratch, self.resolutions)
        if settled.open:
            names = ", ".join(conflict.path for conflict in settled.open)
            raise MergeConflict(f"{theirs[:12]} conflicts in {names}", settled.open, head=theirs)
        with ObjectReader(self.git, self.scratch) as reader:
            return _Merged(edit_tree(reader, self.writer, tree.strip(), settled.files), settled.known)
