"""How quick the inbox is over a million cases: `python -m tests.benchmarks.triage_speed [CASES] [FOLDER]`.

Every row is the real view through Django's test client, signed in, with all middleware and the whole page; a bare
keyset view over the same table takes turns with it, so that both meet the same machine. A folder that is named keeps
the database, and is measured again without being filled again. Prints one line per row: milliseconds, and the ratio.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from django.test import Client

    from evolution.models import BulkAction, Harness

ROUNDS = 25
BULK = 300_000
BATCH = 20_000
LISTS = {
    "list, open": "",
    "all states": "state=",
    "source": "source=langfuse",
    "category": "category=category-20",
    "cluster": "cluster=50",
    "unclustered": "cluster=none",
    "tag, frequent": "tag=price",
    "tag, rare": "tag=rare-tag",
    "score": "lowest=0.5&highest=0.75",
    "language": "language=zh",
    "version": "version=05050505",
    "nobody's": "assignee=none",
    "days, long ago": "since=2026-01-10&until=2026-01-12",
    "source, category": "source=tau-bench&category=category-25",
    "cluster, tag": "cluster=120&tag=refund&state=",
    "state, language, score": "state=ignored&language=en&lowest=0.75",
    "tag, days": "tag=tone&since=2026-02-01&until=2026-02-10",
    "unclustered, version": "cluster=none&version=" + "05" * 20,
    "in the middle": "before={middle}",
    "at the end": "before=2000",
}
SEARCHES = {
    "frequent two-character word": "{frequent}",
    "single character": "{character}",
    "every 20th case": "有时候",
    "every 200th case": "罕见词",
    "two rare words": "quagmire 有时候",
    "error code": "ERR40100",
    "order number": "W{order}",
    "part of it": "{part}",
    "phrase": "“{phrase}”",
    "nowhere": "nowhere 查无此词",
    "nowhere, of frequent parts": "{absent}",
    "with filters": "罕见词&category=category-3&tag=price",
    "two letters": "ok",
}


@contextmanager
def database(folder: str | None) -> Iterator[None]:
    """An embedded PostgreSQL in a folder; one that is not named is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="triage-") as temporary:
        var = Path(folder or temporary)
        os.environ |= {"WORKBENCH_VAR": str(var), "DJANGO_SETTINGS_MODULE": "workbench.settings"}
        from workbench.embedded.postgres import postgres_server  # noqa: PLC0415  after the environment is set

        with postgres_server(var).in_use():
            import django  # noqa: PLC0415  after the environment is set

            django.setup()
            yield


def prepare(count: int) -> "Harness":
    """The schema, and so many cases with their index, unless they are there."""
    from django.core.management import call_command  # noqa: PLC0415  after Django's set-up
    from django.db import connection, transaction  # noqa: PLC0415  after Django's set-up

    from evolution.models import FailureCase, Harness  # noqa: PLC0415  after Django's set-up
    from tests.benchmarks.support import many_cases  # noqa: PLC0415  after Django's set-up

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    harness, new = Harness.objects.get_or_create(name="live_commerce", defaults={"kind": "agent"})
    if not new and FailureCase.objects.exists():
        return harness
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'case_text_grams'")
        (definition,) = cursor.fetchone()
        cursor.execute("DROP INDEX case_text_grams")
        for first in range(1, count + 1, BATCH):
            with transaction.atomic():
                many_cases.fill(harness, min(BATCH, count + 1 - first), first)
        cursor.execute("SET maintenance_work_mem = '512MB'")
        cursor.execute(definition)
    many_cases.finish(count + 1)
    return harness


def sign_in() -> "Client":
    """A client of a developer."""
    from django.contrib.auth.models import Group, User  # noqa: PLC0415  after Django's set-up
    from django.test import Client  # noqa: PLC0415  after Django's set-up

    user, _new = User.objects.get_or_create(username="bench")
    user.groups.add(Group.objects.get_or_create(name="developer")[0])
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def milliseconds(work: Callable[[], object]) -> float:
    """Time one call."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def measure(client: "Client", label: str, query: str) -> None:
    """One row: the page of a query, in turns with the bare view."""
    address = f"/h/live_commerce/cases/?{query}"

    def ask(url: str) -> None:
        answer = client.get(url)
        assert answer.status_code == 200, (url, answer.status_code)

    ask(address)
    own, bare = [], []
    for _ in range(ROUNDS):
        own.append(milliseconds(lambda: ask(address)))
        bare.append(milliseconds(lambda: ask("/bare/keyset/")))
    rows = client.get(address).content.count(b"<tr data-row")
    p50, base = statistics.median(own), statistics.median(bare)
    p95 = sorted(own)[int(0.95 * len(own))]
    print(f"{label:32} {p50:8.1f} {p95:8.1f} {base:8.1f} {p50 / base:6.2f} {rows:5}", flush=True)  # noqa: T201


def known_terms() -> dict[str, str]:
    """Terms of a case in the middle, and one that is made of frequent parts and found nowhere."""
    from evolution.models import CaseText, FailureCase  # noqa: PLC0415  after Django's set-up
    from tests.benchmarks.support.many_cases import Writer  # noqa: PLC0415  after Django's set-up

    last = FailureCase.objects.order_by("-pk")[0].pk
    middle = CaseText.objects.filter(pk__gt=last // 2, pk__lt=last).exclude(text__contains="tau").first()
    assert middle is not None
    words = Writer(1).chinese
    order = middle.text.partition('"order": "w')[2][:8]
    said = middle.text.split("\n")[2]
    return {
        "frequent": words[5],
        "character": words[3][0],
        "order": order,
        "part": order[1:7],
        "phrase": said[5:25],
        "absent": words[0][1] + words[1][0] + words[2] + words[0][1],
        "middle": str(last // 2),
    }


def measure_bulk(harness: "Harness") -> None:
    """Ignoring, tagging and undoing for many cases."""
    from evolution.actions import bulk  # noqa: PLC0415  after Django's set-up
    from evolution.actors import Actor, Role  # noqa: PLC0415  after Django's set-up
    from evolution.models import FailureCase  # noqa: PLC0415  after Django's set-up
    from evolution.queries.case_filters import CaseFilter  # noqa: PLC0415  after Django's set-up
    from evolution.queries.cases import find_ids  # noqa: PLC0415  after Django's set-up

    actor = Actor("bench", Role.DEVELOPER)
    upto = (
        FailureCase.objects.filter(state="open").order_by("pk")[BULK : BULK + 1].values_list("pk", flat=True)
    )
    wanted = find_ids(harness, CaseFilter(upto=(upto.first() or 2**62) - 1))
    deeds: dict[str, Callable[[], BulkAction]] = {
        "ignore": lambda: bulk.ignore_cases(actor, harness, wanted, "noise"),
        "tag": lambda: bulk.tag_cases(actor, harness, wanted, "seen"),
    }
    for label, act in deeds.items():
        began = time.perf_counter()
        action = act()
        acted = time.perf_counter()
        restored = bulk.undo_bulk(actor, action)
        undone = time.perf_counter()
        print(f"{label} {action.count}: {acted - began:.1f} s, undo {restored}: {undone - acted:.1f} s")  # noqa: T201


def measure_index(harness: "Harness", count: int = 10_000) -> None:
    """How long cases that came in wait for the index."""
    from evolution.loop.search_index import index_texts  # noqa: PLC0415  after Django's set-up
    from evolution.models import FailureCase  # noqa: PLC0415  after Django's set-up
    from tests.benchmarks.support import many_cases  # noqa: PLC0415  after Django's set-up

    last = FailureCase.objects.order_by("-pk")[0].pk
    many_cases.fill(harness, count, last + 1, indexed=False)
    began = time.perf_counter()
    indexed = index_texts(600)
    print(f"index {indexed}: {time.perf_counter() - began:.1f} s")  # noqa: T201
    FailureCase.objects.filter(pk__gt=last).delete()


def main(count: int = 1_000_000, folder: str | None = None) -> None:
    """Fill, and measure all rows."""
    with database(folder):
        from django.conf import settings  # noqa: PLC0415  after Django's set-up

        settings.ALLOWED_HOSTS = ["*"]
        settings.ROOT_URLCONF = "tests.benchmarks.support.bare_list"
        harness = prepare(count)
        client, terms = sign_in(), known_terms()
        print(f"{'':32} {'p50 ms':>8} {'p95 ms':>8} {'bare':>8} {'ratio':>6} {'rows':>5}")  # noqa: T201
        for label, query in LISTS.items():
            measure(client, label, query.format(**terms))
        print(f"COUNT and OFFSET: {milliseconds(lambda: client.get('/bare/counted/?page=9000')):.1f} ms")  # noqa: T201
        for label, text in SEARCHES.items():
            words, _amp, filters = text.format(**terms).partition("&")
            measure(client, f"search: {label}", f"state=&text={quote(words)}&{filters}")
        counts = milliseconds(lambda: client.get("/h/live_commerce/cases/counts/?state="))
        print(f"counts by value, beside the list: {counts:.0f} ms")  # noqa: T201
        measure_bulk(harness)
        measure_index(harness)


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))  # type: ignore[arg-type]  # as documented
