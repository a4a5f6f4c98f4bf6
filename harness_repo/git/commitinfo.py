"""What people see of a commit, read from the object itself: whatever others' tools have written into it."""

import codecs
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

# What git shows for a date that is none.
_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)
# A year that every time zone's arithmetic can take.
_LAST_YEAR = 9000
_PERSON = re.compile(r"(?P<name>[^<]*)(?:<(?P<email>[^>]*)>?)?(?P<rest>.*)", re.DOTALL)
_DATE = re.compile(
    r"\s*(?P<seconds>[0-9]{1,12})(?:\s+(?P<sign>[+-])(?P<hours>[0-9]{2})(?P<minutes>[0-9]{2}))?\s*"
)


@dataclass(frozen=True)
class CommitInfo:
    """One version as people see it."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    # 1970-01-01 when the commit has no date that can be read.
    when: datetime
    # Subject, body and trailers.
    message: str

    @property
    def subject(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0]


def parse_commit(sha: str, data: bytes) -> CommitInfo:
    """Read the content of a commit; what is missing or odd in it is left empty, and NUL becomes U+FFFD."""
    head, _, body = data.partition(b"\n\n")
    lines = [line.partition(b" ") for line in head.split(b"\n")]
    fields = {key: value for key, _, value in reversed(lines)}
    encoding = _encoding(fields.get(b"encoding", b""))
    author = _PERSON.fullmatch(_decode(fields.get(b"author", b""), encoding))
    name, email, rest = author.groups() if author else ("", "", "")
    return CommitInfo(
        sha,
        tuple(value.decode("ascii", "replace") for key, _, value in lines if key == b"parent"),
        name.strip(" "),
        (email or "").strip(" "),
        _date(rest),
        _decode(body, encoding).strip("\n"),
    )


def _date(text: str) -> datetime:
    # A bracket too many in the address is left before it.
    found = _DATE.fullmatch(text.rpartition(">")[2])
    if found is None:
        return _NO_DATE
    try:
        when = datetime.fromtimestamp(int(found["seconds"]), UTC)
    except (ValueError, OverflowError, OSError):
        return _NO_DATE
    if when.year > _LAST_YEAR:
        return _NO_DATE
    return when.astimezone(_zone(found["sign"], int(found["hours"] or 0), int(found["minutes"] or 0)))


def _zone(sign: str | None, hours: int, minutes: int) -> timezone:
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    return timezone(offset) if abs(offset) < timedelta(hours=24) else UTC


def _encoding(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode("ascii")).name if name else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"


def _decode(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding, "replace")
    # Not an encoding of text: hex, for one.
    except (LookupError, ValueError, TypeError):
        text = data.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")
