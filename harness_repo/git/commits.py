"""Commits and tags as objects, and histories of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.gitio import COMMITTER_EMAIL, COMMITTER_NAME, GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter

WORKBENCH = Author(COMMITTER_NAME, COMMITTER_EMAIL)
# Unit separators: neither stands in a name, and a message that has one does no harm, being last.
_FORMAT = "%H%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%B"


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

    @property
    def subject(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0]


@dataclass(frozen=True)
class FileChange:
    """One commit that changed a file, and where the file stood in it."""

    commit: CommitInfo
    path: str
    # added, removed, modified or renamed.
    status: str
    # The path before, when it is another one.
    old_path: str | None = None


@dataclass(frozen=True)
class Links:
    """What a commit holds and builds on."""

    tree: str
    parents: tuple[str, ...]


def write_commit(
    writer: ObjectWriter, tree: str, parents: Sequence[str], author: Author, message: str
) -> str:
    """Add a commit by the author, committed by the workbench, now; no ref moves."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {_signature(author)}", f"committer {_signature(WORKBENCH)}"]
    return writer.add("commit", _header(lines) + _text(message))


def write_tag(writer: ObjectWriter, name: str, commit: str, author: Author, message: str) -> str:
    """Add an annotated tag by the author, now; no ref is made."""
    lines = [f"object {commit}", "type commit", f"tag {name}", f"tagger {_signature(author)}"]
    return writer.add("tag", _header(lines) + _text(message))


def read_links(reader: ObjectReader, commit: str) -> Links:
    """The tree and the parents of a commit; HarnessRepoError when it is not there."""
    fields = _fields(reader.read(commit, "commit"))
    return Links(
        next((value for key, value in fields if key == "tree"), ""),
        tuple(value for key, value in fields if key == "parent"),
    )


def peel(reader: ObjectReader, sha: str) -> str | None:
    """The commit that an object is or leads to as a tag; None when it leads to none."""
    found = reader.find(sha)
    while found is not None and found.kind == "tag":
        sha = next(value for key, value in _fields(found.data) if key == "object")
        found = reader.find(sha)
    return sha if found is not None and found.kind == "commit" else None


def read_log(git: GitRunner, commit: str, limit: int) -> list[CommitInfo]:
    """The newest `limit` commits that lead to a commit, newest first."""
    out = git.run("log", "-z", f"--max-count={limit:d}", f"--format={_FORMAT}", commit, "--").text
    return [_commit_info(record) for record in out.split("\0") if record]


def read_history(git: GitRunner, commit: str, path: str, limit: int) -> list[FileChange]:
    """The newest `limit` commits that changed a file, newest first, followed through its renames.

    A merge is not among them: the commits that it brought in are.
    """
    arguments = ("log", "-z", f"--max-count={limit:d}", "--follow", "--name-status", "--find-renames")
    # The record separator tells a commit from the names that follow it.
    out = git.run(*arguments, f"--format=%x1e{_FORMAT}", commit, "--", path).out
    changes: list[FileChange] = []
    for record in out.decode("utf-8", "surrogateescape").split("\x1e")[1:]:
        info, *names = record.split("\0")
        change = _file_change(_commit_info(info), [name for name in names if name.strip("\n")], path)
        path = change.old_path or change.path
        changes.append(change)
    return changes


def _file_change(commit: CommitInfo, names: Sequence[str], path: str) -> FileChange:
    """The change that git names after a commit: a letter, then one path or two."""
    letter = names[0].strip("\n")[:1] if names else "M"
    status = {"A": "added", "D": "removed", "R": "renamed", "C": "renamed"}.get(letter, "modified")
    if status == "renamed" and len(names) > 2:
        return FileChange(commit, names[2], status, names[1])
    return FileChange(commit, names[1] if len(names) > 1 else path, status)


def _commit_info(record: str) -> CommitInfo:
    sha, parents, author, email, when, message = record.split("\x1f", 5)
    return CommitInfo(
        sha.strip("\n"),
        tuple(parents.split()),
        author,
        email,
        datetime.fromisoformat(when),
        message.strip("\n"),
    )


def _signature(author: Author) -> str:
    now = time.time()
    offset = time.localtime(now).tm_gmtoff // 60
    sign = "-" if offset < 0 else "+"
    return f"{author.name} <{author.email}> {int(now)} {sign}{abs(offset) // 60:02}{abs(offset) % 60:02}"


def _header(lines: Sequence[str]) -> bytes:
    return "\n".join(lines).encode("utf-8", "replace") + b"\n\n"


def _text(message: str) -> bytes:
    """A message as git keeps it: without NUL, ending with its line."""
    text = message.replace("\0", "").encode("utf-8", "replace")
    return text if text.endswith(b"\n") else text + b"\n"


def _fields(data: bytes) -> list[tuple[str, str]]:
    """The header's first lines as key and value."""
    head = data.partition(b"\n\n")[0].decode("utf-8", "surrogateescape")
    pairs = [line.partition(" ") for line in head.split("\n")]
    if not pairs[0][2]:
        raise HarnessRepoError("a commit or tag is damaged: it has no header")
    return [(key, value) for key, _, value in pairs]
