from collections.abc import Sequence

import numpy as np
import pytest

from evolution.adapters.clustering import HdbscanClusterer
from evolution.adapters.embedding import SentenceTransformerEmbedder, build_embedder
from evolution.adapters.formats.detect import read_file
from evolution.loop.cases import ImportReport, store_records
from evolution.loop.clusters import Known, cluster_failures, recognise
from evolution.models import Cluster, DatasetCase, Embedding, FailureCase, Harness
from evolution.ports import Grouping, Vectors
from evolution.states import CaseState, ClusterState
from evolution.transitions import move
from tests.evolution.intake import TAU_BENCH, make_failure, needs_data
from tests.evolution.measured import DEV, make_case, make_version

pytestmark = pytest.mark.django_db


class Topics:
    """Embeds a text by its first character, so that tests choose the groups."""

    name = "topics"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.eye(26, dtype=np.float32)[[ord(text[0]) - ord("a") for text in texts]]


class ByRow:
    """Groups equal rows of three and more."""

    def group(self, vectors: Vectors) -> Grouping:
        topics = [int(row) for row in vectors.argmax(axis=1)] if len(vectors) else []
        labels = [topic if topics.count(topic) >= 3 else -1 for topic in topics]
        return Grouping(labels, [float(label >= 0) for label in labels])


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return build_embedder()


def cluster(harness: Harness, topics: Topics | None = None) -> dict[str, int]:
    result = cluster_failures(DEV, harness, topics or Topics(), ByRow(), lambda *_: None)
    return {name: result[name] for name in ("cases", "clusters", "unclustered")}


def add(harness: Harness, topic: str, count: int = 3) -> list[FailureCase]:
    return [make_failure(harness, f"{topic} {number}") for number in range(count)]


def number_of(case: FailureCase) -> int | None:
    case.refresh_from_db()
    return case.cluster.number if case.cluster else None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_failures_have_an_answer(
    harness: Harness, count: int, embedder: SentenceTransformerEmbedder
) -> None:
    add(harness, "a", count)
    result = cluster_failures(DEV, harness, embedder, HdbscanClusterer(), lambda *_: None)
    assert (result["cases"], result["clusters"] * 3 + result["unclustered"]) == (count, count)


def test_groups_become_clusters_and_the_rest_is_unclustered(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b", 4), add(harness, "c", 2)
    assert cluster(harness) == {"cases": 9, "clusters": 2, "unclustered": 2}
    sizes = {found.number: found.members.count() for found in Cluster.objects.all()}
    assert sizes == {1: 3, 2: 4}


def test_clusters_keep_their_numbers(harness: Harness) -> None:
    old = add(harness, "b")
    cluster(harness)
    new, grown = add(harness, "a"), add(harness, "b", 5)
    cluster(harness)
    assert {number_of(case) for case in old + grown} == {1}
    assert {number_of(case) for case in new} == {2}


def test_a_cluster_without_its_members_is_recognised_by_its_centroid(harness: Harness) -> None:
    for case in add(harness, "a"):
        cluster(harness)
        case.refresh_from_db()
    for case in FailureCase.objects.all():
        move(case, CaseState.RESOLVED, DEV)
    again = add(harness, "a")
    cluster(harness)
    assert {number_of(case) for case in again} == {1}


def test_failures_that_come_back_make_a_resolved_cluster_regress(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    for case in FailureCase.objects.all():
        move(case, CaseState.RESOLVED, DEV)
    cluster(harness)
    assert Cluster.objects.get().state == ClusterState.RESOLVED
    add(harness, "a")
    cluster(harness)
    assert Cluster.objects.get().state == ClusterState.REGRESSED


def test_ignored_failures_keep_their_cluster(harness: Harness) -> None:
    ignored, *_others = add(harness, "a", 4)
    cluster(harness)
    ignored.refresh_from_db()
    move(ignored, CaseState.IGNORED, DEV, "无关")
    assert cluster(harness)["cases"] == 3
    assert number_of(ignored) == 1


def test_states_of_clusters_stay_as_people_left_them(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    move(Cluster.objects.get(), ClusterState.DIAGNOSED, DEV)
    add(harness, "a")
    cluster(harness)
    assert Cluster.objects.get().state == ClusterState.DIAGNOSED


def test_a_text_is_embedded_once(harness: Harness) -> None:
    add(harness, "a")
    topics = Topics()
    cluster(harness, topics), cluster(harness, topics)
    assert len(topics.embedded) == len(set(topics.embedded)) == Embedding.objects.count() == 3


def test_guard_cases_lend_a_cluster_no_words(harness: Harness) -> None:
    make_version(harness, [make_case("g", "guard")])
    guard = DatasetCase.objects.get()
    for _ in range(3):
        make_failure(harness, "a 泄露的词", dataset_case=guard)
        make_failure(harness, "a 公开说法")
    cluster(harness)
    name = Cluster.objects.get().name
    assert "泄露" not in name
    assert "公开" in name


def test_shared_members_outweigh_centroids() -> None:
    x, y = np.eye(2, dtype=np.float32)
    known = [Known(1, frozenset({1, 2, 3}), y), Known(2, frozenset({8}), x)]
    assert recognise([(frozenset({1, 2, 9}), x)], known) == {0: 1}
    assert recognise([(frozenset({7, 9}), x)], known) == {0: 2}
    assert recognise([(frozenset({3, 4, 5, 6, 7, 9}), -x)], known) == {}


def test_a_cluster_that_splits_goes_with_the_larger_part() -> None:
    x = np.eye(2, dtype=np.float32)[0]
    known = [Known(1, frozenset(range(10)), None)]
    groups = [(frozenset({0, 1, 2}), x), (frozenset({3, 4, 5, 6, 7}), x)]
    assert recognise(groups, known) == {1: 1}


@needs_data
def test_real_failures_give_the_same_clusters_every_time(embedder: SentenceTransformerEmbedder) -> None:
    found = []
    for name in ("first", "second"):
        harness = Harness.objects.create(name=name, kind="agent", path=f"{name}.git")
        store_records(DEV, harness, read_file(TAU_BENCH), ImportReport())
        Embedding.objects.all().delete()
        result = cluster_failures(DEV, harness, embedder, HdbscanClusterer(), lambda *_: None)
        members = FailureCase.objects.filter(harness=harness).order_by("source_id")
        found.append(list(members.values_list("source_id", "cluster__number", "cluster__name")))
    assert found[0] == found[1]
    assert result["cases"] == 116
    assert 3 <= result["clusters"] <= 20
    assert result["unclustered"] < 40
