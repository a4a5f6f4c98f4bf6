import pytest
from django.test import Client

from evolution.models import CaseResult, DatasetCase, Evaluation
from tests.workbench.views.conftest import World

TIMEOUT = {"kind": "timeout", "tool": "price", "rate": 0.5}


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    """Of q1 to q12 the base passes q1 and q2."""
    assert world.step.base_evaluation is not None
    return world.step.base_evaluation


def address(world: World, result: CaseResult) -> str:
    return world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")


def test_every_result_is_listed_and_linked(world: World, viewer: Client, evaluation: Evaluation) -> None:
    page = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).content.decode()

    assert evaluation.results.count() == 12
    for result in evaluation.results.all():
        assert f'href="{address(world, result)}"' in page


def test_the_list_is_narrowed_and_its_links_keep_the_filter(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    answer = viewer.get(world.url(f"evaluations/{evaluation.pk}/?outcome=passed&text=q2&status=ok"))

    (result,) = answer.context["page"]
    assert result.case.key == "q2"
    assert f"{address(world, result)}?outcome=passed&amp;status=ok&amp;text=q2" in answer.content.decode()


@pytest.mark.parametrize("query", ["outcome=boom", "page=99", f"status={'x' * 99}", "category="])
def test_a_filter_that_makes_no_sense_narrows_nothing(
    world: World, viewer: Client, evaluation: Evaluation, query: str
) -> None:
    page = viewer.get(world.url(f"evaluations/{evaluation.pk}/?{query}")).context["page"]

    assert page.paginator.count == 12


def test_a_filter_that_nothing_passes_offers_all(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    page = viewer.get(world.url(f"evaluations/{evaluation.pk}/?outcome=errors")).content.decode()

    assert "No result passes these filters." in page
    assert "Show all results" in page


def test_htmx_gets_the_list_alone(world: World, viewer: Client, evaluation: Evaluation) -> None:
    headers = {"HX-Request": "true", "HX-Target": "results"}
    answer = viewer.get(world.url(f"evaluations/{evaluation.pk}/?outcome=failing"), headers=headers)

    assert answer.content.decode().lstrip().startswith("<section")
    assert answer.context["page"].paginator.count == 10


def test_how_runs_ended_is_counted_and_linked(world: World, viewer: Client, evaluation: Evaluation) -> None:
    limited = evaluation.results.order_by("pk")[0]
    CaseResult.objects.filter(pk=limited.pk).update(
        trajectory={"status": "hook_limit"}, run_status="hook_limit"
    )
    page = world.url(f"evaluations/{evaluation.pk}/")

    text = viewer.get(page).content.decode()
    narrowed = viewer.get(f"{page}?status=hook_limit").context["page"]

    assert "a hook still refused the reply 1</span>" in text
    assert "ended by itself 11</span>" in text
    assert [result.pk for result in narrowed] == [limited.pk]


def test_a_result_says_its_id_and_leads_to_those_beside_it(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    one, other = (evaluation.results.get(case__key=key) for key in ("q1", "q2"))

    page = viewer.get(f"{address(world, one)}?outcome=passed").content.decode()

    assert f"manage.py export_trajectory {one.pk}<" in page
    assert "1 of 2 in the list" in page
    assert f'rel="next" href="{address(world, other)}?outcome=passed"' in page
    assert 'rel="prev"' not in page
    assert f"{world.url(f'evaluations/{evaluation.pk}/')}?outcome=passed#list" in page


def test_a_result_outside_the_filter_leads_nowhere(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    page = viewer.get(f"{address(world, evaluation.results.get(case__key='q1'))}?outcome=failing")

    assert page.context["place"] is None
    assert 'rel="next"' not in page.content.decode()


def test_faults_of_the_case_are_shown_on_its_result(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    result = evaluation.results.get(case__key="q1")
    DatasetCase.objects.filter(pk=result.case_id).update(faults=[TIMEOUT])

    page = viewer.get(address(world, result)).content.decode()
    whole = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).content.decode()

    assert "timeout:price:0.5" in page
    assert "none struck" in page
    assert "1 case brings faults of its own." in whole
    assert "0 tool calls were struck, in 0 results." in " ".join(whole.split())


def test_struck_calls_are_counted_and_an_agent_of_its_own_is_only_told(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    result = evaluation.results.get(case__key="q1")
    said = {"status": "ok", "tool_calls": [{"name": "price", "fault": "timeout"}]}
    CaseResult.objects.filter(pk=result.pk).update(trajectory=said)
    Evaluation.objects.filter(pk=evaluation.pk).update(faults=[TIMEOUT])
    page = world.url(f"evaluations/{evaluation.pk}/")

    ours = viewer.get(page).content.decode()
    Evaluation.objects.filter(pk=evaluation.pk).update(runner={"kind": "http", "url": "https://a.example"})
    theirs = viewer.get(page).content.decode()
    CaseResult.objects.filter(pk=result.pk).update(trajectory={"status": "ok"})
    silent = viewer.get(page).content.decode()
    told = viewer.get(address(world, result)).content.decode()

    assert "1 tool call was struck, in 1 result." in ours
    assert "may act on them or not" not in ours
    assert "may act on them or not. It reports 1 tool call that was struck." in theirs
    assert "may act on them or not" in silent
    assert "struck" not in silent
    assert "told to the agent, which may act on them or not" in told


@pytest.mark.parametrize(("status", "opened"), [("ok", ""), ("runner_error", " open")])
def test_standard_error_of_a_run_is_kept_folded_unless_it_failed(
    world: World, viewer: Client, evaluation: Evaluation, status: str, opened: str
) -> None:
    result = evaluation.results.get(case__key="q1")
    runner = {"kind": "command", "exit_code": 0, "stderr": "a warning <b>"}
    CaseResult.objects.filter(pk=result.pk).update(trajectory={"status": status, "runner": runner})

    page = viewer.get(address(world, result)).content.decode()

    assert f'<details class="more mt-1"{opened}><summary>standard error' in page
    assert "a warning &lt;b&gt;" in page


def test_a_wrong_fault_has_its_label_once(world: World, developer: Client, evaluation: Evaluation) -> None:
    form = {"ref": "main", "dataset_version": evaluation.dataset_version_id, "splits": ["dev"], "repeats": 1}
    page = developer.post(world.url("evaluations/start/"), {**form, "faults": "boom"}).content.decode()

    assert page.lower().count("faults:") == 0
    assert page.count("kind is one of") == 1


def test_a_result_says_what_it_took(world: World, viewer: Client, evaluation: Evaluation) -> None:
    result = evaluation.results.get(case__key="q1")
    figures = {"prompt_tokens": 1200, "completion_tokens": 30, "cached_tokens": 800, "call_ms": [100, 200]}
    judged = {"judge_prompt_tokens": 900, "judge_call_ms": [50], "judge_trajectory": {"status": "ok"}}
    counted = {"calls": 3, "calls_cached": 1, "cost": None, "attempts": 2}
    CaseResult.objects.filter(pk=result.pk).update(**figures, **judged, **counted)

    unknown = viewer.get(address(world, result)).content.decode()
    CaseResult.objects.filter(pk=result.pk).update(cost="0.0125")
    known = viewer.get(address(world, result)).content.decode()

    assert "800 cached by the provider" in unknown
    assert "1 answered from kept calls" in unknown
    assert "<dt>Attempts</dt><dd>2</dd>" in unknown
    assert "price unknown" in unknown
    assert "price unknown" not in known
    assert "0.0125" in known


def test_the_repeats_of_a_case_lead_to_each_other(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    result = evaluation.results.get(case__key="q1")
    failed = {"error_kind": "judge_timeout", "error": "late", "accuracy": None, "effectiveness": None}
    other = CaseResult.objects.create(evaluation=evaluation, case=result.case, repeat=1, **failed)
    alone = viewer.get(address(world, result)).content.decode()
    Evaluation.objects.filter(pk=evaluation.pk).update(repeats=2)

    page = viewer.get(address(world, result)).content.decode()

    assert "Trials of this case" not in alone
    assert f'href="{address(world, other)}">repeat 2</a>' in page
    assert "the judge timed out" in page


def test_kept_answers_and_those_of_another_evaluation_are_marked(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    result = evaluation.results.get(case__key="q1")
    said = {
        "status": "ok",
        "messages": [{"role": "assistant", "content": "89"}],
        "calls": [{"turn": 1, "ms": 5, "prompt_tokens": 1, "completion_tokens": 1, "is_cached": True}],
    }
    CaseResult.objects.filter(pk=result.pk).update(trajectory=said)
    source = world.step.candidate_evaluation
    Evaluation.objects.filter(pk=evaluation.pk).update(answers_from=source)

    page = viewer.get(address(world, result)).content.decode()

    assert source is not None
    assert "kept answer" in page
    assert f"answer from #{source.pk}, judged anew" in page
