"""An installation evaluates while its servers are killed: nothing is lost, and no call is made again."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

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
from tests.ops.conftest import Installation, wait_until
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


@pytest.fixture
def endpoint(installation: Installation) -> Iterator[Endpoint]:
    """Answers after a while; the installation is up and asks it."""
    with run_endpoint() as endpoint:
        endpoint.configure(latency_ms=150)
        installation.environment |= {
            "LLM_BASE_URL": endpoint.base_url,
            "LLM_API_KEY": "none",
            "LLM_MODEL": "m",
            "LLM_CONCURRENCY": "8",
            "EVALUATION_LEASE_SECONDS": "6",
        }
        installation.up().wait_for("worker.*ready")
        yield endpoint
        installation.ups[0].stop()


def evaluate(installation: Installation, name: str) -> None:
    code = f"from tests.ops.test_evaluation_survives import start; start({name!r})"
    done = installation.manage("shell", "--no-imports", "-c", code)
    assert done.returncode == 0, done.stderr


def ask(installation: Installation, query: str) -> int:
    """One number of the database; -1 while it is away."""
    address = connection_string(database_socket_directory(installation.var), "workbench")
    try:
        with psycopg.connect(address) as link:
            row = link.execute(query).fetchone()
    except psycopg.Error:
        return -1
    return int(row[0]) if row else -1


def results(installation: Installation) -> int:
    return ask(installation, "SELECT count(*) FROM evolution_caseresult WHERE error_kind = ''")


def finished(installation: Installation) -> int:
    return ask(installation, "SELECT count(*) FROM evolution_evaluation WHERE state = 'finished'")


def kill(installation: Installation, program: str) -> None:
    """SIGKILL for the first process of a server, its keeper left alone."""
    for process in installation.processes():
        words = process.cmdline()
        if words and words[0].endswith(program):
            parent = process.parent()
            if parent is None or not parent.cmdline() or not parent.cmdline()[0].endswith(program):
                process.kill()
                process.wait()


def test_database_that_is_killed_in_the_middle_loses_nothing(
    installation: Installation, endpoint: Endpoint
) -> None:
    evaluate(installation, "shop")
    for part in (0.2, 0.5, 0.7):
        wait_until(lambda part=part: results(installation) >= part * CASES)  # type: ignore[misc]
        postmaster = int((installation.var / "pgdata" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)
        wait_until(lambda pid=postmaster: not psutil.pid_exists(pid))  # type: ignore[misc]
    wait_until(lambda: finished(installation) == 1)
    assert results(installation) == CASES
    assert endpoint.stats()["calls"] == 2 * CASES
    assert ask(installation, "SELECT sum(made) FROM evolution_evaluationusage") == 2 * CASES


def test_results_that_were_being_stored_when_the_database_was_killed_are_stored_once(
    installation: Installation, endpoint: Endpoint
) -> None:
    """The number of a transaction that left no trace is given to another one after the restart."""
    evaluate(installation, "shop")
    wait_until(lambda: results(installation) >= 0.3 * CASES)
    address = connection_string(database_socket_directory(installation.var), "workbench")
    held_up = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_xid IS NOT NULL"
    )
    link = psycopg.connect(address)
    link.execute("LOCK TABLE evolution_caseresult IN EXCLUSIVE MODE")
    wait_until(lambda: ask(installation, held_up) >= 1)
    os.kill(int((installation.var / "pgdata" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    with suppress(psycopg.Error):
        link.execute("SELECT 1")
    link.close()
    wait_until(lambda: finished(installation) == 1)
    assert results(installation) == CASES
    assert endpoint.stats()["calls"] == 2 * CASES
    assert ask(installation, "SELECT sum(made) FROM evolution_evaluationusage") == 2 * CASES


def test_broker_that_is_killed_in_the_middle_loses_nothing(
    installation: Installation, endpoint: Endpoint
) -> None:
    evaluate(installation, "shop")
    wait_until(lambda: results(installation) >= 0.2 * CASES)
    kill(installation, "valkey-server")
    # What is sent while it comes back is not lost either.
    time.sleep(1)
    evaluate(installation, "garden")
    wait_until(lambda: finished(installation) == 2)
    assert results(installation) == 2 * CASES
    assert endpoint.stats()["calls"] == 4 * CASES


def test_after_the_whole_installation_was_killed_the_next_start_goes_on(
    installation: Installation, endpoint: Endpoint
) -> None:
    evaluate(installation, "shop")
    wait_until(lambda: results(installation) >= 0.3 * CASES)
    up = installation.ups[0]
    up.process.kill()
    up.process.wait()
    wait_until(lambda: installation.processes() == [])
    installation.up()
    wait_until(lambda: finished(installation) == 1)
    assert results(installation) == CASES
    # What was under way, or answered and not yet stored, is asked again.
    assert 2 * CASES <= endpoint.stats()["calls"] <= 2 * CASES + 16
