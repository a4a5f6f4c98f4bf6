"""Drafts as a job, asked of a server that answers as real ones do: well, badly, late or not at all."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import amend_proposal, start_draft
from evolution.loop.repositories import open_repository
from evolution.models import Diagnosis, Exchange, Job, Proposal
from evolution.states import ProposalState
from evolution.tasks.jobs import perform_job
from tests.evolution import model_server as served
from tests.evolution.intake import SKILL
from tests.evolution.loop.drafts import make_diagnosis
from tests.evolution.measured import DEV
from tests.evolution.model_server import Behaviour, ModelServer, model_server, use_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Settings) -> Iterator[ModelServer]:
    with model_server() as server:
        use_server(settings, server)
        yield server


@pytest.fixture
def diagnosis() -> Diagnosis:
    return make_diagnosis(ensure_starter(DEV, "live_commerce"))


def perform(proposal: Proposal) -> Proposal:
    job = Job.objects.filter(target_id=proposal.pk, kind="draft").first()
    assert job is not None
    perform_job(job.pk)
    return Proposal.objects.get(pk=proposal.pk)


def reaching_out(output: dict[str, Any]) -> dict[str, Any]:
    content = (
        "name: fetch\ndescription: fetches\nparameters: {type: object}\n"
        "source: {kind: http, method: GET, url: 'https://example.invalid/x'}\n"
    )
    return {**output, "edits": [{"path": "tools/fetch.yaml", "action": "create", "content": content}]}


@pytest.mark.parametrize(
    "wrong",
    [served.broken_json, served.cut_off, served.saying("Sorry."), served.changed(reaching_out)],
)
def test_what_is_wrong_once_is_mended(server: ModelServer, diagnosis: Diagnosis, wrong: Behaviour) -> None:
    server.script("DraftOutput", wrong, served.good)
    proposal = perform(start_draft(DEV, diagnosis))
    assert (proposal.state, proposal.model) == (ProposalState.DRAFTED, "served-editor")
    assert len(server.asked("DraftOutput")) == 2
    exchange = Exchange.objects.get()
    assert [bool(each["problem"]) for each in exchange.replies] == [True, False]
    assert exchange.prompt_tokens > 0


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (served.broken_json, "JSON"),
        (served.refusing, "could not be asked"),
        (served.failing(500), "could not be asked"),
        (served.changed(reaching_out), "a new tool has a source of kind fixture"),
    ],
)
def test_what_stays_wrong_fails_with_the_reason(
    server: ModelServer, diagnosis: Diagnosis, behaviour: Behaviour, said: str
) -> None:
    # A refusal is asked again without the schema that the script goes by.
    server.script("*", behaviour)
    proposal = perform(start_draft(DEV, diagnosis))
    assert (proposal.state, proposal.branch) == (ProposalState.FAILED, "")
    assert said in proposal.reason
    assert said in Exchange.objects.get().error
    assert list(open_repository(proposal.harness).branches()) == ["main"]


def test_an_instruction_makes_another_commit_by_the_model_that_was_asked_for(
    server: ModelServer, diagnosis: Diagnosis
) -> None:
    proposal = perform(start_draft(DEV, diagnosis, "other-editor"))
    amend_proposal(DEV, proposal, f"[{SKILL}:1] > ---\nanna: 写短一点")
    again = perform(proposal)
    assert (again.state, again.model) == (ProposalState.DRAFTED, "other-editor")
    assert [request.model for request in server.asked("DraftOutput")] == ["other-editor"] * 2
    assert "写短一点" in str(server.asked("DraftOutput")[1].messages)
