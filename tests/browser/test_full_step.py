"""One evolution step with the mouse only, from a cluster to a promotion, with the rehearsal model."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.actions.cases import take_failures
from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.demonstration import load_cases
from evolution.loop.datasets import import_dataset
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Evaluation, Harness, Release
from evolution.states import Split
from tests.browser.conftest import run_apart

BOARD = "/h/live_commerce/"
# Failures of this category have one cause, so it stands for a cluster that the clusterer found.
CATEGORY = "activity"


def prepare() -> Harness:
    """The starter harness, measured on the demonstration, its failures in the inbox and one cluster made of them."""
    harness = ensure_starter(SYSTEM, "live_commerce")
    cases = [case for case in load_cases() if case.split in {Split.DEV, Split.GUARD}]
    version = import_dataset(SYSTEM, harness, "live_commerce", cases)
    evaluation = start_evaluation(SYSTEM, harness, "main", version)
    take_failures(SYSTEM, Evaluation.objects.get(pk=evaluation.pk))
    cluster = Cluster.objects.create(harness=harness, number=1, name="promises about activities")
    harness.failures.filter(category=CATEGORY).update(cluster=cluster, strength=1.0)
    return harness


@pytest.fixture
def harness(operator_page: Page) -> Harness:
    return run_apart(prepare)


def test_a_step_from_a_cluster_to_a_promotion(
    operator_page: Page, live_server: LiveServer, harness: Harness
) -> None:
    page = operator_page
    before = open_repository(harness).resolve("main")

    page.goto(f"{live_server.url}{BOARD}")
    page.get_by_role("link", name="Clusters", exact=True).click()
    page.get_by_role("link", name="promises about activities").click()
    page.get_by_role("button", name="Diagnose", exact=True).first.click()
    expect(page.get_by_role("heading", name="Evidence")).to_be_visible()

    page.get_by_role("button", name="Accept and draft an edit").click()
    expect(page.locator("h1 .pill")).to_have_text("waits for review")
    expect(page.locator(".diff .add").first).to_be_visible()

    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("link", name="Start a step").click()
    page.get_by_role("button", name="Start the step").click()
    page.get_by_role("button", name="Evaluate base and candidate").click()
    expect(page.locator("h1 .pill")).to_have_text("waits for a decision")
    page.get_by_role("link", name="Flipped cases").click()
    page.locator("#results a").first.click()
    expect(page.get_by_role("heading", name=re.compile("^Candidate"))).to_be_visible()

    page.get_by_role("link", name="Steps", exact=True).click()
    page.get_by_role("link", name="Step 1", exact=True).click()
    page.locator("details", has_text="Promote").locator("summary").first.click()
    reason = page.locator("#reason-promote")
    # Against the verdict a reason has to be given, and the mouse alone no longer does.
    if reason.get_attribute("required") is not None:
        reason.fill("measured, and good enough")
    page.locator("form", has=reason).get_by_role("button", name="Promote").click()
    expect(page.locator("h1 .pill")).to_have_text("promoted")

    release = Release.objects.order_by("-number")[0]
    assert (release.kind, release.actor) == ("promotion", "olga")
    assert open_repository(harness).resolve("main") == release.commit != before
