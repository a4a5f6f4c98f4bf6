"""Evaluations as the web process starts them, and what became of them; to be imported once Django is set up."""

import itertools
import time
from dataclasses import dataclass
from typing import Any

from django.db import connection

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import create_harness
from evolution.actors import SYSTEM
from evolution.demonstration import CaseData
from evolution.loop.authors import author_of
from evolution.loop.datasets import import_dataset
from evolution.loop.repositories import open_repository
from evolution.models import DatasetVersion, Evaluation, Harness, ModelCall
from evolution.states import EvaluationState
from tests.benchmarks.support.answers import right_result
from tests.benchmarks.support.installation import wait_until
from tests.benchmarks.support.material import FIXTURES, agent_files, case_text, expected, judge_files
from workbench.celery import app

_ENDED = (EvaluationState.FINISHED, EvaluationState.PARTIAL, EvaluationState.CANCELLED)
_salts = itertools.count(1)


@dataclass(frozen=True)
class Started:
    """An evaluation, and the moment (CLOCK_MONOTONIC) at which somebody asked for it."""

    evaluation: Evaluation
    asked: float


def make_harnesses() -> dict[str, Harness]:
    """The agents by name; they share a judge."""
    app.set_default()
    judge = create_harness(SYSTEM, "bench-judge", "judge", judge_files())
    return {
        name: create_harness(
            SYSTEM, f"bench-{name}", "agent", agent_files(tools=name == "tools"), judge=judge
        )
        for name in ("plain", "tools")
    }


def make_dataset(harness: Harness, count: int) -> DatasetVersion:
    """Cases that no run before has asked about."""
    salt = f"{next(_salts)}-{time.time_ns():x}"
    cases = [
        CaseData(
            key=f"case-{number:05}",
            category="order",
            language="en",
            split="dev",
            request={"danmaku": [{"user": "Ann", "text": case_text(salt, number)}], "history": []},
            context={},
            fixtures=FIXTURES if harness.name == "bench-tools" else {},
            expected=expected(number),
        )
        for number in range(1, count + 1)
    ]
    return import_dataset(SYSTEM, harness, f"run {salt}", cases)


def start(harness: Harness, version: DatasetVersion, ref: str = "main") -> Started:
    """Start it as the button does."""
    asked = time.monotonic()
    return Started(start_evaluation(SYSTEM, harness, ref, version), asked)


def commit_note(harness: Harness) -> str:
    """Another version that asks exactly the same; returns its commit."""
    repository = open_repository(harness)
    note = f"{next(_salts)}"
    edits = {"NOTES.md": note.encode()}
    branch = f"proposal/{note}-note"
    author = author_of(SYSTEM)
    return repository.commit(branch, edits, parent="main", author=author, message="A note")


def wait_for_end(evaluation: Evaluation, patience: float, pause: float = 0.05) -> float:
    """Seconds since it was created until it ended, by the clock that stamps both."""
    wait_until(lambda: is_ended(evaluation), f"{evaluation}: {progress(evaluation)}", patience, pause)
    evaluation.refresh_from_db()
    assert evaluation.finished_at
    return (evaluation.finished_at - evaluation.created_at).total_seconds()


def is_ended(evaluation: Evaluation) -> bool:
    """Whether it has ended, in whatever way."""
    return Evaluation.objects.filter(pk=evaluation.pk, state__in=_ENDED).exists()


def progress(evaluation: Evaluation) -> int:
    """Results so far."""
    return evaluation.results.count()


def wrong_results(evaluation: Evaluation) -> int:
    """Pairs without a result, with an error, or with scores or a reply that an undisturbed run would not give."""
    fields = ("case__key", "accuracy", "effectiveness", "reply")
    right = 0
    for key, *found in evaluation.results.values_list(*fields).iterator():
        wanted = right_result(int(key.removeprefix("case-")))
        right += found == [wanted.accuracy, wanted.effectiveness, wanted.reply]
    return evaluation.total - right


def count_kept_calls() -> int:
    """Answers of models that are kept in the database."""
    return ModelCall.objects.count()


def error_kinds(evaluation: Evaluation) -> dict[str, int]:
    """Error kind -> results."""
    kinds: dict[str, int] = {}
    for kind in evaluation.results.exclude(error_kind="").values_list("error_kind", flat=True):
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def database_mb() -> float:
    """The size of the database on the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        row: Any = cursor.fetchone()
        return float(row[0] / 2**20)
