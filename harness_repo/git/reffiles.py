"""The files that git keeps refs in, also of a repository that is damaged or hostile: read within bounds."""

import errno
import os
import stat
import unicodedata
from functools import lru_cache
from pathlib import Path

from harness_repo.git.errors import BadRef, HarnessRepoError

_MAX_REF_BYTES = 4096
_MAX_PACKED_BYTES = 256 * 1024 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# What stands before a name in packed-refs; no name has either.
_BEFORE = " "


def read_loose_ref(path: Path, name: str) -> bytes | None:
    """What a ref's own file says, None when it has none."""
    try:
        data = _read_file(path / name, _MAX_REF_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as failure:
        return _read_link(path / name, name, failure)
    return data.rstrip(b"\n") or None if data is not None else None


def read_packed_refs(path: Path) -> bytes:
    """The content of packed-refs, empty when there is none."""
    try:
        return _read_file(path / "packed-refs", _MAX_PACKED_BYTES) or b""
    except FileNotFoundError:
        return b""
    except (OSError, ValueError) as failure:
        raise HarnessRepoError(f"cannot read packed-refs: {failure}") from failure


def check_case(path: Path, ref: str) -> None:
    """Refuse a new name that a file system without case, or of another normal form, takes for an existing one."""
    folder, parts = path, ref.split("/")
    packed, folded = _packed_names(path)
    for number, part in enumerate(parts, start=1):
        # Two separators, so that neighbours share none.
        names = "".join(f"\n{name}\n" for name in _names(folder))
        begin = _BEFORE + "/".join(parts[:number])
        # That "refs/heads" is written so is git's own rule, and each search goes through all names.
        ends = ("/", "\n") if number > len(("refs", "heads")) else ()
        if _is_taken(names, fold(names), f"\n{part}\n") or any(
            _is_taken(packed, folded, begin + end) for end in ends
        ):
            raise BadRef(f"{ref!r} differs from an existing name by case alone, in {part!r}")
        folder /= part


def fold(name: str) -> str:
    """A text as a file system without case and of one normal form takes it."""
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _is_taken(names: str, folded: str, name: str) -> bool:
    """Whether a name stands among others in another form: then more are alike when folded than as they are."""
    alike = folded.count(fold(name))
    return alike > 0 and alike > names.count(name)


def _packed_names(path: Path) -> tuple[str, str]:
    """The content of packed-refs, and the same folded; both are kept as long as the file is the same one."""
    try:
        found = (path / "packed-refs").stat()
    except OSError:
        return "", ""
    return _fold_packed(path, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _fold_packed(path: Path, _inode: int, _changed: int, _size: int) -> tuple[str, str]:
    text = read_packed_refs(path).decode("utf-8", "surrogateescape")
    return text, fold(text)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names, of which there may be many
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_file(path: Path, most: int) -> bytes | None:
    """A regular file's content, None for a folder; ValueError when it is something else, or larger."""
    descriptor = os.open(path, _READ)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode):
            raise ValueError("it is no file")
        data = b""
        while len(data) <= most and (more := os.read(descriptor, most + 1 - len(data))):
            data += more
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise ValueError("it is too large")
    return data


def _read_link(path: Path, name: str, failure: Exception) -> bytes:
    """Old versions of git wrote HEAD as a link to the name."""
    if isinstance(failure, OSError) and failure.errno == errno.ELOOP:
        try:
            return b"ref: " + os.fsencode(path.readlink())
        except OSError:
            pass
    raise HarnessRepoError(f"cannot read the ref {name}: {failure}") from failure
