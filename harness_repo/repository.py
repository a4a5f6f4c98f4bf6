"""A harness in a bare git repository: versions are commits, changes are branches, `main` is what is live.

All work is done on objects, never in a checkout; every ref moves by compare-and-swap. What the files mean
is harness.py's business.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from harness_repo.errors import (
    BadRef,
    HarnessRepoError,
    MissingRef,
    NothingToCommit,
    RefExists,
    RepoBusy,
    RepoExists,
    StaleBase,
)
from harness_repo.gitio import GitRunner
from harness_repo.merges import merge_trees
from harness_repo.names import check_new_ref_name, check_path, check_ref_name
from harness_repo.objects import Author, read_blobs, read_tree, write_commit, write_tree

MAIN = "main"
ZERO = "0" * 40

# What git says when a ref is not where the caller expects it.
_MOVED = ("but expected", "already exists", "unable to resolve")

Edits = Mapping[str, bytes | None]


@dataclass(frozen=True)
class CommitInfo:
    """One version as people see it."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    when: datetime
    # Subject, body and trailers.
    message: str


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
        target = Path(path).absolute()
        if target.exists():
            raise RepoExists(f"there is something at {target}")
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            _initialise(GitRunner(building), files, author, message)
            building.chmod(0o755)
            building.rename(target)
        except OSError as failure:
            raise RepoExists(f"there is something at {target}") from failure
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return cls(target)

    def resolve(self, ref: str) -> str:
        """The full commit id of a branch, tag, commit id (4 digits or more) or HEAD; else MissingRef."""
        check_ref_name(ref)
        names = (
            [ref] if ref == "HEAD" or ref.startswith("refs/") else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
        )
        if 4 <= len(ref) <= 40 and all(digit in "0123456789abcdef" for digit in ref):
            names.append(ref)
        found = self._lookup(names)
        if found is None:
            raise MissingRef(f"no branch, tag or commit {ref!r}")
        return found

    def files(self, ref: str) -> dict[str, bytes]:
        """All regular files of a version, byte exact; symbolic links and submodules are left out."""
        entries = [entry for entry in read_tree(self._git, self.resolve(ref)) if entry.is_file]
        blobs = read_blobs(self._git, [entry.sha for entry in entries])
        return {entry.path: blobs[entry.sha] for entry in entries}

    def read_file(self, ref: str, path: str) -> bytes:
        """One file of a version, byte exact; MissingRef if it is not there."""
        name = f"{self.resolve(ref)}:{check_path(path)}"
        result = self._git.run("cat-file", "blob", name, allowed=(0, 128))
        if result.code:
            raise MissingRef(f"no file {path!r} at {ref!r}")
        return result.out

    def commit(
        self,
        branch: str,
        edits: Edits,
        *,
        parent: str,
        author: Author,
        message: str,
        expected_head: str | None = None,
    ) -> str:
        """Put one commit with `edits` (None deletes) on `parent`, move the branch to it, and return its id.

        The branch must be at `expected_head` (default: `parent`), or not exist; else StaleBase.
        Raises NothingToCommit, BadPath, BadRef, MissingRef.
        """
        check_new_ref_name(branch)
        base = self.resolve(parent)
        expected = self._expected(branch, base, expected_head)
        tree = write_tree(self._git, base, edits)
        if tree == self._tree(base):
            raise NothingToCommit("the edits change nothing")
        new = write_commit(self._git, tree, [base], author, message)
        self._move(branch, new, expected)
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
    ) -> str:
        """Merge `heads` one after the other onto `base`, move the branch to the result, and return its id.

        The branch must be at `expected_head` (default: `base`), or not exist; else StaleBase. A head that
        is already contained is skipped. Raises MergeConflict, and then nothing has moved; NothingToCommit.
        """
        check_new_ref_name(branch)
        start = current = self.resolve(base)
        expected = self._expected(branch, start, expected_head)
        for head in [self.resolve(head) for head in heads]:
            if not self._contains(current, head):
                tree = merge_trees(self._git, current, head)
                current = write_commit(self._git, tree, [current, head], author, message)
        if current == start:
            raise NothingToCommit("everything to merge is contained already")
        self._move(branch, current, expected)
        return current

    def advance_main(self, new: str, *, expected: str) -> None:
        """Make `new` what is live; StaleBase if main is not at `expected`, or `new` does not build on it."""
        old, target = self.resolve(expected), self.resolve(new)
        if not self._contains(target, old):
            raise StaleBase(f"{target[:12]} does not build on {old[:12]}")
        self._move(MAIN, target, old)

    def restore(self, commit: str, *, expected: str, author: Author, message: str) -> str:
        """Roll back: a new commit on main with the files of `commit`. StaleBase, NothingToCommit."""
        old = self.resolve(expected)
        tree = self._tree(self.resolve(commit))
        if self.resolve(MAIN) != old:
            raise StaleBase("main has moved")
        if tree == self._tree(old):
            raise NothingToCommit("main has these files already")
        new = write_commit(self._git, tree, [old], author, message)
        self._move(MAIN, new, old)
        return new

    def tag(self, name: str, commit: str, message: str, author: Author) -> None:
        """Put an annotated tag on a commit; RefExists if the name is taken."""
        check_new_ref_name(name)
        target = self.resolve(commit)
        env = {"GIT_COMMITTER_NAME": author.name, "GIT_COMMITTER_EMAIL": author.email}
        arguments = ("tag", "-a", "--cleanup=verbatim", "-F", "-", name, target)
        result = self._git.run(*arguments, stdin=_text(message), env=env, allowed=(0, 128))
        if "already exists" in result.error:
            raise RefExists(f"there is a tag {name!r} already")
        if result.code:
            raise HarnessRepoError(f"git tag failed: {result.error}")

    def log(self, ref: str, limit: int = 100) -> list[CommitInfo]:
        """The newest `limit` commits that lead to `ref`, newest first."""
        arguments = ("log", "-z", f"--max-count={limit:d}", "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%B")
        fields = self._git.run(*arguments, self.resolve(ref), "--").text.split("\0")
        return [_commit_info(fields[start : start + 6]) for start in range(0, len(fields) - 5, 6)]

    def diff(self, base: str, head: str) -> str:
        """The unified diff between two versions, as git writes it; not UTF-8 becomes U+FFFD."""
        arguments = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
        result = self._git.run(*arguments, self.resolve(base), self.resolve(head), "--")
        return result.out.decode("utf-8", "replace")

    def changed_files(self, base: str, head: str) -> list[str]:
        """The paths that differ between two versions, sorted; a rename is two paths."""
        arguments = ("diff-tree", "-r", "-z", "--no-renames", "--name-only")
        out = self._git.run(*arguments, self.resolve(base), self.resolve(head)).out
        return sorted(name.decode("utf-8", "surrogateescape") for name in out.split(b"\0") if name)

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether `descendant` contains `ancestor`; a commit contains itself."""
        return self._contains(self.resolve(descendant), self.resolve(ancestor))

    def branches(self) -> dict[str, str]:
        """Branch name -> commit id, by name."""
        return self._refs("refs/heads/")

    def list_tags(self) -> dict[str, str]:
        """Tag name -> id of the tagged commit, by name."""
        return self._refs("refs/tags/")

    def delete_branch(self, name: str) -> None:
        """Remove a branch other than main; its commits stay readable by id until git collects them."""
        check_new_ref_name(name)
        if name == MAIN:
            raise BadRef("main cannot be deleted")
        head = self._head(name)
        if head is None:
            raise MissingRef(f"no branch {name!r}")
        self._update_ref(name, "delete", head)

    def _lookup(self, names: Sequence[str]) -> str | None:
        """The commit that the first of the names leads to."""
        asked = "".join(f"{name}^{{commit}}\n" for name in names).encode("utf-8", "surrogateescape")
        answers = self._git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked).text
        found = (line.split(" ")[0] for line in answers.splitlines() if line.endswith(" commit"))
        return next(found, None)

    def _head(self, branch: str) -> str | None:
        return self._lookup([f"refs/heads/{branch}"])

    def _contains(self, descendant: str, ancestor: str) -> bool:
        arguments = ("merge-base", "--is-ancestor", ancestor, descendant)
        return self._git.run(*arguments, allowed=(0, 1)).code == 0

    def _tree(self, commit: str) -> str:
        return self._git.run("rev-parse", "--verify", f"{commit}^{{tree}}").text

    def _expected(self, branch: str, base: str, expected_head: str | None) -> str | None:
        """Where the branch has to be when it moves, None for not there; StaleBase if it is elsewhere."""
        head = self._head(branch)
        wanted = base if expected_head is None else self.resolve(expected_head)
        if head is None and expected_head is None:
            return None
        if head != wanted:
            raise StaleBase(f"{branch} is at {(head or 'no commit')[:12]}, not at {wanted[:12]}")
        return head

    def _move(self, branch: str, new: str, expected: str | None) -> None:
        self._update_ref(branch, "update", f"{new}\0{expected or ZERO}")

    def _update_ref(self, branch: str, verb: str, values: str) -> None:
        """Move or delete a branch that is where it should be; StaleBase if not, RepoBusy if locked."""
        ref = f"refs/heads/{branch}"
        command = f"{verb} {ref}\0{values}\0".encode("utf-8", "surrogateescape")
        result = self._git.run("update-ref", "-z", "--stdin", stdin=command, allowed=(0, 128))
        if result.code == 0:
            return
        if ".lock" in result.error:
            raise RepoBusy(f"{branch} is locked by another process")
        if any(sign in result.error for sign in _MOVED):
            raise StaleBase(f"{branch} has moved")
        raise BadRef(f"cannot move {branch!r}: {result.error}")

    def _refs(self, prefix: str) -> dict[str, str]:
        form = "--format=%(refname)%00%(objectname)%00%(*objectname)"
        lines = self._git.run("for-each-ref", form, prefix).text.splitlines()
        rows = [line.split("\0") for line in lines]
        return {name.removeprefix(prefix): peeled or sha for name, sha, peeled in rows}


def _initialise(runner: GitRunner, files: Mapping[str, bytes], author: Author, message: str) -> None:
    """Make the folder a bare repository with one commit on main."""
    runner.run("init", "--quiet", "--bare", "--template=", f"--initial-branch={MAIN}")
    first = write_commit(runner, write_tree(runner, None, files), [], author, message)
    runner.run("update-ref", f"refs/heads/{MAIN}", first, ZERO)


def _text(message: str) -> bytes:
    return message.replace("\0", "").encode("utf-8", "replace")


def _commit_info(fields: Sequence[str]) -> CommitInfo:
    sha, parents, author, email, when, message = fields
    return CommitInfo(
        sha, tuple(parents.split()), author, email, datetime.fromisoformat(when), message.strip("\n")
    )
