"""The archive that an .eval log of Inspect is: a zip, deflate or zstd, with a file for the header and one a sample."""

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from evolution.errors import BrokenInput

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

# A sample of a log, unpacked, and all of them; more than that is an attack or a mistake. JSON takes up to thirty times
# its size in memory, of which only what is used of a sample stays.
MOST_MEMBER_BYTES = 64 * 2**20
MOST_ARCHIVE_BYTES = 4 * 2**30
# How much larger than the archive its content may be; real logs are some twenty times as large.
MOST_RATIO = 200
SMALL_BYTES = 2**20
MOST_MEMBERS = 500_000
# What unpacking raises on damaged or encrypted members.
_BROKEN = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error, RuntimeError, OSError)
_HEADERS = ("header.json", "_journal/start.json")

Parse = Callable[[bytes], Any]
Samples = Iterator[dict[str, Any] | BrokenInput]


def is_log(names: list[str]) -> bool:
    """Say whether an archive with these members is such a log."""
    return any(name in names for name in _HEADERS)


@contextmanager
def open_log(stream: BinaryIO, name: str, parse: Parse) -> Iterator[tuple[dict[str, Any], Samples]]:
    """The header of a log, and its samples in the order of their names; one that can't be read is a BrokenInput.

    `parse` reads the JSON of a member, or raises ValueError. Raises BrokenInput for what is no log, or unpacks to more
    than one does.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if len(names) > MOST_MEMBERS:
                raise BrokenInput(_("%(name)s holds too many files") % {"name": name})
            _check_size(archive, stream, name)
            start = next((header for header in _HEADERS if header in names), None)
            if start is None:
                raise BrokenInput(_("%(name)s is no log of Inspect") % {"name": name})
            header = _read_member(archive, start, name, parse)
            yield header, (_read_sample(archive, sample, name, parse) for sample in _order_samples(names))
    except _BROKEN as error:
        what = {"name": name, "problem": error}
        raise BrokenInput(_("%(name)s is a broken archive: %(problem)s") % what) from None


def _check_size(archive: "zipfile.ZipFile", stream: BinaryIO, name: str) -> None:
    """Raise BrokenInput for what unpacks to more than a log does."""
    packed = stream.seek(0, 2)
    size = sum(member.file_size for member in archive.infolist())
    if size > min(MOST_ARCHIVE_BYTES, SMALL_BYTES + MOST_RATIO * packed):
        what = {"name": name, "size": size // 2**20}
        raise BrokenInput(_("%(name)s unpacks to %(size)d MB, which no log does") % what)


def _order_samples(names: list[str]) -> Iterator[str]:
    yield from sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))


def _read_sample(
    archive: "zipfile.ZipFile", name: str, source: str, parse: Parse
) -> dict[str, Any] | BrokenInput:
    """A sample, or what is wrong with one that can't be read."""
    try:
        return _read_member(archive, name, source, parse)
    except BrokenInput as failure:
        return failure


def _read_member(archive: "zipfile.ZipFile", name: str, source: str, parse: Parse) -> dict[str, Any]:
    where = f"{source}: {name}"
    if archive.getinfo(name).file_size > MOST_MEMBER_BYTES:
        raise BrokenInput(_("%(name)s is too large") % {"name": where})
    try:
        with archive.open(name) as member:
            data = member.read(MOST_MEMBER_BYTES)
    except _BROKEN as error:
        raise BrokenInput(_("%(name)s: %(problem)s") % {"name": where, "problem": error}) from None
    try:
        value = parse(data)
    except ValueError as error:
        raise BrokenInput(_("%(name)s: %(problem)s") % {"name": where, "problem": error}) from None
    if not isinstance(value, dict):
        raise BrokenInput(_("%(name)s: %(problem)s") % {"name": where, "problem": _("not an object")})
    return value
