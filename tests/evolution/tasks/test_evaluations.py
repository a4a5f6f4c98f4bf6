import shutil

import pytest
from pytest_django import Settings

from evolution.loop import repositories
from evolution.loop.repositories import open_repository
from evolution.states import EvaluationState
from evolution.tasks.evaluations import run_shard
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db


def test_deleted_repository_is_said_on_the_results(settings: Settings) -> None:
    settings.LLM_BASE_URL = "http://127.0.0.1:9/v1"
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


def test_model_that_the_settings_have_no_more_is_said_on_the_results() -> None:
    """Measured by another model, the results would stand under a name that never gave them."""
    evaluation = make_evaluation(make_harness())
    run_shard(evaluation.shards.get().pk)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"not_started"}
    assert "m is not configured for the policy any more" in evaluation.results.all()[0].error
