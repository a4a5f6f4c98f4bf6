"""What transcripts and models say runs nowhere and hides nothing: on every page that shows a failure on its way to a
proposal, markup is text, and characters that do not show are named."""

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import Settings

from evolution.actions.diagnosis import start_diagnosis
from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import start_draft
from evolution.models import Diagnosis, Exchange, Job, Proposal
from evolution.tasks.jobs import perform_job
from tests.evolution import model_server as served
from tests.evolution.hostile import MARKUP, PHRASE, list_members, make_hostile_cluster
from tests.evolution.measured import DEV
from tests.evolution.model_server import model_server, use_server

LIVE = re.compile(r"<script>alert|<img src=x|[\u202e\u200b]")
# A field in which a text can be changed has to hold it as it is.
FIELD = re.compile(r"<input [^>]*>|<textarea.*?</textarea>", re.DOTALL)


def spoil(answer: dict[str, object]) -> dict[str, object]:
    """Every text that the model may choose, with markup in it."""
    for each in answer.get("hypotheses", []):  # type: ignore[attr-defined]
        each.update(hypothesis=MARKUP, changes=[MARKUP], refuted_by=MARKUP)
    for name in {
        "cluster_name",
        "cluster_description",
        "title",
        "summary",
        "expected_effect",
    } & answer.keys():
        answer[name] = MARKUP[:80]
    if "risks" in answer:
        answer["risks"] = [MARKUP]
        edit = {"path": "prompts/constraints.md", "action": "append_line", "content": f"- {MARKUP} {PHRASE}"}
        answer["edits"] = [*answer["edits"], edit]  # type: ignore[misc]
    return answer


@pytest.fixture
def proposal(settings: Settings, db: None) -> Proposal:
    cluster = make_hostile_cluster(ensure_starter(DEV, "live_commerce"), f"{MARKUP} {PHRASE}")
    with model_server() as server:
        use_server(settings, server)
        server.script("*", served.changed(spoil))
        perform_job(start_diagnosis(DEV, cluster).pk)
        made = start_draft(DEV, Diagnosis.objects.order_by("rank")[0])
        perform_job(Job.objects.filter(kind="draft").latest("pk").pk)
    made.refresh_from_db()
    assert made.head_commit, made.reason
    return made


def pages(proposal: Proposal) -> Iterator[str]:
    name, diagnosis = proposal.harness.name, proposal.diagnosis
    assert diagnosis is not None
    yield from (reverse(page, args=[name]) for page in ("cases", "clusters", "proposals", "events"))
    yield reverse("cluster", args=[name, diagnosis.cluster.number])
    yield reverse("proposal", args=[name, proposal.pk])
    yield from (reverse("case", args=[name, case.pk]) for case in list_members(diagnosis.cluster))
    for exchange in Exchange.objects.all():
        try:
            yield reverse("exchange", args=[name, exchange.pk])
        except NoReverseMatch:
            return


def _without_hidden(field: re.Match[str]) -> str:
    return re.sub("[\u202e\u200b]", "", field[0])


def test_no_page_runs_what_others_wrote(proposal: Proposal, developer: Client) -> None:
    seen = 0
    for address in pages(proposal):
        answer = developer.get(address)
        page = FIELD.sub(_without_hidden, answer.content.decode())
        assert answer.status_code == 200, address
        found = LIVE.search(page)
        assert found is None, f"{address}: {page[max(0, found.start() - 200) : found.end() + 100]}"
        assert "script-src 'self';" in answer["Content-Security-Policy"]
        seen += "alert(1)" in page
    assert seen > 5


def test_flags_stand_beside_the_lines_that_they_are_about(proposal: Proposal, developer: Client) -> None:
    page = developer.get(reverse("proposal", args=[proposal.harness.name, proposal.pk])).content.decode()
    for words in ("Sets instructions aside", "Hidden characters", "Characters that change the direction"):
        assert words in page
