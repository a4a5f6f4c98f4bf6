"""What an evaluation costs beside bare loops that make the same calls, and what it loses when things break.

    python -m tests.benchmarks.evaluation_speed [ROW...] [--tries N] [--many CASES] [--json]

    c20 c50 fast tools   500 cases, policy and judge call: 200 ms at 20 and at 50 at once, 50 ms at 50; an agent with
                         three tool calls at 50; efficiency = calls x latency / concurrency / active,
                         active being the time from the first call to the last answer; beside each the same
                         calls by bare loops: aiohttp, the official client on asyncio and on threads
    rerun                everything answered from kept calls
    faults               429, 500 and resets
    kills                kill -9 three times in one evaluation
    many                 50,000 cases: the memory of the workers over time

Everything is real and the benchmark's own: a folder, PostgreSQL, Valkey, the worker that the supervisor would start
(two processes), and an endpoint on loopback. Exit code 1 when a figure is not what was asked for. The machine should
be idle; the load average stands beside the figures.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import django

from tests.benchmarks.support.installation import make_folder, prepare, run_endpoint

if TYPE_CHECKING:
    from tests.benchmarks.support.rows import Bench, Line

NAMES = ("c20", "c50", "fast", "tools", "rerun", "faults", "kills", "many")


@contextmanager
def open_bench(many: int, tries: int = 1) -> "Iterator[Bench]":
    """An installation with its servers, ended with the block."""
    with make_folder() as var, run_endpoint() as endpoint:
        prepare(var, endpoint)
        django.setup()
        # Settings come first.
        from tests.benchmarks.support.rows import Bench  # noqa: PLC0415
        from workbench.embedded.servers import share_servers  # noqa: PLC0415
        from workbench.embedded.tables import prepare_tables  # noqa: PLC0415

        with share_servers():
            prepare_tables()
            yield Bench(var, endpoint, many, tries)


def measure(names: list[str], many: int, tries: int) -> "Iterator[Line]":
    """Row by row; one that breaks is a line that says so, and the others go on."""
    with open_bench(many, tries) as bench:
        from tests.benchmarks.support.rows import ROWS, Line  # noqa: PLC0415  settings come first

        for name in names:
            try:
                yield from ROWS[name](bench)
            except Exception as failure:  # noqa: BLE001
                yield Line(name, {"failure": f"{type(failure).__name__}: {failure}"}, is_met=False)


def show(line: "Line") -> str:
    """For people."""
    mark = {None: " ", True: "+", False: "-"}[line.is_met]
    figures = ", ".join(f"{name} {value}" for name, value in line.figures.items())
    return f"{mark} {line.row}: {figures}" + (f"   [{line.wanted}]" if line.wanted else "")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=" ".join(NAMES))
    tries = "of c20, c50, fast and tools: the best efficiency counts, and the slowest start"
    parser.add_argument("--tries", type=int, default=1, help=tries)
    parser.add_argument(
        "--many", type=int, default=50_000, help="cases of the row many; default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(NAMES):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    # A time-out's SIGTERM, too, ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    is_met = True
    for line in measure(options.rows or list(NAMES), options.many, options.tries):
        print(json.dumps(asdict(line)) if options.json else show(line), flush=True)  # noqa: T201
        is_met = is_met and line.is_met is not False
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
