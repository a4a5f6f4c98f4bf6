"""Stage 1: records that are stored already as they would be read again, recognised before they are read.

A case keeps the digest of the text that it was read from, and of the rules that it was masked and judged by. When a
record of the same id has the same one, what would become of it is stored.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from django.db import connection

from evolution.loop.failure_rules import FailureRule
from evolution.loop.masking import Masker
from evolution.loop.record_ids import name_source, shorten_id
from evolution.models import Harness
from evolution.ports import Found, Unread

# What makes a case of a record, beside the reader of its format.
_CODE = ("case_content.py", "cases.py", "failure_rules.py", "masking/*.py")

Key = tuple[str, str]


class RawDigests:
    """Digests of unread records under given rules."""

    def __init__(self, masker: Masker, rule: FailureRule, *, only_failures: bool) -> None:
        masking = tuple((each.name, each.label, each.pattern, each.quick) for each in masker.rules)
        self._rules = _digest_rules(masking, rule, only_failures)

    def digest(self, item: Unread) -> str:
        """What the case of this record keeps."""
        return hashlib.blake2b(item.digest, digest_size=16, key=self._rules).hexdigest()


def look_up(harness: Harness, items: Iterable[Found], source_name: str) -> dict[Key, str]:
    """The digests that cases keep, by source and id, of those whose ids these records would have."""
    keys = [
        (name_source(item.source, source_name), shorten_id(item.source_id))
        for item in items
        if isinstance(item, Unread)
    ]
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [[key[0] for key in keys], [key[1] for key in keys], harness.pk])
        return {(source, source_id): digest for source, source_id, digest in cursor.fetchall()}


# One by one by the index: for hundreds of ids at once PostgreSQL would rather read all of a table that grows quickly.
_LOOK_UP = """
SELECT wanted.source, wanted.source_id, known.raw_digest
FROM unnest(%s::text[], %s::text[]) AS wanted(source, source_id) CROSS JOIN LATERAL (
    SELECT raw_digest FROM evolution_failurecase AS stored
    WHERE harness_id = %s AND stored.source = wanted.source AND stored.source_id = wanted.source_id OFFSET 0
) AS known
WHERE known.raw_digest <> ''
"""


@cache
def _digest_rules(masking: tuple[tuple[str, ...], ...], rule: FailureRule, only_failures: bool) -> bytes:  # noqa: FBT001
    what = repr((masking, rule, only_failures)).encode()
    return hashlib.blake2b(what, digest_size=32, key=_own_digest()).digest()


@cache
def _own_digest() -> bytes:
    """Of this code itself: what another version of it stored is not taken for the same."""
    folder = Path(__file__).parent
    code = b"".join(path.read_bytes() for name in _CODE for path in sorted(folder.glob(name)))
    return hashlib.blake2b(code, digest_size=32).digest()
