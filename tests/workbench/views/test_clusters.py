from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evolution.models import Cluster, ClusterRun, FailureCase, Job, Proposal
from tests.evolution.clusterings import keep_run, keep_vector, place
from tests.evolution.intake import make_cluster, make_failure
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

    ((_row, following),) = viewer.get(world.url("clusters/")).context["clusters"]

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


def test_the_list_says_how_a_cluster_grows_and_what_it_is_made_of(world: World, viewer: Client) -> None:
    now = timezone.now()
    versions = {"harness_commit": "ab" * 20, "category": "price"}
    for days in (0, 1, 9):
        make_failure(
            world.harness,
            f"day {days}",
            cluster=world.cluster,
            happened_at=now - timedelta(days=days),
            **versions,
        )

    ((row, _next),) = viewer.get(world.url("clusters/")).context["clusters"]

    assert (row.size.open_cases, row.size.week, row.size.week_before) == (5, 4, 1)
    assert (row.spread.daily[-1], row.spread.daily[-2], row.spread.daily[-10]) == (3, 1, 1)
    assert [(entry.value, entry.count, entry.share) for entry in row.spread.versions] == [("ab" * 20, 3, 0.6)]


def test_the_list_narrows_and_sorts(world: World, viewer: Client) -> None:
    make_cluster(world.harness, 2, ("late",) * 3, description="about delivery")
    ignored = make_cluster(world.harness, 3, ("odd",), state="ignored")
    odd = FailureCase.objects.filter(cluster=ignored)
    odd.update(state="ignored")

    def shown(query: str) -> list[int]:
        page = viewer.get(world.url(f"clusters/?{query}"))
        return [row.cluster.number for row, _next in page.context["clusters"]]

    assert shown("") == [2, 1]
    assert shown("order=number") == [1, 2]
    assert shown("text=DELIVERY") == [2]
    make_cluster(world.harness, 4)
    assert shown("state=new") == [2, 1]
    odd.update(state="open")
    assert sorted(shown("")) == [1, 2, 3], "an ignored cluster with open failures wants to be looked at"
    odd.update(state="ignored")
    assert sorted(shown("state=all")) == [1, 2, 3, 4]
    assert shown("text=%233&state=all") == [3]
    assert shown("state=ignored") == [3]
    assert shown("state=nonsense&order=nonsense&page=x") == [2, 1]


def test_a_merged_cluster_is_in_no_list_and_leads_to_where_it_is(world: World, developer: Client) -> None:
    make_cluster(world.harness, 2, ("late",))

    developer.post(world.url("clusters/1/merge/"), {"others": ["2"], "numbers": "", "reason": "the same"})

    assert world.cluster.members.count() == 3
    listed = developer.get(world.url("clusters/?state=all")).context["clusters"]
    assert [row.cluster.number for row, _next in listed] == [1]
    assert f'href="{world.url("clusters/1/")}"' in developer.get(world.url("clusters/2/")).content.decode()


def test_a_number_that_is_no_cluster_merges_nothing(world: World, developer: Client) -> None:
    make_cluster(world.harness, 2, ("late",))

    page = developer.post(world.url("clusters/1/merge/"), {"numbers": "2, 77"}, follow=True)

    assert "77" in page.content.decode()
    assert not Cluster.objects.exclude(merged_into=None).exists()


def test_chosen_members_become_a_cluster_of_their_own(world: World, developer: Client) -> None:
    answer = developer.post(
        world.url("clusters/1/split/"), {"ids": [world.case.pk], "name": "no price at all"}
    )

    world.case.refresh_from_db()
    assert answer.headers["Location"] == world.url("clusters/2/")
    assert (world.case.cluster.number, world.case.cluster.name) == (2, "no price at all")  # type: ignore[union-attr]
    assert world.case.is_pinned


def test_unclustered_failures_become_a_cluster(world: World, developer: Client) -> None:
    loose = [make_failure(world.harness, f"loose {n}") for n in range(3)]
    ids = f"{loose[0].pk},{loose[1].pk}"

    developer.post(world.url("clusters/create/"), {"ids": ids, "name": "loose ends"})

    assert set(Cluster.objects.get(name="loose ends").members.all()) == set(loose[:2])


def test_a_viewer_decides_nothing_about_clusters(world: World, viewer: Client) -> None:
    make_cluster(world.harness, 2, ("late",))
    for path, fields in (
        ("1/merge/", {"numbers": "2"}),
        ("1/split/", {"ids": [world.case.pk], "name": "x"}),
        ("create/", {"ids": [world.case.pk], "name": "x"}),
        ("1/reopen/", {}),
    ):
        assert viewer.post(world.url(f"clusters/{path}"), fields).status_code == 403

    assert list(Cluster.objects.filter(merged_into=None).values_list("number", flat=True)) == [1, 2]


def test_the_unclustered_are_a_queue_with_the_nearest_cluster(world: World, viewer: Client) -> None:
    place(world.cluster, [1, 0])
    other = make_cluster(world.harness, 2, ("late",))
    place(other, [0, 1])
    loose = make_failure(world.harness, "where is it", embedded_text="where is it")
    keep_vector("where is it", [0.6, 0.8])

    page = viewer.get(world.url("clusters/unclustered/"))

    assert [case.pk for case in page.context["page"]] == [loose.pk]
    near = page.context["nearest"][loose.pk]
    assert (near.cluster.number, round(near.likeness, 3), near.is_within) == (2, 0.8, True)
    assert page.context["unclustered"] == 1


def test_bulk_comes_back_to_the_page_that_had_the_button(world: World, developer: Client) -> None:
    fields = {
        "verb": "tag",
        "tag": "x",
        "ids": f"{world.case.pk}",
        "back": world.url("clusters/1/?order=weakest"),
    }
    foreign = {**fields, "back": "//example.org/h/"}

    assert developer.post(world.url("cases/bulk/"), fields).headers["Location"] == fields["back"]
    assert (
        developer.post(world.url("cases/bulk/"), foreign).headers["Location"].startswith(world.url("cases/"))
    )


def test_two_clusterings_are_compared_and_a_flow_names_its_cases(world: World, viewer: Client) -> None:
    other = make_cluster(world.harness, 2)
    first, second = world.cluster.members.order_by("pk")
    before = keep_run(world.harness, {world.cluster: [first, second]})
    after = keep_run(world.harness, {world.cluster: [first], other: [second]})
    flow = f"before={before.pk}&after={after.pk}&was={world.cluster.pk}&now={other.pk}"

    page = viewer.get(world.url(f"clusters/runs/compare/?{flow}"))

    assert (page.context["comparison"].stayed, page.context["comparison"].moved) == (1, 1)
    assert [case.pk for case in page.context["flow_cases"]] == [second.pk]
    assert viewer.get(world.url("clusters/runs/compare/?before=999999")).status_code == 404
    assert viewer.get(world.url("clusters/runs/")).status_code == 200


def test_the_points_of_the_map_are_the_open_failures_of_its_clustering(world: World, viewer: Client) -> None:
    members = list(world.cluster.members.order_by("pk"))
    keep_run(world.harness, {world.cluster: members})
    late = make_failure(world.harness, "late")

    page = viewer.get(world.url("clusters/map/"))
    drawn = viewer.get(world.url("clusters/map/points/")).json()

    assert (page.context["off_map"], late.pk in drawn["ids"]) == (1, False)
    assert drawn["ids"] == [case.pk for case in members]
    assert drawn["clusters"] == [{"number": 1, "name": "cluster 1", "size": 2, "x": 0.0, "y": 0.0}]
    assert (drawn["x"], drawn["owners"]) == ([-1.0, 1.0], [0, 0])


def test_the_map_spells_out_hidden_characters(world: World, viewer: Client) -> None:
    FailureCase.objects.filter(pk=world.case.pk).update(title="a\u202eb")

    drawn = viewer.get(world.url("clusters/map/points/")).json()

    assert "a‹U+202E›b" in drawn["titles"]


def test_the_pages_say_what_is_missing_before_the_first_clustering(world: World, viewer: Client) -> None:
    ClusterRun.objects.all().delete()

    for path in ("map/", "runs/", "runs/compare/", "unclustered/"):
        assert viewer.get(world.url(f"clusters/{path}")).status_code == 200
    assert viewer.get(world.url("clusters/map/points/")).status_code == 404


def test_a_cluster_shows_what_is_just_outside_of_it(world: World, viewer: Client) -> None:
    place(world.cluster, [1, 0])
    for text, vector in (("near", [0.8, 0.6]), ("far", [0.2, 0.98]), ("resolved", [1, 0])):
        keep_vector(text, vector)
        make_failure(
            world.harness, text, embedded_text=text, state="resolved" if text == "resolved" else "open"
        )

    page = viewer.get(world.url("clusters/1/"))

    found = page.context["near_misses"]
    assert [(near.case.title, round(near.likeness, 2), near.is_within) for near in found] == [
        ("near", 0.8, True)
    ]


def test_members_are_sorted_and_narrowed(world: World, viewer: Client) -> None:
    first, second = world.cluster.members.order_by("pk")
    FailureCase.objects.filter(pk=first.pk).update(strength=0.2, state="ignored")

    def shown(query: str) -> list[int]:
        return [case.pk for case in viewer.get(world.url(f"clusters/1/?{query}")).context["page"]]

    assert shown("") == [second.pk, first.pk]
    assert shown("order=weakest") == [first.pk, second.pk]
    assert shown("members=ignored") == [first.pk]
