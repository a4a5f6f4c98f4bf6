"""Opens what people have: files, folders, archives and packed files.

What a file is, is seen by its content, not its name. What can't be opened is a file with a
`failure`, and costs no other.
"""

import gzip
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
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
# Of a folder's or an archive's files those that may hold records. What else is there may, too, and mostly does not.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".gz", ".zst", ".zip", ".eval", ".log"})
_PACKED = frozenset({".gz", ".zst"})

# Folders of an archive, and beginnings of their names, in which nothing is that people put there.
_HIDDEN = (".", "__MACOSX")

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
    # Its name does not say that it holds records: it is no loss where its content does not, either.
    is_doubtful: bool = False

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
    for found in walk(path):
        shown = f"{path.resolve().name}/{found.relative_to(path).as_posix()}"
        file = File(shown, _path_opener(found), is_doubtful=not _may_hold_records(found.name))
        yield from _take_apart(file, takes_archive)


def open_upload(stream: BinaryIO, name: str, takes_archive: TakesArchive) -> Iterator[File]:
    """The files of a stream that can be sought in, and stays open."""

    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        stream.seek(0)
        yield stream

    yield from _take_apart(File(name, opener), takes_archive)


def walk(path: Path) -> Iterator[Path]:
    """The files of a folder in the order of their names; hidden ones and links to folders are left out."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for found in (Path(folder, name) for name in sorted(names) if not is_hidden(name)):
            if found.is_file():
                yield found


def is_hidden(name: str) -> bool:
    """Whether a file or folder of that name is left out, and not even mentioned."""
    return name.startswith(_HIDDEN) and name not in {".", ".."}


def _may_hold_records(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


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
    if file.is_doubtful and (failure or kind == "zip"):
        # Documents of many kinds are archives.
        yield File(file.name, file.opener, failure or _("it is no export"), is_doubtful=True)
    elif failure:
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

    limit = max(SMALL_BYTES, MOST_RATIO * _size(file))
    return File(file.name, opener, limit=limit, is_doubtful=file.is_doubtful)


def _size(file: File) -> int:
    """The size of what can be sought in, else 0."""
    with file.opener() as stream:
        return stream.seek(0, os.SEEK_END) if (file.limit is None) else 0


class _Archive:
    """An archive that stays open as long as anybody has it: its table of contents is read once."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._opened: zipfile.ZipFile | None = None

    @property
    def opened(self) -> "zipfile.ZipFile":
        """Opened when it is first asked for; raises what BROKEN names."""
        if self._opened is None:
            with ExitStack() as stack:
                stream = stack.enter_context(self._opener())
                self._opened = stack.enter_context(zipfile.ZipFile(stream))
                weakref.finalize(self, stack.pop_all().close)
        return self._opened


def _open_archive(file: File, takes_archive: TakesArchive, layers: int) -> Iterator[File]:
    """The members of an archive, in its order."""
    seekable = _make_seekable(file)
    archive = _Archive(seekable)
    try:
        members = [member for member in archive.opened.infolist() if not member.is_dir()]
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
            if not any(map(is_hidden, PurePosixPath(member.filename).parts)):
                found = _member(file, archive, member, is_only=len(members) == 1)
                yield from _take_apart(found, takes_archive, layers - 1)


def _member(file: File, archive: _Archive, member: "zipfile.ZipInfo", *, is_only: bool) -> File:
    @contextmanager
    def opener() -> Iterator[BinaryIO]:
        with archive.opened.open(member) as opened:
            yield opened  # type: ignore[misc]  # the class has all that is used of a BinaryIO

    limit = max(SMALL_BYTES, MOST_RATIO * member.compress_size)
    is_doubtful = not is_only and not _may_hold_records(member.filename)
    return File(f"{file.name}/{_member_name(member)}", opener, limit=limit, is_doubtful=is_doubtful)


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
