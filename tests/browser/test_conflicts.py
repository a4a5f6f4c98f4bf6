"""What keeps proposals apart, and the history of a file: both fit every screen."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import Step
from tests.browser.conftest import check_it_fits, run_apart
from tests.evolution.measured import make_proposal
from tests.workbench.views.conftest import World, make_world

LONG = b"- a_rule_without_a_single_space_in_it_" * 8


def make_clash() -> World:
    world = make_world()
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    for number, word in enumerate((b"one", b"two")):
        role = b"knows: " + word + b"\n" + LONG + word + b"\n"
        make_proposal(world.harness, role, title="直播间答疑要先查价格再回答 " * (number + 1) * 3)
    return world


@pytest.mark.parametrize("width", [1280, 390])
def test_conflicts_and_history_fit_the_screen(
    operator_page: Page, live_server: LiveServer, width: int
) -> None:
    page = operator_page
    world = run_apart(make_clash)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{live_server.url}{world.url('steps/')}")
    expect(page.locator("#conflicts")).to_contain_text("both change the same lines")
    check_it_fits(page, width)
    page.get_by_role("link", name="Settle it here").click()
    expect(page.locator(".conflict-place")).to_have_count(1)
    check_it_fits(page, width)
    page.goto(f"{live_server.url}{world.url('files/')}?path=prompts/role.md")
    page.locator(".panel-head").get_by_role("link", name="History").click()
    expect(page.locator("h1")).to_contain_text("prompts/role.md")
    expect(page.locator("tr.add")).not_to_have_count(0)
    check_it_fits(page, width)
