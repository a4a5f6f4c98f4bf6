"""Repositories that are damaged, hostile, too large, or swept while they are written: typed errors, nothing lost."""

import errno
import os
import resource
import signal
import socket
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_repo.git import blobs
from harness_repo.git.errors import HarnessRepoError, RepoBusy, StaleBase, TooLarge
from harness_repo.git.locks import writer_lock
from harness_repo.git.objects import Author, ObjectWriter
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES, run_git

ODD = "1" * 40


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """As on a disk that is nearly full: a write takes a part, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_what_a_full_disk_took_in_part_is_not_there(repo: HarnessRepository, author: Author) -> None:
    data, before = os.urandom(100_000), set(repo.path.rglob("objects/??/*"))
    with files_no_larger_than(50_000), pytest.raises(HarnessRepoError, match="File too large"):
        repo.commit("main", {"big": data}, parent="main", author=author, message="m")
    assert set(repo.path.rglob("objects/??/*")) == before
    assert repo.files("main") == FILES
    sha = repo.commit("main", {"big": data}, parent="main", author=author, message="m")
    assert repo.read_file(sha, "big") == data
    assert run_git(repo.path, "fsck", "--strict") == b""


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-5], lambda _: b"", lambda _: zlib.compress(b"blob 1\0x")]
)
def test_an_object_is_not_taken_for_there_when_it_is_damaged(
    repo: HarnessRepository, author: Author, damage: Callable[[bytes], bytes]
) -> None:
    sha = repo.commit("b", {"a": b"content" * 100}, parent="main", author=author, message="m")
    blob = run_git(repo.path, "rev-parse", f"{sha}:a").decode().strip()
    path = repo.path / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(HarnessRepoError, match=blob):
        repo.files("b")
    repo.commit("c", {"a": b"content" * 100}, parent="main", author=author, message="m")
    assert repo.read_file("b", "a") == b"content" * 100


def sweep(repo: HarnessRepository) -> None:
    run_git(repo.path, "gc", "--quiet", "--prune=now")


@pytest.fixture
def swept(repo: HarnessRepository, monkeypatch: pytest.MonkeyPatch) -> HarnessRepository:
    """A repository that an operator sweeps once, after the next objects were written and before the ref moves."""
    flush, swept = ObjectWriter.flush, list[int]()

    def flush_and_sweep(writer: ObjectWriter) -> None:
        flush(writer)
        if not swept:
            swept.append(1)
            sweep(repo)

    monkeypatch.setattr(ObjectWriter, "flush", flush_and_sweep)
    return repo


def test_what_was_swept_before_the_ref_moved_is_written_again(
    swept: HarnessRepository, author: Author
) -> None:
    sha = swept.commit("main", {"a": b"new"}, parent="main", author=author, message="m")
    assert swept.files("main") == {**FILES, "a": b"new"}
    swept.tag("v1", sha, "m", author)
    assert run_git(swept.path, "fsck", "--strict") == b""


def test_a_parent_that_was_swept_is_said(
    repo: HarnessRepository, author: Author, request: pytest.FixtureRequest
) -> None:
    loose = repo.commit("gone", {"a": b"new"}, parent="main", author=author, message="m")
    repo.delete_branch("gone")
    request.getfixturevalue("swept")
    with pytest.raises(RepoBusy, match="gc"):
        repo.commit("b", {"b": b"1"}, parent=loose, author=author, message="m")
    assert list(repo.branches()) == ["main"]


def test_an_old_object_that_is_used_again_counts_as_new(repo: HarnessRepository, author: Author) -> None:
    repo.commit("old", {"a": b"again"}, parent="main", author=author, message="m")
    repo.delete_branch("old")
    for path in repo.path.glob("objects/??/*"):
        os.utime(path, (1, 1))
    writer = ObjectWriter(repo.path / "objects")
    blob = writer.add("blob", b"again")
    writer.flush()
    run_git(repo.path, "gc", "--quiet")
    assert run_git(repo.path, "cat-file", "blob", blob) == b"again"


def test_a_ref_does_not_move_while_garbage_is_collected(repo: HarnessRepository, author: Author) -> None:
    # As git writes it: the process, and the machine.
    (repo.path / "gc.pid").write_text(f"{os.getppid()} {socket.gethostname()}")
    with writer_lock(repo.path) as lock, pytest.raises(RepoBusy, match="gc"), lock.no_collection(0.01):
        pass
    with subprocess.Popen(["true"]) as process:
        process.wait()
    (repo.path / "gc.pid").write_text(f"{process.pid} {socket.gethostname()}")
    repo.commit("b", {"a": b"1"}, parent="main", author=author, message="m")
    (repo.path / "gc.pid").unlink()
    with writer_lock(repo.path) as lock, lock.no_collection(), pytest.raises(subprocess.CalledProcessError):
        sweep(repo)
    sweep(repo)


def test_garbage_is_collected_in_the_lock(repo: HarnessRepository, author: Author) -> None:
    gone = repo.commit("gone", {"a": b"new"}, parent="main", author=author, message="m")
    repo.delete_branch("gone")
    repo.collect_garbage()
    assert repo.resolve(gone) == gone
    repo.collect_garbage(everything=True)
    with pytest.raises(HarnessRepoError):
        repo.resolve(gone)
    assert repo.files("main") == FILES


def test_main_keeps_what_it_has(repo: HarnessRepository, author: Author) -> None:
    side = repo.commit("side", {"a": b"1"}, parent="main", author=author, message="m")
    head = repo.commit("main", {"b": b"1"}, parent="main", author=author, message="m")
    with pytest.raises(StaleBase):
        repo.commit("main", {"c": b"1"}, parent=side, expected_head=head, author=author, message="m")
    with pytest.raises(StaleBase):
        repo.merge("main", repo.log("side")[1].sha, [side], expected_head=head, author=author, message="m")
    assert repo.resolve("main") == head
    merged = repo.merge("side", side, [head], author=author, message="m")
    assert repo.commit("main", {"c": b"1"}, parent=merged, expected_head=head, author=author, message="m")


def write_ref(text: str | bytes) -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text

    def put(path: Path) -> None:
        (path / "refs/heads/main").write_bytes(data)

    return put


def tag_object(repo: Path, data: bytes) -> None:
    command = ["git", "-C", str(repo), "hash-object", "--literally", "-t", "tag", "-w", "--stdin"]
    sha = subprocess.run(command, input=data, check=True, capture_output=True).stdout
    (repo / "refs/heads/main").write_bytes(sha)


def loose_at(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        (path / "refs/heads/main").write_text(f"{ODD}\n")
        (path / "objects/11").mkdir(exist_ok=True)
        make(path / "objects/11" / ODD[2:])

    return put


def loose_store(store: bytes) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.write_bytes(zlib.compress(store))

    return loose_at(put)


def make_fifo_ref(path: Path) -> None:
    (path / "refs/heads/main").unlink()
    os.mkfifo(path / "refs/heads/main")


HOSTILE = {
    "out of refs": write_ref("ref: config\n"),
    "up": write_ref("ref: refs/../../x\n"),
    "device": write_ref("ref: /dev/zero\n"),
    "nul": write_ref(b"ref: refs/heads/a\0b\n"),
    "circle": write_ref("ref: refs/heads/main\n"),
    "long": write_ref("ref: refs/" + "a/" * 3000),
    "binary": write_ref(b"\xff\xfe\0"),
    "fifo": make_fifo_ref,
    "fifo object": loose_at(os.mkfifo),
    "folder object": loose_at(Path.mkdir),
    "tag of itself": loose_store(b"tag 58\0object " + ODD.encode() + b"\ntype tag\n\n"),
    "tag of nothing": lambda path: tag_object(path, b"type commit\ntag x\n\n"),
    "tag of a word": lambda path: tag_object(path, b"object nonsense\ntype commit\n\n"),
    "tag without end": lambda path: tag_object(path, b"object"),
    "huge": loose_store(b"blob 4000000000\0" + b"\0" * 10_000_000),
    "longer than it says": loose_store(b"commit 3\0" + b"x" * 10_000_000),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_repository_is_a_typed_error(repo: HarnessRepository, name: str) -> None:
    HOSTILE[name](repo.path)
    with pytest.raises(HarnessRepoError):
        repo.snapshot("main")


def test_a_head_that_is_a_link_as_old_gits_wrote_it_is_followed(repo: HarnessRepository) -> None:
    (repo.path / "HEAD").unlink()
    (repo.path / "HEAD").symlink_to("refs/heads/main")
    assert repo.resolve("HEAD") == repo.resolve("main")


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_is_too_large_is_skipped(
    repo: HarnessRepository, author: Author, tmp_path: Path, *, is_packed: bool
) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    blob = run_git(repo.path, "hash-object", "-w", str(big)).decode().strip()
    env = {"GIT_INDEX_FILE": str(tmp_path / "index")}
    run_git(repo.path, "read-tree", "main", env=env)
    run_git(repo.path, "update-index", "--add", "--cacheinfo", f"100644,{blob},big", env=env)
    tree = run_git(repo.path, "write-tree", env=env).decode().strip()
    sha = run_git(repo.path, "commit-tree", "-m", "big", tree).decode().strip()
    run_git(repo.path, "update-ref", "refs/heads/b", sha)
    if is_packed:
        sweep(repo)
    assert repo.snapshot(sha).skipped == {"big": "it has more than 16 MB"}
    assert repo.files(sha) == FILES
    with pytest.raises(TooLarge):
        repo.read_file(sha, "big")
    with pytest.raises(TooLarge):
        repo.commit("c", {"big": big.read_bytes()}, parent="main", author=author, message="m")


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_version_that_is_too_much_together_is_refused(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch, *, is_packed: bool
) -> None:
    repo.commit("main", {f"{n}": b"x" * 1000 for n in range(10)}, parent="main", author=author, message="m")
    if is_packed:
        sweep(repo)
    monkeypatch.setattr("harness_repo.git.snapshots.MAX_TOTAL_BYTES", 8000)
    with pytest.raises(TooLarge, match="together"):
        repo.snapshot("main")
    monkeypatch.setattr(blobs, "MAX_TOTAL_BYTES", 500)
    with pytest.raises(TooLarge, match="together"):
        repo.snapshot("main")


SURROUNDINGS = {
    "GIT_CONFIG_PARAMETERS": "'diff.noprefix'='true'",
    "GIT_QUARANTINE_PATH": "/nowhere",
    "GIT_COMMON_DIR": "/nowhere",
    "GIT_GRAFT_FILE": "/nowhere",
    "GIT_SHALLOW_FILE": "/nowhere",
    "GIT_REPLACE_REF_BASE": "refs/heads/",
    "GIT_DIFF_OPTS": "--unified=0",
    "GIT_EXTERNAL_DIFF": "false",
    "GIT_TRACE": "2",
    "GIT_EXEC_PATH": "/nowhere",
    "GIT_ATTR_SOURCE": "nothing",
}


def test_nothing_of_a_surrounding_git_reaches_ours(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.commit("one", {"a": b"1\n2\n3\n4\n"}, parent="main", author=author, message="m")
    second = repo.commit("one", {"a": b"1\n2\n3\n5\n"}, parent=first, author=author, message="m")
    plain = repo.diff(first, second)
    for name, value in SURROUNDINGS.items():
        monkeypatch.setenv(name, value)
    assert repo.diff(first, second) == plain
    repo.commit("two", {"a": b"1"}, parent="main", author=author, message="m")
    assert set(repo.branches()) == {"main", "one", "two"}
    assert repo.is_ancestor("main", second)


def test_grafts_change_no_history(repo: HarnessRepository, author: Author) -> None:
    sha = repo.commit("b", {"a": b"1"}, parent="main", author=author, message="m")
    (repo.path / "info").mkdir(exist_ok=True)
    (repo.path / "info/grafts").write_text(f"{sha}\n")
    assert repo.is_ancestor("main", sha)
    assert len(repo.log(sha)) == 2


def test_a_write_that_the_disk_takes_in_parts_is_whole(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    sha = repo.commit("b", {"a": b"content"}, parent="main", author=author, message="m")
    assert run_git(repo.path, "cat-file", "blob", f"{sha}:a") == b"content"


def test_a_disk_that_is_full_at_once_leaves_no_name(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    before = set(repo.path.rglob("objects/??/*"))
    with pytest.raises(HarnessRepoError, match="No space"):
        repo.commit("b", {"a": b"content"}, parent="main", author=author, message="m")
    assert set(repo.path.rglob("objects/??/*")) == before
