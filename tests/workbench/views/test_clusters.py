import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evolution.models import Cluster, Job, Proposal
from tests.evolution.intake import make_cluster
from tests.workbench.views.conftest import World, make_diagnosis

POLL = {"HX-Request": "true", "HX-Target": "progress"}


def test_cluster_now_starts_one_job(world: World, developer: Client) -> None:
    for _ in range(2):
        developer.post(world.url("clusters/start/"))

    assert list(Job.objects.values_list("kind", "state", "created_by")) == [
        ("cluster", "queued", "developer")
    ]


def test_a_running_job_is_followed_also_after_a_reload(world: World, viewer: Client) -> None:
    Job.objects.create(
        harness=world.harness, kind="cluster", state="running", done=3, total=9, created_by="x"
    )

    page = viewer.get(world.url("clusters/")).content.decode()
    part = viewer.get(world.url("clusters/"), headers=POLL).content.decode()

    assert "every 1500ms" in page
    assert "3/9" in part
    assert "<html" not in part


def test_the_end_of_a_job_brings_the_page_up_to_date(world: World, viewer: Client) -> None:
    Job.objects.create(harness=world.harness, kind="cluster", state="done", created_by="x")

    assert viewer.get(world.url("clusters/"), headers=POLL).headers["HX-Refresh"] == "true"
    assert "every 1500ms" not in viewer.get(world.url("clusters/")).content.decode()


def test_the_list_makes_as_many_queries_for_many_clusters(world: World, viewer: Client) -> None:
    with CaptureQueriesContext(connection) as few:
        viewer.get(world.url("clusters/"))
    for number in range(2, 22):
        cluster = make_cluster(world.harness, number, texts=(f"a{number}", f"b{number}"))
        make_diagnosis(cluster, cluster.members.order_by("pk")[0])

    with CaptureQueriesContext(connection) as many:
        viewer.get(world.url("clusters/"))

    assert len(many) == len(few)


def test_diagnose_starts_a_job_about_the_cluster(world: World, developer: Client) -> None:
    developer.post(world.url("clusters/1/diagnose/"))

    assert Job.objects.get().target_id == world.cluster.pk


def test_a_cluster_is_renamed(world: World, developer: Client) -> None:
    developer.post(world.url("clusters/1/rename/"), {"name": " prices "})

    world.cluster.refresh_from_db()
    assert world.cluster.name == "prices"


def test_ignoring_a_cluster_keeps_the_reason(world: World, developer: Client) -> None:
    developer.post(world.url("clusters/1/ignore/"), {"reason": "a test room"})

    world.case.refresh_from_db()
    assert (world.case.state, world.case.note) == ("ignored", "a test room")


def test_the_evidence_of_a_diagnosis_leads_to_its_case(world: World, viewer: Client) -> None:
    page = viewer.get(world.url("clusters/1/")).content.decode()

    assert f'href="{world.url(f"cases/{world.case.pk}/")}#turn-1"' in page
    assert "<em>know</em>" in page


def test_a_diagnosis_is_amended_line_by_line(world: World, developer: Client) -> None:
    fields = {"hypothesis": "prices are missing", "changes": "- say it\r\n\r\nsay it twice"}

    developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/amend/"), fields)

    world.diagnosis.refresh_from_db()
    assert world.diagnosis.changes == ["say it", "say it twice"]
    assert world.diagnosis.amended_by == "developer"


def test_drafting_accepts_the_diagnosis_and_goes_to_the_proposal(world: World, developer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(diagnosis=None)

    answer = developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/draft/"))

    proposal = world.diagnosis.proposals.get()
    assert answer.headers["Location"] == world.url(f"proposals/{proposal.pk}/")
    world.diagnosis.refresh_from_db()
    assert (proposal.state, world.diagnosis.state) == ("drafting", "accepted")


def test_a_diagnosis_is_rejected(world: World, developer: Client) -> None:
    developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/reject/"), {"reason": "no"})

    world.diagnosis.refresh_from_db()
    assert world.diagnosis.state == "rejected"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("drafted", "review proposal"),
        ("confirmed", "start a step with proposal"),
        ("rejected", "diagnose again"),
        ("released", "diagnose again"),
    ],
)
def test_the_next_action_follows_the_proposal(world: World, viewer: Client, state: str, text: str) -> None:
    Cluster.objects.update(state="diagnosed")
    Proposal.objects.filter(pk=world.proposal.pk).update(state=state)

    ((_cluster, following),) = viewer.get(world.url("clusters/")).context["clusters"]

    assert following.text.startswith(text)


def test_a_rejected_diagnosis_says_why_and_is_made_again(world: World, developer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(diagnosis=None)
    developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/reject/"), {"reason": "no such tool"})

    page = developer.get(world.url("clusters/1/"))

    assert "no such tool" in page.content.decode()
    assert page.context["next"].text == "diagnose"


def test_what_came_of_a_clustering_is_in_the_readers_language(world: World, viewer: Client) -> None:
    result = {"clusters": 8, "unclustered": 10}
    job = {"kind": "cluster", "state": "done", "created_by": "x", "message": "as the worker wrote it"}
    Job.objects.create(harness=world.harness, result=result, **job)

    assert "8 clusters, 10 unclustered" in viewer.get(world.url("clusters/")).content.decode()
