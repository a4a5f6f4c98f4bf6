"""Tables: CSV with any delimiter, as spreadsheets write them. A record is a row.

The first row names the columns. Which of them is what is said by a mapping, or seen by usual names; the request, or a
column with the whole conversation, must be among them. Columns that are nothing of ours are kept in the context. UTF-8,
UTF-16 and, as Excel writes it in China, GB18030. A row with more or fewer fields than there are columns is rejected.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats import jsonl
from evolution.adapters.formats.content import failure_of
from evolution.adapters.formats.items import Item, Where, each
from evolution.adapters.formats.mapping import guess_mapping, map_fields
from evolution.adapters.formats.values import RecordProblem, escape
from evolution.ports import Found, Record

NAME = SOURCE = "csv"
DELIMITERS = (",", "\t", ";", "|")
MOST_FIELD = 64 * 2**20
# Lines that one quoted field may run over; more means that a quote is missing.
_MOST_LINES = 100_000
_SAMPLE_LINES = 50
# Lines that are not plain ASCII, by which the encoding is judged.
_JUDGED_LINES = 5000
_FOREIGN = re.compile("[\ud800-\udfff]")
_SEPARATOR_HINT = re.compile(r"sep=(.)\r?\n?")

csv.field_size_limit(MOST_FIELD)

Open = Callable[[], AbstractContextManager[BufferedReader]]


@dataclass(frozen=True)
class Table:
    """What a table looks like, for people to say which column is what."""

    columns: list[str]
    delimiter: str
    encoding: str
    # our field -> column, as far as names tell
    guess: dict[str, str]
    # the first rows
    rows: list[list[str]]

    @property
    def samples(self) -> list[tuple[str, list[str]]]:
        """Each column with its texts in the first rows."""
        values = [row + [""] * len(self.columns) for row in self.rows]
        return [(name, [row[place] for row in values]) for place, name in enumerate(self.columns)]


def fits(value: Any) -> bool:  # noqa: ARG001  the frame asks all formats
    """No JSON value is a table."""
    return False


def fits_head(head: bytes, where: Where, least_columns: int = 1) -> bool:
    """Say whether a file's beginning is a table with a column that is known, or whose name says that it is one."""
    if b"\x00" in head:
        return False
    is_said = where.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")) or bool(where.mapping)
    if is_said and least_columns == 1:
        return True
    text = head.decode(_encoding_of(head.splitlines()), "replace")
    delimiter, lines = _sniff(io.StringIO(text, newline=""))
    columns = _columns(next(_read_rows(lines, delimiter), None))
    known = {"request", "messages"} & {**guess_mapping(columns), **where.mapping}.keys()
    return bool(known) and len(columns) >= least_columns


def look_at(open_text: Open, rows: int = 5) -> Table:
    """The columns of a table, what they seem to be, and its first rows."""
    encoding = find_encoding(open_text)
    with open_text() as content:
        lines = _lines(content, encoding)
        delimiter, sample = _sniff(lines)
        read = _read_rows(sample, delimiter)
        columns = _columns(next(read, None))
        first = [fields for _line, fields in islice(read, rows) if isinstance(fields, list)]
    return Table(columns, delimiter, encoding, guess_mapping(columns), first)


def read_rows(open_text: Open, where: Where) -> Iterator[Found]:
    """The records of a table, which is opened twice: the encoding shows in all of it."""
    encoding = find_encoding(open_text)
    with open_text() as content:
        yield from read(_items(content, encoding, where), where)


def read_item(item: dict[str, Any], where: Where, line: int) -> Record:
    """Turn a row, column -> text, into a record; raises RecordProblem."""
    mapping = _complete(list(item), where)
    mapped = map_fields(item, mapping)
    used = set(mapping.values())
    rest = {name: text for name, text in item.items() if text and name not in used}
    context = mapped.get("context")
    mapped["context"] = {**rest, **(context if isinstance(context, dict) else {})}
    mapped.setdefault("source", SOURCE)
    return jsonl.read_item(mapped, Where(where.name, where.stem), line)


read = each(read_item)


def _complete(columns: Sequence[str], where: Where) -> dict[str, str]:
    """The mapping that people gave, and what the names of the other columns mean."""
    given = dict(where.mapping)
    taken = set(given.values())
    guessed = guess_mapping([column for column in columns if column not in taken])
    mapping = {**guessed, **given}
    if not {"request", "messages", "trajectory"} & mapping.keys():
        text = _(
            "no column is known to be the request: say which one is (--mapping); columns are %(columns)s"
        )
        raise RecordProblem(text % {"columns": ", ".join(columns)[:500]})
    return mapping


def find_encoding(open_text: Open) -> str:
    """utf-8, or gb18030 where a good part of what is not ASCII is no UTF-8."""
    with open_text() as content:
        lines = (line for line in content if not line.isascii())
        return _encoding_of(list(islice(lines, _JUDGED_LINES)))


def _encoding_of(lines: Sequence[bytes]) -> str:
    foreign = [line for line in lines if not line.isascii()]
    # The last line may be cut through.
    bad = sum(1 for line in foreign if not _is_utf8(line))
    return "gb18030" if bad and bad * 10 >= len(foreign) + (len(lines) > 1) * 9 else "utf-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(content: BufferedReader, encoding: str) -> Iterator[str]:
    text = io.TextIOWrapper(content, encoding, errors="surrogateescape", newline="")
    try:
        while line := text.readline(MOST_FIELD):
            # Files were put one behind the other.
            yield line.removeprefix("\ufeff")
    finally:
        text.detach()


def _sniff(lines: Iterator[str]) -> tuple[str, Iterator[tuple[int, str]]]:
    """The delimiter, and the lines with their numbers; Excel's `sep=;` is no line of the table."""
    first = list(islice(lines, _SAMPLE_LINES))
    hint = _SEPARATOR_HINT.fullmatch(first[0]) if first else None
    numbered = enumerate(_chain(first, lines), 1)
    if hint:
        next(numbered)
        return hint.group(1), numbered
    return _find_delimiter(first), numbered


def _chain(first: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from first
    yield from rest


def _find_delimiter(sample: Sequence[str]) -> str:
    """The one that makes columns with known names, and rows of the same length."""
    return max(DELIMITERS, key=lambda delimiter: _rate(sample, delimiter))


def _rate(sample: Sequence[str], delimiter: str) -> tuple[int, int, int]:
    rows = [row for _line, row in _read_rows(iter(enumerate(sample, 1)), delimiter) if isinstance(row, list)]
    if not rows or len(rows[0]) < 2:
        return (0, 0, 0)
    same = sum(len(row) == len(rows[0]) for row in rows)
    return (len(guess_mapping(rows[0])), same, len(rows[0]))


def _items(content: BufferedReader, encoding: str, where: Where) -> Iterator[Item]:
    delimiter, numbered = _sniff(_lines(content, encoding))
    rows = _read_rows(numbered, delimiter)
    header: list[str] | RecordProblem = []
    columns: list[str] = []
    line, count = 1, 0
    for line, fields in rows:
        if not columns and isinstance(fields, list):
            header, columns = fields, _columns((line, fields))
        elif fields != header or len(columns) == 1:
            count += 1
            yield Item(line, _as_object(fields, columns), is_clean=True)
    if not count:
        yield from _check_header(columns, where)
    if broken := failure_of(content):
        yield Item(line + 1, RecordProblem(_("the file breaks off here: %(problem)s") % {"problem": broken}))


def _check_header(columns: Sequence[str], where: Where) -> Iterator[Item]:
    """A row without any below it may be no header, but a record of something else."""
    try:
        _complete(columns, where)
    except RecordProblem as problem:
        yield Item(1, problem)


def _columns(row: "tuple[int, list[str] | RecordProblem] | None") -> list[str]:
    """The names of the columns, each once."""
    fields = row[1] if row and isinstance(row[1], list) else []
    names: list[str] = []
    for number, field in enumerate(fields, 1):
        name = escape(field.strip()) or _("column %(number)d") % {"number": number}
        names.append(name if name not in names else f"{name} ({number})")
    return names


def _as_object(fields: list[str] | RecordProblem, columns: list[str]) -> dict[str, str] | RecordProblem:
    if isinstance(fields, RecordProblem):
        return fields
    if len(fields) > len(columns) and not any(fields[len(columns) :]):
        fields = fields[: len(columns)]
    if len(fields) != len(columns):
        what = {"found": len(fields), "wanted": len(columns)}
        return RecordProblem(_("the row has %(found)d fields, and the table %(wanted)d columns") % what)
    if any(_FOREIGN.search(field) for field in fields):
        return RecordProblem(_("not UTF-8"))
    return {name: escape(field) for name, field in zip(columns, fields, strict=True)}


def _read_rows(
    numbered: Iterator[tuple[int, str]], delimiter: str
) -> Iterator[tuple[int, list[str] | RecordProblem]]:
    """Rows with the line on which they start; those without any text are left out."""
    feed = _RowFeed(numbered, delimiter)
    while (row := feed.next_row()) is not None:
        if isinstance(row[1], RecordProblem) or any(field.strip() for field in row[1]):
            yield row


class _RowFeed:
    """Reads rows; the lines that a quote without its end has swallowed are read again as rows of their own."""

    def __init__(self, numbered: Iterator[tuple[int, str]], delimiter: str) -> None:
        self._numbered, self._delimiter = numbered, delimiter
        self._waiting: deque[tuple[int, str]] = deque()
        self._width = 0

    def next_row(self) -> tuple[int, list[str] | RecordProblem] | None:
        """The next row and its line; None at the end."""
        taken: list[tuple[int, str]] = []
        try:
            row = next(csv.reader(self._take(taken), delimiter=self._delimiter, strict=True), None)
        except csv.Error as error:
            self._waiting.extendleft(reversed(taken[1:]))
            return taken[0][0], RecordProblem(_("broken row: %(problem)s") % {"problem": error})
        if row is None:
            return None
        self._width = self._width or len(row)
        if len(row) != self._width and len(taken) > 1 and self._is_row(taken[1][1]):
            self._waiting.extendleft(reversed(taken[1:]))
            return taken[0][0], RecordProblem(
                _("broken row: %(problem)s") % {"problem": _("a quote is not closed")}
            )
        return taken[0][0], row

    def _take(self, taken: list[tuple[int, str]]) -> Iterator[str]:
        while len(taken) < _MOST_LINES:
            line = self._waiting.popleft() if self._waiting else next(self._numbered, None)
            if line is None:
                return
            taken.append(line)
            yield line[1]

    def _is_row(self, line: str) -> bool:
        try:
            return len(next(csv.reader([line], delimiter=self._delimiter, strict=True), [])) == self._width
        except csv.Error:
            return False
