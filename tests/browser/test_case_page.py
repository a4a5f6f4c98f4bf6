"""One case in a browser: values brought in when they are asked for, keys, the copied command, and every screen."""

import json
import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import CaseNote, FailureCase
from tests.browser.conftest import check_it_fits, run_apart
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World, make_world

CALLS = [
    {
        "id": key,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps({"link_id": 3, "q": "c" * 900})},
    }
    for key, name in (("a", "get_price"), ("b", "a_tool_with_a_name_that_nobody_would_give_it_" * 4))
]
TRAJECTORY = {
    "messages": [
        {"role": "system", "content": "You sell.\n" * 400},
        {"role": "user", "content": "3号链接多少钱？"},
        {"role": "assistant", "content": None, "tool_calls": CALLS},
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": json.dumps({"price": 89, "skus": [{}] * 300}),
        },
        {"role": "tool", "tool_call_id": "b", "content": "x" * 9_000},
        {"role": "assistant", "content": "一百元！" * 2_000},
    ],
    "calls": [{"turn": 2, "ms": 9, "reasoning": "hmm " * 900}],
    "hooks": [
        {"turn": 2, "event": "reply", "hook": "short", "outcome": "retry", "message": "too long " * 20}
    ],
}


def make_case() -> tuple[World, FailureCase, FailureCase]:
    world = make_world()
    case = make_failure(
        world.harness,
        "券后价说错了" * 12,
        source_id="trace/" + "0123456789abcdef" * 10,
        trajectory=TRAJECTORY,
        blamed_turn=2,
        tags=["double-11"] * 3,
        category="price",
        scores={"a_score_with_a_name_that_is_far_too_long_for_its_column": 0.123},
        signals={"checks": [{"name": "c" * 90, "passed": False, "reason": "r" * 300}]},
        place={"file": "export-of-a-very-long-name.jsonl" * 3, "line": 12},
        masked={"phone": 2},
        embedded_text="x" * 300,
    )
    CaseNote.objects.create(case=case, author="anna", text="y" * 300)
    return world, case, make_failure(world.harness, "newer", category="price")


@pytest.mark.parametrize("width", [1280, 390])
def test_an_overfull_case_fits_the_screen(operator_page: Page, live_server: LiveServer, width: int) -> None:
    page = operator_page
    world, case, _newer = run_apart(make_case)
    page.set_viewport_size({"width": width, "height": 844})
    for path in (f"cases/{case.pk}/", f"cases/dataset/?ids={case.pk}"):
        page.goto(f"{live_server.url}{world.url(path)}")
        for summary in page.locator(".content details:not(.fold) > summary").all():
            if summary.is_visible():
                summary.click()
        check_it_fits(page, width)


def test_what_is_cut_is_brought_in(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, case, _newer = run_apart(make_case)
    page.goto(f"{live_server.url}{world.url(f'cases/{case.pk}/')}")
    reply = page.locator("#turn-2")
    expect(reply).not_to_contain_text("一百元！" * 2_000)

    reply.get_by_role("link", name=re.compile("show all 8")).click()

    expect(reply).to_contain_text("一百元！" * 2_000)


def test_keys_walk_the_list_and_reach_the_forms(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, case, newer = run_apart(make_case)
    page.goto(f"{live_server.url}{world.url(f'cases/{case.pk}/?category=price')}")

    page.keyboard.press("k")
    expect(page).to_have_url(re.compile(rf"/cases/{newer.pk}/\?category=price$"))
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(rf"/cases/{case.pk}/\?category=price$"))
    page.keyboard.press("t")
    expect(page.get_by_label("Tags")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(", price")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Tags")).to_have_value("double-11, price")
    page.keyboard.press("n")
    page.keyboard.type("look at the coupon")
    page.get_by_role("button", name="Add note").click()
    expect(page.get_by_text("look at the coupon")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Add to dataset")).to_be_visible()


def test_the_command_is_copied(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, case, _newer = run_apart(make_case)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{live_server.url}{world.url(f'cases/{case.pk}/')}")

    page.get_by_role("link", name="Copy as curl").click()

    expect(page.get_by_text("Copied")).to_be_visible()
    assert "\ncurl -sS " in page.evaluate("navigator.clipboard.readText()")


def test_a_case_is_added_to_a_dataset(operator_page: Page, live_server: LiveServer) -> None:
    page = operator_page
    world, case, _newer = run_apart(make_case)
    page.goto(f"{live_server.url}{world.url(f'cases/{case.pk}/?category=price')}")
    page.get_by_role("link", name="Add to dataset").click()
    page.get_by_label("Dataset", exact=True).fill("kept")
    page.get_by_label("Split").select_option("guard")
    page.get_by_label("Facts").fill("price is 89 | 89元")

    page.get_by_role("button", name="Add to dataset").click()

    expect(page.get_by_role("status")).to_contain_text("In dataset kept v1: 1 case added.")
    expect(page).to_have_url(re.compile(rf"/cases/{case.pk}/\?category=price$"))
    expect(page.get_by_text(f"kept/case-{case.pk}")).to_be_visible()
