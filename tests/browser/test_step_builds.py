"""Taking a proposal out of a measured step: asked first, and what was measured stays to be looked at."""

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.loop import steps
from tests.browser.conftest import check_it_fits, run_apart
from tests.evolution.measured import DEV, make_proposal, measure
from tests.workbench.views.conftest import World, make_world


def make_two() -> World:
    world = make_world()
    steps.rebuild_step(DEV, world.step, adding=make_proposal(world.harness, b"hi\n", "more", "hooks/a.txt"))
    measure(world.step)
    return world


def test_taking_out_says_what_goes_and_the_step_keeps_what_was_measured(
    operator_page: Page, live_server: LiveServer
) -> None:
    page = operator_page
    world = run_apart(make_two)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{live_server.url}{world.url('steps/1/')}")
    row = page.get_by_role("row").filter(has_text="more")
    row.locator("summary").click()
    expect(row.get_by_text("The verdict and its figures go")).to_be_in_viewport()
    check_it_fits(page, 390)
    row.get_by_role("button", name="Take out").click()
    expect(page.locator("body")).to_contain_text("This version is measured already")
    expect(page.locator("#earlier-title")).to_contain_text("Measured before")
    check_it_fits(page, 390)
