import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evolution.models import CaseNote, FailureCase
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World

# As a string in a page it would take a megabyte for each place that shows it.
HUGE = "很长的工具返回" * 150_000
CALL = {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"link_id": 3}'}}
TRAJECTORY: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "3号还有吗"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"stock": 0, "note": HUGE})},
        {"role": "assistant", "content": "有货"},
    ],
}


@pytest.fixture
def case(world: World) -> FailureCase:
    FailureCase.objects.filter(pk=world.case.pk).update(trajectory=TRAJECTORY, blamed_turn=2)
    return FailureCase.objects.get(pk=world.case.pk)


def page_of(world: World, client: Client, path: str = "") -> str:
    return client.get(world.url(f"cases/{world.case.pk}/{path}")).content.decode()


def test_a_value_of_megabytes_is_not_in_the_page(world: World, viewer: Client, case: FailureCase) -> None:
    FailureCase.objects.filter(pk=case.pk).update(
        request={"danmaku": [{"user": "a", "text": HUGE}], "history": [HUGE]},
        context={"x": HUGE, "list": [HUGE] * 3},
        reply=HUGE,
        symptom=HUGE,
        findings=[{"kind": "k", "text": HUGE}],
        signals={"errors": [HUGE], "checks": [{"name": HUGE}], "feedback": [{"comment": HUGE}]},
        scores={"s": HUGE},
    )

    assert len(page_of(world, viewer)) < 300_000


def test_what_is_cut_is_offered_in_full(world: World, viewer: Client, case: FailureCase) -> None:
    links = re.findall(r'href="([^"]*/value/[^"]*)"', page_of(world, viewer))

    assert links
    answers = [viewer.get(link.replace("&amp;", "&")).content.decode() for link in links]
    assert HUGE in answers


def test_a_part_that_fits_is_brought_into_the_page(world: World, viewer: Client, case: FailureCase) -> None:
    FailureCase.objects.filter(pk=case.pk).update(reply="<b>" + "x" * 10_000)

    part = viewer.get(world.url(f"cases/{case.pk}/value/?path=/reply"), headers={"HX-Request": "true"})

    html = part.content.decode()
    assert html.startswith("<div")
    assert "&lt;b&gt;" in html
    assert html.count("x") > 9_999


def test_a_pointer_goes_on_into_json_in_a_text(world: World, viewer: Client, case: FailureCase) -> None:
    answer = page_of(world, viewer, "value/?path=/trajectory/messages/3/content/stock")

    assert answer == "0"


@pytest.mark.parametrize(
    "path", ["/nothing", "/trajectory/messages/99", "/reply/x", "/trajectory/messages/-1", "x"]
)
def test_a_pointer_to_nothing_is_not_found(
    world: World, viewer: Client, case: FailureCase, path: str
) -> None:
    found = viewer.get(world.url(f"cases/{case.pk}/value/"), {"path": path})

    assert found.status_code == (200 if path == "x" else 404)


def test_the_turn_that_went_wrong_is_marked(world: World, viewer: Client, case: FailureCase) -> None:
    page = page_of(world, viewer)

    assert re.search(r'class="turn assistant blamed" id="turn-2"', page)
    assert 'href="#turn-2"' in page


def test_of_thousands_of_turns_the_ends_and_the_wrong_one_are_shown(world: World, viewer: Client) -> None:
    messages = [{"role": role, "content": "x"} for _ in range(3_000) for role in ("user", "assistant")]
    FailureCase.objects.filter(pk=world.case.pk).update(trajectory={"messages": messages}, blamed_turn=1_500)

    page = page_of(world, viewer)

    shown = [int(number) for number in re.findall(r'id="turn-(\d+)"', page)]
    assert {1, 1_500, 3_000} <= set(shown)
    assert len(shown) < 200


def test_thinking_is_folded_and_images_are_never_fetched(
    world: World, viewer: Client, case: FailureCase
) -> None:
    parts = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, {"text": "look"}]
    trajectory = {
        "messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "ok"}],
        "calls": [{"turn": 1, "reasoning": "hmm"}],
    }
    FailureCase.objects.filter(pk=case.pk).update(trajectory=trajectory)

    page = page_of(world, viewer)

    assert "[image_url: https://example.org/a.png]" in page
    assert "<img" not in page
    assert re.search(r"<details[^>]*><summary>Thinking.*hmm", page, re.DOTALL)


def test_the_raw_record_can_be_imported_again(world: World, viewer: Client, case: FailureCase) -> None:
    answer = viewer.get(world.url(f"cases/{case.pk}/raw/?download"))

    record = answer.json()
    assert (record["id"], record["trajectory"]) == (case.source_id, TRAJECTORY)
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_the_curl_command_has_what_led_to_the_turn(world: World, viewer: Client, case: FailureCase) -> None:
    tool = {"type": "function", "function": {"name": "get_stock", "parameters": {"type": "object"}}}
    FailureCase.objects.filter(pk=case.pk).update(context={"tools": [tool], "model": "qwen"}, blamed_turn=1)

    command = page_of(world, viewer, "curl/")

    payload = json.loads(command[command.index("{\n") : command.rindex("JSON")])
    assert (payload["model"], payload["tools"]) == ("qwen", [tool])
    assert payload["messages"] == TRAJECTORY["messages"][:2]
    assert json.dumps(TRAJECTORY["messages"][4]["content"], ensure_ascii=False) not in command


def test_what_is_not_known_of_a_request_is_said_and_not_made_up(
    world: World, viewer: Client, case: FailureCase
) -> None:
    FailureCase.objects.filter(pk=case.pk).update(
        context={}, blamed_turn=1, harness_commit="", evaluation=None
    )

    command = page_of(world, viewer, "curl/")

    assert "rehearsal" not in command
    assert "${LLM_MODEL:-MODEL}" in command
    assert ": 'Which model was asked is not known: set LLM_MODEL.'" in command
    tools = json.loads(
        "{" + command[command.index("\n", command.index("cat <<")) : command.rindex("\nJSON")]
    )["tools"]
    called = [call["function"]["name"] for m in TRAJECTORY["messages"] for call in m.get("tool_calls") or []]
    assert [tool["function"]["name"] for tool in tools] == list(dict.fromkeys(called))
    assert "these are read off the calls" in command


def test_a_case_of_which_nothing_was_sent_has_no_command(world: World, viewer: Client) -> None:
    FailureCase.objects.filter(pk=world.case.pk).update(request={}, trajectory={})

    assert viewer.get(world.url(f"cases/{world.case.pk}/curl/")).status_code == 404


def test_newer_and_older_stay_within_the_list(world: World, viewer: Client) -> None:
    first = make_failure(world.harness, "one", category="stock")
    make_failure(world.harness, "between")
    last = make_failure(world.harness, "two", category="stock")

    context = viewer.get(world.url(f"cases/{first.pk}/?category=stock")).context

    assert (context["newer"], context["older"]) == (last.pk, None)
    page = viewer.get(world.url(f"cases/{first.pk}/?category=stock")).content.decode()
    assert f"cases/{last.pk}/?category=stock" in page


def test_what_people_do_leads_back_into_the_list(world: World, developer: Client) -> None:
    answer = developer.post(world.url(f"cases/{world.case.pk}/tags/?category=stock"), {"tags": "a，b, "})

    assert answer.headers["Location"] == world.url(f"cases/{world.case.pk}/?category=stock")
    world.case.refresh_from_db()
    assert world.case.tags == ["a", "b"]


def test_a_case_is_assigned_and_given_back(world: World, developer: Client) -> None:
    address = world.url(f"cases/{world.case.pk}/assign/")
    developer.post(address, {"person": "developer"})
    world.case.refresh_from_db()
    assert world.case.assignee == User.objects.get(username="developer")

    developer.post(address, {"person": "nobody-here"})
    world.case.refresh_from_db()
    assert world.case.assignee is not None

    developer.post(address, {"person": ""})
    world.case.refresh_from_db()
    assert world.case.assignee is None


def test_an_annotator_writes_a_note(world: World, sign_in: Any) -> None:
    annotator = sign_in("annotator")
    annotator.post(world.url(f"cases/{world.case.pk}/notes/"), {"text": "<b>look</b>"})

    assert CaseNote.objects.get().author == "annotator"
    assert "&lt;b&gt;look" in page_of(world, annotator)


def test_signals_of_the_source_are_shown(world: World, viewer: Client, case: FailureCase) -> None:
    signals = {
        "errors": ["TimeoutError"],
        "checks": [
            {"name": "polite", "passed": True},
            {"name": "price", "passed": False, "reason": "100 != 89"},
        ],
        "feedback": [{"name": "thumbs", "value": "down", "comment": "wrong"}],
    }
    FailureCase.objects.filter(pk=case.pk).update(signals=signals, masked={"phone": 2})

    page = page_of(world, viewer)

    assert (
        page.index("TimeoutError")
        < page.index("100 != 89")
        < page.index("polite")
        < page.index("down · wrong")
    )
    assert "phone × 2" in page


def test_the_role_is_asked_before_the_form_is_read(world: World, viewer: Client) -> None:
    answer = viewer.post(world.url(f"cases/{world.case.pk}/ignore/"), {"reason": "x" * 3_000})

    assert answer.status_code == 403
