"""The pages about clusters in a browser: the map is drawn and chosen from, and every screen holds them."""

import re
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import Cluster, FailureCase
from tests.browser.conftest import check_it_fits, run_apart
from tests.evolution.clusterings import keep_run, keep_vector, place
from tests.evolution.intake import make_cluster, make_failure
from tests.workbench.views.conftest import World, make_world

LONG = "券后价说错了而且没有查优惠券" * 12


class Made(NamedTuple):
    world: World
    cases: list[FailureCase]


def make_clusters() -> Made:
    world = make_world()
    other = make_cluster(world.harness, 2, description=LONG)
    Cluster.objects.filter(pk=other.pk).update(name=LONG[:200])
    fields = {"category": "c" * 60, "harness_commit": "ab" * 20, "symptom": LONG, "cluster": other}
    cases = [make_failure(world.harness, f"{n} {LONG}"[:300], strength=0.5, **fields) for n in range(4)]
    loose = make_failure(world.harness, f"loose {LONG}"[:300], embedded_text="loose")
    keep_vector("loose", [0.9, 0.1])
    place(world.cluster, [0, 1])
    place(other, [1, 0])
    keep_run(world.harness, {other: cases[:3], world.cluster: cases[3:], None: [loose]})
    keep_run(world.harness, {other: cases, None: [loose]})
    return Made(world, [*cases, loose])


def open_map(page: Page, live_server: LiveServer, world: World) -> None:
    page.goto(f"{live_server.url}{world.url('clusters/map/')}")
    page.wait_for_selector("[data-ready]")


def test_what_is_drawn_around_is_chosen_and_tagged(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, cases = run_apart(make_clusters)
    open_map(page, live_server, world)
    box = page.locator(".plot").bounding_box()
    assert box is not None
    left, top = box["x"] + 5, box["y"] + 5
    right, bottom = left + box["width"] - 10, top + box["height"] - 10

    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    expect(page.locator("output[data-chosen]")).to_have_text("5")
    page.keyboard.press("t")
    page.keyboard.type("from the map")
    page.keyboard.press("Enter")

    expect(page.locator("form.undo")).to_be_visible()
    expect(page).to_have_url(re.compile("/clusters/map/$"))
    tagged = run_apart(
        lambda: list(FailureCase.objects.filter(tags=["from the map"]).values_list("pk", flat=True))
    )
    assert sorted(tagged) == sorted(case.pk for case in cases)


def test_a_point_opens_its_case(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, cases = run_apart(make_clusters)
    open_map(page, live_server, world)
    box = page.locator(".plot").bounding_box()
    assert box is not None

    # The third of five in a row stands in the middle of the map.
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    expect(page.locator(".hoverlayer .hovertext")).to_be_visible()
    page.mouse.click(x, y)

    expect(page).to_have_url(re.compile(rf"/cases/{cases[2].pk}/$"))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_fit_the_screen(operator_page: Page, live_server: LiveServer, width: int) -> None:
    page = operator_page
    world, _cases = run_apart(make_clusters)
    page.set_viewport_size({"width": width, "height": 844})
    for path in ("", "map/", "2/", "unclustered/", "runs/", "runs/compare/"):
        page.goto(f"{live_server.url}{world.url(f'clusters/{path}')}")
        check_it_fits(page, width)
