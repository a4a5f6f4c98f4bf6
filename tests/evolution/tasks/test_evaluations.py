import shutil

import pytest

from evolution.loop import repositories
from evolution.loop.repositories import open_repository
from evolution.states import EvaluationState
from evolution.tasks.evaluations import run_shard
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db


def test_deleted_repository_is_said_on_the_results() -> None:
    harness = make_harness()
    evaluation = make_evaluation(harness)
    repositories._read_version.cache_clear()
    shutil.rmtree(open_repository(harness).path)
    run_shard(evaluation.shards.get().pk)
    evaluation.refresh_from_db()
    kinds = set(evaluation.results.values_list("error_kind", "error"))
    assert (evaluation.state, len(kinds)) == (EvaluationState.PARTIAL, 1)
    kind, error = kinds.pop()
    assert kind == "not_started"
    assert "repository" in error
