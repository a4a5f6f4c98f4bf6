import re

import pytest
from django.test import Client
from pytest_django import Settings

from evolution.models import CaseResult, Evaluation, FailureCase, Harness
from tests.workbench.views.conftest import World


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    assert world.step.base_evaluation is not None
    return world.step.base_evaluation


def test_scores_are_means_over_the_scored_results(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    overall = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).context["overall"]

    # two of twelve right; a wrong reply has effectiveness 0.5
    assert (overall.cases, overall.failing) == (12, 10)
    assert overall.accuracy == pytest.approx(100 * 2 / 12)
    assert overall.effectiveness == pytest.approx(100 * 7 / 12)


def test_an_error_is_no_score(world: World, viewer: Client, evaluation: Evaluation) -> None:
    wrong = CaseResult.objects.filter(evaluation=evaluation, accuracy=0).order_by("pk")[0]
    CaseResult.objects.filter(pk=wrong.pk).update(
        accuracy=None, effectiveness=None, error_kind="policy_error", error="down"
    )

    context = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).context

    assert (context["overall"].cases, context["progress"].errors) == (11, 1)
    assert context["overall"].accuracy == pytest.approx(100 * 2 / 11)


def test_failures_are_taken_into_the_inbox(world: World, developer: Client, evaluation: Evaluation) -> None:
    developer.post(world.url(f"evaluations/{evaluation.pk}/take-failures/"))

    assert FailureCase.objects.filter(evaluation=evaluation).count() == 10


def test_a_running_evaluation_is_followed_and_can_be_cancelled(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(state="running", total=80)
    address = world.url(f"evaluations/{evaluation.pk}/")

    page = developer.get(address).content.decode()
    developer.post(f"{address}cancel/")

    evaluation.refresh_from_db()
    assert "every 1500ms" in page
    assert evaluation.state == "cancelled"


def test_a_cancelled_evaluation_is_resumed(world: World, developer: Client, evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(state="cancelled")
    CaseResult.objects.filter(evaluation=evaluation).order_by("pk")[0].delete()

    developer.post(world.url(f"evaluations/{evaluation.pk}/resume/"))

    evaluation.refresh_from_db()
    assert evaluation.state == "queued"


def test_an_evaluation_of_a_branch_is_started(world: World, developer: Client) -> None:
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": world.proposal.branch, "dataset_version": version.pk, "splits": ["dev"], "repeats": 2}

    answer = developer.post(world.url("evaluations/start/"), fields)

    evaluation = Evaluation.objects.order_by("-pk")[0]
    assert answer.headers["Location"] == world.url(f"evaluations/{evaluation.pk}/")
    assert (evaluation.commit, evaluation.repeats) == (world.proposal.head_commit, 2)


@pytest.mark.parametrize("ref", ["--upload-pack=x", "nowhere", ""])
def test_a_version_that_is_none_is_refused(world: World, developer: Client, ref: str) -> None:
    before = Evaluation.objects.count()
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": ref, "dataset_version": version.pk, "splits": ["dev"], "repeats": 1}

    developer.post(world.url("evaluations/start/"), fields)

    assert Evaluation.objects.count() == before


def test_a_sealed_split_is_not_offered(world: World, developer: Client) -> None:
    before = Evaluation.objects.count()
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": "main", "dataset_version": version.pk, "splits": ["sealed"], "repeats": 1}

    developer.post(world.url("evaluations/start/"), fields)

    assert Evaluation.objects.count() == before


def test_the_means_of_an_unfinished_evaluation_are_marked(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    address = world.url(f"evaluations/{evaluation.pk}/")
    assert "so far" not in viewer.get(address).content.decode()

    evaluation.results.filter(case__key__in=["q1", "q2", "q3"]).delete()
    Evaluation.objects.filter(pk=evaluation.pk).update(state="running")

    assert "so far, 9 of 12 scored (75 %)" in viewer.get(address).content.decode()
    assert "so far" in viewer.get(world.url("evaluations/")).content.decode()


SAID = {
    "status": "turn_limit",
    "reply": "89",
    "error": "the user was not done after 2 replies",
    "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "get_price", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
        {"role": "assistant", "content": "89"},
    ],
    "tool_calls": [{"turn": 1, "id": "a", "name": "get_price", "error": "timeout: 5 s", "fault": "timeout"}],
    "conversation": [
        {"user": "How much?", "reply": "89", "status": "ok"},
        {"user": "Really <b>?", "reply": None, "status": "turn_limit"},
    ],
    "calls": [{"turn": 1, "ms": 80}, {"turn": 2, "ms": 90, "reasoning": "let me <see>"}],
}  # fmt: skip


@pytest.fixture
def result(evaluation: Evaluation) -> CaseResult:
    found = CaseResult.objects.filter(evaluation=evaluation).order_by("pk")[0]
    CaseResult.objects.filter(pk=found.pk).update(trajectory=SAID)
    return found


def test_a_result_shows_the_conversation_faults_and_the_limit(
    world: World, viewer: Client, result: CaseResult
) -> None:
    page = viewer.get(world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")).content.decode()

    assert page.index("How much?") < page.index("Really &lt;b&gt;?") < page.index("get_price(")
    assert "turns used up" in page
    assert "the user was not done after 2 replies" in page
    assert "fault injected: timeout" in page.replace("</span>", "")
    assert "let me &lt;see&gt;" in page


@pytest.mark.parametrize(
    ("name", "field"), [("openai", "messages"), ("atif", "schema_version"), ("json", "format")]
)
def test_a_trajectory_is_downloaded(
    world: World, viewer: Client, result: CaseResult, name: str, field: str
) -> None:
    page = world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")
    address = f"{page}trajectory/{name}/"
    answer = viewer.get(address)

    assert address in viewer.get(page).content.decode()
    assert field in answer.json()
    assert answer["Content-Disposition"] == f'attachment; filename="result-{result.pk}.{name}.json"'


def test_an_unknown_format_or_somebody_elses_result_is_not_found(
    world: World, viewer: Client, result: CaseResult
) -> None:
    page = world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/trajectory")

    assert viewer.get(f"{page}/pdf/").status_code == 404
    assert viewer.get(f"{page.replace(str(result.pk), '999999')}/json/").status_code == 404


def test_without_a_trajectory_the_person_is_told(world: World, viewer: Client, result: CaseResult) -> None:
    CaseResult.objects.filter(pk=result.pk).update(trajectory={})
    page = world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")

    assert "has no trajectory" in viewer.get(f"{page}trajectory/json/", follow=True).content.decode()


def test_page_and_list_say_which_agent_was_measured_and_under_which_faults(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    address = world.url(f"evaluations/{evaluation.pk}/")
    plain = viewer.get(address).content.decode()
    runner = {"kind": "command", "command": ["python3", "<b>.py"], "seconds": 9, "memory_mb": 64}
    faults = [{"kind": "timeout", "tool": "*", "rate": 0.5}]
    Evaluation.objects.filter(pk=evaluation.pk).update(
        runner=runner, faults=faults, user_model="rehearsal-user"
    )

    page = viewer.get(address).content.decode()
    listed = viewer.get(world.url("evaluations/")).content.decode()

    for shown in ("&#x27;&lt;b&gt;.py&#x27; (seconds: 9, memory_mb: 64)", "timeout:*:0.5", "rehearsal-user"):
        assert shown in page
        assert shown not in plain
    assert "another agent" in listed
    assert "injected faults" in listed


def test_an_evaluation_is_started_under_faults(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    form = {"ref": "main", "dataset_version": evaluation.dataset_version_id, "splits": ["dev"], "repeats": 1}

    developer.post(world.url("evaluations/start/"), {**form, "faults": "timeout:*:0.5, malformed"})
    refused = developer.post(world.url("evaluations/start/"), {**form, "faults": "flood"}, follow=True)

    newest = Evaluation.objects.order_by("-pk")[0]
    assert [(fault["kind"], fault["tool"], fault["rate"]) for fault in newest.faults] == [
        ("timeout", "*", 0.5),
        ("malformed", "*", 1),
    ]
    assert "kind is one of timeout" in refused.content.decode()


def test_a_refused_form_says_what_is_wrong_and_keeps_what_was_entered(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    form = {
        "ref": "nowhere",
        "dataset_version": evaluation.dataset_version_id,
        "splits": ["guard"],
        "repeats": 3,
    }

    answers = [
        developer.post(world.url("evaluations/start/"), {**form, **more}).content.decode()
        for more in ({"faults": "timeout:<b>:2"}, {"faults": ""}, {"repeats": 99})
    ]

    assert 'value="timeout:&lt;b&gt;:2"' in answers[0]
    assert 'id="faults-error"' in answers[0]
    for page, field in zip(answers, ("faults", "ref", "repeats"), strict=True):
        assert f'id="{field}-error"' in page
        assert 'name="ref" value="nowhere"' in page
        assert 'value="guard" checked' in page
        assert 'value="dev" checked' not in page


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"model": "m", "judge_model": "j"}, ""),
        ({"model": "rehearsal-policy", "judge_model": "rehearsal-judge"}, "rehearsal model"),
        ({"model": "m", "judge_model": "rehearsal-judge"}, "rehearsal model: judge"),
        (
            {"model": "m", "judge_model": "j", "user_model": "rehearsal-user"},
            "rehearsal model: simulated user",
        ),
    ],
)
def test_every_page_of_figures_says_what_was_rehearsed(
    world: World, viewer: Client, result: CaseResult, fields: dict[str, str], shown: str
) -> None:
    step = world.step
    base = f"evaluations/{step.base_evaluation_id}/"
    Evaluation.objects.filter(pk__in=[step.base_evaluation_id, step.candidate_evaluation_id]).update(**fields)
    pair = f"comparison/?base={step.base_evaluation_id}&candidate={step.candidate_evaluation_id}"
    pages = [
        "evaluations/", base, f"{base}results/{result.pk}/", pair, f"{pair}&case={result.case_id}",
        f"steps/{step.number}/", "steps/", "",
    ]  # fmt: skip

    for page in pages:
        # Without the sidebar, which tells of the model in use.
        text = viewer.get(world.url(page)).content.decode().partition('<main class="content"')[2]
        tags = re.findall(r'<span class="badge-rehearsal"[^>]*>([^<]*)</span>', text)
        # The board's head tells of the model in use, too.
        assert set(tags[page == "" :]) == ({shown} if shown else set()), page


def test_another_agents_calls_and_runner_are_shown(world: World, viewer: Client, result: CaseResult) -> None:
    told = {
        "status": "runner_error", "reply": None, "messages": [], "error": "exit code 3",
        "tool_calls": [{"turn": 1, "id": "", "name": "get_<i>", "arguments": {"link_id": 3}}],
        "runner": {"kind": "command", "exit_code": 3, "stderr": "boom <b>"},
    }  # fmt: skip
    CaseResult.objects.filter(pk=result.pk).update(trajectory=told)
    page = viewer.get(world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")).content.decode()

    for shown in ("get_&lt;i&gt;(link_id=3)", "exit code", "boom &lt;b&gt;", "The agent gave no messages"):
        assert shown in page


def test_the_sidebar_names_the_agent_in_use(world: World, viewer: Client) -> None:
    assert "Model in use" in viewer.get(world.url()).content.decode()
    runner = {"kind": "http", "url": "https://agent.example.org/run"}
    Harness.objects.filter(pk=world.harness.pk).update(runner=runner)

    page = viewer.get(world.url()).content.decode()

    assert "Agent in use" in page
    assert "https://agent.example.org/run" in page
    assert "rehearsal model: judge" in page


def test_an_evaluation_is_started_with_a_base_a_budget_and_calls_of_its_own(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    form = {
        "ref": world.proposal.branch, "base": "main", "dataset_version": evaluation.dataset_version_id,
        "splits": ["dev"], "repeats": 2, "concurrency": 5, "is_fresh": "on", "max_calls": 99, "max_seconds": 60,
        "max_tokens": "", "max_money": "",
    }  # fmt: skip

    developer.post(world.url("evaluations/start/"), form)

    made = Evaluation.objects.get(commit=world.proposal.head_commit)
    assert (made.concurrency, made.is_fresh, made.budget) == (5, True, {"calls": 99, "seconds": 60})
    assert made.base is not None
    assert (made.base.repeats, made.base.commit) == (2, evaluation.commit)


@pytest.mark.parametrize(
    ("field", "value"), [("max_money", "-1"), ("max_calls", "0"), ("concurrency", "x"), ("base", "nowhere")]
)
def test_what_makes_no_sense_is_said_at_its_field(
    world: World, developer: Client, evaluation: Evaluation, field: str, value: str
) -> None:
    form = {"ref": "main", "dataset_version": evaluation.dataset_version_id, "splits": ["dev"], "repeats": 1}
    before = Evaluation.objects.count()

    page = developer.post(world.url("evaluations/start/"), {**form, field: value}).content.decode()

    assert f'id="{field}-error"' in page
    assert Evaluation.objects.count() == before


def test_an_estimate_is_shown_in_the_form_and_starts_nothing(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    form = {"ref": "main", "dataset_version": evaluation.dataset_version_id, "splits": ["dev"], "repeats": 1}
    before = Evaluation.objects.count()
    address = world.url("evaluations/estimate/")

    page = developer.post(address, form).content.decode()
    part = developer.post(
        address, form, headers={"HX-Request": "true", "HX-Target": "estimate"}
    ).content.decode()
    refused = developer.post(address, {**form, "ref": "nowhere"}).content.decode()
    compared = developer.post(address, {**form, "base": "main", "is_fresh": "on"}).context["estimates"]
    no_base = developer.post(address, {**form, "base": "nowhere-else"}).content.decode()

    assert "calls to make" in page
    assert "calls to make" in part
    assert "<html" not in part
    assert "nowhere" in refused
    assert "nowhere-else" in no_base
    # Afresh is the candidate's alone.
    assert [role for role, _found in compared] == ["candidate", "base"]
    assert compared[0][1].total.cached == 0
    assert Evaluation.objects.count() == before


@pytest.mark.parametrize(("limit", "shown"), [(0, "32"), (8, "32"), (50, "125")])
def test_the_form_says_how_many_cases_are_under_way_without_a_number(
    world: World, developer: Client, settings: Settings, limit: int, shown: str
) -> None:
    settings.LLM_BASE_URL, settings.LLM_CONCURRENCY = "http://127.0.0.1:1/v1", limit
    settings.LLM_MODEL = settings.LLM_MODEL_POLICY = settings.LLM_MODEL_JUDGE = "m"
    page = developer.get(world.url("evaluations/")).content.decode()
    field = page[page.index('id="concurrency"') :].partition(">")[0]
    assert f'placeholder="{shown}"' in field


def test_the_form_is_there_while_the_endpoints_cannot_be_read(
    world: World, developer: Client, settings: Settings
) -> None:
    settings.LLM_ENDPOINTS = [{"nothing": 1}]
    page = developer.get(world.url("evaluations/")).content.decode()
    assert 'placeholder=""' in page[page.index('id="concurrency"') :].partition(">")[0]
