"""Opens what people have: files, folders, archives and packed files.

What a file is, is seen by its content, not its name. What can't be opened is a file with a
`failure`, and costs no other.
"""

import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from evolution.adapters.formats.content import BROKEN, as_text, describe_failure, failure_of, guard
from evolution.adapters.formats.values import escape

if sys.version_info >= (3, 14):
    import zipfile

    from compression import zstd
else:
    from backports import zstd
    from backports.zstd import zipfile

# Packed content that is larger than this may be no more than so many times as large as what it is packed in.
SMALL_BYTES = 2**30
MOST_RATIO = 200
MOST_MEMBERS = 100_000
# A packed file, that in an archive, and that packed again.
MOST_LAYERS = 3
# Of a folder's or an archive's files those that may hold records.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".gz", ".zst", ".zip", ".eval", ".log"})
_PACKED = frozenset({".gz", ".zst"})

Opener = Callable[[], AbstractContextManager[BinaryIO]]
TakesArchive = Callable[[list[str]], bool]


@dataclass
class File:
    """One file, or member of an archive, that can be opened any number of times."""

    # as shown, such as export.zip/part-1.jsonl
    name: str
    opener: Opener
    # why it can't be opened
    failure: str = ""
    # most bytes that are believed, where it is packed
    limit: int | None = None
    # what is in it, where it is an archive that one of the formats reads as a whole
    members: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = escape(self.name)

    @property
    def stem(self) -> str:
        """The last part of the name without the suffixes of its format and packing, for ids."""
        last = PurePosixPath(self.name)
        while last.suffix.lower() in _PACKED:
            last = last.with_suffix("")
        return last.stem

    @contextmanager
    def open(self) -> Iterator[BufferedReader]:
        """The content as it is; it ends where it breaks, and `content.failure_of` says why."""
        with self.opener() as stream, guard(stream, self.limit) as content:
            yield content

    @contextmanager
    def open_text(self) -> Iterator[BufferedReader]:
        """The same without byte order mark, and UTF-16 as UTF-8."""
        with self.open() as content, as_text(content) as text:
            yield text


def open_path(path: Path, takes_archive: TakesArchive) -> Iterator[File]:
    """The files of a path; archives are taken apart, unless a format takes the names of what is in one."""
    if not path.is_dir():
        yield from _take_apart(File(path.name, _path_opener(path)), takes_archive)
        return
    for found in _walk(path):
        shown = f"{path.resolve().name}/{found.relative_to(path).as_posix()}"
        yield from _take_apart(File(shown, _path_opener(found)), takes_archive)


def open_upload(stream: BinaryIO, name: str, takes_archive: TakesArchive) -> Iterator[File]:
    """The files of a stream that can be sought in, and stays open."""

    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        stream.seek(0)
        yield stream

    yield from _take_apart(File(name, opener), takes_archive)


def _walk(path: Path) -> Iterator[Path]:
    """Files that may hold records, in the order of their names; hidden ones and links to folders are left out."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for found in (Path(folder, name) for name in sorted(names)):
            if found.is_file() and (_may_hold_records(found.name) or _is_json_text(found)):
                yield found


def _is_json_text(path: Path) -> bool:
    """Say whether a text file is JSON by its first characters; most are notes."""
    if path.suffix.lower() != ".txt" or path.name.startswith("."):
        return False
    try:
        with path.open("rb") as file:
            return file.read(100).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}
    except OSError:
        return False


def _may_hold_records(name: str) -> bool:
    return not name.startswith(".") and PurePosixPath(name).suffix.lower() in SUFFIXES


def _path_opener(path: Path) -> Opener:
    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with path.open("rb") as stream:
            yield stream

    return opener


def _take_apart(file: File, takes_archive: TakesArchive, layers: int = MOST_LAYERS) -> Iterator[File]:
    kind, failure = _look_at(file)
    if kind and not layers:
        failure = _("packed too many times")
    if failure:
        yield File(file.name, file.opener, failure)
    elif kind == "zip":
        yield from _open_archive(file, takes_archive, layers)
    elif kind:
        yield from _take_apart(_unpack(file, kind), takes_archive, layers - 1)
    else:
        yield file


def _look_at(file: File) -> tuple[str, str]:
    """How a file is packed, "" where it is not, and why it can't be opened."""
    try:
        with file.open() as content:
            head = content.peek(4)[:4]
            # What breaks off at once has nothing to keep.
            return _kind(head), "" if head else failure_of(content)
    except BROKEN as error:
        return "", describe_failure(error)


def _kind(head: bytes) -> str:
    if head.startswith(b"\x1f\x8b"):
        return "gz"
    if head == b"\x28\xb5\x2f\xfd":
        return "zst"
    return "zip" if head in {b"PK\x03\x04", b"PK\x05\x06"} else ""


def _unpack(file: File, kind: str) -> File:
    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with file.open() as packed:
            opened: Any = gzip.GzipFile(fileobj=packed) if kind == "gz" else zstd.ZstdFile(packed)
            with opened as stream:
                yield stream

    return File(file.name, opener, limit=max(SMALL_BYTES, MOST_RATIO * _size(file)))


def _size(file: File) -> int:
    """The size of what can be sought in, else 0."""
    with file.opener() as stream:
        return stream.seek(0, os.SEEK_END) if (file.limit is None) else 0


def _open_archive(file: File, takes_archive: TakesArchive, layers: int) -> Iterator[File]:
    """The members of an archive, in its order, each opened from the archive anew."""
    seekable = _make_seekable(file)
    try:
        with seekable() as stream, zipfile.ZipFile(stream) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except BROKEN as error:
        yield File(file.name, file.opener, describe_failure(error))
        return
    names = [member.filename for member in members]
    if len(members) > MOST_MEMBERS:
        yield File(file.name, file.opener, _("it holds too many files"))
    elif takes_archive(names):
        yield File(file.name, seekable, members=names)
    else:
        for member in members:
            if len(members) == 1 or _is_wanted(member.filename):
                yield from _take_apart(_member(file, seekable, member), takes_archive, layers - 1)


def _is_wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return (
        bool(parts)
        and _may_hold_records(parts[-1])
        and not any(part.startswith((".", "__MACOSX")) for part in parts)
    )


def _member(file: File, seekable: Opener, member: "zipfile.ZipInfo") -> File:
    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with seekable() as stream, zipfile.ZipFile(stream) as archive, archive.open(member) as opened:
            yield opened  # type: ignore[misc]  # the class has all that is used of a BinaryIO

    limit = max(SMALL_BYTES, MOST_RATIO * member.compress_size)
    return File(f"{file.name}/{_member_name(member)}", opener, limit=limit)


def _member_name(member: "zipfile.ZipInfo") -> str:
    """Names without the mark of UTF-8 are read as code page 437; in China they are GB18030 in truth."""
    name = member.filename
    if member.flag_bits & 0x800 or name.isascii():
        return name
    try:
        return name.encode("cp437").decode("gb18030")
    except UnicodeError:
        return name


def _make_seekable(file: File) -> Opener:
    """The archive itself where it is not packed, else a copy for as long as it is open."""
    if file.limit is None:
        return file.opener

    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with file.open() as content, tempfile.TemporaryFile() as copy:
            while block := content.read(2**20):
                copy.write(block)
            copy.seek(0)
            yield copy

    return opener
