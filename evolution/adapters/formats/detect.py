"""Finds out a file's format and reads its records one by one; a bad record never costs the others."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from django.utils.translation import gettext as _

from evolution.adapters.formats import (
    atif,
    csv_table,
    files,
    flat_rows,
    inspect_log,
    jsonl,
    langfuse,
    langsmith,
    openai_chat,
    openinference,
    otlp,
    promptfoo,
    sharegpt,
    tau2_bench,
    tau_bench,
)
from evolution.adapters.formats.content import BROKEN, describe_failure, failure_of
from evolution.adapters.formats.items import ArchiveReader, Item, Reader, Where
from evolution.adapters.formats.json_items import read_json
from evolution.adapters.formats.values import RecordProblem, escape
from evolution.errors import BrokenInput
from evolution.ports import Found, Record, Rejected, read_found

# A format's name and its reader; the first that fits is taken, so the more particular ones come first.
READERS: dict[str, Reader] = {
    reader.NAME: reader
    for reader in (
        tau_bench,
        tau2_bench,
        inspect_log,
        promptfoo,
        langfuse,
        langsmith,
        atif,
        otlp,
        openinference,
        sharegpt,
        openai_chat,
        jsonl,
        flat_rows,
        csv_table,
    )
}
ARCHIVE_READERS: dict[str, ArchiveReader] = {inspect_log.NAME: inspect_log}
FORMATS = ("auto", *READERS, *(name for name in ARCHIVE_READERS if name not in READERS))
# Formats that a mapping goes with.
MAPPED = frozenset({"auto", jsonl.NAME, csv_table.NAME})

# Values that are kept while a file's format is looked for, so that a small file is not read twice.
_KEPT = 100
_HEAD = 2**16
_STARTS_JSON = re.compile(rb"^[ \t\r]*[{\[]", re.MULTILINE)


class FileRecords(NamedTuple):
    """The records of one file, or of one member of an archive."""

    # as shown, such as export.zip/part-1.jsonl
    name: str
    # what it was found to be, "" where it is nothing known
    format: str
    # its records, some of them unread; the file is opened when they are asked for
    unread: Iterator[Found]

    @property
    def records(self) -> Iterator[Record | Rejected]:
        """Its records; like `unread` they can be had once."""
        return map(read_found, self.unread)


# Is told the name of each file that holds no records, and is not expected to.
LeaveOut = Callable[[str], object]


def open_records(
    path: Path,
    fmt: str = "auto",
    mapping: Mapping[str, str] | None = None,
    leave_out: LeaveOut = lambda _name: None,
) -> Iterator[FileRecords]:
    """Open a file, an archive or a folder, and hand over the records of each file in it, one after the other.

    What can't be read, or breaks off, is a Rejected among the records. Raises BrokenInput when there is no such path or
    no such format.
    """
    check_format(fmt, mapping)
    if not path.exists():
        what = {"name": escape(str(path)), "problem": _("there is no such file or folder")}
        raise BrokenInput(_("%(name)s can't be opened: %(problem)s") % what)
    yield from _open_all(files.open_path(path, _takes_archive), fmt, mapping or {}, leave_out)


def open_stream(
    stream: BinaryIO,
    name: str,
    fmt: str = "auto",
    mapping: Mapping[str, str] | None = None,
    leave_out: LeaveOut = lambda _name: None,
) -> Iterator[FileRecords]:
    """The same for a stream that can be sought in, such as an upload; `name` is shown to people, and used for ids."""
    check_format(fmt, mapping)
    yield from _open_all(files.open_upload(stream, name, _takes_archive), fmt, mapping or {}, leave_out)


def check_format(fmt: str, mapping: Mapping[str, str] | None = None) -> None:
    """Raise BrokenInput for a format that there is none of, or that no mapping goes with."""
    if fmt not in FORMATS:
        what = {"format": fmt, "known": ", ".join(FORMATS)}
        raise BrokenInput(_("there is no format %(format)s; known are %(known)s") % what)
    if mapping and fmt not in MAPPED:
        raise BrokenInput(_("a mapping goes with csv and jsonl, not with %(format)s") % {"format": fmt})


def read_file(path: Path, fmt: str = "auto") -> Iterator[Record | Rejected]:
    """The records of all files of a path, one after the other."""
    for opened in open_records(path, fmt):
        yield from opened.records


def read_records(data: bytes, name: str, fmt: str = "auto") -> Iterator[Record | Rejected]:
    """The records of a file's content, and of all files in it where it is an archive."""
    for opened in open_stream(io.BytesIO(data), name, fmt):
        yield from opened.records


def look_at_table(
    stream: BinaryIO, name: str, mapping: Mapping[str, str] | None = None
) -> csv_table.Table | None:
    """The columns and first rows of an upload that is a table; None for everything else."""
    for file in files.open_upload(stream, name, _takes_archive):
        if file.failure:
            return None
        with file.open_text() as content:
            head = content.peek(_HEAD)[:_HEAD]
        where = Where(file.name, file.stem, mapping or {})
        is_table = not _STARTS_JSON.search(head) and csv_table.fits_head(head, where)
        return csv_table.look_at(file.open_text) if is_table else None
    return None


def show_name(path: Path) -> str:
    """A file's name as people can read and PostgreSQL can store it: what is not UTF-8 in it is escaped."""
    return escape(path.name)


def _takes_archive(names: list[str]) -> bool:
    return any(reader.fits_archive(names) for reader in ARCHIVE_READERS.values())


def _open_all(
    found: Iterator[files.File], fmt: str, mapping: Mapping[str, str], leave_out: LeaveOut
) -> Iterator[FileRecords]:
    for file in found:
        where = Where(file.name, file.stem, mapping)
        try:
            opened = _open_one(file, fmt, where)
        except BROKEN as error:
            opened = _unreadable(where, describe_failure(error))
        if file.is_doubtful and not opened.format:
            leave_out(file.name)
        else:
            yield opened


def _open_one(file: files.File, fmt: str, where: Where) -> FileRecords:
    """Look at a file's beginning; its records are read when they are asked for."""
    if file.failure:
        return _unreadable(where, file.failure)
    if file.members:
        reader = next(r for r in ARCHIVE_READERS.values() if r.fits_archive(file.members))
        return FileRecords(where.name, reader.NAME, _read_archive(file, reader, where))
    if file.is_doubtful and not _seems_an_export(file, where):
        return _unreadable(where, _describe_unknown())
    return _open_content(file, fmt, where)


def _open_content(file: files.File, fmt: str, where: Where) -> FileRecords:
    with file.open_text() as content:
        head = content.peek(_HEAD)[:_HEAD]
        if not head.strip():
            return _unreadable(where, failure_of(content) or _("the file is empty"))
        is_json = bool(_STARTS_JSON.search(head))
        if is_json and fmt != csv_table.NAME:
            return _open_json(file, read_json(content), fmt, where)
    if fmt == csv_table.NAME or (fmt == "auto" and csv_table.fits_head(head, where)):
        return FileRecords(where.name, csv_table.NAME, csv_table.read_rows(file.open_text, where))
    return FileRecords(where.name, "", iter([Rejected(1, _describe_unknown())]))


def _seems_an_export(file: files.File, where: Where) -> bool:
    """Say whether a file with any name begins with a JSON value, or with columns that are known.

    Notes quote JSON, and begin with words.
    """
    with file.open_text() as content:
        head = content.peek(_HEAD)[:_HEAD]
        if head.lstrip()[:1] not in {b"{", b"["}:
            return csv_table.fits_head(head, where, least_columns=2)
        first = next(read_json(content), None)
    return first is not None and not isinstance(first.value, RecordProblem)


def _read_archive(file: files.File, reader: ArchiveReader, where: Where) -> Iterator[Record | Rejected]:
    with file.opener() as stream:
        yield from reader.read_archive(stream, where)


def _open_json(file: files.File, items: Iterator[Item], fmt: str, where: Where) -> FileRecords:
    first: list[Item] = []
    name = fmt if fmt != "auto" else _find_format(items, first, where)
    # A document, which may be large, is not parsed twice.
    is_whole = len(first) < _KEPT and not list(islice(items, 1))
    everything = iter(first) if is_whole and first else _read_again(file)
    if not name:
        return FileRecords(where.name, "" if first else jsonl.NAME, _reject_all(everything))
    if fmt == "auto":
        return FileRecords(where.name, name, READERS[name].read(everything, where))
    return FileRecords(where.name, name, _read_forced(READERS[name], everything, where))


def _read_forced(reader: Reader, items: Iterator[Item], where: Where) -> Iterator[Found]:
    """Read a file as people say that it is; where it is not, nothing of it must be lost without a word."""
    last: list[Item] = []

    def note() -> Iterator[Item]:
        for item in items:
            last[:] = [item]
            yield item

    is_empty = True
    for found in reader.read(note(), where):
        is_empty = False
        yield found
    if is_empty and last:
        yield Rejected(1, _("the file holds nothing in the format %(format)s") % {"format": reader.NAME})


def _read_again(file: files.File) -> Iterator[Item]:
    with file.open_text() as content:
        yield from read_json(content)


def _find_format(items: Iterator[Item], looked_at: list[Item], where: Where) -> str:
    """The format of the first item that is in one; the first of what was read for it is added to `looked_at`."""
    for item in items:
        if len(looked_at) < _KEPT:
            looked_at.append(item)
        if where.mapping:
            return jsonl.NAME
        for name, reader in READERS.items():
            if isinstance(item.value, dict | list) and reader.fits(item.value):
                return name
    return ""


def _reject_all(items: Iterator[Item]) -> Iterator[Rejected]:
    for item in items:
        reason = str(item.value) if isinstance(item.value, RecordProblem) else _describe_unknown()
        yield Rejected(item.line, reason, item.number)


def _describe_unknown() -> str:
    return _("it is in no known format (see import_cases --help)")


def _unreadable(where: Where, problem: str) -> FileRecords:
    rejected = Rejected(1, _("the file can't be read: %(problem)s") % {"problem": problem})
    return FileRecords(where.name, "", iter([rejected]))
