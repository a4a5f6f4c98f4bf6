"""The inbox by keyboard."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.models import FailureCase, Harness
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness


@pytest.fixture
def inbox(operator_page: Page, live_server: LiveServer) -> Page:
    """Six open cases, case 5 the newest."""
    harness = make_harness()
    for number in range(6):
        make_failure(harness, f"case {number}", reply="券后价" if number % 2 else "refund")
    operator_page.goto(f"{live_server.url}/h/{harness.name}/cases/")
    return operator_page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def read(column: str) -> list[object]:
    """A column of the cases, in the order of the list."""
    return list(FailureCase.objects.order_by("-pk").values_list(column, flat=True))


def test_rows_are_chosen_and_tagged_by_keyboard(inbox: Page) -> None:
    press(inbox, "j", "x", "j", "j", "X", "t")
    inbox.keyboard.type("price")
    press(inbox, "Enter")

    expect(inbox.get_by_text("3 cases have the tag now.")).to_be_visible()
    assert read("tags") == [["price"]] * 3 + [[]] * 3


def test_the_row_at_hand_is_ignored_and_the_cursor_stays(inbox: Page) -> None:
    press(inbox, "j", "j", "i")
    inbox.keyboard.type("noise")
    press(inbox, "Enter")

    expect(inbox.get_by_text("1 case is ignored.")).to_be_visible()
    assert read("state") == ["open", "ignored", "open", "open", "open", "open"]
    expect(inbox.locator("tr.selected")).to_contain_text("case 3")


def test_the_last_action_is_undone_by_keyboard(inbox: Page) -> None:
    press(inbox, "*", "a")
    press(inbox, "Enter")
    expect(inbox.get_by_text("6 cases are assigned.")).to_be_visible()
    assert read("assignee__username") == ["olga"] * 6

    press(inbox, "u")

    expect(inbox.get_by_text("6 cases are as they were before.")).to_be_visible()
    assert read("assignee__username") == [None] * 6


def test_all_that_pass_a_search_are_chosen_by_keyboard(inbox: Page) -> None:
    press(inbox, "/")
    inbox.keyboard.type("后价")
    expect(inbox.locator("[data-row]")).to_have_count(3)

    press(inbox, "Escape", "A")
    expect(inbox.get_by_text("All 3 cases that pass the filters")).to_be_visible()
    press(inbox, "t")
    inbox.keyboard.type("price")
    press(inbox, "Enter")

    expect(inbox.get_by_text("3 cases have the tag now.")).to_be_visible()
    assert read("tags") == [["price"], []] * 3
    expect(inbox).to_have_url(re.compile("text="))


def test_a_search_is_left_for_the_first_row_by_enter(inbox: Page) -> None:
    press(inbox, "/")
    inbox.keyboard.type("后价")
    press(inbox, "Enter")
    expect(inbox.locator("tr.selected")).to_contain_text("case 5")
    press(inbox, "j", "x", "i")
    inbox.keyboard.type("noise")
    press(inbox, "Enter")

    expect(inbox.get_by_text("1 case is ignored.")).to_be_visible()
    assert read("state") == ["open", "open", "ignored", "open", "open", "open"]
    expect(inbox.get_by_label("Search")).to_have_value("后价")


def test_keys_wait_for_the_list_that_is_searched(inbox: Page) -> None:
    with inbox.expect_navigation(url=re.compile("state=open")):
        inbox.keyboard.press("/")
        inbox.keyboard.type("case 1")
        # Without a pause: the old list's first row is another case.
        press(inbox, "Enter", "x", "t", *"late", "Enter")
        expect(inbox.get_by_text("1 case has the tag now.")).to_be_visible()

    assert read("tags") == [[], [], [], [], ["late"], []]


def test_escape_leaves_the_search_as_it_is(inbox: Page) -> None:
    press(inbox, "/")
    inbox.keyboard.type("后价")
    press(inbox, "Escape")

    expect(inbox.locator("tr.selected")).to_contain_text("case 5")
    expect(inbox.locator("[data-row]")).to_have_count(3)
    expect(inbox.get_by_label("Search")).to_have_value("后价")
    expect(inbox.get_by_label("Search")).not_to_be_focused()


def test_what_was_chosen_stays_when_a_search_is_over(inbox: Page) -> None:
    press(inbox, "/")
    inbox.keyboard.type("后价")
    press(inbox, "Enter", "x")
    # Longer than typing waits before it searches.
    inbox.wait_for_timeout(600)

    expect(inbox.locator("output[data-chosen]")).to_have_text("1")


def test_the_address_of_a_search_has_no_empty_parameters(inbox: Page) -> None:
    press(inbox, "/")
    inbox.keyboard.type("refund")
    press(inbox, "Enter")

    expect(inbox).to_have_url(re.compile(r"/cases/\?text=refund&state=open$"))


def test_all_states_can_still_be_asked_for(inbox: Page) -> None:
    inbox.get_by_label("State").select_option("")

    expect(inbox).to_have_url(re.compile(r"/cases/\?state=$"))


def test_what_was_said_of_an_action_is_gone_with_the_next_search(inbox: Page) -> None:
    press(inbox, "j", "i")
    inbox.keyboard.type("noise")
    press(inbox, "Enter")
    expect(inbox.get_by_text("1 case is ignored.")).to_be_visible()

    press(inbox, "/")
    inbox.keyboard.type("refund")
    press(inbox, "Enter")

    expect(inbox.get_by_text("1 case is ignored.")).to_have_count(0)


def test_n_leads_into_the_note_of_the_row(inbox: Page) -> None:
    press(inbox, "j", "n")
    expect(inbox.get_by_label("Note")).to_be_focused()
    inbox.keyboard.type("look here")
    press(inbox, "Control+Enter")

    expect(inbox.get_by_text("look here")).to_be_visible()
    press(inbox, "a")
    inbox.get_by_label("Assigned to").select_option("olga")
    press(inbox, "Enter")
    expect(inbox.get_by_label("Assigned to")).to_have_value("olga")
    press(inbox, "i")
    inbox.keyboard.type("seen")
    press(inbox, "Control+Enter")
    expect(inbox.get_by_text("Ignored because: seen")).to_be_visible()
    assert read("assignee__username")[0] == "olga"


def test_a_row_is_opened_and_left_within_the_list(inbox: Page) -> None:
    press(inbox, "j", "j", "Enter")

    expect(inbox.get_by_role("heading", level=1)).to_contain_text("case 4")


def test_nothing_is_chosen_after_escape(inbox: Page) -> None:
    press(inbox, "*")
    expect(inbox.locator("output[data-chosen]")).to_have_text("6")

    press(inbox, "Escape")

    expect(inbox.locator("output[data-chosen]")).to_have_text("0")


def test_the_counts_come_after_the_list(inbox: Page) -> None:
    expect(inbox.locator("#counts b")).to_have_text("6 cases")


def test_the_help_names_every_key(inbox: Page) -> None:
    inbox.locator("body").click(position={"x": 5, "y": 5})
    press(inbox, "?")

    named = inbox.locator("#keys-help kbd").all_inner_texts()
    assert set("jkoxXAatircdnu/?[]*") <= set(named)


def test_the_list_fits_a_narrow_screen(inbox: Page) -> None:
    inbox.set_viewport_size({"width": 360, "height": 800})

    overflow = inbox.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert overflow <= 0
    assert Harness.objects.exists()
