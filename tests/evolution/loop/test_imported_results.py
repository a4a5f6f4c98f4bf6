from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from evolution.adapters.results.detect import open_source, read_source
from evolution.adapters.results.wanted import Wanted
from evolution.errors import BrokenInput, LoopError
from evolution.loop.evaluation import cancel_evaluation, newest_version, resume_evaluation
from evolution.loop.imported_results import Origin, fit_key, store_results
from evolution.loop.promotion import measured_versions, newest_measurement
from evolution.loop.regressions import store_verdict, weigh
from evolution.loop.rejudging import create_rejudgement
from evolution.loop.repositories import open_repository
from evolution.loop.taken_failures import take_failures
from evolution.loop.verdict import Policy
from evolution.models import DatasetVersion, Evaluation, Event, FailureCase, Harness
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun
from evolution.queries.comparison import compare
from tests.evolution.intake import DATA, TAU_BENCH, needs_data
from tests.evolution.measured import DEV, make_harness, make_version, run

pytestmark = pytest.mark.django_db


def passed(key: str, accuracy: float = 1, repeat: int = 0, **fields: Any) -> MeasuredResult:
    return MeasuredResult(key, repeat, accuracy=accuracy, effectiveness=accuracy, **fields)


def ask(key: str, text: str = "") -> MeasuredCase:
    request = {"danmaku": [{"user": "user", "text": text or f"question {key}"}], "history": []}
    return MeasuredCase(key, request, category="any")


def run_of(*results: MeasuredResult, keys: str = "abc", **fields: Any) -> MeasuredRun:
    run = MeasuredRun("jsonl", "set", "m", "j", "", [ask(key) for key in keys], list(results))
    return replace(run, **fields)


def store(harness: Harness, run: MeasuredRun, digest: str = "1", commit: str = "") -> Evaluation:
    return store_results(DEV, harness, commit, run, Origin("file", digest)).evaluation


def store_file(harness: Harness, *path: str) -> Evaluation:
    source = open_source(DATA.joinpath(*path))
    run = read_source(source, Wanted())
    return store_results(DEV, harness, "", run, Origin(source.name, source.digest)).evaluation


@needs_data
@pytest.mark.parametrize(
    ("domain", "averages", "fixed", "broken"),
    # ../shared/data/README.md
    [
        ("airline", (0.5, 0.65), 6, ["18", "29", "45"]),
        ("retail", (0.85, 0.85), 6, ["111", "18", "27", "33", "64", "71"]),
    ],
)
def test_two_real_runs_have_their_known_flips_and_a_verdict(
    domain: str, averages: tuple[float, float], fixed: int, broken: list[str]
) -> None:
    harness = make_harness()
    base = store_file(harness, "tau2_bench", f"{domain}-base.json")
    candidate = store_file(harness, "tau2_bench", f"{domain}-finetuned.json")
    compared = compare(base, candidate)
    assert (compared.obstacles, len(compared.fixed)) == ([], fixed)
    assert sorted(row.key for row in compared.broken) == broken
    verdict = store_verdict(base, candidate)
    figures = verdict.figures["metrics"]["accuracy"]
    assert (figures["base"], figures["candidate"]) == pytest.approx(averages)
    assert (verdict.outcome, verdict.figures["comparable"]) == ("inconclusive", True)


@needs_data
def test_four_trials_are_four_repeats_of_each_case() -> None:
    evaluation = store_file(make_harness(), *TAU_BENCH.parts[-2:])
    assert (evaluation.repeats, evaluation.total, evaluation.results.count()) == (4, 200, 200)
    assert evaluation.results.filter(accuracy=0).count() == 116
    pairs = compare(evaluation, evaluation)
    assert sum(bool(row.base and row.base.is_passing) for row in pairs.rows) == 10


@needs_data
def test_three_models_on_one_task_are_three_unknown_versions_of_one_case_set() -> None:
    harness = make_harness()
    logs = sorted((DATA / "inspect").glob("*popularity*.eval"))
    gpt, claude, gemini = (store_file(harness, "inspect", log.name) for log in logs)
    assert gpt.dataset_version == claude.dataset_version == gemini.dataset_version
    verdict = weigh(claude, gemini, Policy())
    # 57 and 66 of 100 by Inspect's own count
    assert (len(verdict.fixed) - len(verdict.broken), verdict.comparable) == (9, True)


def test_an_import_is_an_evaluation_that_has_ended() -> None:
    results = [
        passed("a"),
        passed("b", 0, cost=0.25, call_ms=[1.0, 2.0]),
        MeasuredResult("c", error_kind="timeout"),
    ]
    evaluation = store(make_harness(), run_of(*results, details={"version": "v7"}))
    assert (evaluation.state, evaluation.total, evaluation.commit) == ("partial", 3, "")
    assert (evaluation.model, evaluation.judge_model, evaluation.judge_commit) == ("m", "j", "")
    assert (evaluation.origin["format"], evaluation.origin["version"]) == ("jsonl", "v7")
    failed = evaluation.results.get(case__key="b")
    assert (failed.cost, failed.call_ms, failed.error_kind) == (Decimal("0.25"), [1, 2], "")
    assert Event.objects.get(verb="evaluation.imported").data["errors"] == 1


def test_pairs_that_are_not_in_the_file_are_errors() -> None:
    run = run_of(passed("a"), passed("b", repeat=1), repeats=2)
    evaluation = store(make_harness(), run)
    missing = evaluation.results.filter(error_kind="not_started").values_list("case__key", "repeat")
    assert sorted(missing) == [("a", 1), ("b", 0), ("c", 0), ("c", 1)]
    assert (evaluation.state, evaluation.total) == ("partial", 6)


def test_the_same_file_again_is_the_same_evaluation() -> None:
    harness = make_harness()
    run = run_of(passed("a"), passed("b"), passed("c"))
    first = store(harness, run)
    assert store(harness, run) == first
    assert first.results.count() == 3
    commit = open_repository(harness).resolve("main")
    others = {store(harness, run, digest="2"), store(harness, run, commit=commit)}
    assert len(others | {first}) == 3


def test_two_results_of_a_pair_leave_the_first() -> None:
    outcome = store_results(
        DEV, make_harness(), "", run_of(passed("a"), passed("a", 0), keys="a"), Origin("f", "1")
    )
    assert outcome.evaluation.results.get().accuracy == 1
    assert "more than one result" in outcome.problems[0]


def test_other_requests_are_another_case_set() -> None:
    harness = make_harness()
    base = store(harness, run_of(passed("a"), keys="a"))
    other = store(harness, run_of(passed("a"), cases=[ask("a", "something else")]), digest="2")
    assert compare(base, other).obstacles == ["not comparable: dataset version differs (set v1 and set v2)"]


def test_a_run_that_broke_off_is_of_the_set_that_it_was_to_measure() -> None:
    harness = make_harness()
    whole = store(harness, run_of(passed("a"), passed("b"), passed("c")))
    part = store(harness, run_of(passed("a"), keys="a", declared=["a", "b", "c"]), digest="2")
    assert part.dataset_version == whole.dataset_version
    assert part.results.filter(error_kind="not_started").count() == 2
    alone = store(harness, run_of(passed("a"), keys="a"), digest="3")
    assert alone.dataset_version != whole.dataset_version


def test_a_failure_without_a_request_is_of_the_case_that_is_known() -> None:
    harness = make_harness()
    whole = store(harness, run_of(passed("a"), passed("b"), keys="ab"))
    failed = MeasuredResult("b", error_kind="runner_error")
    silent = [ask("a"), MeasuredCase("b", {"danmaku": [], "history": []})]
    part = store(harness, run_of(passed("a"), failed, cases=silent), digest="2")
    assert part.dataset_version == whole.dataset_version


def test_results_of_what_a_harness_is_measured_by_leave_its_cases_as_they_are() -> None:
    harness = make_harness()
    version = make_version(harness)
    evaluations = [
        store(harness, run_of(passed(key), cases=[MeasuredCase(key, {})], dataset="cases"), digest=key)
        for key in ("q1", "q2")
    ]
    assert {evaluation.dataset_version for evaluation in evaluations} == {version}
    assert newest_version(harness, "cases") == version
    assert [(one.results.count(), one.state) for one in evaluations] == [(4, "partial")] * 2


def test_results_of_cases_that_a_harness_is_not_measured_by_are_refused() -> None:
    harness = make_harness()
    make_version(harness)
    store(harness, run_of(passed("q1"), cases=[MeasuredCase("q1", {})], dataset="cases"))
    with pytest.raises(BrokenInput, match="measured by cases v1, which has no case other"):
        store(
            harness, run_of(passed("q1"), passed("other"), cases=[ask("other")], dataset="cases"), digest="2"
        )
    assert DatasetVersion.objects.count() == 1


def test_a_harness_is_not_measured_by_cases_that_came_with_results_unless_they_are_named() -> None:
    harness = make_harness()
    came = store(harness, run_of(passed("a"))).dataset_version
    with pytest.raises(LoopError, match="no dataset"):
        newest_version(harness)
    assert newest_version(harness, "set") == came
    own = make_version(harness)
    assert newest_version(harness) == own


def test_of_a_set_with_other_keys_no_case_is_loaded() -> None:
    harness = make_harness()
    others = [store(harness, run_of(passed("d"), keys="def"), digest="2")]
    others.append(store(harness, run_of(passed("a"), keys="abcd"), digest="3"))
    whole = store(harness, run_of(passed("a"), keys="abc"))
    silent = [ask("a"), MeasuredCase("b", {}), MeasuredCase("c", {})]
    with CaptureQueriesContext(connection) as queries:
        part = store(harness, run_of(passed("a"), cases=silent), digest="4")
    assert part.dataset_version == whole.dataset_version
    loads = [query["sql"] for query in queries if '"evolution_datasetcase"."fixtures"' in query["sql"]]
    assert len(loads) == 1
    assert "IN ('a')" in loads[0]


def test_the_model_is_part_of_an_unknown_version_and_the_judge_is_not() -> None:
    harness = make_harness()
    base = store(harness, run_of(passed("a"), keys="a"))
    model = store(harness, run_of(passed("a"), keys="a", model="other"), digest="2")
    judge = store(harness, run_of(passed("a"), keys="a", judge="other"), digest="3")
    assert compare(base, model).obstacles == []
    assert compare(base, judge).obstacles == ["not comparable: judge's model differs (j and other)"]


def test_of_a_named_version_the_model_has_to_be_the_same() -> None:
    harness = make_harness()
    commit = open_repository(harness).resolve("main")
    base = store(harness, run_of(passed("a"), keys="a"), commit=commit)
    model = store(harness, run_of(passed("a"), keys="a", model="other"), digest="2", commit=commit)
    assert compare(base, model).obstacles == ["not comparable: model differs (m and other)"]


def test_an_unknown_version_is_in_no_series() -> None:
    harness = make_harness()
    store(harness, run_of(passed("a"), keys="a"))
    assert measured_versions(harness) == []
    assert newest_measurement(harness, "") is None


def test_what_was_made_elsewhere_cannot_be_made_here() -> None:
    evaluation = store(make_harness(), run_of(passed("a")))
    with pytest.raises(LoopError, match="elsewhere"):
        resume_evaluation(DEV, evaluation)
    with pytest.raises(LoopError, match="elsewhere"):
        cancel_evaluation(DEV, evaluation)
    assert evaluation.results.count() == 3


def test_failures_of_an_import_go_into_the_inbox() -> None:
    evaluation = store(
        make_harness(), run_of(passed("a"), passed("b", 0, reasons={"accuracy": "wrong"}), keys="ab")
    )
    assert take_failures(DEV, evaluation) == 1
    case = FailureCase.objects.get()
    assert (case.source_id, case.symptom, case.harness_commit) == ("set/b", "wrong", "")


def test_nothing_is_kept_of_a_file_without_results() -> None:
    with pytest.raises(BrokenInput, match="file has no results\nline 1: broken"):
        store(make_harness(), run_of(problems=["line 1: broken"]))
    assert not Evaluation.objects.exists()


def test_a_number_of_repeats_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(BrokenInput, match="2147483648 repeats of 1 cases are too many"):
        store(make_harness(), run_of(passed("a", repeat=2**31 - 1), keys="a"))


@pytest.mark.parametrize("key", ["a" * 101, "a\nb", " a", "\ud800"])
def test_an_id_that_cannot_be_a_key_is_shortened_and_stays_its_own(key: str) -> None:
    fitted = fit_key(key)
    assert len(fitted) <= 100
    assert fitted.isprintable()
    assert fitted != fit_key(f"{key}x")
    evaluation = store(make_harness(), run_of(passed(key), cases=[ask(key)]))
    assert evaluation.results.get().case.key == fitted


def test_what_cannot_be_stored_is_replaced() -> None:
    odd = passed("a", reply="a\0b", reasons={"accuracy": "\ud800"}, trajectory={"x": float("nan")}, error="")
    result = store(make_harness(), run_of(odd, keys="a", model="m\0")).results.get()
    assert (result.reply, result.reasons, result.trajectory) == (
        "a\ufffdb",
        {"accuracy": "\ufffd"},
        {"x": "nan"},
    )


def test_money_stays_in_the_currency_of_the_source(settings: Settings) -> None:
    settings.MODEL_CURRENCY = "CNY"
    evaluation = store(make_harness(), run_of(passed("a", cost=1.0), keys="a"))
    assert (evaluation.currency, evaluation.results.get().cost) == ("USD", Decimal(1))


def test_answers_given_elsewhere_are_judged_here() -> None:
    harness = make_harness()
    talk = {"status": "ok", "reply": "yes", "messages": [{"role": "assistant", "content": "yes"}]}
    source = store(harness, run_of(passed("a", 0, reply="yes", trajectory=talk), keys="a"))
    made = create_rejudgement(DEV, source, "main", judge_model="judge")
    run(made)
    result = made.results.get()
    assert (made.commit, made.origin, result.reply, result.error_kind) == ("", {}, "yes", "")
    assert compare(source, made).obstacles != []
