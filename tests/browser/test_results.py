"""The results of an evaluation, walked through with the keys, and the choice of proposals for a step."""

import re

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import Step
from tests.browser.conftest import run_apart
from tests.evolution.measured import make_proposal
from tests.workbench.views.conftest import World, make_world


def test_keys_walk_the_results_that_a_filter_left(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world = run_apart(make_world)
    page.goto(f"{live_server.url}{world.url(f'evaluations/{world.step.base_evaluation_id}/')}")
    expect(page.locator("#results tr[data-row]")).to_have_count(12)
    page.get_by_label("Outcome").select_option("passed")
    expect(page.locator("#results tr[data-row]")).to_have_count(2)
    expect(page).to_have_url(re.compile("outcome=passed"))
    page.locator("#results a.mono").first.click()
    expect(page.locator("h1")).to_contain_text("q1")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_contain_text("q2")
    expect(page.get_by_text("2 of 2 in the list")).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator("h1")).to_contain_text("q1")
    page.get_by_role("link", name="To the list").click()
    expect(page.locator("#results tr[data-row]")).to_have_count(2)


def make_clash() -> World:
    world = make_world()
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    for text in (b"knows: one\n", b"knows: two\n"):
        make_proposal(world.harness, text)
    return world


def test_unticking_clears_the_conflict_and_frees_the_button(
    operator_page: Page, live_server: LiveServer
) -> None:
    page = operator_page
    world = run_apart(make_clash)
    page.goto(f"{live_server.url}{world.url('steps/')}")
    start = page.get_by_role("button", name="Start the step")
    expect(page.locator("#conflicts")).to_be_visible()
    expect(start).to_be_disabled()
    page.locator("#chosen").get_by_role("checkbox").last.uncheck()
    expect(page.locator("#conflicts")).to_have_count(0)
    expect(page.locator("#chosen").get_by_role("checkbox").last).to_be_focused()
    expect(start).to_be_enabled()
    page.locator("#chosen").get_by_role("checkbox").first.uncheck()
    expect(page.get_by_text("Choose at least one approved proposal.")).to_be_visible()
    page.locator("#chosen").get_by_role("checkbox").last.check()
    expect(start).to_be_enabled()
    start.click()
    expect(page.locator("h1")).to_contain_text("Step 2")
