"""The cast of the view tests (a person per role, and somebody outside), and a harness with everything in it."""

import contextlib
import copy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.utils import translation
from pytest_django import DjangoDbBlocker

from evolution.models import (
    BulkAction,
    Cluster,
    Diagnosis,
    Exchange,
    FailureCase,
    Harness,
    ImportRun,
    Proposal,
    ReviewComment,
    ReviewThread,
    SavedView,
    Source,
    Step,
)
from tests.evolution.clusterings import keep_run
from tests.evolution.intake import make_cluster
from tests.evolution.measured import DEV as DEVELOPER
from tests.evolution.measured import (
    make_case,
    make_harness,
    make_proposal,
    make_version,
    measure,
    steps,
    teach,
)
from workbench import case_options

SignIn = Callable[[str], Client]


@pytest.fixture(autouse=True)
def _leave_no_language_behind() -> Iterator[None]:
    """A request in Chinese leaves its thread speaking Chinese; the next test may call no page at all."""
    yield
    translation.deactivate()


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """A client signed in as somebody of a role."""

    def client_of(role: str) -> Client:
        user = User.objects.create_user(role, f"{role}@example.org", "a password of tests")
        user.groups.add(Group.objects.get_or_create(name=role)[0])
        client = Client()
        client.force_login(user)
        return client

    return client_of


@pytest.fixture
def outsider(db: None) -> Client:
    return Client()


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


@pytest.fixture
def developer(sign_in: SignIn) -> Client:
    return sign_in("developer")


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    return sign_in("operator")


@dataclass
class World:
    """One record of each kind, as a loop that is half-way leaves them."""

    harness: Harness
    cluster: Cluster
    case: FailureCase
    diagnosis: Diagnosis
    # waits for review
    proposal: Proposal
    # measured, waits for its decision
    step: Step

    @property
    def thread(self) -> ReviewThread:
        """About a line of the proposal, begun by the operator."""
        return self.proposal.threads.get()

    @property
    def exchange(self) -> Exchange:
        """The question that the diagnosis answers."""
        assert self.diagnosis.exchange is not None
        return self.diagnosis.exchange

    def url(self, path: str = "") -> str:
        return f"/h/{self.harness.name}/{path}"


class _Undone(Exception):
    """Takes back what the world of a module put into the database."""


@pytest.fixture(scope="module")
def built_world(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, dict[Path, Path]]]:
    """One world per module, in a transaction around those of its tests: none of them is without it.

    With it comes a copy of each of its repositories.
    """
    kept = tmp_path_factory.mktemp("world")
    with django_db_blocker.unblock(), contextlib.suppress(_Undone), transaction.atomic():
        world = make_world()
        copies = {
            Path(settings.REPOSITORIES_DIR, path): kept / path
            for path in Harness.objects.values_list("path", flat=True)
        }
        for repository, copied in copies.items():
            shutil.copytree(repository, copied, symlinks=True)
        yield world, copies
        raise _Undone


@pytest.fixture
def world(built_world: tuple[World, dict[Path, Path]], db: None) -> World:
    """As it was built, whatever other tests of the module did to it."""
    world, copies = built_world
    # It knows changes by their numbers, which are those of the next test again.
    case_options._read.cache_clear()
    for repository, kept in copies.items():
        shutil.rmtree(repository, ignore_errors=True)
        shutil.copytree(kept, repository, symlinks=True)
    return copy.deepcopy(world)


def make_world() -> World:
    """A harness that is half-way through its first step."""
    harness = make_harness()
    make_version(harness, [make_case(f"q{n}") for n in range(1, 13)])
    cluster = make_cluster(harness, texts=("no price", "wrong price"))
    case = cluster.members.order_by("pk")[0]
    diagnosis = make_diagnosis(cluster, case)
    for _time in ("before", "after"):
        keep_run(harness, {cluster: list(cluster.members.all())})
    Source.objects.create(harness=harness, name="production", created_by="d")
    ImportRun.objects.create(harness=harness, state="preview", digest="", created_by="d")
    BulkAction.objects.create(harness=harness, actor="d", verb="tag", parameters={"tag": "x"})
    SavedView.objects.create(harness=harness, owner="d", name="a view", is_shared=True)
    step = measure(steps.merge_step(DEVELOPER, harness, [make_proposal(harness, teach(*range(1, 11)))]))
    proposal = make_proposal(harness, b"knows: q1 q2 q3\n", "teach q3")
    fields = {
        "state": "drafted",
        "diagnosis": diagnosis,
        "manifest": {"expected_fixes": [case.pk], "at_risk": ["q1"]},
    }
    Proposal.objects.filter(pk=proposal.pk).update(**fields)
    proposal.refresh_from_db()
    make_thread(proposal)
    return World(harness, cluster, case, diagnosis, proposal, step)


def make_thread(proposal: Proposal) -> ReviewThread:
    place = {"commit": proposal.head_commit, "path": "prompts/role.md", "side": "new", "line": 1}
    thread = ReviewThread.objects.create(
        proposal=proposal, **place, line_text="knows: q1 q2 q3", created_by="operator"
    )
    ReviewComment.objects.create(thread=thread, author="operator", text="is **that** so?")
    return thread


def make_diagnosis(cluster: Cluster, case: FailureCase) -> Diagnosis:
    return Diagnosis.objects.create(
        harness=cluster.harness,
        cluster=cluster,
        exchange=make_exchange(cluster, case),
        part="prompt",
        path="prompts/role.md",
        hypothesis="it does not *know* the price",
        confidence=0.8,
        evidence=[{"case": case.pk, "turn": 1, "quote": "no price", "verified": True}],
        changes=["say the price"],
        base_commit="0" * 40,
        model="m",
    )


def make_exchange(cluster: Cluster, case: FailureCase, **fields: object) -> Exchange:
    """A question about the cluster that was answered at the second try."""
    reply = {
        "finish_reason": "stop",
        "model": "m",
        "prompt_tokens": 60,
        "completion_tokens": 10,
        "latency_ms": 700,
    }
    values: dict[str, object] = {
        "purpose": "diagnosis",
        "model": "m",
        "request": {
            "messages": [{"role": "system", "content": "diagnose"}],
            "parameters": {"temperature": 0},
        },
        "replies": [
            {**reply, "content": "dear me", "problem": "no JSON"},
            {**reply, "content": '{"cluster_name": "prices"}', "problem": ""},
        ],
        "shown": {
            "round": 1,
            "cases": [case.pk],
            "files": ["harness.yaml"],
            "cut": [
                {"case": case.pk, "turn": 4, "part": "get_price result", "characters": 3210},
                {"case": case.pk, "turns": [5, 9]},
                {"path": "prompts/role.md", "characters": 12},
            ],
            "tokens": 900,
            "budget": 1000,
        },
        "prompt_tokens": 120,
        "completion_tokens": 20,
        "cost": "0.0125",
        "currency": "USD",
        "seconds": 1.5,
        "created_by": "developer",
    }
    return Exchange.objects.create(harness=cluster.harness, cluster=cluster, **{**values, **fields})
