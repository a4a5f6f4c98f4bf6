"""What clustering costs: `python -m tests.benchmarks.cluster_speed [FAILURES] [FOLDER]`, 50,000 by default.

Failures from real utterances in Chinese and English, each with a symptom and a number of its own, so that no two
texts are the same. Embedding stands beside the bare model on the same kind of texts; then grouping, recognition, map
and storing, with the peak of memory; 100 failures that come to them; and all of it once more, with nothing new to
embed. A folder that is named keeps the database and the vectors.
"""

import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.cluster_quality import read_sets
from tests.benchmarks.triage_speed import database

if TYPE_CHECKING:
    from evolution.models import Harness

BARE = 2048
ADDED = 100
SYMPTOMS = (
    "价格没有查工具就报了", "没有说到优惠券", "答非所问", "承诺了做不到的事", "a fee that no tool returned",
    "the question is not answered", "asked for what the user had said before", "the wrong tool was called",
)  # fmt: skip


def make_failures(harness: "Harness", first: int, count: int) -> list[Any]:
    """Unsaved failures with numbers from `first`, always the same."""
    from evolution.models import FailureCase  # noqa: PLC0415  after the environment is set

    topics = [
        (text, label)
        for _name, texts, labels in read_sets()
        for text, label in zip(texts, labels, strict=True)
    ]
    made = []
    for number in range(first, first + count):
        pick = random.Random(number)  # noqa: S311  nothing is to be kept secret
        text, label = pick.choice(topics)
        symptom = SYMPTOMS[hash_of(label) % len(SYMPTOMS)]
        request = {"danmaku": [{"user": "a", "text": f"{text} {number}"}], "history": []}
        fields = {
            "source": "speed",
            "source_id": str(number),
            "fingerprint": f"{number:064d}",
            "title": text[:160],
        }
        made.append(FailureCase(harness=harness, request=request, symptom=symptom, **fields))
    return made


def hash_of(label: str) -> int:
    """The same number for a label in every process."""
    return sum(label.encode())


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its seconds."""
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say(line: object) -> None:
    """Print at once: a row takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def quiet(*_: object) -> None:
    """Progress that nobody follows."""


def measure(count: int) -> None:
    """Print a line for each measurement."""
    from django.core.management import call_command  # noqa: PLC0415  after the environment is set

    from evolution.actors import SYSTEM  # noqa: PLC0415  after the environment is set
    from evolution.adapters.clustering import build_clusterer  # noqa: PLC0415
    from evolution.adapters.embedding import shared_embedder  # noqa: PLC0415
    from evolution.loop.assignment import assign_failures  # noqa: PLC0415
    from evolution.loop.clusters import cluster_failures, read_failures  # noqa: PLC0415
    from evolution.loop.embeddings import write_failure_texts  # noqa: PLC0415
    from evolution.models import Embedding, FailureCase, Harness  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    harness, _new = Harness.objects.get_or_create(name="speed", kind="agent", path="speed.git")
    known = FailureCase.objects.filter(harness=harness).count()
    FailureCase.objects.bulk_create(make_failures(harness, known, max(count - known, 0)), batch_size=2000)
    embedder = shared_embedder()
    write_failure_texts(harness, quiet)
    texts = read_failures(harness).texts
    embedder.embed(texts[:64])
    _vectors, seconds = timed(lambda: embedder.embed([f"bare {text}" for text in texts[:BARE]]))
    bare = BARE / seconds
    say(f"bare model            {bare:7.0f} texts/s, memory {peak():.0f} MB")
    kept = Embedding.objects.count()
    result, seconds = timed(lambda: cluster_failures(SYSTEM, harness, embedder, build_clusterer(), quiet))
    made = Embedding.objects.count() - kept
    if made:
        rate = made / result["seconds"]["embedding"]
        say(
            f"embedding             {rate:7.0f} texts/s, {made} texts, {bare / rate:.2f} x the bare model's time"
        )
    say(f"clustering            {seconds:7.1f} s, {result['seconds']}, memory {peak():.0f} MB")
    say({name: result[name] for name in ("cases", "clusters", "unclustered", "parameters")})
    before = dict(FailureCase.objects.exclude(cluster=None).values_list("pk", "cluster_id"))
    FailureCase.objects.bulk_create(make_failures(harness, max(count, known) + 1, ADDED))
    result, seconds = timed(lambda: assign_failures(SYSTEM, harness, shared_embedder, quiet))
    say(f"adding {ADDED}            {seconds:7.1f} s, {result}, memory {peak():.0f} MB")
    result, seconds = timed(lambda: cluster_failures(SYSTEM, harness, embedder, build_clusterer(), quiet))
    after = dict(FailureCase.objects.values_list("pk", "cluster_id"))
    stay = sum(after[pk] == cluster for pk, cluster in before.items()) / max(len(before), 1)
    say(
        f"clustering again      {seconds:7.1f} s, {result['seconds']}, {stay:.1%} stay, memory {peak():.0f} MB"
    )


def main() -> None:
    """Measure in a database of its own."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    folder = str(Path(sys.argv[2]).resolve()) if len(sys.argv) > 2 else None
    with database(folder):
        measure(count)


if __name__ == "__main__":
    main()
