"""The benchmark's rows: each measures one thing on real workers and says whether it is what was asked for."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.support.evaluations import (
    Started,
    commit_note,
    count_kept_calls,
    database_mb,
    error_kinds,
    is_ended,
    make_dataset,
    make_harnesses,
    progress,
    start,
    wait_for_end,
    wrong_results,
)
from tests.benchmarks.support.installation import (
    ROOT,
    Endpoint,
    Process,
    run_process,
    server_pids,
    wait_until,
)
from tests.benchmarks.support.watching import MemoryWatch, cpu_seconds

CASES = 500
PATIENCE = 240.0
FAULTS = {"p429": 0.01, "p500": 0.005, "p_reset": 0.002, "retry_after": 1}
LEASE_SECONDS = 5


@dataclass
class Line:
    """A row's figures, what was asked for, and whether it is met (None: nothing was asked for)."""

    row: str
    figures: dict[str, Any]
    wanted: str = ""
    is_met: bool | None = None


@dataclass
class Bench:
    """What all rows use."""

    var: Path
    endpoint: Endpoint
    many: int = 50_000
    # of the rows about speed; the best one counts, since other work on the machine only slows them down, but of
    # their starts the slowest
    tries: int = 1
    harnesses: dict[str, Any] = field(default_factory=make_harnesses)

    @contextmanager
    def warm_worker(self, concurrency: int, **environment: str) -> Iterator[Process]:
        """A worker with its two processes, both of which have worked on an evaluation."""
        limits = {"LLM_CONCURRENCY": str(concurrency), **environment}
        with run_process("worker", self.var, **limits) as worker:
            for name in ("plain", "tools"):
                self.endpoint.configure(latency_ms=50)
                harness = self.harnesses[name]
                wait_for_end(start(harness, make_dataset(harness, 64)).evaluation, PATIENCE)
            yield worker

    def measure(self, worker: Process, load: "Load") -> dict[str, Any]:
        """Evaluate new cases, and give all the figures of that."""
        harness = self.harnesses["tools" if load.tools else "plain"]
        version = make_dataset(harness, load.cases)
        servers = server_pids(self.var)
        self.endpoint.configure(**load.behaviour)
        before = cpu_seconds([worker.pid]), cpu_seconds(servers), cpu_seconds([self.endpoint.process.pid])
        with MemoryWatch(worker.pid) as memory:
            started = start(harness, version)
            wall = wait_for_end(started.evaluation, load.patience)
        after = cpu_seconds([worker.pid]), cpu_seconds(servers), cpu_seconds([self.endpoint.process.pid])
        figures = self.figures(started, load, wall)
        calls = figures["calls"] / 1000
        for name, early, late in zip(("worker", "servers", "endpoint"), before, after, strict=True):
            figures[f"{name}_cpu_ms_per_call"] = round((late - early) / calls, 2)
        return {**figures, "worker_peak_mb": round(memory.peak), "load": round(os.getloadavg()[0], 1)}

    def figures(self, started: Started, load: "Load", wall: float) -> dict[str, Any]:
        """What the endpoint counted, and what was stored."""
        stats = self.endpoint.stats()
        active = stats["last"] - stats["first"]
        return {
            "efficiency": round(load.ideal_seconds / active, 3),
            "active_s": round(active, 3),
            "wall_s": round(wall, 3),
            "start_s": round(stats["first"] - started.asked, 3),
            "tail_s": round(started.asked + wall - stats["last"], 3),
            **{name: stats[name] for name in ("calls", "peak", "again", "repeated", "errors")},
            "mean": round(stats["area"] / active, 1),
            "wrong": wrong_results(started.evaluation),
            "error_kinds": error_kinds(started.evaluation),
        }


@dataclass(frozen=True)
class Load:
    """One evaluation: how many cases, of which kind, and how the endpoint behaves meanwhile."""

    concurrency: int
    latency_ms: float
    cases: int = CASES
    tools: bool = False
    faults: dict[str, Any] = field(default_factory=dict)
    patience: float = PATIENCE

    @property
    def behaviour(self) -> dict[str, Any]:
        """For the endpoint."""
        return {"latency_ms": self.latency_ms, **self.faults}

    @property
    def ideal_seconds(self) -> float:
        """With every place taken all the time, and no call made twice."""
        calls = self.cases * (5 if self.tools else 2)
        return calls * self.latency_ms / 1000 / self.concurrency


def speed(bench: Bench, name: str, load: Load, least: float) -> list[Line]:
    """Efficiency beside the bare loops; CPU and memory too."""
    with bench.warm_worker(load.concurrency) as worker:
        tries = [bench.measure(worker, load) for _ in range(bench.tries)]
    ours = max(tries, key=lambda one: one["efficiency"])
    is_sound = all(one["wrong"] == one["repeated"] == 0 for one in tries)
    is_sound = is_sound and max(one["peak"] for one in tries) <= load.concurrency
    lines = [
        Line(name, ours, f"efficiency >= {least}, all right", is_sound and ours["efficiency"] >= least),
        start_line(name, tries),
    ]
    return [*lines, *(bare_line(bench, name, load, client) for client in ("aiohttp", "openai", "threads"))]


def start_line(name: str, tries: Sequence[Mapping[str, Any]]) -> Line:
    """From the start to the first call, of all tries the slowest."""
    slowest = max(one["start_s"] for one in tries)
    return Line(f"{name}: start", {"start_s": slowest}, "start_s <= 1", slowest <= 1)


def bare_line(bench: Bench, name: str, load: Load, client: str) -> Line:
    """The same calls by a bare loop."""
    bench.endpoint.configure(**load.behaviour)
    command = [sys.executable, "-m", "tests.benchmarks.support.bare_loops", client, bench.endpoint.base_url]
    command += ["--cases", str(load.cases), "--concurrency", str(load.concurrency)]
    command += ["--out", str(bench.var / "bare.jsonl"), *(["--tools"] if load.tools else [])]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=load.patience)
    stats, figures = bench.endpoint.stats(), json.loads(done.stdout)
    active = stats["last"] - stats["first"]
    return Line(
        f"{name}: bare {client}",
        {
            "efficiency": round(load.ideal_seconds / active, 3),
            "active_s": round(active, 3),
            "calls": stats["calls"],
            "cpu_ms_per_call": round(1000 * figures["cpu_s"] / stats["calls"], 2),
            "peak_mb": round(figures["peak_mb"]),
        },
    )


def rerun(bench: Bench) -> list[Line]:
    """Another version that asks exactly the same: by warm workers, and by the command with nobody beside it."""
    harness, load = bench.harnesses["plain"], Load(50, 50)
    version = make_dataset(harness, load.cases)
    with bench.warm_worker(50):
        bench.endpoint.configure(latency_ms=load.latency_ms)
        wait_for_end(start(harness, version).evaluation, PATIENCE)
        bench.endpoint.configure(latency_ms=load.latency_ms)
        started = start(harness, version, commit_note(harness))
        wall = wait_for_end(started.evaluation, PATIENCE, pause=0.1)
    wrong, calls = wrong_results(started.evaluation), bench.endpoint.stats()["calls"]
    figures = {"wall_s": round(wall, 3), "calls": calls, "wrong": wrong}
    is_met = wall <= 2 and calls == wrong == 0
    return [
        Line("rerun", figures, "wall_s <= 2 and 0 calls", is_met),
        rerun_command(bench, version.dataset.name),
    ]


def rerun_command(bench: Bench, dataset: str) -> Line:
    """`manage.py evaluate` from its start to its end, no worker running."""
    harness = bench.harnesses["plain"]
    command = [sys.executable, "manage.py", "evaluate", "--harness", harness.name, "--dataset", dataset]
    command += ["--ref", commit_note(harness), "--json", "--wait"]
    bench.endpoint.configure()
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    wall = time.monotonic() - began
    figures = {"wall_s": round(wall, 3), "calls": bench.endpoint.stats()["calls"], "exit": done.returncode}
    return Line("rerun: command", {**figures, "said": (done.stdout or done.stderr).strip()[-400:]})


def faults(bench: Bench) -> list[Line]:
    """1 % 429, 0.5 % 500, 0.2 % resets, with three seeds."""
    lines = []
    with bench.warm_worker(50) as worker:
        for seed in (1, 2, 3):
            ours = bench.measure(worker, Load(50, 200, faults={**FAULTS, "seed": seed}))
            is_sound = ours["wrong"] == ours["repeated"] == 0
            wanted = "500 right verdicts, no answered call repeated, efficiency >= 0.65"
            lines.append(Line(f"faults, seed {seed}", ours, wanted, is_sound and ours["efficiency"] >= 0.65))
    return lines


def kills(bench: Bench) -> list[Line]:
    """SIGKILL for a process of the pool, and twice for the whole worker, in one evaluation; beat runs beside."""
    load, harness = Load(50, 200), bench.harnesses["plain"]
    lease = {"EVALUATION_LEASE_SECONDS": str(LEASE_SECONDS), "LLM_CONCURRENCY": str(load.concurrency)}
    with run_process("beat", bench.var), bench.warm_worker(load.concurrency, **lease) as worker:
        version = make_dataset(harness, load.cases)
        bench.endpoint.configure(**load.behaviour)
        started = start(harness, version)
        kept = count_kept_calls()
        struck = [kill_at(bench, worker, started, part) for part in (0.25, 0.5, 0.75)]
        wall = wait_for_end(started.evaluation, PATIENCE)
    figures = bench.figures(started, load, wall)
    in_flight = [calls for calls, _ in struck]
    figures |= {
        "in_flight_at_kills": in_flight,
        # answers that had not reached the database yet
        "unkept_at_kills": [unkept + kept for _, unkept in struck],
        "results": progress(started.evaluation),
    }
    is_met = figures["wrong"] == 0 and figures["again"] <= sum(in_flight)
    return [Line("kills", figures, "calls made again <= in flight, all results right", is_met)]


def kill_at(bench: Bench, worker: Process, started: Started, part: float) -> tuple[int, int]:
    """Kill when so much is done (a child first, then all).

    Returns the calls in flight just before, and the answered ones less all that are kept.
    """
    wait_until(
        lambda: progress(started.evaluation) >= part * CASES or is_ended(started.evaluation),
        f"{part:.0%} of {started.evaluation}",
        PATIENCE,
    )
    # Stopped first, so that no call begins between the count and the kill.
    victims = worker.children()[:1] if part < 0.3 else worker.processes()
    for victim in victims:
        victim.suspend()
    stats, kept = bench.endpoint.stats(), count_kept_calls()
    if part < 0.3:
        victims[0].kill()
    else:
        worker.kill()
        worker.start()
    return stats["in_flight"], stats["ok"] - stats["repeated"] - kept


def many(bench: Bench) -> list[Line]:
    """Many cases at 0-5 ms: the memory of the workers over time."""
    load = Load(50, 0, cases=bench.many, faults={"jitter_ms": 5}, patience=3000)
    harness = bench.harnesses["plain"]
    version = make_dataset(harness, load.cases)
    size = database_mb()
    with bench.warm_worker(50) as worker:
        bench.endpoint.configure(**load.behaviour)
        used = cpu_seconds([worker.pid])
        with MemoryWatch(worker.pid, seconds=1) as memory:
            started = start(harness, version)
            returned = time.monotonic() - started.asked
            wall = wait_for_end(started.evaluation, load.patience, pause=0.5)
        used = cpu_seconds([worker.pid]) - used
    figures = bench.figures(started, load, wall)
    early, late = memory.mean_between(0.1, 0.3), memory.mean_between(0.8, 1.0)
    figures |= {
        "cases_per_s": round(load.cases / wall),
        "start_returned_s": round(returned, 2),
        "worker_cpu_ms_per_call": round(1000 * used / figures["calls"], 2),
        "memory_mb_by_fifths": [round(memory.mean_between(n / 5, (n + 1) / 5)) for n in range(5)],
        "worker_peak_mb": round(memory.peak),
        "database_kb_per_case": round((database_mb() - size) * 1024 / load.cases, 1),
    }
    del figures["efficiency"]
    is_met = figures["wrong"] == 0 and late <= 1.1 * early
    return [Line("many", figures, "memory at the end <= 1.1 x memory at the beginning", is_met)]


ROWS: dict[str, Callable[[Bench], list[Line]]] = {
    "c20": lambda bench: speed(bench, "c20", Load(20, 200), 0.95),
    "c50": lambda bench: speed(bench, "c50", Load(50, 200), 0.93),
    "fast": lambda bench: speed(bench, "fast", Load(50, 50), 0.75),
    "tools": lambda bench: speed(bench, "tools", Load(50, 200, tools=True), 0.93),
    "rerun": rerun,
    "faults": faults,
    "kills": kills,
    "many": many,
}
