"""A harness in a bare git repository: versions are commits, changes are branches, `main` is what is live.

All work is done on objects, never in a checkout; every ref moves by compare-and-swap. What the files mean is the
business of `format`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from harness_repo.git.building import MAIN, building_repository, write_first
from harness_repo.git.changes import ChangedFile, list_changes
from harness_repo.git.commitinfo import CommitInfo
from harness_repo.git.commits import (
    FileChange,
    Links,
    peel,
    read_between,
    read_history,
    read_links,
    read_log,
    write_commit,
    write_tag,
)
from harness_repo.git.errors import (
    BadRef,
    HarnessRepoError,
    MissingRef,
    NothingToCommit,
    StaleBase,
)
from harness_repo.git.gitio import GitRunner
from harness_repo.git.locks import writer_lock
from harness_repo.git.merges import (
    NO_RESOLUTIONS,
    MergeCheck,
    Resolutions,
    check_merge,
    contains,
    revert_tree,
)
from harness_repo.git.merging import Merging
from harness_repo.git.names import check_new_ref_name, check_path, check_ref_name
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter
from harness_repo.git.refs import (
    BRANCHES,
    REMOTES,
    SOURCE_TAGS,
    TAGS,
    delete_ref,
    drop_pointer,
    list_refs,
    make_tag,
    move_ref,
    read_pointer,
    read_ref,
)
from harness_repo.git.snapshots import read_snapshot
from harness_repo.git.standing import Standing
from harness_repo.git.trees import edit_tree, find_entry
from harness_repo.snapshot import Snapshot

__all__ = ["MAIN", "Author", "CommitInfo", "Edits", "FileChange", "HarnessRepository", "MergeCheck"]

_HEX = frozenset("0123456789abcdef")
_ID_LENGTH = 40
_SHORTEST_ID = 4
_GC_SECONDS = 3600.0
# Where a name is looked for, in this order.
_PLACES = (BRANCHES, TAGS, REMOTES, SOURCE_TAGS)

Edits = Mapping[str, bytes | None]


class HarnessRepository:
    """One bare repository; cheap to make, holds nothing open."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self._git = GitRunner(self.path)

    @classmethod
    def create(cls, path: Path | str, files: Mapping[str, bytes], *, author: Author, message: str) -> Self:
        """Make the repository with `files` as the first version on main; RepoExists if the path is taken.

        It appears at once, complete: of two processes that create it, one succeeds.
        """
        with building_repository(path) as runner:
            write_first(runner, files, author, message)
        return cls(path)

    def resolve(self, ref: str) -> str:
        """The full commit id of a branch, tag, commit id (4 digits or more) or HEAD; else MissingRef.

        After branches and tags of ours come a remote's (`origin/feature/x`) and those of the repository that was
        imported. HarnessRepoError when there is no repository at all.
        """
        check_ref_name(ref)
        is_full = ref == "HEAD" or ref.startswith("refs/")
        with ObjectReader(self._git) as reader:
            for name in [ref] if is_full else [place + ref for place in _PLACES]:
                sha = read_ref(self.path, name)
                if sha and (commit := peel(reader, sha)):
                    return commit
            found = self._find_commit(reader, ref)
        if found is None and not (self.path / "HEAD").is_file():
            raise HarnessRepoError(f"there is no repository in {self.path.name}")
        if found is None:
            raise MissingRef(f"no branch, tag or commit {ref!r}")
        return found

    def files(self, ref: str) -> dict[str, bytes]:
        """All regular files of a version, byte exact; what `snapshot` gives beside them is left out. TooLarge."""
        return dict(self.snapshot(ref).files)

    def snapshot(self, ref: str) -> Snapshot:
        """All that stands under a version: files byte exact, the targets of symbolic links, submodules.

        A file that is too large is skipped; TooLarge when all is too much together.
        """
        return read_snapshot(self._git, self.resolve(ref))

    def read_file(self, ref: str, path: str) -> bytes:
        """One file of a version, byte exact; MissingRef if it is not there."""
        check_path(path)
        commit = self.resolve(ref)
        with ObjectReader(self._git) as reader:
            entry = find_entry(reader, read_links(reader, commit).tree, path)
            if entry is None or not (entry.is_file or entry.is_link):
                raise MissingRef(f"no file {path!r} at {ref!r}")
            return reader.read(entry.sha, "blob")

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

    def tree_of(self, ref: str) -> str:
        """The id of a version's tree: two versions with the same one have the same files."""
        return self._links(self.resolve(ref)).tree

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

    def log(self, ref: str, limit: int = 100) -> list[CommitInfo]:
        """The newest `limit` commits that lead to `ref`, newest first."""
        return read_log(self._git, self.resolve(ref), limit)

    def log_between(self, base: str, head: str) -> list[CommitInfo]:
        """All commits that lead to `head` and not to `base`, over every parent, newest first."""
        return read_between(self._git, self.resolve(base), self.resolve(head))

    def history(self, path: str, ref: str = MAIN, limit: int = 100) -> list[FileChange]:
        """The newest `limit` commits up to `ref` that changed a file, newest first; follows its renames.

        Empty when no commit had such a file. Raises BadPath, MissingRef.
        """
        return read_history(self._git, self.resolve(ref), check_path(path), limit)

    def diff(self, base: str, head: str, paths: Sequence[str] = ()) -> str:
        """The unified diff between two versions (of these files only), as git writes it; not UTF-8 becomes U+FFFD."""
        arguments = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
        names = [check_path(path) for path in paths]
        result = self._git.run(*arguments, self.resolve(base), self.resolve(head), "--", *names)
        return result.out.decode("utf-8", "replace")

    def change_of(self, commit: str, paths: Sequence[str] = ()) -> str:
        """The unified diff of a commit against its first parent, or against nothing; as `diff`."""
        arguments = ("diff-tree", "-p", "--root", "--no-commit-id", "--no-color", "--no-ext-diff")
        options = ("--no-textconv", "--find-renames", "-m", "--first-parent")
        names = [check_path(path) for path in paths]
        result = self._git.run(*arguments, *options, self.resolve(commit), "--", *names)
        return result.out.decode("utf-8", "replace")

    def changed_files(self, base: str, head: str) -> list[str]:
        """The paths that differ between two versions, sorted; a rename is two paths."""
        arguments = ("diff-tree", "-r", "-z", "--no-renames", "--name-only")
        out = self._git.run(*arguments, self.resolve(base), self.resolve(head)).out
        return sorted(name.decode("utf-8", "surrogateescape") for name in out.split(b"\0") if name)

    def list_changes(self, base: str, head: str) -> list[ChangedFile]:
        """As changed_files, with sizes, and without reading a file; TooLarge when there are too many to list."""
        return list_changes(self._git, self.resolve(base), self.resolve(head))

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether `descendant` contains `ancestor`; a commit contains itself."""
        return self._contains(self.resolve(descendant), self.resolve(ancestor))

    def branches(self) -> dict[str, str]:
        """Branch name -> commit id, by name."""
        return list_refs(self._git, BRANCHES)

    def is_pointer(self, branch: str) -> bool:
        """Whether a branch is none, but a symbolic ref, which stands for another one."""
        return read_pointer(self.path, BRANCHES + check_ref_name(branch)) is not None

    def drop_pointer(self, branch: str) -> None:
        """Remove a branch that is a symbolic ref; what it stands for stays where it is."""
        drop_pointer(self._git, BRANCHES + check_new_ref_name(branch))

    def list_tags(self) -> dict[str, str]:
        """Tag name -> id of the tagged commit, by name."""
        return list_refs(self._git, TAGS)

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

    def _find_commit(self, reader: ObjectReader, ref: str) -> str | None:
        """The commit whose id begins so."""
        if not _SHORTEST_ID <= len(ref) <= _ID_LENGTH or not _HEX.issuperset(ref):
            return None
        if len(ref) == _ID_LENGTH:
            return peel(reader, ref)
        asked = f"{ref}^{{commit}}\n".encode()
        answer = self._git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked).text
        return answer.split(" ")[0] if answer.endswith(" commit") else None

    def _merging(self, author: Author, message: str, resolutions: Resolutions) -> Merging:
        writer = self._writer()
        return Merging(self._git, writer, Standing(self._git, writer), author, message, resolutions)

    def _contains(self, descendant: str, ancestor: str) -> bool:
        return contains(self._git, descendant, ancestor)

    def _links(self, commit: str) -> Links:
        with ObjectReader(self._git) as reader:
            return read_links(reader, commit)

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
