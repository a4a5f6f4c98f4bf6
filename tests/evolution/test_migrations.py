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


@pytest.mark.parametrize(
    ("scores", "score"),
    [
        ({"accuracy": 1, "effectiveness": 0.5}, 0.5),
        ({"reward": None, "note": "x"}, None),
        ({}, None),
        ([1], None),
    ],
)
def test_older_cases_get_their_score_and_are_found(
    older: MigrationExecutor, scores: object, score: float | None
) -> None:
    apps = older.loader.project_state([("evolution", BEFORE)]).apps
    harness = apps.get_model("evolution", "Harness").objects.create(name="shop", kind="agent")
    apps.get_model("evolution", "FailureCase").objects.create(
        harness=harness, source="x", source_id="1", title="t", reply="券后价说错了", scores=scores
    )

    migrate_to_newest()

    case = FailureCase.objects.get()
    assert case.score == score
    assert CaseText.objects.get().text == ""
    index_texts()
    assert [row.pk for row in list_cases(case.harness, CaseFilter(text="后价"))] == [case.pk]
