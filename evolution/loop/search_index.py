"""Stage 1, a little later: the texts of new and changed cases go into the search index, the newest first.

Computing and storing index entries takes longer than all else of an import; cases that wait are found all the same.
"""

import time

from django.db import connection, transaction

from evolution.loop.search_text import BLOCK, grams, search_text
from evolution.models import FailureCase

# Cases that are indexed in one transaction.
BATCH = 2_000


def index_texts(seconds: float = 10.0) -> int:
    """Index texts that wait, for about as long as this; returns how many. Two at once share the work."""
    until = time.monotonic() + seconds
    done = 0
    while True:
        count = _index_batch()
        done += count
        if count < BATCH or time.monotonic() > until:
            return done


def _index_batch() -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WAITING, [BATCH])
        rows = cursor.fetchall()
        missing = _write_texts([case for case, text in rows if not text])
        texts = [missing.get(case, text) for case, text in rows]
        entries = [_literal(case, text) for (case, _text), text in zip(rows, texts, strict=True)]
        cursor.execute(_ENTER, [[case for case, _text in rows], texts, entries])
    if rows:
        _clean_index()
    return len(rows)


def _write_texts(ids: list[int]) -> dict[int, str]:
    """The texts of cases that were there before there was a search: an empty one stands for them so far."""
    needed = ("source_id", "request", "symptom", "reply", "trajectory")
    return {case.pk: search_text(case) for case in FailureCase.objects.filter(pk__in=ids).only(*needed)}


def _literal(case: int, text: str) -> str:
    """The entries as PostgreSQL writes an array."""
    return "{" + ",".join(map(str, grams(text, case // BLOCK).tolist())) + "}"


def _clean_index() -> None:
    """Work off the list of new entries, which every search would have to read; only the index's owner may."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('case_text_grams')")


_WAITING = """
SELECT case_id, text FROM evolution_casetext WHERE grams IS NULL
ORDER BY case_id DESC LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
_ENTER = """
UPDATE evolution_casetext AS stored SET text = entry.text, grams = entry.grams::int[]
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS entry (case_id, text, grams) WHERE stored.case_id = entry.case_id
"""
