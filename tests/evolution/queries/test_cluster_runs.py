from types import SimpleNamespace

import pytest

from evolution.models import FailureCase
from evolution.queries.cluster_map import ClusterMap, count_off_map, draw_map
from evolution.queries.cluster_runs import ABSENT, UNCLUSTERED, compare_runs, list_flow, read_owners
from tests.evolution.clusterings import keep_run
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import make_harness

Two = SimpleNamespace


@pytest.fixture
def two(db: None) -> Two:
    """Before, a has failures 0-3, b has 4-5, 6 is in none; after, a has 0-2, c has 3 and 6, 4 and 7 are in none."""
    harness = make_harness()
    a, b, c = (make_cluster(harness, number) for number in (1, 2, 3))
    cases = [make_failure(harness, f"failure {n}") for n in range(8)]
    before = keep_run(harness, {a: cases[:4], b: cases[4:6], None: cases[6:7]})
    after = keep_run(harness, {a: cases[:3], c: [cases[3], cases[6]], None: [cases[4], cases[7]]})
    return Two(a=a, b=b, c=c, cases=cases, before=before, after=after)


def test_every_failure_of_either_clustering_is_counted_once(two: Two) -> None:
    found = compare_runs(two.before, two.after)

    # 0-2 stay, 3 moves from a to c, 6 joins c, 4 leaves b, 5 is gone, 7 is new
    assert (found.stayed, found.moved, found.joined, found.left, found.loose) == (3, 1, 1, 1, 0)
    assert (found.common, found.came, found.gone) == (6, 1, 1)
    assert found.kept_share == 3 / 5


def test_a_cluster_says_where_its_failures_came_from_and_went(two: Two) -> None:
    fates = {fate.cluster.number: fate for fate in compare_runs(two.before, two.after).fates}

    assert (fates[1].before, fates[1].after, fates[1].stayed) == (4, 3, 3)
    assert fates[2].is_gone
    assert [(flow.owner, flow.count) for flow in fates[2].went] == [(ABSENT, 1), (UNCLUSTERED, 1)]
    assert fates[3].is_new
    assert {(flow.owner, flow.count) for flow in fates[3].came} == {(UNCLUSTERED, 1), (two.a.pk, 1)}


def test_who_went_from_one_place_to_another_is_listed(two: Two) -> None:
    cases, count = list_flow(two.before, two.after, two.a.pk, two.c.pk)

    assert ([case.pk for case in cases], count) == ([two.cases[3].pk], 1)


def test_a_clustering_compared_with_itself_has_nothing_but_what_stayed(two: Two) -> None:
    found = compare_runs(two.before, two.before)

    assert (found.stayed, found.moved, found.came, found.gone, found.loose) == (6, 0, 0, 0, 1)
    assert read_owners(two.before).tolist() == [two.a.pk] * 4 + [two.b.pk] * 2 + [UNCLUSTERED]


def test_the_map_has_the_open_failures_in_the_clusters_of_now_or_of_then(two: Two) -> None:
    FailureCase.objects.filter(pk=two.cases[0].pk).update(state="resolved")
    FailureCase.objects.filter(pk=two.cases[1].pk).update(cluster=two.c)

    now, then = draw_map(two.before), draw_map(two.before, as_it_was=True)

    assert now.ids == [case.pk for case in two.cases[1:7]]
    assert _numbers(now) == [3, 0, 0, 0, 0, 0]
    assert _numbers(then) == [1, 1, 1, 2, 2, 0]
    assert count_off_map(two.before) == 1


def _numbers(drawn: ClusterMap) -> list[int]:
    return [drawn.clusters[owner].number if owner >= 0 else 0 for owner in drawn.owners]
