"""Takes a stream of UTF-8 apart into JSON values, each with the physical line on which it starts.

One object per line, a list, one object over many lines, and any number of these one after the other are all read, and
memory holds one value at a time. What can't be parsed is one RecordProblem; reading goes on where the next value can
be seen to start.
"""

import json
import re
from collections.abc import Iterator
from io import BufferedReader
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from evolution.adapters.formats.content import failure_of
from evolution.adapters.formats.items import Item
from evolution.adapters.formats.line_feed import Line, LineFeed, split_lines
from evolution.adapters.formats.list_items import ListScan
from evolution.adapters.formats.syntax import describe, is_unfinished
from evolution.adapters.formats.values import Parser, RecordProblem

# A value, and a file's first value, which may be a document of many records.
MOST_BYTES = 64 * 2**20
MOST_DOCUMENT_BYTES = 256 * 2**20
# Lines that belong to an object that began above them: indented, or its end.
_CONTINUES = re.compile(rb"[ \t}\]\r\n]")
_MORE = re.compile(r"[\s,]*")


def read_json(stream: BinaryIO | BufferedReader) -> Iterator[Item]:
    """Read the values; lists are taken apart, but for conversations on a line of their own.

    Where the stream breaks off (see `content.guard`), that is one problem at the end.
    """
    feed = LineFeed(stream)
    last: Item | None = None
    for item in _read_all(feed):
        if last:
            yield last
        last = item
    broken = failure_of(stream) if isinstance(stream, BufferedReader) else ""
    if not broken:
        yield from [last] if last else []
        return
    problem = RecordProblem(_("the file breaks off here: %(problem)s") % {"problem": broken})
    if last and isinstance(last.value, RecordProblem):
        # It is what was cut through.
        yield last._replace(value=problem)
        return
    yield from [last] if last else []
    yield Item(feed.number, problem)


def _read_all(feed: LineFeed) -> Iterator[Item]:
    beginning = feed.begin()
    if beginning.lstrip().startswith(b"[") and not _is_one_of_many(beginning, feed):
        yield from ListScan(feed, MOST_BYTES)
    yield from _Lines(feed)


def _is_one_of_many(line: bytes, feed: LineFeed) -> bool:
    """Say whether a list fills the first line, and others follow it."""
    if not line.endswith(b"\n"):
        return False
    first = feed.next_line(len(line))
    has_more = feed.has_more()
    feed.give_back([first] if first else [])
    try:
        value = json.loads(line) if has_more else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list)


class _Lines:
    """Values that start on a line of their own."""

    def __init__(self, feed: LineFeed) -> None:
        self._feed = feed
        self._parse = Parser().parse
        self._parse_strictly = Parser(strict=True).parse
        self._is_first = True

    def __iter__(self) -> Iterator[Item]:
        while (line := self._feed.next_line(self._limit)) is not None:
            if line.data.strip():
                yield from self._read(line)
                self._is_first = False

    @property
    def _limit(self) -> int:
        return MOST_DOCUMENT_BYTES if self._is_first else MOST_BYTES

    def _read(self, line: Line) -> Iterator[Item]:
        if not line.is_whole:
            text = _("longer than %(size)d MB") % {"size": self._limit // 2**20}
            yield Item(line.number, RecordProblem(text))
            return
        try:
            text = line.data.decode()
        except UnicodeDecodeError:
            yield Item(line.number, RecordProblem(_("not UTF-8")), line.place)
            return
        yield from self._read_text(line, text)

    def _read_text(self, line: Line, text: str) -> Iterator[Item]:
        position = len(text) - len(text.lstrip())
        place = line.place
        while position < len(text):
            try:
                value, end, is_clean = self._parse(text, position)
            except json.JSONDecodeError as error:
                yield self._read_on(line, text[position:], error, place)
                return
            except RecursionError:
                yield Item(line.number, RecordProblem(_("nested too deep to be read")), place)
                return
            rest = _skip(text, end)
            if rest < len(text) and text[rest] not in "{[":
                yield Item(line.number, _extra(rest), place)
                return
            source = "" if isinstance(value, list) else text[position:end]
            position = rest
            for item in self._flatten(line.number, value, place, source, is_clean=is_clean):
                place = max(item.number, 1) + 1
                yield item

    def _flatten(self, number: int, value: Any, place: int, text: str, *, is_clean: bool) -> Iterator[Item]:
        """The elements of a list, but a conversation stays whole."""
        if not isinstance(value, list) or is_conversation(value):
            yield Item(number, value, place, is_clean, text)
            return
        for offset, element in enumerate(value):
            yield Item(number, element, max(place, 1) + offset if place or offset else 0, is_clean)

    def _read_on(self, line: Line, text: str, error: json.JSONDecodeError, place: int) -> Item:
        """A value that does not end on its line: look whether it does on a later one."""
        if text[:1] not in {"{", "["} or not is_unfinished(error.doc, error, error.pos):
            return Item(line.number, RecordProblem(describe(error)), place)
        lines = [line]
        while True:
            try:
                value, end, is_clean = self._parse_strictly(text, 0)
            except RecursionError:
                return self._give_up(lines, _("nested too deep to be read"), place)
            except json.JSONDecodeError as failure:
                error = failure
            else:
                self._push_rest_back(lines, text, end)
                return Item(line.number, value, place, is_clean, text[:end])
            if not is_unfinished(text, error, error.pos):
                return self._give_up(lines, describe(error, line.number), place)
            more = self._feed.take(max(len(text), 4096), self._limit - len(text))
            if not more:
                return self._give_up(lines, self._why_no_more(), place)
            lines += more
            try:
                text += b"".join(each.data for each in more).decode()
            except UnicodeDecodeError:
                return self._give_up(lines, _("not UTF-8"), place)

    def _why_no_more(self) -> str:
        if self._feed.has_more():
            return _("longer than %(size)d MB") % {"size": self._limit // 2**20}
        return _("cut off: the file ends inside of this record")

    def _push_rest_back(self, lines: list[Line], text: str, end: int) -> None:
        """Give back what stands behind the value."""
        end = _skip_on_line(text, end)
        number = lines[0].number + text.count("\n", 0, end)
        rest = [Line(number + n, data) for n, data in enumerate(split_lines(text[end:].encode()))]
        if rest and text[end - 1] != "\n":
            # What stands behind the value on its last line.
            rest[0].place = 2
        self._feed.give_back(rest)

    def _give_up(self, lines: list[Line], reason: str, place: int) -> Item:
        """One problem for all lines that belong to the value; the next one that does not is read again."""
        rest = 1
        while rest < len(lines) and _CONTINUES.match(lines[rest].data):
            rest += 1
        self._feed.give_back(lines[rest:])
        while 1 < len(lines) == rest and (line := self._feed.next_line(MOST_BYTES)) is not None:
            if not _CONTINUES.match(line.data):
                self._feed.give_back([line])
                break
        return Item(lines[0].number, RecordProblem(reason), place)


def is_conversation(value: Any) -> bool:
    """Say whether a list is one of chat messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in value)
    )


def _skip(text: str, position: int) -> int:
    """Go over space, and the comma that is left of a list whose brackets were taken off."""
    found = _MORE.match(text, position)
    return found.end() if found else position


def _skip_on_line(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r,":
        position += 1
    return position + 1 if text[position : position + 1] == "\n" else position


def _extra(position: int) -> RecordProblem:
    return RecordProblem(
        _("broken JSON at column %(column)d (%(problem)s)")
        % {"column": position + 1, "problem": "Extra data"}
    )
