"""A harness in a bare git repository: versions are commits, changes are branches, `main` is what is live.

All work is done on objects, never in a checkout; every ref moves by compare-and-swap. What the files mean is the
business of `format`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from harness_repo.git.building import MAIN, building_repository, write_first
from harness_repo.git.commitinfo import CommitInfo
from harness_repo.git.commits import FileChange, read_links, read_log, write_commit, write_tag
from harness_repo.git.errors import BadRef, MissingRef, NothingToCommit, StaleBase
from harness_repo.git.locks import writer_lock
from harness_repo.git.merges import (
    NO_RESOLUTIONS,
    MergeCheck,
    Resolutions,
    check_merge,
    revert_tree,
)
from harness_repo.git.merging import Merging
from harness_repo.git.names import check_new_ref_name
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter
from harness_repo.git.reading import ReadableRepository
from harness_repo.git.refs import (
    BRANCHES,
    TAGS,
    delete_ref,
    drop_pointer,
    make_tag,
    move_ref,
    read_ref,
)
from harness_repo.git.standing import Standing
from harness_repo.git.trees import edit_tree

__all__ = ["MAIN", "Author", "CommitInfo", "Edits", "FileChange", "HarnessRepository", "MergeCheck"]

_GC_SECONDS = 3600.0

Edits = Mapping[str, bytes | None]


class HarnessRepository(ReadableRepository):
    """One bare repository; cheap to make, holds nothing open."""

    @classmethod
    def create(cls, path: Path | str, files: Mapping[str, bytes], *, author: Author, message: str) -> Self:
        """Make the repository with `files` as the first version on main; RepoExists if the path is taken.

        It appears at once, complete: of two processes that create it, one succeeds.
        """
        with building_repository(path) as runner:
            write_first(runner, files, author, message)
        return cls(path)

    def commit(
        self,
        branch: str,
        edits: Edits,
        *,
        parent: str,
        author: Author,
        message: str,
        expected_head: str | None = None,
        onto: str | None = None,
    ) -> str:
        """Put one commit with `edits` (None deletes) on `parent`, move the branch to it, and return its id.

        With `onto` the edits are of the files of that version, which becomes a second parent: the branch goes on from
        there. The branch must be at `expected_head` (default: `parent`), or not exist; else StaleBase. Raises
        NothingToCommit, BadPath, TooLarge, BadRef, MissingRef, RepoBusy; then no branch has moved. What main has
        is never lost: there the parent builds on the head. When it returns, objects and branch are on the disk.
        """
        check_new_ref_name(branch)
        base = self.resolve(parent)
        parents = [base] if onto is None else [base, self.resolve(onto)]
        expected = self._expected(branch, base, expected_head)
        self._keep_main(branch, base, expected)
        writer = self._writer()
        standing = Standing(self._git, writer)
        standing.need(*parents)
        new = write_commit(writer, self._edit(writer, parents[-1], edits), parents, author, message)
        return self._move(branch, new, expected, writer, standing)

    def build_commit(
        self, edits: Edits, *, parent: str, author: Author, message: str, onto: str | None = None
    ) -> str:
        """As `commit`, but no branch moves: its id can be kept first, and `move_branch` takes it."""
        parents = [self.resolve(each) for each in (parent, onto) if each is not None]
        writer = self._writer()
        new = write_commit(writer, self._edit(writer, parents[-1], edits), parents, author, message)
        writer.flush()
        return new

    def merge(
        self,
        branch: str,
        base: str,
        heads: Sequence[str],
        *,
        author: Author,
        message: str,
        expected_head: str | None = None,
        resolutions: Resolutions = NO_RESOLUTIONS,
    ) -> str:
        """Merge `heads` one after the other onto `base`, move the branch to the result, and return its id.

        The branch must be at `expected_head` (default: `base`), or not exist; else StaleBase. A head that
        is already contained is skipped. What people decided of conflicts, by their keys, is taken. Raises
        MergeConflict where one is open, and then nothing has moved; NothingToCommit.
        """
        check_new_ref_name(branch)
        start = self.resolve(base)
        expected = self._expected(branch, start, expected_head)
        self._keep_main(branch, start, expected)
        made = self._merging(author, message, resolutions)
        new = made.merge_heads(start, [self.resolve(head) for head in heads])
        return self._move(branch, new, expected, made.writer, made.standing)

    def build_merge(
        self, base: str, heads: Sequence[str], *, author: Author, message: str, resolutions: Resolutions
    ) -> str:
        """As `merge`, but no branch moves: what is made can be looked at first, and `move_branch` takes it."""
        return self._merging(author, message, resolutions).merge_heads(
            self.resolve(base), [self.resolve(head) for head in heads]
        )

    def build_rebase(
        self, head: str, onto: str, *, author: Author, message: str, resolutions: Resolutions
    ) -> str:
        """A commit after `head` that takes in `onto`, with the files that merging the head onto it gives.

        No branch moves. Raises MergeConflict; NothingToCommit when the head has it already.
        """
        return self._merging(author, message, resolutions).take_in(self.resolve(head), self.resolve(onto))

    def move_branch(self, branch: str, new: str, *, expected_head: str | None) -> None:
        """Put a branch other than main from where it is expected (None: there is none) to a commit; StaleBase."""
        check_new_ref_name(branch)
        if branch == MAIN:
            raise BadRef("main moves by advance_main")
        target = self.resolve(new)
        expected = None if expected_head is None else self.resolve(expected_head)
        standing = Standing(self._git, self._writer())
        standing.need(target)
        move_ref(self._git, BRANCHES + branch, target, expected, check=lambda: standing.check(target))

    def check_merge(
        self,
        base: str,
        heads: Sequence[str],
        *,
        resolutions: Resolutions = NO_RESOLUTIONS,
        rebasing: bool = False,
    ) -> MergeCheck:
        """Whether `merge` of the heads (with `rebasing`: each after build_rebase) would succeed; if not, why.

        Nothing moves and nothing is written.
        """
        commits = [self.resolve(head) for head in heads]
        return check_merge(self._git, self.resolve(base), commits, resolutions, rebasing=rebasing)

    def revert(
        self, branch: str, commit: str, *, expected_head: str, author: Author, message: str = ""
    ) -> str:
        """Put a commit on the branch that takes back what `commit` changed (a merge: against its first parent).

        Returns its id. Raises StaleBase when the branch is not at `expected_head`, MergeConflict when later commits
        changed the same lines, NothingToCommit when nothing is left to take back.
        """
        check_new_ref_name(branch)
        undone = self.resolve(commit)
        head = self._expected(branch, undone, expected_head) or ""
        writer = self._writer()
        standing = Standing(self._git, writer)
        tree = revert_tree(self._git, writer, head, undone)
        standing.need(head, tree)
        if tree == self._links(head).tree:
            raise NothingToCommit(f"nothing of {undone[:12]} is left to take back")
        subject = read_log(self._git, undone, 1)[0].subject
        text = message or f'Revert "{subject}"\n\nThis reverts commit {undone}.'
        new = write_commit(writer, tree, [head], author, text)
        return self._move(branch, new, head, writer, standing)

    def advance_main(self, new: str, *, expected: str) -> None:
        """Make `new` what is live; StaleBase if main is not at `expected`, or `new` does not build on it."""
        old, target = self.resolve(expected), self.resolve(new)
        if not self._contains(target, old):
            raise StaleBase(f"{target[:12]} does not build on {old[:12]}")
        standing = Standing(self._git, self._writer())
        standing.need(target)
        move_ref(self._git, BRANCHES + MAIN, target, old, check=lambda: standing.check(target))

    def restore(self, commit: str, *, expected: str, author: Author, message: str) -> str:
        """Roll back: a new commit on main with the files of `commit`. StaleBase, NothingToCommit."""
        old = self.resolve(expected)
        tree = self._links(self.resolve(commit)).tree
        if self.resolve(MAIN) != old:
            raise StaleBase("main has moved")
        if tree == self._links(old).tree:
            raise NothingToCommit("main has these files already")
        writer = self._writer()
        standing = Standing(self._git, writer)
        standing.need(old, tree)
        new = write_commit(writer, tree, [old], author, message)
        return self._move(MAIN, new, old, writer, standing)

    def tag(self, name: str, commit: str, message: str, author: Author) -> None:
        """Put an annotated tag on a commit; RefExists if the name is taken."""
        check_new_ref_name(name)
        writer = self._writer()
        standing = Standing(self._git, writer)
        target = self.resolve(commit)
        standing.need(target)
        sha = write_tag(writer, name, target, author, message)
        writer.flush()
        make_tag(self._git, TAGS + name, sha, check=lambda: standing.check(sha))

    def drop_pointer(self, branch: str) -> None:
        """Remove a branch that is a symbolic ref; what it stands for stays where it is."""
        drop_pointer(self._git, BRANCHES + check_new_ref_name(branch))

    def delete_branch(self, name: str) -> None:
        """Remove a branch other than main; its commits stay readable by id until git collects them."""
        check_new_ref_name(name)
        if name == MAIN:
            raise BadRef("main cannot be deleted")
        head = read_ref(self.path, BRANCHES + name)
        if head is None:
            raise MissingRef(f"no branch {name!r}")
        delete_ref(self._git, BRANCHES + name, head)

    def collect_garbage(self, *, everything: bool = False) -> None:
        """Pack objects and refs, and remove objects that nothing has led to for two weeks, or all such at once.

        Nobody of ours moves a ref meanwhile, and who waits for that writes again what he has written. RepoBusy.
        """
        expiry = "now" if everything else "2.weeks.ago"
        with writer_lock(self.path) as lock, lock.announced([BRANCHES + MAIN]):
            arguments = ("gc", "--quiet", f"--prune={expiry}")
            self._git.run(*arguments, keep_open=(lock.descriptor,), seconds=_GC_SECONDS)

    def _merging(self, author: Author, message: str, resolutions: Resolutions) -> Merging:
        writer = self._writer()
        return Merging(self._git, writer, Standing(self._git, writer), author, message, resolutions)

    def _writer(self) -> ObjectWriter:
        return ObjectWriter(self.path / "objects")

    def _edit(self, writer: ObjectWriter, base: str, edits: Edits) -> str:
        """The tree of a version with the edits; NothingToCommit when it is the same."""
        with ObjectReader(self._git) as reader:
            old = read_links(reader, base).tree
            tree = edit_tree(reader, writer, old, edits)
        if tree == old:
            raise NothingToCommit("the edits change nothing")
        return tree

    def _move(
        self, branch: str, new: str, expected: str | None, writer: ObjectWriter, standing: Standing
    ) -> str:
        """Write what waits, and move the branch to a commit that is among it."""
        writer.flush()
        move_ref(self._git, BRANCHES + branch, new, expected, check=lambda: standing.check(new))
        return new

    def _expected(self, branch: str, base: str, expected_head: str | None) -> str | None:
        """Where the branch has to be when it moves, None for not there; StaleBase if it is elsewhere."""
        head = read_ref(self.path, BRANCHES + branch)
        wanted = base if expected_head is None else self.resolve(expected_head)
        if head is None and expected_head is None:
            return None
        if head != wanted:
            raise StaleBase(f"{branch} is at {(head or 'no commit')[:12]}, not at {wanted[:12]}")
        return head

    def _keep_main(self, branch: str, base: str, head: str | None) -> None:
        """Refuse to move main to what does not build on it."""
        if branch == MAIN and head is not None and not self._contains(base, head):
            raise StaleBase(f"main would lose its commits: {base[:12]} does not build on {head[:12]}")
