"""Keeps the spans of a file until all of them are there: spans of one trace may stand anywhere in it.

Beyond a few megabytes they wait on disk, so that a file may be larger than the memory.
"""

import json
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Any, Self

_IN_MEMORY = 32 * 2**20


class SpanStore:
    """Spans by trace, in the order in which they were added; to be used in a `with`, which removes what is on disk."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  closed by __exit__
        # the line of the first span of a trace, and where its spans begin in the file
        self._traces: dict[str, tuple[int, list[int]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, span: dict[str, Any], line: int) -> None:
        """Keep a span that was found on this line."""
        _line, places = self._traces.setdefault(span["trace_id"], (line, []))
        places.append(self._file.tell())
        self._file.write(json.dumps(span).encode() + b"\n")

    def traces(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """The line and the spans of each trace, in the order of their first spans; nothing may be added meanwhile."""
        for line, places in self._traces.values():
            yield line, [self._read(place) for place in places]

    def _read(self, place: int) -> dict[str, Any]:
        self._file.seek(place)
        span: dict[str, Any] = json.loads(self._file.readline())
        return span
