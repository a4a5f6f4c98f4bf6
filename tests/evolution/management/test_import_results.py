import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evolution.models import Evaluation
from tests.evolution.intake import DATA, needs_data
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db


def run(*arguments: Any, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("import_results", *arguments, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def run_in_part(*arguments: Any, **options: Any) -> tuple[str, str]:
    """Of a file of which something is left out."""
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("import_results", *arguments, stdout=out, stderr=err, **options)
    assert end.value.code == 4
    return out.getvalue(), err.getvalue()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "shop.jsonl"
    path.write_text('{"case": "a", "accuracy": 1}\n{"case": "b", "error": "down"}\n{"case": "c"}\n')
    return path


@needs_data
def test_json_says_what_is_there() -> None:
    out, _err = run(DATA / "tau2_bench" / "airline-base.json", as_json=True)
    evaluation = Evaluation.objects.get()
    expected = {"dataset": "airline", "cases": 20, "results": 20, "errors": 0, "left_out": 0, "known": False}
    # ../shared/data/README.md
    scores = {"accuracy": 50, "effectiveness": 50, "harness": "imported-airline"}
    assert json.loads(out) == {"evaluation": evaluation.pk, **expected, **scores}


def test_errors_are_counted_and_broken_lines_named(results: Path) -> None:
    out, err = run_in_part(results, as_json=True)
    assert (json.loads(out)["errors"], json.loads(out)["left_out"]) == (1, 1)
    assert "left out: shop.jsonl:3: $: " in err


def test_people_are_told_which_evaluation_it_is(results: Path) -> None:
    harness = make_harness()
    out, _err = run_in_part(results, "--harness", harness.name, "--ref", "main")
    pk = Evaluation.objects.get().pk
    said = f"of {harness.name}, shop v1: 2 results over 2 cases, 1 error; accuracy 100.00, effectiveness 100.00\n"
    assert out == f"evaluation {pk} {said}"
    assert (
        run_in_part(results, "--harness", harness.name, "--ref", "main")[0]
        == f"evaluation {pk} (known already) {said}"
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--harness", "nobody"],
        ["--ref", "main"],
        ["--threshold", "0"],
        ["--full-marks", "nan"],
        ["--score", "x y"],
    ],
)
def test_what_cannot_be_done_is_exit_code_2(results: Path, options: list[str]) -> None:
    if options[0] == "--score":
        # It has nothing to choose from, and is no mistake.
        run_in_part(results, *options)
        return
    with pytest.raises(CommandError) as failure:
        run(results, *options)
    assert failure.value.returncode == 2


def test_a_file_of_which_most_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    path.write_text('{"case": "a", "accuracy": 1}\n' + '{"case": "b"}\n' * 2)
    with pytest.raises(
        CommandError, match=r"most of shop\.jsonl can't be read: 2 problems, 1 results"
    ) as failure:
        run(path)
    assert (failure.value.returncode, Evaluation.objects.count()) == (2, 0)


def test_a_file_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="can't be opened") as failure:
        run(tmp_path / "gone.json")
    assert failure.value.returncode == 2


def test_the_threshold_says_what_passes(tmp_path: Path) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text('{"case": "a", "score": 7}\n{"case": "b", "score": 4}\n')
    run(path, "--full-marks", "10", "--threshold", "0.6")
    evaluation = Evaluation.objects.get()
    scores = evaluation.results.order_by("case__key").values_list("accuracy", "effectiveness")
    assert list(scores) == [(1, 1), (0, 0.4)]
