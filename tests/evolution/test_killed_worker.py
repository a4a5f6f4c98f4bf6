"""A real Celery worker is killed in the middle of an evaluation, and another one goes on."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from celery import current_app
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from evolution.actions.harnesses import create_harness
from evolution.demonstration import load_cases
from evolution.loop.datasets import import_dataset
from evolution.loop.evaluation import create_evaluation, stored_pairs
from evolution.loop.shards import collect_abandoned
from evolution.models import Evaluation
from evolution.states import EvaluationState, ShardState
from evolution.tasks.evaluations import run_shard
from harness_repo.starters import starter_files
from tests.evolution.measured import ANNA, DEV
from workbench.embedded.valkey import valkey_server

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 90.0
LEASE_SECONDS = 2.0
CASES = 48

pytestmark = [pytest.mark.ops, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def broker() -> Iterator[str]:
    # A short folder, for the socket's sake.
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        server = valkey_server(Path(folder))
        with server.in_use():
            yield f"redis+socket://{server.spec.socket_folder / 'valkey.sock'}"


@pytest.fixture
def start_worker(broker: str, settings: Settings) -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    """Workers on the test's own database; all of them are ended with it."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "CELERY_BROKER_URL": broker,
        "REPOSITORIES_DIR": str(settings.REPOSITORIES_DIR),
        "REHEARSAL_DELAY_SECONDS": "0.1",
        "EVALUATION_LEASE_SECONDS": str(LEASE_SECONDS),
    }
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "workbench",
        "worker",
        "--concurrency",
        "2",
        "--loglevel",
        "INFO",
    ]
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True))
        return started[-1]

    yield start
    for worker in started:
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


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def send(broker: str, shard_ids: list[int]) -> None:
    with current_app.connection_for_write(broker) as link:
        for shard_id in shard_ids:
            run_shard.apply_async((shard_id,), connection=link)  # type: ignore[call-arg]


def make_evaluation() -> Evaluation:
    judge = create_harness(ANNA, "judge", "judge", starter_files("judge"))
    harness = create_harness(ANNA, "shop", "agent", starter_files("live_commerce"), judge=judge)
    cases = [case for case in load_cases() if case.split == "dev"][:CASES]
    version = import_dataset(ANNA, harness, "cases", cases)
    return create_evaluation(
        DEV, harness, "main", version, model="rehearsal-policy", judge_model="rehearsal-judge"
    )


def test_after_kill_9_nothing_is_missing_or_doubled(
    broker: str, start_worker: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    evaluation = make_evaluation()
    first = start_worker()
    send(broker, [shard.pk for shard in evaluation.shards.all()])
    wait_until(lambda: evaluation.results.count() >= 8)
    kill(first)
    kept = set(evaluation.results.values_list("pk", flat=True))
    assert 8 <= len(kept) < CASES
    assert evaluation.shards.filter(state=ShardState.RUNNING).count() == 2

    start_worker()
    # The messages that the dead worker held wait for the broker's time-out; the leases end much sooner.
    time.sleep(LEASE_SECONDS)
    send(broker, collect_abandoned(timezone.now()))
    wait_until(lambda: Evaluation.objects.filter(pk=evaluation.pk, state=EvaluationState.FINISHED).exists())
    assert kept < set(evaluation.results.values_list("pk", flat=True))
    assert evaluation.results.count() == len(stored_pairs(evaluation)) == CASES
    assert not evaluation.results.exclude(error_kind="").exists()
