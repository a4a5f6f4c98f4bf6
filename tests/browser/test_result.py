"""A result of a conversation, with everything that a trajectory can have: it fits every screen."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import CaseResult
from tests.browser.conftest import check_it_fits, run_apart
from tests.workbench.views.conftest import make_world

LONG = "get_the_price_of_an_item_by_its_link_id_" * 5
TRAJECTORY = {
    "status": "token_limit",
    "reply": "89元，今晚下单明天就能发货。" * 5,
    "error": "30210 tokens, at most 30000",
    "skills_loaded": ["item-qa"],
    "messages": [
        {"role": "system", "content": "You sell.\n" * 20},
        {"role": "user", "content": "- 3号链接多少钱？"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": key, "type": "function", "function": {"name": name, "arguments": '{"link_id": 3}'}}
                for key, name in (("a", "get_price"), ("b", LONG))
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": '{"error": "timeout: no answer within 5 seconds"}'},
        {"role": "tool", "tool_call_id": "b", "content": '{"price": 89}'},
        {"role": "assistant", "content": "89元，今晚下单明天就能发货。" * 5},
    ],
    "tool_calls": [
        {
            "turn": 1,
            "id": "a",
            "name": "get_price",
            "arguments": {"link_id": 3},
            "result": None,
            "error": "timeout: no answer within 5 seconds",
            "ms": 5000.0,
            "fault": "timeout",
        },
        {
            "turn": 1,
            "id": "b",
            "name": LONG,
            "arguments": {"link_id": 3},
            "result": {"price": 89},
            "error": None,
            "ms": 12.0,
        },
    ],
    "hooks": [
        {"turn": 0, "event": "input", "hook": "polite", "outcome": "warn", "message": "rude words"},
        {"turn": 2, "event": "reply", "hook": "short", "outcome": "retry", "message": "too long " * 20},
    ],
    "calls": [
        {"turn": 1, "ms": 812.0, "prompt_tokens": 12040, "completion_tokens": 81, "model": "m"},
        {
            "turn": 2,
            "ms": 944.0,
            "prompt_tokens": 18000,
            "completion_tokens": 89,
            "model": "m",
            "finish_reason": "length",
            "reasoning": "The price is 89. " * 30,
        },
    ],
    "conversation": [
        {"user": "3号链接多少钱？", "reply": "89元，今晚下单明天就能发货。" * 5, "status": "ok"},
        {"user": "能便宜点吗？" * 30, "reply": None, "status": "token_limit"},
        {"user": "那算了", "reply": None, "status": "done"},
    ],
}


def make_result() -> str:
    world = make_world()
    result = CaseResult.objects.order_by("pk")[0]
    CaseResult.objects.filter(pk=result.pk).update(trajectory=TRAJECTORY)
    return world.url(f"evaluations/{result.evaluation_id}/results/{result.pk}/")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_conversation_fits_the_screen(operator_page: Page, live_server: LiveServer, width: int) -> None:
    page = operator_page
    address = run_apart(make_result)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{live_server.url}{address}")
    for summary in page.locator("details.call > summary").all():
        summary.click()

    expect(page.locator(".conversation > li")).to_have_count(5)
    expect(page.get_by_text("fault injected: timeout")).to_be_visible()
    check_it_fits(page, width)
