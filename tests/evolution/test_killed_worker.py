"""Real Celery workers are killed in the middle of an evaluation, and others go on; the endpoint counts the calls."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
from celery import current_app
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from evolution.actions.harnesses import create_harness
from evolution.demonstration import CaseData
from evolution.loop.datasets import import_dataset
from evolution.loop.evaluation import create_evaluation
from evolution.loop.pairs import stored_pairs
from evolution.loop.shards import collect_abandoned
from evolution.models import Evaluation
from evolution.states import EvaluationState
from evolution.tasks.evaluations import run_evaluation
from tests.benchmarks.support.answers import right_result
from tests.benchmarks.support.installation import Endpoint, run_endpoint
from tests.benchmarks.support.material import agent_files, case_text, expected, judge_files
from tests.evolution.measured import ANNA, DEV
from workbench.embedded.valkey import valkey_server

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 90.0
LEASE_SECONDS = 2.0
CASES = 160
AT_ONCE = 10

pytestmark = [pytest.mark.ops, pytest.mark.django_db(transaction=True)]


@dataclass
class Place:
    """A broker, an endpoint, and workers on the test's own database."""

    broker: str
    endpoint: Endpoint
    environment: dict[str, str]
    workers: "list[subprocess.Popen[bytes]]"

    def start(self) -> "subprocess.Popen[bytes]":
        command = ["-m", "celery", "-A", "workbench", "worker", "--concurrency", "2", "--loglevel", "WARNING"]
        environment = {**os.environ, **self.environment}
        worker = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, start_new_session=True
        )
        self.workers.append(worker)
        return worker

    def send(self, evaluation_ids: list[int]) -> None:
        with current_app.connection_for_write(self.broker) as link:
            for pk in evaluation_ids:
                run_evaluation.apply_async((pk,), connection=link)  # type: ignore[call-arg]


@pytest.fixture
def place(settings: Settings) -> Iterator[Place]:
    # A short folder, for the socket's sake.
    with tempfile.TemporaryDirectory(prefix="wb-") as folder, run_endpoint() as endpoint:
        server = valkey_server(Path(folder))
        with server.in_use():
            broker = f"redis+socket://{server.spec.socket_folder / 'valkey.sock'}"
            environment = {
                "DATABASE_URL": database_url(),
                "CELERY_BROKER_URL": broker,
                "REPOSITORIES_DIR": str(settings.REPOSITORIES_DIR),
                "EVALUATION_LEASE_SECONDS": str(LEASE_SECONDS),
                "LLM_BASE_URL": endpoint.base_url,
                "LLM_API_KEY": "none",
                "LLM_MODEL": "m",
                "LLM_CONCURRENCY": str(AT_ONCE),
            }
            place = Place(broker, endpoint, environment, [])
            with ended_workers(place):
                yield place


@contextmanager
def ended_workers(place: Place) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in place.workers:
            kill(worker)


def database_url() -> str:
    """The test's database as a URL; django-environ takes a path before the name for a socket's folder."""
    database = connection.settings_dict
    login = f"{quote(database['USER'])}:{quote(database['PASSWORD'])}"
    place = f"{database['HOST']}:{database['PORT']}" if database["PORT"] else f"/{database['HOST']}"
    return f"postgres://{login}@{place}/{database['NAME']}"


def kill(worker: "subprocess.Popen[bytes]") -> None:
    """SIGKILL for the worker and the processes of its pool."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def kill_child(worker: "subprocess.Popen[bytes]") -> None:
    psutil.Process(worker.pid).children()[0].kill()


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def make_evaluation() -> Evaluation:
    judge = create_harness(ANNA, "judge", "judge", judge_files())
    harness = create_harness(ANNA, "shop", "agent", agent_files(tools=False), judge=judge)
    cases = [
        CaseData(
            f"case-{number}",
            "order",
            "en",
            "dev",
            {"danmaku": [{"user": "u", "text": case_text("kills", number)}], "history": []},
            {},
            {},
            expected(number),
        )
        for number in range(1, CASES + 1)
    ]
    version = import_dataset(ANNA, harness, "cases", cases)
    return create_evaluation(DEV, harness, "main", version, model="m", judge_model="m")


def is_finished(evaluation: Evaluation) -> bool:
    return Evaluation.objects.filter(pk=evaluation.pk, state=EvaluationState.FINISHED).exists()


def sweep_until_finished(place: Place, evaluation: Evaluation) -> None:
    """What beat does every 15 seconds: the dead workers' leases end, and their messages need not come back."""
    deadline = time.monotonic() + PATIENCE
    while not is_finished(evaluation):
        assert time.monotonic() < deadline, "waited in vain"
        place.send(list(collect_abandoned(timezone.now())))
        time.sleep(0.5)


def count_made(evaluation: Evaluation) -> int:
    return sum(evaluation.usage.values_list("made", flat=True))


def count_unstored(place: Place, evaluation: Evaluation) -> int:
    """Calls that the endpoint was asked and that have no stored answer, since the beginning."""
    return int(place.endpoint.stats()["calls"]) - count_made(evaluation)


def test_after_three_kills_nothing_is_missing_doubled_or_made_again_but_what_was_under_way(
    place: Place,
) -> None:
    evaluation = make_evaluation()
    place.endpoint.configure(latency_ms=100)
    worker = place.start()
    place.send([evaluation.pk] * 4)
    wait_until(lambda: evaluation.results.count() >= CASES // 4)
    kill_child(worker)
    wait_until(lambda: evaluation.results.count() >= CASES // 2)
    kill(worker)
    lost = [count_unstored(place, evaluation)]
    kept = set(evaluation.results.values_list("pk", flat=True))
    assert CASES // 2 <= len(kept) < CASES

    worker = place.start()
    time.sleep(LEASE_SECONDS)
    place.send(list(collect_abandoned(timezone.now())))
    wait_until(lambda: evaluation.results.count() >= CASES * 3 // 4)
    kill(worker)
    lost.append(count_unstored(place, evaluation))
    place.start()
    sweep_until_finished(place, evaluation)

    assert kept < set(evaluation.results.values_list("pk", flat=True))
    assert evaluation.results.count() == len(stored_pairs(evaluation)) == CASES
    found = evaluation.results.values_list("case__key", "accuracy", "effectiveness", "reply", "error_kind")
    for key, *scores in found:
        right = right_result(int(key.removeprefix("case-")))
        assert scores == [right.accuracy, right.effectiveness, right.reply, ""]
    counts = place.endpoint.stats()
    assert counts["peak"] <= AT_ONCE
    # Since the first kill of all that was under way, nothing was made again but what was under way or not yet stored.
    assert counts["calls"] == 2 * CASES + lost[-1]
    # That is what can be in flight, and the answers of the moment before; the first kill was of one child alone.
    assert lost[0] <= 3 * AT_ONCE
    assert lost[1] - lost[0] <= 2 * AT_ONCE
    assert count_made(evaluation) == 2 * CASES


def test_worker_that_is_asked_to_end_leaves_the_rest_at_once(place: Place) -> None:
    """Celery's warm shutdown waits for running tasks, however long; ours end by themselves."""
    evaluation = make_evaluation()
    place.endpoint.configure(latency_ms=100)
    worker = place.start()
    place.send([evaluation.pk] * 2)
    wait_until(lambda: evaluation.results.count() >= CASES // 4)
    worker.terminate()
    worker.wait(timeout=15)
    assert evaluation.results.count() < CASES
    assert not evaluation.shards.filter(state="running").exists()
    lost = count_unstored(place, evaluation)
    place.start()
    # The tasks that ended have sent others to go on.
    wait_until(lambda: is_finished(evaluation))
    # Nothing was made again but what was under way at the end, and what was answered in that very moment.
    assert place.endpoint.stats()["calls"] == 2 * CASES + lost
    assert lost <= 2 * AT_ONCE
