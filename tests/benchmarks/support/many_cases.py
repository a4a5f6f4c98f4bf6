"""A database full of failure cases for the benchmark of triage: half Chinese, half English, by COPY, always the same.

Words are made up, and as unevenly frequent as those of a language; each case has an order number of its own, every
5,000th an error code, every 200th and every 20th a word of its own kind, so that terms of known frequency are there.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from typing import Any

from django.db import connection

from evolution.loop.search_text import BLOCK, fold, grams
from evolution.models import Cluster, Harness

STATES = ("open", "ignored", "resolved")
SOURCES = ("production", "tau-bench", "langfuse", "evaluation")
CATEGORIES = tuple(f"category-{number}" for number in range(30))
COMMITS = tuple(f"{number:02x}" * 20 for number in range(25))
TAGS = ("price", "coupon", "refund", "tone", "rare-tag")
CLUSTERS = 200
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (
    "id", "harness_id", "source", "source_id", "fingerprint", "count", "state", "category", "language", "title",
    "request", "context", "trajectory", "reply", "symptom", "scores", "score", "findings", "harness_commit", "tags",
    "cluster_id", "embedded_text", "note", "created_at", "updated_at",
)  # fmt: skip


class Writer:
    """Writes sentences in two languages, with words as frequent as Zipf has it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  nothing is to be kept secret
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        sizes = (2, 3, 4, 4, 5, 5, 6, 7, 8, 9, 11)
        weights = list(accumulate(1 / (rank + 3) for rank in range(len(letters))))
        self.english = [self._word(letters, weights, self.random.choice(sizes)) for _ in range(8_000)]
        common = [chr(0x4E00 + 7 * number) for number in range(2_800)]
        self.random.shuffle(common)
        weights = list(accumulate(1 / (rank + 30) for rank in range(len(common))))
        self.chinese = [self._word("".join(common), weights, 2) for _ in range(8_000)]
        self.weights = list(accumulate(1 / (rank + 4) for rank in range(8_000)))

    def _word(self, letters: str, weights: list[float], size: int) -> str:
        return "".join(self.random.choices(letters, cum_weights=weights, k=size))

    def sentence(self, language: str, words: int) -> str:
        """So many words of a language."""
        chosen, mark = (self.chinese, "") if language == "zh" else (self.english, " ")
        return mark.join(self.random.choices(chosen, cum_weights=self.weights, k=words))


def case_row(writer: Writer, number: int, harness_id: int, first_cluster: int) -> tuple[list[Any], str]:
    """The columns of a case, and what is searched of it (about 600 characters of Chinese, 1,100 of English)."""
    pick, language = writer.random, ("zh" if number % 2 else "en")
    request, reply = writer.sentence(language, 12), writer.sentence(language, 40)
    symptom, result = writer.sentence(language, 15), writer.sentence(language, 90)
    order = f"W{number * 7919 % 100_000_007:08d}"
    marks = [f"ERR{40000 + number // 5000}"] if number % 5_000 == 0 else []
    marks += ["quagmire 罕见词"] if number % 200 == 0 else []
    marks += ["sometimes 有时候"] if number % 20 == 0 else []
    result = json.dumps({"order": order, "status": " ".join(marks), "detail": result}, ensure_ascii=False)
    messages = [
        {"role": "user", "content": request},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": json.dumps({"id": order})}}
        ]},
        {"role": "tool", "tool_call_id": "1", "content": result},
        {"role": "assistant", "content": reply},
    ]  # fmt: skip
    at = START + timedelta(seconds=15 * number)
    state = "open" if pick.random() < 0.8 else pick.choice(STATES[1:])
    tags = [
        tag for tag, share in zip(TAGS, (0.1, 0.05, 0.02, 0.01, 0.0005), strict=True) if pick.random() < share
    ]
    score = pick.choice((0.0, 0.25, 0.5, 0.75))
    columns: list[Any] = [
        number, harness_id, SOURCES[min(int(pick.expovariate(1.2)), 3)], f"case-{number}", f"{number:064d}", 1, state,
        CATEGORIES[min(int(pick.expovariate(0.15)), 29)], language, request[:160],
        json.dumps({"danmaku": [{"user": "u", "text": request}]}, ensure_ascii=False), "{}",
        json.dumps({"messages": messages}, ensure_ascii=False), reply, symptom, json.dumps({"reward": score}), score,
        "[]", pick.choice(COMMITS), tags,
        first_cluster + min(int(pick.expovariate(0.03)), CLUSTERS - 1) if pick.random() < 0.9 else None, "", "", at, at,
    ]  # fmt: skip
    said = [f"case-{number}", request, symptom, reply, f'get_order {{"id": "{order}"}}', result]
    return columns, "\n".join(fold(piece) for piece in said)


def fill(harness: Harness, count: int, first: int = 1, *, indexed: bool = True) -> None:
    """Put cases `first` to `first + count - 1` into the inbox of a harness."""
    clusters = _clusters(harness)
    writer = _writer()
    writer.random.seed(first)
    texts: list[tuple[int, str]] = []
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY evolution_failurecase ({', '.join(COLUMNS)}) FROM STDIN") as copy:
            for number in range(first, first + count):
                columns, text = case_row(writer, number, harness.pk, clusters)
                copy.write_row(columns)
                texts.append((number, text))
        with cursor.copy("COPY evolution_casetext (case_id, text, grams) FROM STDIN") as copy:
            for row in _text_rows(texts, indexed=indexed):
                copy.write_row(row)


@cache
def _writer() -> Writer:
    return Writer(1)


def _text_rows(texts: list[tuple[int, str]], *, indexed: bool) -> Iterator[tuple[int, str, str | None]]:
    for number, text in texts:
        entries = grams(text, number // BLOCK).tolist() if indexed else None
        yield number, text, None if entries is None else "{" + ",".join(map(str, entries)) + "}"


def _clusters(harness: Harness) -> int:
    """The id of the first of the clusters."""
    if not harness.clusters.exists():
        numbers = range(1, CLUSTERS + 1)
        Cluster.objects.bulk_create(Cluster(harness=harness, number=n, name=f"cluster {n}") for n in numbers)
    return harness.clusters.order_by("pk").values_list("pk", flat=True)[0]


def finish(first_free: int) -> None:
    """Bring the sequence and the planner's statistics up to date, as autovacuum would."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SEQUENCE evolution_failurecase_id_seq RESTART WITH {first_free}")
        cursor.execute("VACUUM (ANALYZE) evolution_failurecase")
        cursor.execute("VACUUM (ANALYZE) evolution_casetext")
        cursor.execute("ANALYZE evolution_cluster")
