"""What stands in a bare repository: refs, versions and their files, histories, differences. Nothing moves."""

from collections.abc import Sequence
from pathlib import Path

from harness_repo.git.building import MAIN
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
)
from harness_repo.git.errors import HarnessRepoError, MissingRef
from harness_repo.git.gitio import GitRunner
from harness_repo.git.merges import contains
from harness_repo.git.names import check_path, check_ref_name
from harness_repo.git.objects import ObjectReader
from harness_repo.git.refs import (
    BRANCHES,
    REMOTES,
    SOURCE_TAGS,
    TAGS,
    list_refs,
    read_pointer,
    read_ref,
)
from harness_repo.git.snapshots import read_snapshot
from harness_repo.git.trees import find_entry
from harness_repo.snapshot import Snapshot

_HEX = frozenset("0123456789abcdef")
_ID_LENGTH = 40
_SHORTEST_ID = 4
# Where a name is looked for, in this order.
_PLACES = (BRANCHES, TAGS, REMOTES, SOURCE_TAGS)


class ReadableRepository:
    """A bare repository to be read; cheap to make, holds nothing open."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self._git = GitRunner(self.path)

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

    def tree_of(self, ref: str) -> str:
        """The id of a version's tree: two versions with the same one have the same files."""
        return self._links(self.resolve(ref)).tree

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

    def list_tags(self) -> dict[str, str]:
        """Tag name -> id of the tagged commit, by name."""
        return list_refs(self._git, TAGS)

    def _find_commit(self, reader: ObjectReader, ref: str) -> str | None:
        """The commit whose id begins so."""
        if not _SHORTEST_ID <= len(ref) <= _ID_LENGTH or not _HEX.issuperset(ref):
            return None
        if len(ref) == _ID_LENGTH:
            return peel(reader, ref)
        asked = f"{ref}^{{commit}}\n".encode()
        answer = self._git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked).text
        return answer.split(" ")[0] if answer.endswith(" commit") else None

    def _contains(self, descendant: str, ancestor: str) -> bool:
        return contains(self._git, descendant, ancestor)

    def _links(self, commit: str) -> Links:
        with ObjectReader(self._git) as reader:
            return read_links(reader, commit)
