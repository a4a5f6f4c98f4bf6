"""What a change of the schema makes of the rows that are there."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from evolution.loop.search_index import index_texts
from evolution.models import CaseText, FailureCase
from evolution.queries.case_filters import CaseFilter
from evolution.queries.cases import list_cases
from tests.audit_trail import let_tests_empty_it

BEFORE = "0004_evaluation_engine"


def migrate_to(name: str) -> MigrationExecutor:
    executor = MigrationExecutor(connection)
    executor.migrate([("evolution", name)])
    return MigrationExecutor(connection)


def migrate_to_newest() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] == "evolution"])
    let_tests_empty_it()


@pytest.fixture
def older(transactional_db: None) -> Iterator[MigrationExecutor]:
    """The schema before intake and triage; afterwards it is the newest again."""
    yield migrate_to(BEFORE)
    migrate_to_newest()


def test_older_cases_get_their_score_and_are_found(older: MigrationExecutor) -> None:
    apps = older.loader.project_state([("evolution", BEFORE)]).apps
    harness = apps.get_model("evolution", "Harness").objects.create(name="shop", kind="agent")
    scores = [{"accuracy": 1, "effectiveness": 0.5}, {"reward": None, "note": "x"}, {}, [1]]
    for number, stored in enumerate(scores):
        fields = {"source": "x", "source_id": str(number), "title": "t", "reply": "券后价说错了"}
        apps.get_model("evolution", "FailureCase").objects.create(harness=harness, **fields, scores=stored)

    migrate_to_newest()

    cases = FailureCase.objects.order_by("source_id")
    assert list(cases.values_list("score", flat=True)) == [0.5, None, None, None]
    assert list(CaseText.objects.values_list("text", flat=True)) == [""] * 4
    index_texts()
    found = list_cases(cases[0].harness, CaseFilter(text="后价"))
    assert {row.pk for row in found} == {case.pk for case in cases}
