import numpy as np
import pytest

from evolution.actions.clusters import ignore_cluster, merge_clusters
from evolution.errors import LoopError
from evolution.loop.assignment import Reach, assign_failures, choose_clusters
from evolution.models import Cluster, Event, FailureCase, Harness
from evolution.ports import Embedder
from evolution.states import CaseState, ClusterState
from evolution.transitions import move
from tests.evolution.clustering import Topics, add, cluster, number_of
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def assign(harness: Harness) -> dict[str, int]:
    return assign_failures(DEV, harness, Topics, lambda *_: None)


def never() -> Embedder:
    raise AssertionError("the embedder was loaded")


def test_new_failures_go_to_the_cluster_that_they_are_like(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b")
    cluster(harness)
    same, strange = add(harness, "b", 2), add(harness, "c", 1)
    assert assign(harness) == {"cases": 3, "assigned": 2, "clusters": 1, "unclustered": 1}
    assert [number_of(case) for case in same + strange] == [2, 2, None]
    assert same[0].strength == 1


def test_a_failure_is_looked_at_once(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    add(harness, "c", 1)
    assert assign(harness)["cases"] == 1
    assert assign_failures(DEV, harness, never, lambda *_: None)["cases"] == 0


def test_without_clusters_no_embedder_is_loaded(harness: Harness) -> None:
    add(harness, "a")
    assert assign_failures(DEV, harness, never, lambda *_: None)["cases"] == 0


def test_a_new_failure_of_a_resolved_cluster_makes_it_regress_and_the_trail_says_why(
    harness: Harness,
) -> None:
    add(harness, "a")
    cluster(harness)
    found = Cluster.objects.get()
    move(found, ClusterState.RESOLVED, DEV)
    (new,) = add(harness, "a", 1)
    assign(harness)
    found.refresh_from_db()
    assert found.state == ClusterState.REGRESSED
    event = Event.objects.get(verb="cluster.failures_assigned")
    assert (event.data["cases"], bool(event.reason)) == ([new.pk], True)
    assert Event.objects.get(verb="cluster.regressed").reason


def test_what_people_took_out_and_what_is_ignored_stays_out(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    (pinned,), (ignored,) = (
        add(harness, "a", 1, is_pinned=True),
        add(harness, "a", 1, state=CaseState.IGNORED),
    )
    assign(harness)
    assert [number_of(pinned), number_of(ignored)] == [None, None]


def test_an_unclustered_failure_follows_a_new_one_that_says_the_same(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    (old,) = add(harness, "a", 1)
    (new,) = add(harness, "a", 1)
    FailureCase.objects.filter(pk=old.pk).update(embedded_text="a 0\na 0")
    text = FailureCase.objects.exclude(cluster=None).values_list("embedded_text", flat=True)[0]
    FailureCase.objects.filter(pk=old.pk).update(embedded_text=text)
    FailureCase.objects.filter(pk=new.pk).update(title=text, symptom="", embedded_text="")
    assign(harness)
    assert number_of(new) == 1


def test_what_is_merged_takes_failures_in_for_its_new_owner(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b")
    cluster(harness)
    one, two = Cluster.objects.order_by("number")
    FailureCase.objects.filter(cluster=two).update(cluster=one)
    Cluster.objects.filter(pk=two.pk).update(merged_into=one)
    (new,) = add(harness, "b", 1)
    assign(harness)
    assert number_of(new) == 1


def test_what_is_cut_off_before_it_is_known_where_failures_belong_is_done_again(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    (new,) = add(harness, "a", 1)

    def broken() -> Embedder:
        raise LoopError("no memory")

    with pytest.raises(LoopError):
        assign_failures(DEV, harness, broken, lambda *_: None)
    assert number_of(new) is None
    assert assign(harness)["assigned"] == 1
    assert number_of(new) == 1


def test_what_comes_to_an_ignored_cluster_is_ignored_for_its_reason(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    ignore_cluster(DEV, Cluster.objects.get(), "not ours")
    (assigned,) = add(harness, "a", 1)
    assign(harness)
    assigned.refresh_from_db()
    assert (assigned.state, assigned.note, number_of(assigned)) == (CaseState.IGNORED, "not ours", 1)
    event = Event.objects.filter(verb="cluster.moved").latest("pk")
    assert (event.data["count"], bool(event.reason)) == (1, True)


def test_what_is_merged_meanwhile_takes_failures_in_for_its_new_owner(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b")
    cluster(harness)
    one, two = Cluster.objects.order_by("number")
    (new,) = add(harness, "b", 1)

    def slow() -> Embedder:
        merge_clusters(DEV, one, [two])
        return Topics()

    # The clusters have been read when the embedder is built.
    assert assign_failures(DEV, harness, slow, lambda *_: None)["assigned"] == 1
    assert number_of(new) == 1


def test_a_failure_whose_content_changes_meanwhile_is_looked_at_again(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    (new,) = add(harness, "c", 1)

    def slow() -> Embedder:
        FailureCase.objects.filter(pk=new.pk).update(title="a again", request=A, content_digest="other")
        return Topics()

    assign_failures(DEV, harness, slow, lambda *_: None)
    assert assign(harness) == {"cases": 1, "assigned": 1, "clusters": 1, "unclustered": 0}


A = {"danmaku": [{"user": "x", "text": "a again"}], "history": []}


def test_nearest_members_elect_the_cluster_and_its_reach_decides() -> None:
    angles = np.radians([0, 8, 16, 60, 68])
    members = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    centres = np.stack([members[1], (members[3] + members[4]) / 2])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    reach = Reach(np.array([1, 2]), centres, {1: 0.95, 2: 0.95})
    asked = np.radians([10, 62, 35, 180])
    vectors = np.stack([np.cos(asked), np.sin(asked)], axis=1).astype(np.float32)
    owners, strengths = choose_clusters(vectors, reach, (np.array([1, 1, 1, 2, 2]), members))
    assert owners.tolist() == [1, 2, 0, 0]
    assert strengths[0] == pytest.approx(np.cos(np.radians(2)), abs=1e-4)
