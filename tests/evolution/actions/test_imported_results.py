from pathlib import Path

import pytest

from evolution.actions.imported_results import import_results
from evolution.actors import NotAllowed
from evolution.adapters.results.detect import Source
from evolution.errors import BrokenInput, LoopError
from evolution.loop.repositories import open_repository
from evolution.models import Evaluation, Harness
from harness_repo.git.errors import MissingRef
from tests.evolution.measured import DEV, VIEWER, make_harness
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db
RESULTS = Source("shop.jsonl", b'{"case": "a", "accuracy": 1, "request": "hi"}')


def test_results_without_a_harness_get_one_for_their_dataset() -> None:
    first = import_results(DEV, RESULTS).evaluation
    second = import_results(DEV, Source("shop.jsonl", RESULTS.data + b"\n")).evaluation
    assert first.harness == second.harness == Harness.objects.get()
    assert (first.harness.name, first.commit, first.harness.judge) == ("imported-shop", "", None)
    assert first.dataset_version == second.dataset_version


def test_results_of_a_named_version_are_bound_to_its_commit() -> None:
    harness = make_harness()
    evaluation = import_results(DEV, RESULTS, harness_name=harness.name, ref="main").evaluation
    assert evaluation.commit == open_repository(harness).resolve("main")
    unknown = import_results(DEV, RESULTS, harness_name=harness.name).evaluation
    assert (unknown.harness, unknown.commit) == (harness, "")


def test_a_ref_needs_its_harness() -> None:
    with pytest.raises(LoopError, match="name the harness too"):
        import_results(DEV, RESULTS, ref="main")


def test_names_that_are_not_there_are_refused_before_the_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(LoopError, match="there is no harness nobody"):
        import_results(DEV, tmp_path / "gone", harness_name="nobody")
    with pytest.raises(MissingRef):
        import_results(DEV, tmp_path / "gone", harness_name=make_harness().name, ref="gone")


def test_a_file_that_cannot_be_read_leaves_nothing_behind() -> None:
    with pytest.raises(BrokenInput):
        import_results(DEV, Source("x", b'{"case": "a"}\n{"case": "b", "accuracy": 2}'))
    assert not Harness.objects.exists()
    assert not Evaluation.objects.exists()


def test_a_viewer_may_not_import() -> None:
    with pytest.raises(NotAllowed):
        import_results(VIEWER, RESULTS)


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_a_file_at_once_are_one_evaluation() -> None:
    outcomes = run_at_once(*[lambda: import_results(DEV, RESULTS)] * 3)
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert Evaluation.objects.get().results.count() == 1
    assert Harness.objects.count() == 1
