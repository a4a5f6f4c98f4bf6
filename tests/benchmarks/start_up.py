"""`make bench`: how long an installation takes to start and stop, and the memory of its parts.

Prints one JSON object. The figures are of one run each, on whatever else the machine is doing.
"""

import json
import time
from collections.abc import Callable

from tests.ops.conftest import Installation, make_installation


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    began = time.monotonic()
    action()
    return round(time.monotonic() - began, 2)


def start(installation: Installation, *arguments: str) -> None:
    """Run `up` until it says that it is ready."""
    installation.up(*arguments).url()


def measure_memory(installation: Installation) -> dict[str, float]:
    """Proportional set size in MB per part, shared pages counted once."""
    names = {"postgres -D": "postgres", "valkey-server": "valkey", "gunicorn": "web", " worker ": "worker"}
    names |= {" beat ": "beat", "manage.py up": "supervisor"}
    memory = dict.fromkeys(names.values(), 0.0)
    for process in installation.processes():
        words = " ".join(process.cmdline())
        part = next((name for mark, name in names.items() if mark in words), "supervisor")
        memory[part] += process.memory_full_info().pss / 1e6
    return {part: round(value, 1) for part, value in memory.items()}


def main() -> None:
    """Measure an installation from nothing to its second start."""
    figures: dict[str, object] = {}
    with make_installation() as installation:
        figures["command_alone_first_s"] = seconds(lambda: installation.manage("showmigrations"))
        figures["command_alone_again_s"] = seconds(lambda: installation.manage("showmigrations"))
    with make_installation() as installation:
        figures["up_first_s"] = seconds(lambda: start(installation, "--port", "0"))
        time.sleep(3)
        figures["memory_mb"] = measure_memory(installation)
        figures["stop_s"] = seconds(installation.ups[-1].stop)
        figures["up_again_s"] = seconds(lambda: start(installation, "--port", "0"))
        installation.ups[-1].stop()
    print(json.dumps(figures, indent=2))  # noqa: T201  it is what this prints


if __name__ == "__main__":
    main()
