"""What only a browser can tell: scripts under the policy, keys, theme, language, and the narrow screen."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import Cluster, Diagnosis, Exchange, Job, Proposal, Review, ReviewComment
from tests.browser.conftest import run_apart
from tests.workbench.views.conftest import World, make_world
from tests.workbench.views.pages import list_pages


@pytest.fixture
def world(operator_page: Page) -> World:
    return run_apart(make_world)


def test_the_board_draws_its_plot(operator_page: Page, live_server: LiveServer, world: World) -> None:
    operator_page.goto(f"{live_server.url}{world.url()}")

    expect(operator_page.locator(".chart .scatterlayer .trace")).to_have_count(4)


# Downloads, parts of pages, and what scripts read: a browser does not go there by itself.
NO_PAGES = {
    "case_counts",
    "case_curl",
    "case_raw",
    "case_value",
    "cluster_map_points",
    "events_export",
    "exchange_raw",
    "exchange_value",
    "import_problems",
    "result_trajectory",
    "result_value",
}


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_scrolls_sideways(
    operator_page: Page, live_server: LiveServer, world: World, width: int
) -> None:
    operator_page.set_viewport_size({"width": width, "height": 844})

    pages = {name: address for name, address in list_pages(world).items() if name not in NO_PAGES}
    widths = {}
    for name, address in pages.items():
        operator_page.goto(f"{live_server.url}{address}")
        widths[name] = operator_page.evaluate("document.documentElement.scrollWidth")

    assert {name: wide for name, wide in widths.items() if wide > width} == {}


def test_the_theme_is_remembered(operator_page: Page, live_server: LiveServer, world: World) -> None:
    page = operator_page
    page.goto(f"{live_server.url}{world.url()}")

    page.get_by_role("button", name="Dark").click()
    page.goto(f"{live_server.url}{world.url('cases/')}")

    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_the_language_is_switched_on_the_page(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    operator_page.goto(f"{live_server.url}{world.url('cases/')}")

    operator_page.get_by_role("button", name="中文").click()

    expect(operator_page.locator("h1")).to_have_text("用例")


def test_keys_walk_a_list_and_open_a_row(operator_page: Page, live_server: LiveServer, world: World) -> None:
    page = operator_page
    page.goto(f"{live_server.url}{world.url('cases/')}")

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("[data-row]").first).to_have_class(re.compile("selected"))
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/cases/\d+/$"))


def test_slash_searches_and_the_table_follows(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    page = operator_page
    page.goto(f"{live_server.url}{world.url('cases/')}")

    page.keyboard.press("/")
    page.keyboard.type("wrong")

    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page).to_have_url(re.compile("text=wrong"))


def test_a_question_mark_explains_the_keys(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    operator_page.goto(f"{live_server.url}{world.url('cases/')}")

    operator_page.keyboard.press("?")

    expect(operator_page.get_by_role("dialog")).to_be_visible()


def test_a_page_follows_a_job_to_its_end(operator_page: Page, live_server: LiveServer, world: World) -> None:
    page = operator_page
    fields = {"kind": "cluster", "state": "running", "done": 1, "total": 4, "created_by": "x"}
    job = Job.objects.create(harness=world.harness, **fields)
    page.goto(f"{live_server.url}{world.url('clusters/')}")
    expect(page.locator("#progress")).to_contain_text("1/4")

    Job.objects.filter(pk=job.pk).update(done=3)
    expect(page.locator("#progress")).to_contain_text("3/4")
    Job.objects.filter(pk=job.pk).update(state="done", message="2 clusters")

    expect(page.locator("#progress")).to_contain_text("2 clusters")
    expect(page.locator("#progress")).not_to_have_attribute("hx-get", re.compile(".*"))


def test_the_first_tab_leads_past_the_menu(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    page = operator_page
    page.goto(f"{live_server.url}{world.url()}")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("#content$"))


def test_the_menu_of_the_narrow_screen_opens(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    page = operator_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{live_server.url}{world.url()}")
    expect(page.get_by_role("link", name="Cases", exact=True)).to_be_hidden()

    page.locator("label.nav-button").click()
    page.get_by_role("link", name="Cases", exact=True).click()

    expect(page.locator("h1")).to_have_text("Cases")


def write_long_names(world: World) -> None:
    """Names of as many letters as there may be, without a blank."""
    person, model = "u" * 140, "m" * 190
    Proposal.objects.update(title="w" * 190, summary="s" * 400, created_by=person, model=model)
    Cluster.objects.update(name="n" * 190)
    Diagnosis.objects.update(model=model, path=f"prompts/{'p' * 280}")
    Exchange.objects.update(model=model, created_by=person)
    ReviewComment.objects.update(author=person, text="c" * 400)
    given = {"verdict": "approved", "commit": world.proposal.head_commit, "diff_digest": "0" * 64}
    Review.objects.create(proposal=world.proposal, reviewer=person, text="t" * 300, **given)


def test_names_without_a_blank_do_not_widen_a_narrow_page(
    operator_page: Page, live_server: LiveServer, world: World
) -> None:
    run_apart(lambda: write_long_names(world))
    operator_page.set_viewport_size({"width": 390, "height": 844})
    names = ("proposal", "cluster", "diagnoses_compare", "proposals_compare", "proposals", "exchange")

    widths = {}
    for name in names:
        operator_page.goto(f"{live_server.url}{list_pages(world)[name]}")
        widths[name] = operator_page.evaluate("document.documentElement.scrollWidth")

    assert widths == dict.fromkeys(names, 390)
