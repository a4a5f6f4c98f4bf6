import pytest

from evolution.actions.clusters import ignore_cluster, rename_cluster, start_clustering
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.models import Event, FailureCase, Harness, Job
from evolution.states import CaseState, ClusterState
from tests.evolution.intake import make_cluster
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
