"""The pieces of a file that a format's reader gets, and what a reader is.

A reader is a module, or anything else, with

    NAME = "my-format"
    def fits(value) -> bool: ...                         does one JSON value look like this format
    def read(items, where) -> Iterator[Found]: ...

`read` is lazy, and never raises for a bad item: that becomes a Rejected, and the rest goes on. `each` makes such a
`read` for formats with one record per item. A reader of archives has `fits_archive(names)` and
`read_archive(stream, where)` besides. What counts as a record is for a reader's docstring to say.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import RecordProblem, clean
from evolution.ports import Found, Record, Rejected, Unread

logger = logging.getLogger(__name__)


class Item(NamedTuple):
    """One line, one element of the list, or the one document that a file is.

    Texts in `value` are fit for PostgreSQL. Numbers that are none (NaN, 1e999) may still stand in it as markers, unless
    `is_clean`: `values.clean(piece)` raises RecordProblem for them, and is to be called for each record by itself, so
    that they cost only the record around them.
    """

    # physical line on which it starts, 1-based
    line: int
    # a JSON value, or a RecordProblem for what could not be parsed
    value: Any
    # its place on the line, 1-based; 0 for the first or only one
    number: int = 0
    is_clean: bool = False
    # the text that it is, where nothing else is in it
    text: str = ""


@dataclass(frozen=True)
class Where:
    """The file that items come from, and what people said of it."""

    # as shown, such as export.zip/part-1.jsonl
    name: str
    # the last part of the name without its suffixes, for ids
    stem: str
    # our field -> theirs; see `mapping`
    mapping: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


Read = Callable[[Iterator[Item], Where], Iterator[Found]]
ReadItem = Callable[[dict[str, Any], Where, int], Record]
# Source and source id of an object, as `ReadItem` finds them.
NameItem = Callable[[dict[str, Any]], tuple[str, str]]


class Reader(Protocol):
    """What a format's module has."""

    @property
    def NAME(self) -> str:  # noqa: N802  a module's constant
        """The format's name."""

    def fits(self, value: Any) -> bool:
        """Say whether one JSON value looks like this format."""

    def read(self, items: Iterator[Item], where: Where) -> Iterator[Found]:
        """Read the records of a file, lazily."""


class ArchiveReader(Protocol):
    """What the module of a format has whose file is a zip archive."""

    @property
    def NAME(self) -> str:  # noqa: N802  a module's constant
        """The format's name."""

    def fits_archive(self, names: list[str]) -> bool:
        """Say whether an archive with these members is in this format."""

    def read_archive(self, stream: BinaryIO, where: Where) -> Iterator[Record | Rejected]:
        """Read the records of an archive; the stream can be sought in."""


def each(read_item: ReadItem, name_item: NameItem | None = None) -> Read:
    """Make a `read` of a function that turns one object, its file and line into a record, or raises RecordProblem.

    With `name_item` its records are handed over unread. That is for formats of which a record is what its text says,
    whatever the file is called.
    """

    def read(items: Iterator[Item], where: Where) -> Iterator[Found]:
        for item in items:
            unread = _put_off(read_item, name_item, item, where) if name_item and item.text else None
            yield unread or _read_one(read_item, item, where)

    return read


def _put_off(read_item: ReadItem, name_item: NameItem, item: Item, where: Where) -> Unread | None:
    """The record unread; None where that can't be, or where it can't be read."""
    if where.mapping or not item.is_clean or not isinstance(item.value, dict):
        return None
    try:
        source, source_id = name_item(item.value)
    except (RecordProblem, TypeError, ValueError, LookupError, AttributeError, RecursionError):
        return None
    digest = hashlib.blake2b(item.text.encode("utf-8", "surrogatepass"), digest_size=16, key=_own_digest())
    read = partial(_read_one, read_item, item._replace(text=""), where)
    return Unread(source, source_id, item.line, digest.digest(), read)


@cache
def _own_digest() -> bytes:
    """Of all readers as they are: what another version of them read is not taken for the same."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.blake2b(code, digest_size=32).digest()


def _read_one(read_item: ReadItem, item: Item, where: Where) -> Record | Rejected:
    try:
        return read_item(take_object(item), where, item.line)
    except RecordProblem as problem:
        return Rejected(item.line, str(problem), item.number)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # A mistake of the reader, which must not cost the other records.
        logger.exception("%s, line %d can't be read", where.name, item.line)
        return Rejected(item.line, unexpected(error), item.number)


def unexpected(error: Exception) -> str:
    """What to say of a record that a reader stumbled over."""
    return _("the record has a shape that is not expected here (%(problem)s)") % {
        "problem": type(error).__name__
    }


def take_object(item: Item) -> dict[str, Any]:
    """Return the item's value, which is an object without bad numbers; raises RecordProblem."""
    if isinstance(item.value, RecordProblem):
        raise item.value
    if not isinstance(item.value, dict):
        raise RecordProblem(_("a record must be an object"))
    value: dict[str, Any] = item.value if item.is_clean else clean(item.value)
    return value


def attempt(read: Callable[[], Record], line: int, number: int = 0) -> Record | Rejected:
    """Read one record, or say why it can't be; for readers of documents that hold many."""
    try:
        return read()
    except RecordProblem as problem:
        return Rejected(line, str(problem), number)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # A mistake of the reader, which must not cost the other records.
        logger.exception("a record on line %d can't be read", line)
        return Rejected(line, unexpected(error), number)
