"""Debian's Chromium against the live server; Celery's tasks run where they are sent."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connections
from django.test import Client
from playwright.sync_api import ConsoleMessage, Page
from pytest_django.live_server_helper import LiveServer

CHROMIUM = shutil.which("chromium")
# No sandbox as root, and none of Chromium's own calls to the network.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)
T = TypeVar("T")
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": CHROMIUM, "args": FLAGS.split()}


@pytest.fixture(scope="session")
def browser_context_args() -> dict[str, Any]:
    return {"viewport": {"width": 1280, "height": 900}, "locale": "en-US"}


@pytest.fixture(autouse=True, scope="session")
def _allow_the_orm_beside_playwright() -> Iterator[None]:
    """Playwright keeps an event loop in this thread, which Django takes for asynchronous code."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    yield
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def run_apart(work: Callable[[], T]) -> T:
    """Run work that starts an event loop of its own; this thread has one already."""

    def work_and_close() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work_and_close).result()


def check_it_fits(page: Page, width: int) -> None:
    """Nothing of the page lies beside a screen of this width, in either theme."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (page.url, theme)


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """What the browser complained of; the test fails when there is anything, a blocked script for instance."""
    heard: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        # Without a graphics card, reading back what WebGL drew is slow, and Chromium says so.
        if message.type in {"error", "warning"} and "GL Driver Message" not in message.text:
            heard.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: heard.append(str(error)))
    yield heard
    assert heard == []


@pytest.fixture
def operator_page(
    transactional_db: None,
    live_server: LiveServer,
    page: Page,
    complaints: list[str],
    run_tasks_at_once: None,
) -> Page:
    """A browser in which an operator has signed in."""
    user = User.objects.create_user("olga", "olga@example.org")
    user.groups.add(Group.objects.get_or_create(name="operator")[0])
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
    )
    return page
