import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from evolution.loop.repositories import open_repository
from evolution.models import CaseResult
from harness_repo.runtime.trajectory import CallRecord, Trajectory
from tests.evolution.measured import make_case, make_harness, make_version

pytestmark = pytest.mark.django_db
RUN = Trajectory(
    "ok",
    "89",
    messages=[{"role": "user", "content": "q1"}, {"role": "assistant", "content": "89"}],
    calls=[CallRecord(1, 100.0, 10, 5, "m-1")],
)


@pytest.fixture
def result() -> CaseResult:
    harness = make_harness()
    version = make_version(harness, [make_case("q1")])
    evaluation = harness.evaluations.create(
        dataset_version=version, commit=open_repository(harness).resolve("main"), model="m", created_by="anna"
    )
    return CaseResult.objects.create(
        evaluation=evaluation, case=version.cases.get(), trajectory=RUN.to_dict(), reply="89"
    )


def run_command(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("export_trajectory", *arguments, stdout=out)
    exported: dict[str, object] = json.loads(out.getvalue())
    return exported


def test_openai_messages_are_what_it_prints_unless_asked_otherwise(result: CaseResult) -> None:
    assert run_command(str(result.pk))["messages"] == RUN.messages


def test_atif_names_harness_and_commit(result: CaseResult) -> None:
    record = run_command(str(result.pk), "--format", "atif")
    evaluation = result.evaluation
    assert record["agent"] == {
        "name": evaluation.harness.name, "version": evaluation.commit, "model_name": "m",
    }  # fmt: skip
    assert record["session_id"] == f"{evaluation.harness.name}-{evaluation.pk}-q1-0"


def test_as_it_is_stored(result: CaseResult) -> None:
    assert run_command(str(result.pk), "--format", "json") == json.loads(json.dumps(RUN.to_dict()))


def test_what_cannot_be_exported_is_said(result: CaseResult) -> None:
    with pytest.raises(CommandError, match="there is no result 999999"):
        run_command("999999")
    CaseResult.objects.filter(pk=result.pk).update(trajectory={})
    with pytest.raises(CommandError, match="no trajectory"):
        run_command(str(result.pk))
    CaseResult.objects.filter(pk=result.pk).update(trajectory={"status": "odd"})
    with pytest.raises(CommandError, match=r"\$\.status"):
        run_command(str(result.pk))
