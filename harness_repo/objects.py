"""Reads and writes git objects: whole trees by few processes, byte exact, through an index of its own."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_repo.errors import HarnessRepoError
from harness_repo.gitio import GitRunner
from harness_repo.names import check_path


@dataclass(frozen=True)
class Author:
    """Who a commit is by; characters that would break git's header are dropped."""

    name: str
    email: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _clean(self.name) or "unknown")
        object.__setattr__(self, "email", _clean(self.email) or "unknown@localhost")


@dataclass(frozen=True)
class TreeEntry:
    """One entry of a version's tree."""

    path: str
    # "100644" and "100755" are files, "120000" a symbolic link, "160000" a submodule.
    mode: str
    sha: str

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode.startswith("100")


def read_tree(git: GitRunner, commit: str) -> list[TreeEntry]:
    """All entries under a commit's tree, in git's order."""
    out = git.run("ls-tree", "-r", "-z", "--full-tree", commit).out
    return [_tree_entry(record) for record in out.split(b"\0") if record]


def read_blobs(git: GitRunner, shas: Sequence[str]) -> dict[str, bytes]:
    """The contents of blobs by id, all through one process."""
    unique = list(dict.fromkeys(shas))
    out = git.run("cat-file", "--batch", stdin="".join(f"{sha}\n" for sha in unique).encode()).out
    blobs: dict[str, bytes] = {}
    at = 0
    for sha in unique:
        end = out.index(b"\n", at)
        header = out[at:end].split(b" ")
        if len(header) != 3:
            raise HarnessRepoError(f"object {sha} is missing: the repository is damaged")
        size = int(header[2])
        blobs[sha] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return blobs


def write_tree(git: GitRunner, base: str | None, edits: Mapping[str, bytes | None]) -> str:
    """The id of the tree of `base` (None: empty) after `edits`; None deletes. A file keeps its mode."""
    for path in edits:
        check_path(path)
    with tempfile.TemporaryDirectory(prefix="harness-index-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        git.run("read-tree", base or "--empty", env=env)
        modes = {entry.path: entry.mode for entry in read_tree(git, base) if entry.is_file} if base else {}
        shas = _write_blobs(git, {path: data for path, data in edits.items() if data is not None}, folder)
        lines = [_index_line(path, modes.get(path, "100644"), shas.get(path)) for path in edits]
        git.run("update-index", "-z", "--index-info", stdin=b"".join(lines), env=env)
        return git.run("write-tree", env=env).text


def write_commit(git: GitRunner, tree: str, parents: Sequence[str], author: Author, message: str) -> str:
    """Write a commit object by the author, committed by the workbench; no ref moves."""
    env = {"GIT_AUTHOR_NAME": author.name, "GIT_AUTHOR_EMAIL": author.email}
    options = [part for parent in parents for part in ("-p", parent)]
    text = message.replace("\0", "").encode("utf-8", "replace")
    return git.run("commit-tree", tree, *options, "-F", "-", stdin=text, env=env).text


def _write_blobs(git: GitRunner, contents: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Path -> blob id; the contents go through files of ours, so that one process writes them all."""
    names = [Path(folder, f"blob-{number}") for number in range(len(contents))]
    for name, data in zip(names, contents.values(), strict=True):
        name.write_bytes(data)
    stdin = "".join(f"{name}\n" for name in names).encode()
    shas = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin).text.split()
    return dict(zip(contents, shas, strict=True))


def _index_line(path: str, mode: str, sha: str | None) -> bytes:
    """One record of update-index --index-info; mode 0 deletes."""
    head = f"{mode} {sha}" if sha else f"0 {'0' * 40}"
    return f"{head}\t{path}\0".encode("utf-8", "surrogateescape")


def _tree_entry(record: bytes) -> TreeEntry:
    head, _, path = record.partition(b"\t")
    mode, _, sha = head.decode().split(" ")
    return TreeEntry(path.decode("utf-8", "surrogateescape"), mode, sha)


def _clean(text: str) -> str:
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;\"'")
