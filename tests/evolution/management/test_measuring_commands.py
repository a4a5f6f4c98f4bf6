import json
from argparse import ArgumentTypeError
from io import StringIO
from unittest import mock

import pytest
from celery import Celery
from django.core.management import CommandError, call_command
from pytest_django import Settings

from evolution.actions.harnesses import ensure_starter
from evolution.demonstration import load_cases
from evolution.loop import engine
from evolution.loop.datasets import import_dataset
from evolution.loop.evaluation import average_scores
from evolution.loop.scoring import CaseOutcome
from evolution.management import infrastructure
from evolution.management.budget_options import amount
from evolution.management.commands import demo, load_demonstration
from evolution.management.unattended import Entry, Outcomes
from evolution.management.waiting import describe
from evolution.models import CaseResult, DatasetVersion, Evaluation, Harness
from evolution.states import EvaluationState
from tests.evolution.conversing import conversations
from tests.evolution.measured import ANNA, make_harness, make_measured_step, make_version, teach

pytestmark = pytest.mark.django_db
SOME = load_cases()[::8]


def run_command(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.fixture
def starter() -> Harness:
    harness = ensure_starter(ANNA, "live_commerce")
    import_dataset(ANNA, harness, "live_commerce", SOME)
    return harness


def test_evaluate_prints_one_object_and_measures_once(starter: Harness) -> None:
    first = json.loads(run_command("evaluate", "--wait", "--json"))
    assert json.loads(
        run_command("evaluate", "--harness", "live_commerce", "--ref", "release/1", "--wait", "--json")
    ) == first | {"reused": True}
    assert list(first) == [
        "evaluation",
        "status",
        "reused",
        "cases",
        "results",
        "errors",
        "errors_by_kind",
        "by_status",
        "accuracy",
        "effectiveness",
        "calls",
        "cached",
        "wall_seconds",
        "tokens",
        "cost",
        "currency",
        "stopped_by",
    ]
    assert first["calls"] > 0
    assert list(first["tokens"]) == ["prompt", "completion", "cached"]
    assert (first["cost"], first["stopped_by"]) == (0, "")
    assert first["errors_by_kind"] == {}
    evaluation = starter.evaluations.get()
    assert (first["evaluation"], first["status"], first["errors"]) == (evaluation.pk, "finished", 0)
    assert first["cases"] == first["results"] == evaluation.total
    assert 0 <= first["effectiveness"] <= 100


@pytest.mark.usefixtures("starter")
def test_evaluate_counts_repeats_and_speaks_to_people() -> None:
    assert "0 errors; runs: ok: 40; accuracy" in run_command(
        "evaluate", "--repeats", "2", "--splits", "guard", "dev", "--wait"
    )
    evaluation = Evaluation.objects.get()
    assert evaluation.results.count() == 2 * evaluation.results.filter(repeat=0).count()


@pytest.mark.usefixtures("starter")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ref", "nope"), "no branch"),
        (("--ref", "--all"), "expected one argument"),
        (("--harness", "nope"), "no harness nope"),
        (("--dataset", "nope"), "no dataset nope"),
        (("--fault", "flood"), "--fault flood: kind is one of timeout"),
        (("--fault", "timeout:get_stock:often"), "rate is a number from 0 to 1"),
        (("--base", "nope"), "no branch"),
        (("--base", "nope", "--estimate"), "no branch"),
        (("--repeats", "101"), "101 is more than 100"),
        (("--harness", "\udcff"), "not text"),
        (("--dataset", "\udcff"), "not text"),
    ],
)
def test_evaluate_says_what_is_not_there(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        run_command("evaluate", *arguments)
    # argparse says so itself when it is not called by Django.
    assert refused.value.returncode == (
        1 if message in ("expected one argument", "101 is more than 100") else 2
    )


def test_evaluate_under_faults_is_another_evaluation(starter: Harness) -> None:
    run_command("evaluate", "--wait")
    run_command("evaluate", "--fault", "timeout:get_stock", "--fault", "server_error:*:0.5", "--wait")
    plain, under_faults = starter.evaluations.order_by("id")
    assert [fault["kind"] for fault in under_faults.faults] == ["timeout", "server_error"]
    struck = {
        call["fault"]
        for result in under_faults.results.all()
        for call in result.trajectory["tool_calls"]
        if call["fault"]
    }
    assert struck == {"timeout", "server_error"}
    before, after = average_scores(plain).effectiveness, average_scores(under_faults).effectiveness
    assert (after or 0) < (before or 0)


def test_conversations_are_evaluated_with_the_rehearsal_user(starter: Harness) -> None:
    import_dataset(ANNA, starter, "talk", conversations())
    summary = json.loads(run_command("evaluate", "--dataset", "talk", "--wait", "--json"))
    evaluation = Evaluation.objects.get(pk=summary["evaluation"])
    assert (summary["errors"], evaluation.user_model) == (0, "rehearsal-user")
    talks = {result.case.key: result.trajectory for result in evaluation.results.select_related("case")}
    assert {key: talk["status"] for key, talk in talks.items()} == {
        "talk-1": "ok",
        "talk-2": "ok",
        "talk-3": "turn_limit",
    }
    assert [len(talks[key]["conversation"]) for key in sorted(talks)] == [3, 2, 2]
    assert {call["turn"] for call in talks["talk-1"]["tool_calls"]} != {1}


@pytest.mark.parametrize(
    ("arguments", "runner"),
    [
        (
            ["--seconds", "5", "--environment", "KEY", "--command", "python3", "agent.py", "--json", "-v"],
            {
                "kind": "command",
                "command": ["python3", "agent.py", "--json", "-v"],
                "seconds": 5,
                "memory_mb": 2048,
                "environment": ["KEY"],
            },
        ),
        (
            ["--header", "Authorization: Bearer ${secret:AGENT}", "--http", "https://agent.example/run"],
            {
                "kind": "http",
                "url": "https://agent.example/run",
                "seconds": 120,
                "headers": {"Authorization": "Bearer ${secret:AGENT}"},
            },
        ),
        (["--native"], {}),
    ],
)
def test_set_runner_stores_the_choice_in_full(
    arguments: list[str], runner: dict[str, object], settings: Settings
) -> None:
    settings.TOOL_SECRETS = {"AGENT": {"value": "s3cret-value", "hosts": ["agent.example"]}}
    harness = make_harness()
    run_command("set_runner", "shop", *arguments)
    harness.refresh_from_db()
    assert harness.runner == runner


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--command"], "command"),
        (["--http", "agent.example"], "not an http or https address"),
        (["--memory-mb", "512", "--http", "https://agent.example/"], "memory_mb"),
        (["--seconds", "5", "--native"], "no further options"),
        (["--header", "Authorization", "--http", "https://agent.example/"], "is no header"),
        (["--header", "A: ${secret:NONE}", "--http", "https://agent.example/"], "no secret NONE"),
        ([], "required"),
    ],
)
def test_set_runner_refuses_what_cannot_work(arguments: list[str], message: str) -> None:
    make_harness()
    with pytest.raises(CommandError, match=message):
        run_command("set_runner", "shop", *arguments)
    assert Harness.objects.get(name="shop").runner == {}


@pytest.mark.parametrize(("command", "warnings"), [("sh", 0), ("no-such-program", 1), ("./agent.py", 1)])
def test_set_runner_warns_of_a_command_that_is_nowhere(
    command: str, warnings: int, capsys: pytest.CaptureFixture[str]
) -> None:
    make_harness()
    call_command("set_runner", "shop", "--command", command)
    assert capsys.readouterr().err.count("warning: ") == warnings


def test_evaluate_exits_with_4_when_there_are_errors() -> None:
    make_version(make_harness())
    with mock.patch.object(engine, "score_case", side_effect=_fail), pytest.raises(SystemExit) as ended:
        run_command("evaluate", "--harness", "shop", "--wait")
    assert ended.value.code == 4


@pytest.mark.usefixtures("starter")
def test_evaluate_leaves_the_work_to_the_workers_unless_told_to_wait() -> None:
    summary = json.loads(run_command("evaluate", "--json"))
    assert (summary["status"], summary["results"], summary["wall_seconds"]) == ("queued", 0, None)
    assert 0 < summary["cases"] == Evaluation.objects.get().total
    assert json.loads(run_command("evaluate", "--json", "--wait"))["results"] == summary["cases"]


def test_evaluate_takes_options_and_a_base_along(starter: Harness) -> None:
    options = ["--concurrency", "3", "--fresh", "--max-calls", "900", "--max-money", "2.5", "--base", "main"]
    run_command("evaluate", *options, "--ref", "release/1")
    made = starter.evaluations.get(base__isnull=False)
    assert (made.concurrency, made.is_fresh) == (3, True)
    assert made.budget == {"calls": 900, "money": 2.5}


@pytest.mark.usefixtures("starter")
def test_a_budget_ends_evaluate_with_4() -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("evaluate", "--max-calls=30", "--concurrency=1", "--wait", "--json", stdout=out)
    summary = json.loads(out.getvalue())
    assert ended.value.code == 4
    assert (summary["status"], summary["stopped_by"]) == ("partial", "calls")
    assert summary["calls"] <= 30
    assert summary["results"] == summary["cases"] > summary["errors_by_kind"]["budget"] > 0


@pytest.mark.usefixtures("starter")
def test_an_estimate_starts_nothing_and_knows_what_is_kept() -> None:
    run_command("evaluate", "--wait")
    found = json.loads(run_command("evaluate", "--estimate", "--json"))
    assert (found["to_make"], found["cached"]) == (0, found["calls"])
    assert [row["role"] for row in found["roles"]] == ["policy", "judge"]
    assert found["cost"] == 0
    assert "in all: 0 of" in run_command("evaluate", "--estimate")
    assert Evaluation.objects.count() == 1


@pytest.mark.usefixtures("starter")
def test_evaluate_prints_the_base_too() -> None:
    asked = ("evaluate", "--base", "main", "--fresh", "--wait")
    printed = json.loads(run_command(*asked, "--json"))
    base = printed["base"]
    assert (base["evaluation"] != printed["evaluation"], base["status"]) == (True, "finished")
    assert (base["accuracy"], base["effectiveness"]) == (printed["accuracy"], printed["effectiveness"])
    assert "\nbase: evaluation " in run_command(*asked)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "1e999", "1e-400", "inf", "x"])
def test_amounts_that_no_budget_can_have_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not an amount"):
        amount(text)


@pytest.mark.usefixtures("starter")
def test_an_estimate_has_the_base_beside_it() -> None:
    run_command("evaluate", "--wait")
    asked = ("evaluate", "--fresh", "--base", "release/1", "--estimate")
    found = json.loads(run_command(*asked, "--json"))
    # What there is of the base is taken.
    assert (found["cached"], found["to_make"]) == (0, found["calls"])
    assert (found["base"]["to_make"], found["base"]["cached"]) == (0, found["calls"])
    said = run_command(*asked).splitlines()
    assert [line.split(":")[0] for line in said] == [
        "policy", "judge", "in all", "base, policy", "base, judge", "base, in all",
    ]  # fmt: skip


def test_evaluate_says_whose_calls_are_made_afresh(
    starter: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("evaluate", "--fresh", "--base", "main", "--ref", "release/1")
    base = starter.evaluations.get(base=None)
    assert f"only release/1 is measured afresh; its base is {base} as it is" in capsys.readouterr().err
    call_command("evaluate", "--fresh", "--ref", "release/1")
    assert "afresh" not in capsys.readouterr().err


@pytest.mark.usefixtures("starter")
def test_evaluate_refuses_a_budget_that_what_is_under_way_does_not_keep() -> None:
    run_command("evaluate", "--max-calls", "900")
    with pytest.raises(CommandError, match="its budget is another one") as refused:
        run_command("evaluate", "--max-calls", "90")
    assert refused.value.returncode == 2
    assert Evaluation.objects.get().budget == {"calls": 900}


@pytest.mark.usefixtures("starter")
def test_evaluate_says_that_the_broker_is_away() -> None:
    with (
        mock.patch.object(
            infrastructure, "current_app", Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
        ),
        pytest.raises(CommandError) as refused,
    ):
        run_command("evaluate")
    assert refused.value.returncode == 4
    assert not Evaluation.objects.exists()


async def _fail(*_arguments: object) -> CaseOutcome:
    return CaseOutcome(error_kind="policy_error", error="down")


def test_demonstration_loads_once_and_goes_on_after_a_kill() -> None:
    with (
        mock.patch.object(load_demonstration, "load_cases", return_value=SOME),
        mock.patch.object(load_demonstration, "take_failures", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run_command("load_demonstration", "--no-clusters")
    with mock.patch.object(load_demonstration, "load_cases", return_value=SOME):
        first = run_command("load_demonstration", "--no-clusters")
        assert run_command("load_demonstration", "--no-clusters") == first
    evaluation = Evaluation.objects.get()
    assert (evaluation.state, DatasetVersion.objects.count()) == (EvaluationState.FINISHED, 1)
    failed = CaseResult.objects.exclude(accuracy=1, effectiveness=1).count()
    assert Harness.objects.get(name="live_commerce").failures.count() == failed > 0


def test_demo_prints_its_series_as_a_table() -> None:
    entries = [Entry("a" * 40, 77.5, 42.92, 0, 0, "baseline"), Entry("b" * 40, 80.0, 50.0, 12, 1, "promoted")]
    lines = demo.format_table(Outcomes("demo-1", entries, "b" * 40)).splitlines()
    assert lines[2].split() == ["b" * 12, "*", "80.00", "50.00", "12", "1", "promoted"]
    assert lines[0].index("fixed") == lines[2].index("12 ")


def test_demo_tells_the_halves_of_a_step_and_nothing_of_a_baseline() -> None:
    halves: dict[str, object] = {"only_held_in": []}
    entries = [Entry("a", 1, 1, 0, 0, "baseline"), Entry("b", 1, 1, 0, 0, "promoted", halves)]
    steps = Outcomes("demo-1", entries, "b").to_dict()["steps"]
    assert isinstance(steps, list)
    assert ["halves" in step for step in steps] == [False, True]


def test_evaluate_tells_the_halves_of_two_versions_that_a_step_compares() -> None:
    step = make_measured_step(teach(*range(1, 11)))
    assert step.base_evaluation is not None
    assert step.candidate_evaluation is not None
    said = describe(step.candidate_evaluation, as_json=True, base=step.base_evaluation)
    halves = json.loads(said)["halves"]
    assert halves["held_in"]["cases"] == len(step.held_in)
    assert halves["held_in"]["fixed"] + halves["held_out"]["fixed"] == 8
    same = describe(step.base_evaluation, as_json=True, base=step.base_evaluation)
    assert json.loads(same)["halves"] is None


@pytest.mark.ops
def test_demo_is_not_monotone_and_does_not_select_the_last_version() -> None:
    outcome = json.loads(run_command("demo", "--json"))
    steps = outcome["steps"]
    assert list(steps[0]) == ["version", "accuracy", "effectiveness", "fixed", "broken", "decision"]
    assert steps[0]["decision"] == "baseline"
    assert len(steps) >= 6
    assert any(step["broken"] for step in steps)
    assert outcome["selected"] in [step["version"] for step in steps[:-1]]
    assert Harness.objects.get(name="demo-1").selected_commit == outcome["selected"]
