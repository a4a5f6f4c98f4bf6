"""Stage 1: what a failure case is found by: its text, and the pieces of it that the search index holds.

The text is folded to one width and lower case. A piece is a Chinese (Japanese, Korean) character, two characters side
by side of which one is such, or three others, none of them a space; so every part of a text that is long enough for a
piece is found. Looking them up is `queries.case_search`'s work, indexing what is stored here `loop.search_index`'s.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from evolution.models import FailureCase
from harness_repo.runtime.context import normalise_request

# What is searched of a case, and of each thing said in it, in characters; the case's page has all of it.
MOST_TEXT = 40_000
MOST_PIECE = 10_000
# Cases of one block of ids share their index entries: a search reads the newest blocks first, and stops when it can.
BLOCK = 1 << 16

_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]+")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
# Between pieces that are folded at once; no character, so that a text has it as good as never.
_BORDER = "\ufdd0"
# Longer ones one by one, as far as they are needed.
_MOST_AT_ONCE = 4 * MOST_TEXT
# Scripts that are written without spaces between words: first and last code point of each range.
_DENSE = ((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
# Of the 32 bits of an index entry.
_BLOCK_BITS, _PIECE_BITS = 10, 22
# Two odd constants of 64-bit hash functions.
_MIX, _MIX2 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F

Grams = NDArray[np.int32]


def fold(text: str) -> str:
    """Bring a text, or what is searched in one, to the form in which both are compared."""
    text = _UNFIT.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return " ".join(text.lower().split())


def search_text(case: FailureCase) -> str:
    """What is searched of a case: id, request, symptom, reply, what was said and called, and what tools returned.

    One line per piece, each once. System prompts are left out, being the same in all cases.
    """
    found: dict[str, None] = {}
    left = MOST_TEXT
    for piece in _fold_each({piece[:MOST_PIECE]: None for piece in _pieces(case)}):
        folded = piece[:left]
        if folded and folded not in found:
            found[folded] = None
            left -= len(folded) + 1
        if left <= 0:
            break
    return "\n".join(found)


def _fold_each(pieces: Collection[str]) -> Iterable[str]:
    """The pieces folded; all of them at once, which is several times as fast."""
    joined = _BORDER.join(pieces)
    if len(joined) > _MOST_AT_ONCE or joined.count(_BORDER) >= len(pieces):
        return (fold(piece) for piece in pieces)
    return [piece.strip() for piece in fold(joined).split(_BORDER)]


def _pieces(case: FailureCase) -> Iterator[str]:
    yield case.source_id
    yield from _request(case.request)
    yield case.symptom
    yield case.reply
    if not isinstance(case.trajectory, dict):
        return
    messages = case.trajectory.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and message.get("role") not in {"system", "developer"}:
            yield from _said(message)
    if error := case.trajectory.get("error"):
        yield _as_text(error)


def _request(request: Any) -> Iterator[str]:
    history = request.get("history") if isinstance(request, dict) else None
    try:
        texts = [entry.text for entry in normalise_request(request).danmaku]
    except (TypeError, ValueError, AttributeError):
        texts = []
    # One of another shape, such as a simulated user's goal, is searched as it is.
    yield from texts or ([_as_text(request)] if request else [])
    for entry in history if isinstance(history, list) else []:
        if isinstance(entry, dict):
            yield from _said(entry)


def _said(message: dict[str, Any]) -> Iterator[str]:
    if message.get("content"):
        yield _as_text(message["content"])
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"{function.get('name') or ''} {_as_text(function.get('arguments') or '')}"


def _as_text(value: Any) -> str:
    """A value as people read it: JSON with escaped Chinese in it is written anew without the escapes."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if "\\u" not in value:
        return value
    try:
        return json.dumps(json.loads(value), ensure_ascii=False)
    except (ValueError, RecursionError):
        return value


def grams(text: str, block: int) -> Grams:
    """The pieces of a folded text as distinct numbers, for a case of this block of ids (`case_id // BLOCK`)."""
    return salt(pieces_of(text), block)


def pieces_of(text: str) -> NDArray[np.uint64]:
    """The distinct pieces of a folded text; empty when it is too short to have one."""
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    return np.unique(np.concatenate([codes[_is_dense(codes)], _pairs(codes), _triples(codes)]))


def query_pieces(text: str) -> NDArray[np.uint64]:
    """The pieces that a case's text must have to contain this folded text; empty: the index can't tell.

    The characters of pairs are left out, as the pairs say more.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    longer = np.unique(np.concatenate([_pairs(codes), _triples(codes)]))
    return longer if len(longer) else np.unique(codes[_is_dense(codes)])


def salt(pieces: NDArray[np.uint64], block: int) -> Grams:
    """The index entries of pieces in a block of ids; two pieces may share one, so what is found is looked at again.

    Those of a block are side by side: the newest, where entries come in, is a small part of the index.
    """
    mixed = (pieces ^ (pieces >> np.uint64(29))) * np.uint64(_MIX)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_MIX2)
    entries = (mixed >> np.uint64(64 - _PIECE_BITS)) | np.uint64(block % 2**_BLOCK_BITS << _PIECE_BITS)
    return np.unique(entries.astype(np.uint32).view(np.int32))


def _is_dense(codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    found = np.zeros(len(codes), dtype=np.bool_)
    for first, last in _DENSE:
        found |= (codes >= first) & (codes <= last)
    return found


def _pairs(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two characters side by side, one of them dense and none a space."""
    dense, solid = _is_dense(codes), codes > ord(" ")
    chosen = (dense[:-1] | dense[1:]) & solid[:-1] & solid[1:]
    return ((codes[:-1] << np.uint64(21)) | codes[1:])[chosen] | np.uint64(1 << 42)


def _triples(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Three characters side by side, none of them dense or a space."""
    plain = ~_is_dense(codes) & (codes > ord(" "))
    chosen = plain[:-2] & plain[1:-1] & plain[2:]
    packed = (codes[:-2] << np.uint64(42)) | (codes[1:-1] << np.uint64(21)) | codes[2:]
    return packed[chosen] | np.uint64(1 << 63)


def insert_texts(cases: Sequence[FailureCase]) -> None:
    """Store what is searched of new cases, in the transaction of whoever stores them; see `store_texts`."""
    if not cases:
        return
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for case in cases:
            copy.write_row((case.pk, search_text(case)))


def store_texts(cases: Sequence[FailureCase]) -> None:
    """Store what is searched of these cases, which have an id already, in the transaction of whoever stores them.

    It can be found at once, and is indexed a little later: see `loop.search_index`.
    """
    if not cases:
        return
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [[case.pk for case in cases], [search_text(case) for case in cases]])


_COPY = "COPY evolution_casetext (case_id, text) FROM STDIN"
_STORE = """
INSERT INTO evolution_casetext AS stored (case_id, text)
SELECT * FROM unnest(%s::bigint[], %s::text[])
ON CONFLICT (case_id) DO UPDATE SET text = excluded.text, grams = NULL WHERE stored.text <> excluded.text
"""
