"""Physical lines of a stream, which may be given back."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

_BLOCK = 2**20
# Within a file where several were put one behind the other.
_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Line:
    """A line with its end, or what is left of it."""

    # 1-based
    number: int
    data: bytes
    # False: it is longer than was allowed, and the rest is skipped
    is_whole: bool = True
    # its rest is still to be read
    is_begun: bool = False
    # the place on the line, 1-based, of the first value in `data`; 0 for the line's start
    place: int = 0


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ends; a lone carriage return ends none."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class LineFeed:
    """Reads lines up to a length; those that are given back come again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._readline = stream.readline
        self._waiting: deque[Line] = deque()
        # of the line that was read last
        self._number = 0

    @property
    def number(self) -> int:
        """The line that comes next, as far as has been read, and at the end the last one; 1-based."""
        return self._waiting[0].number if self._waiting else max(self._number, 1)

    def next_line(self, limit: int) -> Line | None:
        """The next line, None at the end; of one that is longer than `limit` bytes its beginning."""
        if self._waiting and not self._waiting[0].is_begun:
            return self._waiting.popleft()
        data = self._waiting.popleft().data if self._waiting else b""
        data += self._readline(limit + 1 - len(data))
        if not data:
            return None
        if data.startswith(_MARK):
            data = data[3:]
        self._number += 1
        if len(data) <= limit or data.endswith(b"\n"):
            return Line(self._number, data)
        while (rest := self._readline(_BLOCK)) and not rest.endswith(b"\n"):
            pass
        return Line(self._number, data[:4096], is_whole=False)

    def begin(self) -> bytes:
        """The first block of the next line that is not blank, which stays the next one; empty at the end."""
        while data := self._readline(_BLOCK):
            is_begun = not data.endswith(b"\n")
            data = data.removeprefix(_MARK)
            if data.strip():
                self._waiting.append(Line(self._number + 1, data, is_begun=is_begun))
                self._number += not is_begun
                break
            self._number += not is_begun
        return data

    def give_back(self, lines: Sequence[Line]) -> None:
        """Let these be the next ones, in their order."""
        self._waiting.extendleft(reversed(lines))

    def take(self, size: int, limit: int) -> list[Line]:
        """Lines of about `size` bytes together; none at the end, or where they would be more than `limit`."""
        lines: list[Line] = []
        taken = 0
        while taken < size and (line := self.next_line(limit)) is not None:
            lines.append(line)
            taken += len(line.data)
            if not line.is_whole or taken > limit:
                self.give_back(lines)
                return []
        return lines

    def has_more(self) -> bool:
        """Say whether anything but space follows."""
        return any(line.data.strip() for line in self._waiting) or bool(self.begin())

    def read_block(self) -> bytes:
        """What comes next, without regard to lines; `go_on` is to be called before lines are read again."""
        return self._waiting.popleft().data if self._waiting else self._stream.read(_BLOCK)

    def go_on(self, number: int, rest: bytes) -> None:
        """Read lines again: `rest` is what `read_block` gave too much, from the line `number` on."""
        if not self._waiting and not rest.endswith(b"\n"):
            rest += self._readline()
        lines = [Line(number + offset, data) for offset, data in enumerate(split_lines(rest))]
        self._number = number + max(len(lines) - 1, 0)
        self.give_back(lines)
