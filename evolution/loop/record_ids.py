"""Stage 1: ids of an import's records: each different from the others, and the same when it is imported again."""

import hashlib
import json
from collections import Counter
from dataclasses import replace

from evolution.ports import Record

LONGEST = 180
LONGEST_SOURCE = 64


class RecordIds:
    """Tells the records of one import apart, in the order in which they come.

    The first record of an id keeps it. Later ones get a suffix that says what is in them, and those that are alike
    a number: `7`, `7~3fa94c10`, `7~3fa94c10~2`. Remembers a number for each id.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._repeats: Counter[str] = Counter()

    def name(self, item: Record, source_name: str = "") -> Record:
        """The record under its source, or this one, with an id of its own there of at most 200 characters."""
        source = name_source(item.source, source_name)
        if source != item.source:
            item = replace(item, source=source)
        wanted = shorten_id(item.source_id)
        if not self.take(item.source, wanted):
            wanted = f"{wanted}~{_digest_content(item)}"
            while not self.take(item.source, own := self._number(wanted)):
                pass
            wanted = own
        return item if wanted == item.source_id else replace(item, source_id=wanted)

    def take(self, source: str, source_id: str) -> bool:
        """Whether the id, which is none too long, was free; it is taken now."""
        # With odds of one to a hundred thousand two of a million ids have the same, and the later one gets a suffix.
        digest = hashlib.blake2b(f"{source}\0{source_id}".encode(), digest_size=7).digest()
        number, before = int.from_bytes(digest), len(self._seen)
        self._seen.add(number)
        return len(self._seen) > before

    def _number(self, source_id: str) -> str:
        self._repeats[source_id] += 1
        times = self._repeats[source_id]
        return source_id if times == 1 else f"{source_id}~{times}"


def name_source(source: str, source_name: str = "") -> str:
    """The source that a record is booked under: the one of that name, else its own."""
    wanted = source_name or source
    # What is cut through is no longer found by the rules of masking: nothing is kept of what is too long.
    return wanted if len(wanted) <= LONGEST_SOURCE else hashlib.sha256(wanted.encode()).hexdigest()[:32]


def shorten_id(source_id: str) -> str:
    """An id that the database can hold, with room for a suffix; of one that is longer a digest alone, see above."""
    if len(source_id) <= LONGEST:
        return source_id
    return hashlib.sha256(source_id.encode()).hexdigest()


def _digest_content(item: Record) -> str:
    what = [item.request, item.trajectory, item.reply, item.symptom, item.scores, item.context]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:8]
