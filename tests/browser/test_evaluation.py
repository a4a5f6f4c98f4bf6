"""An evaluation as people follow it: the estimate before the start, and the page that keeps itself up to date."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import Evaluation
from tests.browser.conftest import run_apart
from tests.workbench.views.conftest import World, make_world


@pytest.fixture
def world(operator_page: Page) -> World:
    return run_apart(make_world)


def test_the_estimate_comes_into_the_form(operator_page: Page, live_server: LiveServer, world: World) -> None:
    page = operator_page
    page.goto(f"{live_server.url}{world.url('evaluations/')}")
    page.locator("summary", has_text="Evaluate a version").click()
    page.get_by_label("Repeats").fill("3")

    page.get_by_role("button", name="Estimate calls and cost").click()

    expect(page.locator("#estimate")).to_contain_text("calls to make")
    expect(page.get_by_label("Repeats")).to_have_value("3")


def test_what_buttons_unfold_stays_inside_the_page(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    page = operator_page
    evaluation = world.step.base_evaluation
    assert evaluation is not None
    Evaluation.objects.filter(pk=evaluation.pk).update(state="partial", budget={"calls": 20})
    for width in (1280, 1000, 900, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{live_server.url}{world.url(f'evaluations/{evaluation.pk}/')}")
        check_folds(page)


def check_folds(page: Page) -> None:
    main = page.locator("main").bounding_box()
    assert main is not None
    for fold in page.locator(".page-head .fold").all():
        fold.locator("summary").first.click()
        drop = fold.locator(".drop").bounding_box()
        assert drop is not None
        assert main["x"] <= drop["x"]
        assert drop["x"] + drop["width"] <= main["x"] + main["width"]
        fold.locator("summary").first.click()


def test_the_page_follows_an_evaluation_to_its_end(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    page = operator_page
    evaluation = world.step.base_evaluation
    assert evaluation is not None
    kept = list(evaluation.results.filter(case__key__in=["q1", "q3"]))
    evaluation.results.filter(pk__in=[result.pk for result in kept]).delete()
    records = Evaluation.objects.filter(pk=evaluation.pk)
    records.update(state="running", started_at=timezone.now(), heartbeat_at=timezone.now())
    page.goto(f"{live_server.url}{world.url(f'evaluations/{evaluation.pk}/')}")
    expect(page.locator("#progress")).to_contain_text("10 / 12")

    kept[0].save(force_insert=True)
    expect(page.locator("#progress")).to_contain_text("11 / 12")
    kept[1].save(force_insert=True)
    records.update(state="finished")

    expect(page.locator("h1")).to_contain_text("finished")
    expect(page.locator("#progress")).not_to_have_attribute("hx-get", re.compile(".*"))
