import pytest

from evolution.actions.bulk import move_to_cluster
from evolution.actions.clusters import (
    ignore_cluster,
    merge_clusters,
    rename_cluster,
    reopen_cluster,
    split_cluster,
    start_clustering,
)
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.models import Cluster, Event, FailureCase, Harness, Job
from evolution.states import CaseState, ClusterState
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV, VIEWER

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def test_two_clicks_start_one_clustering(harness: Harness) -> None:
    assert start_clustering(DEV, harness) == start_clustering(DEV, harness)
    assert Job.objects.get().created_by == "dev"
    with pytest.raises(NotAllowed):
        start_clustering(VIEWER, harness)


def test_a_cluster_is_renamed(harness: Harness) -> None:
    cluster = make_cluster(harness)
    rename_cluster(DEV, cluster, "  价格\n问题 ")
    assert Event.objects.get().data == {"old": "cluster 1", "new": "价格 问题"}
    with pytest.raises(LoopError):
        rename_cluster(DEV, cluster, " ")


def test_ignoring_a_cluster_puts_its_failures_aside(harness: Harness) -> None:
    cluster = make_cluster(harness, texts=("a", "b"))
    for _ in range(2):
        ignore_cluster(DEV, cluster, "不归我们管")
    assert cluster.state == ClusterState.IGNORED
    assert set(FailureCase.objects.values_list("state", "note")) == {(CaseState.IGNORED, "不归我们管")}


def members(cluster: Cluster) -> list[tuple[str, bool]]:
    return list(FailureCase.objects.filter(cluster=cluster).order_by("pk").values_list("title", "is_pinned"))


def test_a_cluster_that_was_put_aside_comes_back_with_its_failures(harness: Harness) -> None:
    cluster = make_cluster(harness, texts=("a", "b"))
    ignore_cluster(DEV, cluster, "x")
    reopen_cluster(DEV, cluster, "doch")
    assert cluster.state == ClusterState.NEW
    assert set(FailureCase.objects.values_list("state", "note")) == {(CaseState.OPEN, "")}


def test_merging_moves_the_failures_and_keeps_the_number_of_the_first(harness: Harness) -> None:
    one, two = make_cluster(harness, 1, ("a",)), make_cluster(harness, 2, ("b", "c"))
    assert merge_clusters(DEV, one, [two, one], "一回事") == 2
    two.refresh_from_db()
    assert (two.merged_into, members(two), len(members(one))) == (one, [], 3)
    event = Event.objects.get(verb="cluster.merged")
    assert (event.reason, event.data) == ("一回事", {"into": 1, "cases": 2})


def test_what_was_merged_is_not_merged_again(harness: Harness) -> None:
    one, two, three = (make_cluster(harness, number) for number in (1, 2, 3))
    merge_clusters(DEV, one, [two])
    for wrong in ([two], [one], []):
        with pytest.raises(LoopError):
            merge_clusters(DEV, three if wrong else one, wrong if wrong != [one] else [])
    with pytest.raises(LoopError):
        move_to_cluster(DEV, harness, [], two)


def test_clusters_of_two_harnesses_stay_apart(harness: Harness) -> None:
    other = make_cluster(Harness.objects.create(name="y", kind="agent", path="y.git"))
    with pytest.raises(LoopError):
        merge_clusters(DEV, make_cluster(harness), [other])


def test_splitting_pins_the_chosen_failures_in_a_cluster_of_their_own(harness: Harness) -> None:
    cluster = make_cluster(harness, 1, ("a", "b", "c"))
    chosen = FailureCase.objects.filter(title__in="ab").values_list("pk", flat=True)
    new = split_cluster(DEV, cluster, list(chosen), " 另一种 ", "不同原因")
    assert (new.number, new.name, new.named_by) == (2, "另一种", "people")
    assert members(new) == [("a", True), ("b", True)]
    assert members(cluster) == [("c", False)]
    assert Event.objects.get(verb="cluster.split").data["into"] == 2


@pytest.mark.parametrize("chosen", ["", "abc", "x"])
def test_splitting_off_none_or_all_is_refused(harness: Harness, chosen: str) -> None:
    cluster = make_cluster(harness, 1, ("a", "b", "c"))
    ids = [case.pk for case in FailureCase.objects.filter(title__in=chosen)]
    with pytest.raises(LoopError):
        split_cluster(DEV, cluster, ids, "x")


def test_moved_failures_are_pinned_and_those_of_other_harnesses_stay(harness: Harness) -> None:
    cluster = make_cluster(harness, 1, ("a",))
    case, stranger = (
        make_failure(harness, "b"),
        make_failure(Harness.objects.create(name="y", kind="agent", path="y.git"), "z"),
    )
    assert move_to_cluster(DEV, harness, [case.pk, stranger.pk], cluster).count == 1
    assert members(cluster) == [("a", False), ("b", True)]
    with pytest.raises(NotAllowed):
        move_to_cluster(VIEWER, harness, [case.pk], None)


def test_reopening_a_cluster_leaves_alone_what_people_had_put_aside_before(harness: Harness) -> None:
    cluster = make_cluster(harness, texts=("a", "b"))
    FailureCase.objects.filter(title="a").update(state=CaseState.IGNORED, note="duplicate of ticket 5")
    ignore_cluster(DEV, cluster, "not ours")
    reopen_cluster(DEV, cluster)
    states = FailureCase.objects.order_by("title").values_list("state", "note")
    assert list(states) == [(CaseState.IGNORED, "duplicate of ticket 5"), (CaseState.OPEN, "")]


def test_nothing_is_put_into_an_ignored_cluster(harness: Harness) -> None:
    ignored, other = make_cluster(harness, 1), make_cluster(harness, 2, ("a",))
    ignore_cluster(DEV, ignored, "x")
    with pytest.raises(LoopError, match="reopen it first"):
        merge_clusters(DEV, ignored, [other])
    with pytest.raises(LoopError, match="reopen it first"):
        move_to_cluster(DEV, harness, [other.members.get().pk], ignored)
    assert len(members(other)) == 1


def test_what_was_merged_away_is_neither_renamed_nor_ignored_nor_reopened(harness: Harness) -> None:
    one, two = make_cluster(harness, 1), make_cluster(harness, 2)
    merge_clusters(DEV, one, [Cluster.objects.get(pk=two.pk)])
    for act in (rename_cluster, ignore_cluster, reopen_cluster):
        with pytest.raises(LoopError, match="was merged into"):
            act(DEV, two, "x")


def test_what_is_merged_into_a_resolved_cluster_makes_it_regress(harness: Harness) -> None:
    over = make_cluster(harness, 1, state=ClusterState.RESOLVED)
    merge_clusters(DEV, over, [make_cluster(harness, 2, ("a",))])
    over.refresh_from_db()
    assert over.state == ClusterState.REGRESSED
    assert Event.objects.get(verb="cluster.regressed").reason


def test_what_says_the_same_as_a_chosen_failure_and_was_left_out_of_a_split_is_pinned_where_it_is(
    harness: Harness,
) -> None:
    cluster = make_cluster(harness, 1, ("a", "b", "c"))
    FailureCase.objects.filter(title__in="ab").update(embedded_text="the same")
    FailureCase.objects.filter(title="c").update(embedded_text="another")
    split_cluster(DEV, cluster, [FailureCase.objects.get(title="a").pk], "x")
    assert members(cluster) == [("b", True), ("c", False)]
