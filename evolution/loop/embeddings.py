"""The vectors of failures: each text is embedded once per model, whoever asks, and kept."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from evolution.loop.failure_text import build_failure_text
from evolution.loop.jobs import Progress
from evolution.models import Embedding, FailureCase, Harness
from evolution.ports import Embedder, Vectors
from evolution.states import CaseState

# Texts that are embedded and stored together.
CHUNK = 512
# Vectors read at once, and cases whose text is built at once.
READ = 5000
BUILT = 500


def digest_of(text: str) -> str:
    """What a text's vector is kept by."""
    return hashlib.sha256(text.encode()).hexdigest()


class Built(NamedTuple):
    """The text that is to be embedded of a failure, and what the failure said when it was built."""

    pk: int
    text: str
    digest: str


def write_failure_texts(harness: Harness, progress: Progress) -> int:
    """Build the text that is embedded of each open failure that has none, and store it; returns how many."""
    written = 0
    for batch in _build_texts(harness):
        store_failure_texts(batch)
        written += len(batch)
        progress(written, written, "reading failures")
    return written


def build_failure_texts(harness: Harness, progress: Progress) -> list[Built]:
    """Build the text of each open failure that has none, by id, and store nothing."""
    built: list[Built] = []
    for batch in _build_texts(harness):
        built += batch
        progress(len(built), len(built), "reading failures")
    return built


def store_failure_texts(built: Sequence[Built]) -> None:
    """Store texts; a failure whose content has changed since is left for the next time."""
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [list(column) for column in zip(*built, strict=True)] or [[], [], []])


_STORE = """
UPDATE evolution_failurecase failure SET embedded_text = built.text
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS built (id, text, digest)
WHERE failure.id = built.id AND failure.embedded_text = '' AND failure.content_digest = built.digest
"""


def _build_texts(harness: Harness) -> Iterator[list[Built]]:
    unseen = FailureCase.objects.filter(harness=harness, state=CaseState.OPEN, embedded_text="")
    last = 0
    while batch := list(unseen.filter(pk__gt=last).order_by("pk")[:BUILT]):
        last = batch[-1].pk
        yield [Built(case.pk, build_failure_text(case), case.content_digest) for case in batch]


def embed_texts(embedder: Embedder, texts: Sequence[str], progress: Progress) -> Vectors:
    """Return one vector per text, shape (len(texts), dimensions); what is kept is not computed again."""
    if not texts:
        return np.zeros((0, 1), dtype=np.float32)
    digests = [digest_of(text) for text in texts]
    by_digest = dict(zip(digests, texts, strict=True))
    vectors = _read_vectors(embedder.name, list(by_digest))
    # By length, so that a batch is not padded to its longest text; and the same whatever the order of the cases.
    missing = sorted(by_digest.keys() - vectors.keys(), key=lambda digest: (len(by_digest[digest]), digest))
    for start in range(0, len(missing), CHUNK):
        progress(start, len(missing), "embedding")
        chunk = missing[start : start + CHUNK]
        vectors |= _embed_chunk(embedder, {digest: by_digest[digest] for digest in chunk})
    return np.stack([vectors[digest] for digest in digests])


def read_member_vectors(
    model: str, clusters: Sequence[int], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Vectors]:
    """Return case ids, cluster ids and vectors of the clusters' members, of each the newest `most`.

    Members without a vector of that model are left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(_MEMBERS, [list(clusters), most, model])
        rows = cursor.fetchall()
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.float32)
    vectors = np.stack([np.frombuffer(row[2], dtype=np.float32) for row in rows])
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), vectors


_MEMBERS = """
SELECT member.id, member.cluster_id, embedding.vector
FROM (
    SELECT id, cluster_id, embedded_text, row_number() OVER (PARTITION BY cluster_id ORDER BY id DESC) AS place
    FROM evolution_failurecase WHERE cluster_id = ANY(%s) AND embedded_text <> ''
) member
JOIN evolution_embedding embedding
  ON embedding.digest = encode(sha256(convert_to(member.embedded_text, 'UTF8')), 'hex')
WHERE member.place <= %s AND embedding.model = %s
ORDER BY member.id
"""


def _embed_chunk(embedder: Embedder, texts: dict[str, str]) -> dict[str, Vectors]:
    """Embed and keep the texts, by digest; another worker that has the same ones waits, and finds them kept."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 5))", [embedder.name])
        kept = _read_vectors(embedder.name, list(texts))
        wanted = [digest for digest in texts if digest not in kept]
        if not wanted:
            return kept
        made = dict(zip(wanted, embedder.embed([texts[digest] for digest in wanted]), strict=True))
        Embedding.objects.bulk_create(
            Embedding(model=embedder.name, digest=digest, vector=vector.tobytes())
            for digest, vector in made.items()
        )
    return kept | made


def _read_vectors(model: str, digests: Sequence[str]) -> dict[str, Vectors]:
    vectors: dict[str, Vectors] = {}
    for start in range(0, len(digests), READ):
        stored = Embedding.objects.filter(model=model, digest__in=digests[start : start + READ])
        for digest, vector in stored.values_list("digest", "vector"):
            vectors[digest] = np.frombuffer(vector, dtype=np.float32)
    return vectors
