"""Walks a JSON list in a stream element by element; memory holds a few blocks and one element."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item
from evolution.adapters.formats.line_feed import LineFeed
from evolution.adapters.formats.syntax import describe, is_unfinished
from evolution.adapters.formats.values import Parser, RecordProblem

_SPACE = re.compile(r"[ \t\r\n,]*")
# Bytes that were no UTF-8.
_FOREIGN = re.compile("[\udc80-\udcff]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_DIGITS = re.compile(r"[\w.+-]*\Z")
_BORDER = re.compile(r"\s*[,\]]")
_FIRST_KEY = re.compile(r'\{\s*("[^"\\\n]*")\s*:')
_TRIM = 2**20
# Characters behind an element that is broken in which the next one is looked for.
_LOOK_AHEAD = 2**20
# More has to be read to say what it is.
_UNFINISHED = object()


class ListScan:
    """The elements of the list with which a feed goes on; the feed stands behind the list afterwards.

    A missing comma or one too many does no harm. After an element that can't be parsed it goes on with the next line
    that starts as that element did, with the same space before a bracket; on one line, behind the bracket that closes
    it, or where its quotes are off, with the next object that has the first keys of the one before.
    """

    def __init__(self, feed: LineFeed, limit: int) -> None:
        self._feed, self._limit = feed, limit
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape").decode
        self._text = ""
        self._position = 0
        # the line of `_counted`, a position up to which newlines are counted
        self._line, self._counted = feed.number, 0
        self._is_ended = False
        self._has_foreign = False
        self._parse = Parser(strict=True).parse
        self._last_line, self._place = 0, 0
        # the first keys of the last element
        self._keys: list[str] = []
        # the file's end was found inside the list, and said
        self._is_broken = False

    def __iter__(self) -> Iterator[Item]:
        self._skip_space()
        self._position += 1
        while self._next_element():
            yield self._read_element()
            self._trim()
        rest = self._text[self._position :].encode(errors="surrogateescape")
        self._feed.go_on(self._line_here(), rest)

    def _fill(self) -> bool:
        """Take more text in, as much as is there again: reading on costs no more than twice the reading."""
        wanted = max(len(self._text) - self._position, 1)
        parts: list[str] = []
        while wanted > 0 and not self._is_ended:
            block = self._feed.read_block()
            self._is_ended = not block
            parts.append(self._decode(block, final=self._is_ended))
            wanted -= len(block)
        more = "".join(parts)
        self._has_foreign = self._has_foreign or (not more.isascii() and bool(_FOREIGN.search(more)))
        self._text += more
        return bool(more)

    def _skip_space(self) -> None:
        while True:
            found = _SPACE.match(self._text, self._position)
            self._position = found.end() if found else self._position
            if self._position < len(self._text) or not self._fill():
                return

    def _next_element(self) -> bool:
        """Go to the next element; False at the list's end, or the file's."""
        self._skip_space()
        if self._text[self._position : self._position + 1] == "]":
            self._position += 1
            return False
        if self._position < len(self._text):
            return True
        return self._mark_break()

    def _mark_break(self) -> bool:
        """The file ends before the list does: that is one more element, which can't be read."""
        is_new = not self._is_broken
        self._is_broken = True
        return is_new

    def _read_element(self) -> Item:
        line, place = self._place_here()
        start = self._position
        if self._position >= len(self._text):
            return Item(line, RecordProblem(_("the file ends inside the list")), place)
        try:
            value, is_clean = self._parse_here()
        except json.JSONDecodeError as error:
            reason = self._explain(error, line)
            is_said = self._is_broken
            if not self._find_next() and not is_said:
                reason = _("%(reason)s; what follows it in the list can't be read") % {"reason": reason}
            return Item(line, RecordProblem(reason), place)
        except RecursionError:
            self._find_next()
            return Item(line, RecordProblem(_("nested too deep to be read")), place)
        if isinstance(value, dict):
            self._keys = list(value)[:2]
        return Item(line, value, place, is_clean, self._text[start : self._position])

    def _place_here(self) -> tuple[int, int]:
        line = self._line_here()
        self._place = self._place + 1 if line == self._last_line else 1
        self._last_line = line
        return line, self._place if self._place > 1 else 0

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _parse_here(self) -> tuple[Any, bool]:
        """Parse the element, taking in as much text as it needs."""
        while True:
            try:
                value, end, is_clean = self._parse(self._text, self._position)
            except json.JSONDecodeError as error:
                size = len(self._text) - self._position
                if not is_unfinished(self._text, error, error.pos) or size > self._limit or not self._fill():
                    raise
                continue
            # More digits may follow a number that the text breaks off behind, or in.
            is_closed = self._text[end - 1] in '}]"' or not _DIGITS.match(self._text, end)
            if is_closed or not self._fill():
                break
        start, self._position = self._position, end
        if self._has_foreign and _FOREIGN.search(self._text, start, end):
            return RecordProblem(_("not UTF-8")), True
        return value, is_clean

    def _explain(self, error: json.JSONDecodeError, line: int) -> str:
        if len(self._text) - self._position > self._limit:
            return _("longer than %(size)d MB") % {"size": self._limit // 2**20}
        if self._is_ended and is_unfinished(self._text, error, error.pos):
            self._is_broken = True
            return _("cut off: the file ends inside of this record")
        here = json.JSONDecodeError(error.msg, self._text, error.pos)
        lines = self._text.count("\n", self._position, here.pos)
        here.lineno = 1 + lines
        return describe(here, line)

    def _find_next(self) -> bool:
        """Go to the next element behind one that could not be parsed; without one, to the end, and False."""
        start = self._text.rfind("\n", 0, self._position) + 1
        indent = self._text[start : self._position]
        is_on_its_line = start and not indent.strip()
        found = self._find_line(indent) if is_on_its_line else self._find_on_line()
        if found:
            return True
        while self._fill():
            self._position = len(self._text)
            self._trim()
        self._position = len(self._text)
        self._is_broken = True
        return False

    def _find_line(self, indent: str) -> bool:
        pattern = re.compile(rf"\n{indent}(?=[{{\[])")
        while True:
            if found := pattern.search(self._text, self._position):
                self._position = found.end()
                return True
            # The line may begin in what was read and end in what comes.
            self._position = max(self._position, len(self._text) - len(indent) - 2)
            self._trim()
            if not self._fill():
                return False

    def _find_on_line(self) -> bool:
        """Go behind the bracket that closes the element, or to an object like the ones before if that comes first."""
        alike = self._find_alike()
        close = self._find_close()
        self._position = min(place for place in (alike, close, len(self._text)) if place)
        return bool(alike or close)

    def _find_close(self) -> int:
        """Look in what was read for the end of the bracket that closes the element, strings left out; else 0."""
        depth = 0
        for found in _TOKEN.finditer(self._text, self._position):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found.group(), 0)
            if depth <= 0:
                is_close = found.group() in {"}", "]"} and _BORDER.match(self._text, found.end())
                return found.end() if is_close else 0
        return 0

    def _find_alike(self) -> int:
        """Look for the next object that begins as the last good one did, or without one as the broken one; else 0."""
        first = _FIRST_KEY.match(self._text, self._position)
        keys = self._keys or ([json.loads(first[1])] if first else [])
        if not keys:
            return 0
        start = rf"[}}\]]\s*,\s*(?={{\s*{re.escape(json.dumps(keys[0], ensure_ascii=False))}\s*:)"
        pattern, at = re.compile(start), self._position
        while True:
            while found := pattern.search(self._text, at):
                value = self._try_to_parse(found.end())
                if isinstance(value, dict) and list(value)[: len(keys)] == keys:
                    return found.end()
                if value is _UNFINISHED:
                    break
                at = found.end()
            if len(self._text) - self._position > _LOOK_AHEAD or not self._fill():
                return 0

    def _try_to_parse(self, position: int) -> Any:
        try:
            return self._parse(self._text, position)[0]
        except json.JSONDecodeError as error:
            return _UNFINISHED if is_unfinished(self._text, error, error.pos) and not self._is_ended else None
        except RecursionError:
            return None

    def _trim(self) -> None:
        """Let go of what was read."""
        if self._position > _TRIM:
            self._line_here()
            self._text = self._text[self._position :]
            self._position = self._counted = 0
