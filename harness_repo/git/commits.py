"""Commits and tags as objects, and histories of them."""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_repo.git.commitinfo import CommitInfo, parse_commit
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.gitio import COMMITTER_EMAIL, COMMITTER_NAME, GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter

WORKBENCH = Author(COMMITTER_NAME, COMMITTER_EMAIL)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# A tag of a tag of a tag: git itself makes one only.
_MOST_TAGS = 10
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


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
    if tree == EMPTY_TREE:
        # Git knows it by heart, and may not have written it; whoever checks the repository misses it.
        writer.add("tree", b"")
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {_signature(author)}", f"committer {_signature(WORKBENCH)}"]
    return writer.add("commit", _header(lines) + _text(message))


def write_tag(writer: ObjectWriter, name: str, commit: str, author: Author, message: str) -> str:
    """Add an annotated tag by the author, now; no ref is made."""
    lines = [f"object {commit}", "type commit", f"tag {name}", f"tagger {_signature(author)}"]
    return writer.add("tag", _header(lines) + _text(message))


def read_links(reader: ObjectReader, commit: str) -> Links:
    """The tree and the parents of a commit; HarnessRepoError when it is not there, or damaged."""
    fields = _fields(reader.read(commit, "commit"))
    trees = [value for key, value in fields if key == "tree"]
    parents = tuple(value for key, value in fields if key == "parent")
    if len(trees) != 1 or not all(_OBJECT_ID.fullmatch(sha) for sha in (*trees, *parents)):
        raise HarnessRepoError(f"commit {commit} is damaged")
    return Links(trees[0], parents)


def peel(reader: ObjectReader, sha: str) -> str | None:
    """The commit that an object is or leads to as a tag; None when it leads to none."""
    for _step in range(_MOST_TAGS):
        found = reader.find(sha)
        if found is None or found.kind != "tag":
            return sha if found is not None and found.kind == "commit" else None
        sha = next((value for key, value in _fields(found.data) if key == "object"), "")
        if not _OBJECT_ID.fullmatch(sha):
            return None
    return None


def read_log(git: GitRunner, commit: str, limit: int) -> list[CommitInfo]:
    """The newest `limit` commits that lead to a commit, newest first."""
    shas = git.run("rev-list", f"--max-count={limit:d}", commit, "--").text.split()
    return list(_read_commits(git, shas).values())


def read_between(git: GitRunner, base: str, head: str) -> list[CommitInfo]:
    """All commits that lead to `head` and not to `base`, newest first."""
    shas = git.run("rev-list", head, f"^{base}", "--").text.split()
    return list(_read_commits(git, shas).values())


def read_history(git: GitRunner, commit: str, path: str, limit: int) -> list[FileChange]:
    """The newest `limit` commits that changed a file, newest first, followed through its renames.

    A merge is not among them: the commits that it brought in are.
    """
    arguments = ("log", "-z", f"--max-count={limit:d}", "--follow", "--name-status", "--find-renames")
    out = git.run(*arguments, "--format=%H", commit, "--", path).out.decode("utf-8", "surrogateescape")
    steps = list(_read_steps(out))
    commits = _read_commits(git, [sha for sha, _ in steps])
    changes: list[FileChange] = []
    for sha, names in steps:
        change = _file_change(commits[sha], names, path)
        path = change.old_path or change.path
        changes.append(change)
    return changes


def _read_commits(git: GitRunner, shas: Sequence[str]) -> dict[str, CommitInfo]:
    with ObjectReader(git) as reader:
        return {sha: parse_commit(sha, reader.read(sha, "commit")) for sha in shas}


def _read_steps(out: str) -> Iterator[tuple[str, list[str]]]:
    """What `git log -z --format=%H --name-status` says: ids, and for most of them a letter with one path or two."""
    fields = out.split("\0")
    at = 0
    while at < len(fields):
        sha = fields[at].strip("\n")
        at += 1
        names: list[str] = []
        letter = fields[at].strip("\n")[:1] if at < len(fields) else ""
        if letter.isupper():
            size = 3 if letter in "RC" else 2
            names = fields[at : at + size]
            at += size
        if sha:
            yield sha, names


def _file_change(commit: CommitInfo, names: Sequence[str], path: str) -> FileChange:
    """The change that git names after a commit: a letter, then one path or two."""
    letter = names[0].strip("\n")[:1] if names else "M"
    status = {"A": "added", "D": "removed", "R": "renamed", "C": "renamed"}.get(letter, "modified")
    if status == "renamed" and len(names) > 2:
        return FileChange(commit, names[2], status, names[1])
    return FileChange(commit, names[1] if len(names) > 1 else path, status)


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
