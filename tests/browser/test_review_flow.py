"""From a cluster to a promoted version with mouse and keyboard, in both languages, with the rehearsal model.

A hypothesis is accepted, its draft commented on, sent back, approved, measured in a step, and decided on. In Chinese
the buttons are found by where they lead, and keys are pressed where there are keys.
"""

from dataclasses import dataclass

import pytest
from django.utils.translation import override
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from evolution.actions.cases import take_failures
from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.demonstration import load_cases
from evolution.loop.datasets import import_dataset
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Evaluation, Harness, Proposal, Release, ReviewThread
from evolution.states import ProposalState, Split, StepState
from tests.browser.conftest import run_apart

RULES = "prompts/constraints.md"
# Failures of this category have one cause, so it stands for a cluster that the clusterer found.
CATEGORY = "activity"
CLUSTER = "promises about activities"
DRAFTED, WANTED = "这个我帮你核实一下", "这个我去问一下客服"
COMMENTS = {"en": f"Change 「{DRAFTED}」 to 「{WANTED}」.", "zh-hans": f"把「{DRAFTED}」改成「{WANTED}」。"}
CLUSTERS = {"en": "Clusters", "zh-hans": "簇"}


@dataclass(frozen=True)
class Visitor:
    """Somebody at the page, who reads one language."""

    page: Page
    language: str

    def press(self, words: str, place: str) -> None:
        """Click the button with these words, or in another language than English what stands at the place."""
        self._find("button", words, place).first.click()

    def follow(self, words: str, place: str) -> None:
        """Click the link with these words, or what stands at the place."""
        self._find("link", words, place).first.click()

    def sees_state(self, state: ProposalState | StepState) -> None:
        """Check what is said beside the title."""
        with override(self.language):
            label = str(state.label)
        expect(self.page.locator("h1 .pill").first).to_have_text(label)

    def _find(self, role: str, words: str, place: str) -> Locator:
        if self.language != "en":
            return self.page.locator(place)
        return self.page.get_by_role(role, name=words, exact=True)  # type: ignore[arg-type]


def prepare() -> Harness:
    """The starter harness, measured on a part of the demonstration, its failures in the inbox and in a cluster."""
    harness = ensure_starter(SYSTEM, "live_commerce")
    cases = [case for case in load_cases() if case.split in {Split.DEV, Split.GUARD}]
    version = import_dataset(
        SYSTEM, harness, "live_commerce", [case for case in cases if is_measured(case.category)]
    )
    evaluation = start_evaluation(SYSTEM, harness, "main", version)
    take_failures(SYSTEM, Evaluation.objects.get(pk=evaluation.pk))
    cluster = Cluster.objects.create(harness=harness, number=1, name=CLUSTER)
    harness.failures.filter(category=CATEGORY).update(cluster=cluster, strength=1.0)
    return harness


def is_measured(category: str) -> bool:
    """With these, evaluations are short."""
    return category in {CATEGORY, "delivery"}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_change_from_its_diagnosis_to_its_promotion(
    operator_page: Page, live_server: LiveServer, language: str
) -> None:
    harness = run_apart(prepare)
    before = open_repository(harness).resolve("main")
    visitor = Visitor(operator_page, language)
    operator_page.goto(f"{live_server.url}/h/{harness.name}/")
    operator_page.locator(f"button[name=language][value={language}]").click()
    expect(operator_page.locator("html")).to_have_attribute("lang", language)
    expect(operator_page.locator('nav a[href$="/clusters/"]')).to_have_text(CLUSTERS[language])

    accept_diagnosis(visitor)
    first = Proposal.objects.get()
    comment_on_a_line(visitor)
    send_back(visitor)
    approve(visitor)
    measure(visitor)
    promote(visitor)

    proposal, thread, release = (
        Proposal.objects.get(),
        ReviewThread.objects.get(),
        Release.objects.latest("number"),
    )
    assert proposal.head_commit != first.head_commit
    assert proposal.feedback[0]["commit"] == proposal.head_commit
    assert (thread.path, thread.comments.get().text) == (RULES, COMMENTS[language])
    assert list(proposal.reviews.order_by("pk").values_list("verdict", "commit")) == [
        ("changes", first.head_commit),
        ("approved", proposal.head_commit),
    ]
    assert (release.kind, release.actor) == ("promotion", "olga")
    repository = open_repository(harness)
    assert repository.resolve("main") == release.commit != before
    rules = [repository.read_file(version, RULES).decode() for version in (before, "main")]
    # Another rule says so as well.
    assert [(text.count(WANTED), text.count(DRAFTED)) for text in rules] == [(0, 1), (1, 1)]


def accept_diagnosis(visitor: Visitor) -> None:
    page = visitor.page
    visitor.page.locator('nav a[href$="/clusters/"]').click()
    page.get_by_role("link", name=CLUSTER).click()
    visitor.press("Diagnose", 'form[action$="/diagnose/"] button')
    expect(page.locator(".hypothesis blockquote").first).to_be_visible()
    visitor.press("Accept and draft an edit", 'form[action$="/draft/"] button')
    visitor.sees_state(ProposalState.DRAFTED)


def comment_on_a_line(visitor: Visitor) -> None:
    page = visitor.page
    line = page.locator(".diff tr.add", has_text=DRAFTED)
    line.locator("a[data-comment]").click()
    # The form has the focus.
    page.locator(".line-notes textarea").wait_for()
    page.keyboard.type(COMMENTS[visitor.language])
    page.keyboard.press("Control+Enter")
    expect(page.locator(".diff .thread")).to_contain_text(WANTED)
    expect(page.locator("#open-threads")).to_have_text("1")


def send_back(visitor: Visitor) -> None:
    page = visitor.page
    if visitor.language == "en":
        page.locator("summary", has_text="Request changes").click()
        page.get_by_role("button", name="Request changes", exact=True).click()
    else:
        page.keyboard.press("r")
        page.keyboard.press("Control+Enter")
    expect(page.locator(".diff tr.add")).to_contain_text(WANTED)
    visitor.sees_state(ProposalState.DRAFTED)


def approve(visitor: Visitor) -> None:
    if visitor.language == "en":
        visitor.page.get_by_role("button", name="Approve", exact=True).click()
    else:
        # Approve with a word, which may be none.
        visitor.page.keyboard.press("a")
        visitor.page.keyboard.press("Control+Enter")
    visitor.sees_state(ProposalState.CONFIRMED)


def measure(visitor: Visitor) -> None:
    page = visitor.page
    visitor.follow("Start a step", '.review-bar a[href$="/steps/"]')
    visitor.press("Start the step", 'form[action$="/steps/start/"] button')
    visitor.press("Evaluate base and candidate", 'form[action$="/evaluate/"] button')
    visitor.sees_state(StepState.EVALUATED)
    visitor.follow("Flipped cases", 'a[href*="flip=flipped"]')
    page.locator("#results a").first.click()
    expect(
        page.locator("h2", has_text="Candidate" if visitor.language == "en" else "候选").first
    ).to_be_visible()


def promote(visitor: Visitor) -> None:
    page = visitor.page
    visitor.follow("Steps", 'nav a[href$="/steps/"]')
    page.locator('a[href$="/steps/1/"]').first.click()
    reason = page.locator("#reason-promote")
    page.locator("details", has=reason).locator("summary").click()
    # Against the verdict a reason has to be given.
    if reason.get_attribute("required") is not None:
        reason.fill("measured, and good enough")
    visitor.press("Promote", "form:has(#reason-promote) button")
    visitor.sees_state(StepState.PROMOTED)
