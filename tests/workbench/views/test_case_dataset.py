import json

from django.test import Client

from evolution.models import DatasetCase, DatasetVersion, FailureCase
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World

TRAJECTORY = {
    "tool_calls": [{"turn": 1, "name": "get_price", "arguments": {"link_id": 3}, "result": {"price": 89}}]
}
FIELDS = {"dataset": "kept", "split": "dev", "with_fixtures": "on"}


def post(world: World, client: Client, query: str, **fields: str) -> int:
    return client.post(world.url(f"cases/dataset/add/?{query}"), {**FIELDS, **fields}).status_code


def test_the_form_of_one_begins_with_its_fixtures_and_no_facts(world: World, developer: Client) -> None:
    FailureCase.objects.filter(pk=world.case.pk).update(trajectory=TRAJECTORY)

    form = developer.get(world.url(f"cases/dataset/?ids={world.case.pk}")).context["form"]

    fixtures = json.loads(form["fixtures"].value())
    assert fixtures == {"get_price": [{"arguments": {"link_id": 3}, "result": {"price": 89}}]}
    assert form["facts"].value() == ""


def test_what_people_write_is_what_the_judge_gets(world: World, developer: Client) -> None:
    facts = "price is 89 | 89 yuan | ¥89\nin stock"
    status = post(world, developer, f"ids={world.case.pk}", key="p-1", facts=facts, forbidden="half price")

    assert status == 302
    assert DatasetCase.objects.get(key="p-1").expected == {
        "facts": [
            {"fact": "price is 89", "accept": ["89 yuan", "¥89"]},
            {"fact": "in stock", "accept": ["in stock"]},
        ],
        "forbidden": [{"claim": "half price", "match": ["half price"]}],
        "language": "zh",
    }


def test_a_case_that_is_there_is_shown_as_it_stands_there(world: World, developer: Client) -> None:
    post(world, developer, f"ids={world.case.pk}", facts="a | b", split="guard")

    form = developer.get(world.url(f"cases/dataset/?ids={world.case.pk}")).context["form"]

    assert (form["facts"].value(), form["split"].value(), form["dataset"].value()) == (
        "a | b",
        "guard",
        "kept",
    )


def test_fixtures_that_were_edited_are_taken_as_they_were_written(world: World, developer: Client) -> None:
    edited = {"get_price": [{"arguments": {}, "result": 5}]}
    post(world, developer, f"ids={world.case.pk}", key="p-1", fixtures=json.dumps(edited))
    assert DatasetCase.objects.get(key="p-1").fixtures == edited


def test_many_are_added_with_one_form(world: World, developer: Client) -> None:
    ids = [make_failure(world.harness, f"case {n}").pk for n in range(3)]

    post(world, developer, f"ids={','.join(map(str, ids))}", key="bulk")

    keys = DatasetVersion.objects.get(dataset__name="kept").cases.values_list("key", flat=True)
    assert set(keys) == {f"bulk-{pk}" for pk in ids}


def test_all_that_pass_the_filter_are_added(world: World, developer: Client) -> None:
    made = {make_failure(world.harness, f"case {n}", category="stock").pk for n in range(3)}

    post(world, developer, "all=1&category=stock")

    assert set(FailureCase.objects.exclude(dataset_case=None).values_list("pk", flat=True)) == made


def test_more_cases_than_an_address_holds_are_asked_about_at_once(world: World, developer: Client) -> None:
    ids = [make_failure(world.harness, f"case {n}").pk for n in range(301)]
    chosen = {"verb": "dataset", "ids": ",".join(map(str, ids))}

    asked = developer.post(world.url("cases/bulk/"), chosen)
    done = developer.post(world.url("cases/dataset/add/"), {**FIELDS, "ids": asked.context["ids"]})

    assert done.status_code == 302
    assert DatasetVersion.objects.get(dataset__name="kept").cases.count() == 301


def test_what_is_wrong_with_the_form_is_said_in_it(world: World, developer: Client) -> None:
    wrong = {
        "dataset": "no blanks",
        "fixtures": '{"t": [1]}',
        "request": '{"danmaku": []}',
    }
    answer = developer.post(world.url(f"cases/dataset/add/?ids={world.case.pk}"), {**FIELDS, **wrong})

    assert answer.status_code == 200
    assert set(answer.context["form"].errors) == set(wrong)
    assert not DatasetVersion.objects.filter(dataset__name="kept").exists()


def test_a_case_of_another_harness_is_not_added(world: World, developer: Client) -> None:
    answer = developer.get(f"/h/shop-judge/cases/dataset/?ids={world.case.pk}")

    assert answer.status_code == 302
