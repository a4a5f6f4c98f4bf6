"""An installation evaluates while its servers are killed: nothing is lost, and no call is made again."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import psutil
import psycopg
import pytest

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import create_harness
from evolution.actors import SYSTEM
from evolution.demonstration import CaseData
from evolution.loop.datasets import import_dataset
from tests.benchmarks.support.installation import Endpoint, run_endpoint
from tests.benchmarks.support.material import agent_files, case_text, expected, judge_files
from tests.ops.conftest import Installation, make_installation, wait_until
from workbench.embedded.paths import database_socket_directory
from workbench.embedded.postgres import connection_string

CASES = 200

pytestmark = pytest.mark.ops


def start(name: str) -> None:
    """To be run in the installation: start an evaluation as a page does."""
    judge = create_harness(SYSTEM, f"{name}-judge", "judge", judge_files())
    harness = create_harness(SYSTEM, name, "agent", agent_files(tools=False), judge=judge)
    cases = [
        CaseData(
            key=f"case-{number}",
            category="order",
            language="en",
            split="dev",
            request={"danmaku": [{"user": "u", "text": case_text(name, number)}], "history": []},
            context={},
            fixtures={},
            expected=expected(number),
        )
        for number in range(1, CASES + 1)
    ]
    start_evaluation(SYSTEM, harness, "main", import_dataset(SYSTEM, harness, "cases", cases))


@dataclass
class Place:
    """An installation that is up, and the endpoint it asks; what was there before a test is not counted."""

    installation: Installation
    endpoint: Endpoint
    calls_before: int = 0
    evaluations_before: int = 0

    def begin(self) -> None:
        self.calls_before, self.evaluations_before = 0, 0
        self.calls_before = self.calls()
        self.evaluations_before = self.ask("SELECT coalesce(max(id), 0) FROM evolution_evaluation")

    def evaluate(self) -> None:
        """Start an evaluation of a harness of its own."""
        code = f"from tests.ops.test_evaluation_survives import start; start('shop-{uuid4().hex[:8]}')"
        done = self.installation.manage("shell", "--no-imports", "-c", code)
        assert done.returncode == 0, done.stderr

    def ask(self, query: str, *values: int) -> int:
        """One number of the database; -1 while it is away."""
        try:
            with self.connect() as link:
                row = link.execute(query, values or None).fetchone()
        except psycopg.Error:
            return -1
        return int(row[0]) if row else -1

    def connect(self) -> "psycopg.Connection[tuple[int]]":
        sockets = database_socket_directory(self.installation.var)
        return psycopg.connect(connection_string(sockets, "workbench"))

    def results(self) -> int:
        query = "SELECT count(*) FROM evolution_caseresult WHERE error_kind = '' AND evaluation_id > %s"
        return self.ask(query, self.evaluations_before)

    def finished(self) -> int:
        query = "SELECT count(*) FROM evolution_evaluation WHERE state = 'finished' AND id > %s"
        return self.ask(query, self.evaluations_before)

    def made(self) -> int:
        """The calls whose answers are stored."""
        query = "SELECT sum(made) FROM evolution_evaluationusage WHERE evaluation_id > %s"
        return self.ask(query, self.evaluations_before)

    def calls(self) -> int:
        return int(self.endpoint.stats()["calls"]) - self.calls_before

    def postmaster(self) -> int:
        return int((self.installation.var / "pgdata" / "postmaster.pid").read_text().split()[0])

    def kill(self, program: str) -> None:
        """SIGKILL for a server, its keeper left alone."""
        for process in self.installation.processes():
            if process.name() == program:
                process.kill()
                process.wait()
                return
        raise AssertionError(f"{program} does not run")


@pytest.fixture(scope="module")
def built_place() -> Iterator[Place]:
    """One installation for all: each test leaves it running, and all that it sent finished."""
    with run_endpoint() as endpoint, make_installation() as installation:
        endpoint.configure(latency_ms=150)
        installation.environment |= {
            "LLM_BASE_URL": endpoint.base_url,
            "LLM_API_KEY": "none",
            "LLM_MODEL": "m",
            "LLM_CONCURRENCY": "8",
            "EVALUATION_LEASE_SECONDS": "6",
        }
        installation.up().wait_for("worker.*ready")
        yield Place(installation, endpoint)


@pytest.fixture
def place(built_place: Place) -> Place:
    built_place.begin()
    return built_place


def test_database_that_is_killed_in_the_middle_loses_nothing(place: Place) -> None:
    place.evaluate()
    for part in (0.2, 0.5, 0.7):
        wait_until(lambda part=part: place.results() >= part * CASES)  # type: ignore[misc]
        postmaster = place.postmaster()
        os.kill(postmaster, signal.SIGKILL)
        wait_until(lambda pid=postmaster: not psutil.pid_exists(pid))  # type: ignore[misc]
    wait_until(lambda: place.finished() == 1)
    assert place.results() == CASES
    assert place.calls() == 2 * CASES
    assert place.made() == 2 * CASES


def test_results_that_were_being_stored_when_the_database_was_killed_are_stored_once(place: Place) -> None:
    """The number of a transaction that left no trace is given to another one after the restart."""
    place.evaluate()
    wait_until(lambda: place.results() >= 0.3 * CASES)
    held_up = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_xid IS NOT NULL"
    )
    link = place.connect()
    link.execute("LOCK TABLE evolution_caseresult IN EXCLUSIVE MODE")
    wait_until(lambda: place.ask(held_up) >= 1)
    os.kill(place.postmaster(), signal.SIGKILL)
    with suppress(psycopg.Error):
        link.execute("SELECT 1")
    link.close()
    wait_until(lambda: place.finished() == 1)
    assert place.results() == CASES
    assert place.calls() == 2 * CASES
    assert place.made() == 2 * CASES


def test_broker_that_is_killed_in_the_middle_loses_nothing(place: Place) -> None:
    place.evaluate()
    wait_until(lambda: place.results() >= 0.2 * CASES)
    place.kill("valkey-server")
    # What is sent while it comes back is not lost either.
    time.sleep(1)
    place.evaluate()
    wait_until(lambda: place.finished() == 2)
    assert place.results() == 2 * CASES
    assert place.calls() == 4 * CASES


def test_after_the_whole_installation_was_killed_the_next_start_goes_on(place: Place) -> None:
    place.evaluate()
    wait_until(lambda: place.results() >= 0.3 * CASES)
    up = place.installation.ups[-1]
    up.process.kill()
    up.process.wait()
    wait_until(lambda: place.installation.processes() == [])
    place.installation.up().wait_for("worker.*ready")
    wait_until(lambda: place.finished() == 1)
    assert place.results() == CASES
    # What was under way, or answered and not yet stored, is asked again.
    assert 2 * CASES <= place.calls() <= 2 * CASES + 16
