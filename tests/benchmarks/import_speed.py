"""What an import costs beside bare parsing and COPY: `python -m tests.benchmarks.import_speed [MB] [FOLDER]`.

A file of JSON Lines of that size (1024 MB) is made: chats of up to 17 messages in Chinese and English with tool calls,
half of them failures. Each row is a process of its own, so that its memory is its own:

    parse     json.loads of every line, and nothing else
    read      the file through its reader, and nothing else
    bare      json.loads, and COPY of the same columns into a table without indexes: what must be done at the least
    import    the import itself, with masking, search texts and all indexes
    again     the same file once more: every record is a duplicate

Prints records per second, the time that this process and its database session computed for a record (which says more on
a machine that others use too), megabytes of the process at its peak, and the ratios of both times to those of `bare`. A
folder that is named keeps the file; the database is new each time.
"""

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROWS = ("parse", "read", "bare", "import", "again")
SAID = (
    "3号链接多少钱？券后价是多少，能便宜点吗", "how much is link 3 after the coupon, please?",
    "什么时候发货，发什么快递", "can I return it after wearing it once?", "敏感肌可以用吗，成分里有没有酒精",
)  # fmt: skip


def make_file(path: Path, size: int) -> int:
    """Write about `size` bytes, always the same; returns how many records they are."""
    chance = random.Random(5)  # noqa: S311  not for secrets
    count = written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            line = json.dumps(make_record(count, chance), ensure_ascii=count % 2 == 0) + "\n"
            file.write(line)
            written += len(line.encode())
            count += 1
    return count


def make_record(number: int, chance: random.Random) -> dict[str, Any]:
    """A chat with its scores; texts are told apart by words that stand nowhere else."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "你是直播间的助手。" * 20}]
    for turn in range(chance.randint(1, 4)):
        call = {"name": "get_product", "arguments": json.dumps({"link": chance.randint(1, 99)})}
        product = {
            "name": "防晒霜SPF50",
            "price": chance.randint(1, 9999) / 100,
            "stock": chance.randint(0, 10**6),
        }
        word = hashlib.sha256(f"{number}/{turn}".encode()).hexdigest()[:12]
        messages += [
            {"role": "user", "content": f"{chance.choice(SAID)} {word}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps(product, ensure_ascii=False)},
            {
                "role": "assistant",
                "content": f"{product['name']}现在{product['price']}元哈，{chance.choice(SAID)}",
            },
        ]
    return {
        "id": f"run-{number}",
        "messages": messages,
        "scores": {"accuracy": number % 2, "effectiveness": 1},
        "symptom": "" if number % 2 else "券后价说错了",
        "category": f"category-{number % 20}",
        "happened_at": 1717200000 + number,
    }


@contextmanager
def database(var: str) -> Iterator[None]:
    """The embedded PostgreSQL of a folder, with its tables."""
    os.environ |= {"WORKBENCH_VAR": var, "DJANGO_SETTINGS_MODULE": "workbench.settings"}
    from workbench.embedded.postgres import postgres_server  # noqa: PLC0415  after the environment is set

    with postgres_server(Path(var)).in_use():
        import django  # noqa: PLC0415

        django.setup()
        yield


def parse(path: Path) -> int:
    """Parse every line."""
    with path.open("rb") as file:
        return sum(1 for line in file if json.loads(line))


def read(path: Path) -> int:
    """Read every record."""
    from evolution.adapters.formats.detect import read_file  # noqa: PLC0415

    return sum(1 for _record in read_file(path))


def bare(path: Path) -> int:
    """Parse every line, and COPY what a case keeps of it into a table of nothing but these columns."""
    from django.db import connection  # noqa: PLC0415

    count = 0
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bare (id text, request jsonb, trajectory jsonb, reply text, symptom text, scores jsonb)"
        )
        names = "id, request, trajectory, reply, symptom, scores"
        with path.open("rb") as file, cursor.copy(f"COPY bare ({names}) FROM STDIN") as copy:
            for count, line in enumerate(file, 1):  # noqa: B007
                item = json.loads(line)
                copy.write_row(_bare_row(item))
    return count


def _bare_row(item: dict[str, Any]) -> tuple[str, ...]:
    messages = item["messages"]
    request = {"danmaku": [{"user": "user", "text": messages[1]["content"]}]}
    texts = (json.dumps(value, ensure_ascii=False) for value in (request, messages, item["scores"]))
    first, second, third = texts
    return item["id"], first, second, messages[-1]["content"], item["symptom"], third


def take_in(path: Path) -> int:
    """Import the file, failures or not; returns the records that it counts."""
    from evolution.actions.harnesses import ensure_starter  # noqa: PLC0415
    from evolution.actions.imports import import_paths  # noqa: PLC0415
    from evolution.actors import SYSTEM  # noqa: PLC0415
    from evolution.loop.imports import ImportOptions  # noqa: PLC0415

    harness = ensure_starter(SYSTEM, "live_commerce")
    run = import_paths(SYSTEM, harness, [path], ImportOptions(only_failures=False))
    if run.read != run.new + run.updated + run.duplicate + run.passed + run.rejected:
        raise SystemExit("records were lost")
    return run.read


DO: dict[str, Callable[[Path], int]] = {
    "parse": parse, "read": read, "bare": bare, "import": take_in, "again": take_in,
}  # fmt: skip


def measure(row: str, path: Path, var: str) -> None:
    """Do one row in this process, and print it as JSON."""
    with database(var):
        if row == "prepare":
            from django.core.management import call_command  # noqa: PLC0415

            call_command("migrate", verbosity=0)
            return
        _warm()
        before, computed = _peak(), _computed()
        start = time.perf_counter()
        count = DO[row](path)
        seconds, computed = time.perf_counter() - start, _computed() - computed
    peak = _peak()
    figures = {"count": count, "seconds": seconds, "cpu": computed, "peak": peak, "grown": peak - before}
    print(json.dumps(figures))  # noqa: T201


def _peak() -> float:
    """The largest size of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _computed() -> float:
    """Seconds for which this process and its database session have computed."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _warm() -> None:
    """Load what the row needs, which is not what is measured."""
    import evolution.actions.imports  # noqa: F401, PLC0415


def main() -> None:
    """Measure all rows."""
    if sys.argv[1:2] == ["--row"]:
        measure(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
        return
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with tempfile.TemporaryDirectory(prefix="import-") as var, tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2] if len(sys.argv) > 2 else folder) / f"chats-{size}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            make_file(path, size * 2**20)
        figures: dict[str, dict[str, float]] = {}
        _run("prepare", path, var)
        for row in ROWS:
            figures[row] = json.loads(_run(row, path, var).splitlines()[-1])
            show(row, figures[row], figures.get("bare"), path.stat().st_size)


def _run(row: str, path: Path, var: str) -> str:
    command = [sys.executable, "-m", "tests.benchmarks.import_speed", "--row", row, str(path), var]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def show(row: str, figure: dict[str, float], bare_figure: dict[str, float] | None, size: int) -> None:
    """Print a row for people."""
    rate, megabytes = figure["count"] / figure["seconds"], size / figure["seconds"] / 2**20
    ratios = [figure[name] / bare_figure[name] for name in ("seconds", "cpu")] if bare_figure else []
    ratio = "{:.1f} x bare, {:.1f} x its computing".format(*ratios) if ratios else ""
    computed = figure["cpu"] / figure["count"] * 1e6
    text = f"{row:8}{figure['seconds']:9.1f} s{rate:10.0f} records/s{megabytes:8.1f} MB/s{computed:7.0f} us computed"
    text += f"{figure['peak']:7.0f} MB peak, {figure['grown']:.0f} of it by the row  "
    print(text + ratio, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
