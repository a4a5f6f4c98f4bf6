import json
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from evolution.actions.bulk import move_to_cluster
from evolution.actions.clusters import ignore_cluster, merge_clusters, split_cluster
from evolution.adapters.clustering import HdbscanClusterer
from evolution.adapters.embedding import SentenceTransformerEmbedder, build_embedder
from evolution.adapters.formats.detect import read_file
from evolution.loop.cases import ImportReport, store_records
from evolution.loop.cluster_runs import read_ids, read_points
from evolution.loop.clusters import cluster_failures
from evolution.loop.embeddings import digest_of
from evolution.loop.masking import current_masker
from evolution.models import Cluster, ClusterRun, DatasetCase, Embedding, Event, FailureCase, Harness
from evolution.ports import Grouping, Vectors
from evolution.states import CaseState, ClusterState
from evolution.transitions import move
from tests.evolution.clustering import ByRow, Topics, add, cluster, number_of
from tests.evolution.intake import DATA, TAU_BENCH, make_cluster, make_failure, make_record, needs_data, store
from tests.evolution.measured import DEV, make_case, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return build_embedder()


class Remembering:
    """The real vectors; a text that several tests embed is embedded once."""

    def __init__(self, embedder: SentenceTransformerEmbedder) -> None:
        self.name, self._embedder = embedder.name, embedder
        self._known: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


@pytest.fixture(scope="module")
def remembering(embedder: SentenceTransformerEmbedder) -> Remembering:
    return Remembering(embedder)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_failures_have_an_answer(
    harness: Harness, count: int, embedder: SentenceTransformerEmbedder
) -> None:
    add(harness, "a", count)
    result = cluster_failures(DEV, harness, embedder, HdbscanClusterer(), lambda *_: None)
    assert (result["cases"], result["clusters"] * 3 + result["unclustered"]) == (count, count)


def test_groups_become_clusters_and_the_rest_is_unclustered(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b", 4), add(harness, "c", 2)
    result = cluster(harness)
    assert (result["cases"], result["clusters"], result["unclustered"]) == (9, 2, 2)
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


def test_a_clustering_is_kept_with_its_members_and_its_map(harness: Harness) -> None:
    one, other = add(harness, "a"), add(harness, "b", 2)
    run = ClusterRun.objects.get(pk=cluster(harness)["run"])
    group = run.groups.get()
    assert (group.cluster.number, group.origin) == (1, "new")
    assert read_ids(group.case_ids).tolist() == [case.pk for case in one]
    assert read_ids(run.unclustered).tolist() == [case.pk for case in other]
    ids, places = read_points(run)
    assert (ids.tolist(), places.shape) == ([case.pk for case in one + other], (5, 2))
    assert run.figures["cases"] == 5
    assert run.parameters["embedder"] == "topics"


def test_every_change_that_no_person_made_is_in_the_audit_trail(harness: Harness) -> None:
    first = add(harness, "a")
    cluster(harness)
    FailureCase.objects.filter(pk__in=[case.pk for case in first]).update(embedded_text="b")
    add(harness, "c")
    cluster(harness)
    verbs = Event.objects.filter(target_kind="cluster").order_by("pk").values_list("verb", "target_id")
    one, two = Cluster.objects.order_by("number")
    assert ("cluster.found", one.pk) in verbs
    assert ("cluster.found", two.pk) in verbs
    assert all(Event.objects.filter(target_kind="cluster").values_list("reason", flat=True))


def test_a_cluster_that_loses_all_its_failures_is_said_to_have(harness: Harness) -> None:
    one = add(harness, "a")
    cluster(harness)
    add(harness, "b", 4)
    FailureCase.objects.filter(pk__in=[case.pk for case in one]).update(embedded_text="b like those")
    Cluster.objects.update(centroid=None)
    moved = make_cluster(harness, 9, state=ClusterState.NEW)
    FailureCase.objects.filter(pk=one[0].pk).update(cluster=moved)
    cluster(harness)
    event = Event.objects.get(verb="cluster.emptied")
    assert event.target_id == moved.pk
    assert (event.data["lost"], event.data["to"]) == (1, {"1": 1})


def test_a_failure_that_a_person_moves_meanwhile_stays_there(harness: Harness) -> None:
    cases = add(harness, "a")
    mine = make_cluster(harness, 5)

    class Slow(ByRow):
        def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:
            move_to_cluster(DEV, harness, [cases[0].pk], mine)
            return super().group(vectors, known)

    cluster_failures(DEV, harness, Topics(), Slow(), lambda *_: None)
    assert [number_of(case) for case in cases] == [5, 6, 6]


def test_a_split_holds_in_later_clusterings_and_draws_what_is_like_it(harness: Harness) -> None:
    cases = add(harness, "a", 6)
    cluster(harness)
    same = make_failure(harness, cases[0].title)
    split_cluster(DEV, Cluster.objects.get(), [cases[0].pk, cases[1].pk], "另一种")
    more = add(harness, "a")
    cluster(harness)
    assert [number_of(case) for case in cases] == [2, 2, 1, 1, 1, 1]
    assert number_of(same) == 2
    assert None not in {number_of(case) for case in more}


def test_merged_clusters_stay_one(harness: Harness) -> None:
    cases = add(harness, "a") + add(harness, "b")
    cluster(harness)
    one, two = Cluster.objects.order_by("number")
    merge_clusters(DEV, one, [two], "同一个原因")
    cases += add(harness, "b")
    cluster(harness)
    assert {number_of(case) for case in cases} == {1}
    for case in FailureCase.objects.all():
        move(case, CaseState.RESOLVED, DEV)
    again = add(harness, "b")
    cluster(harness)
    assert {number_of(case) for case in again} == {1}


def test_what_people_take_out_stays_out(harness: Harness) -> None:
    case, *_others = add(harness, "a", 4)
    cluster(harness)
    move_to_cluster(DEV, harness, [case.pk], None)
    cluster(harness)
    assert number_of(case) is None


def test_a_split_holds_when_the_larger_part_was_split_off(harness: Harness) -> None:
    cases = add(harness, "a", 10)
    cluster(harness)
    split_cluster(DEV, Cluster.objects.get(), [case.pk for case in cases[:6]], "另一种")
    for _ in range(2):
        cluster(harness)
        assert [number_of(case) for case in cases] == [2] * 6 + [1] * 4


def test_what_comes_back_word_for_word_makes_a_resolved_cluster_regress(harness: Harness) -> None:
    store(harness, *(make_record(str(number), "a") for number in range(3)))
    case = FailureCase.objects.get()
    found = make_cluster(harness, 1, state=ClusterState.RESOLVED)
    FailureCase.objects.update(cluster=found, state=CaseState.RESOLVED)
    store(harness, make_record("another", "a"))
    case.refresh_from_db()
    found.refresh_from_db()
    assert (case.state, found.state) == (CaseState.OPEN, ClusterState.REGRESSED)


def test_clusters_that_people_merge_meanwhile_are_one(harness: Harness) -> None:
    cases = add(harness, "a") + add(harness, "b")
    cluster(harness)
    cases += add(harness, "b")
    one, two = Cluster.objects.order_by("number")

    class Slow(ByRow):
        def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:
            merge_clusters(DEV, one, [two])
            return super().group(vectors, known)

    result = cluster_failures(DEV, harness, Topics(), Slow(), lambda *_: None)
    assert {number_of(case) for case in cases} == {1}
    group = ClusterRun.objects.get(pk=result["run"]).groups.get()
    assert (group.cluster, sorted(read_ids(group.case_ids).tolist())) == (one, [case.pk for case in cases])


def test_a_cluster_that_a_person_ignores_meanwhile_does_not_stop_the_clustering(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b")
    cluster(harness)
    one, two = Cluster.objects.order_by("number")
    FailureCase.objects.filter(cluster=one).update(state=CaseState.RESOLVED)

    class Slow(ByRow):
        def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:
            for found in (one, two):
                ignore_cluster(DEV, found, "x")
            return super().group(vectors, known)

    cluster_failures(DEV, harness, Topics(), Slow(), lambda *_: None)
    assert set(Cluster.objects.values_list("state", flat=True)) == {ClusterState.IGNORED}


ZH = "crosswoz_intents/crosswoz_user_intents_zh.jsonl"
EN = "intents/banking77_test.tsv"


def read_texts(name: str, count: int) -> list[str]:
    """Some of the texts of a file, from all over it, in no order."""
    lines = (DATA / name).read_text().splitlines()
    texts = [json.loads(line)["text"] if name == ZH else line.split("\t")[0] for line in lines[1:]]
    return sorted(set(texts), key=digest_of)[:count]


def add_texts(harness: Harness, texts: Sequence[str]) -> None:
    for text in texts:
        make_failure(harness, text, embedded_text=text)


@needs_data
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([(ZH, 0, 500)], [(ZH, 500, 600)], id="a fifth more of the same kind"),
        pytest.param([(ZH, 0, 300), (EN, 0, 300)], [(ZH, 300, 360), (EN, 300, 360)], id="of both kinds"),
        pytest.param([(ZH, 0, 100)], [(EN, 0, 300)], id="thrice as many of another kind"),
        pytest.param([(EN, 0, 300)], [(ZH, 0, 300)], id="as many of another kind"),
    ],
)
def test_known_failures_stay_in_their_clusters_when_others_come(
    harness: Harness,
    remembering: Remembering,
    old: list[tuple[str, int, int]],
    new: list[tuple[str, int, int]],
) -> None:
    texts = {name: read_texts(name, 600) for name in (ZH, EN)}
    run = partial(cluster_failures, DEV, harness, remembering, HdbscanClusterer(), lambda *_: None)
    for name, start, end in old:
        add_texts(harness, texts[name][start:end])
    run()
    one, two, three, *others = Cluster.objects.order_by("number")
    merge_clusters(DEV, one, [two])
    split_off = list(three.members.order_by("pk").values_list("pk", flat=True)[:2])
    split_cluster(DEV, three, split_off, "by people")
    before = dict(FailureCase.objects.exclude(cluster=None).values_list("pk", "cluster_id"))
    pinned = list(FailureCase.objects.filter(is_pinned=True).values_list("pk", "cluster_id"))
    for name, start, end in new:
        add_texts(harness, texts[name][start:end])
    run()
    after = dict(FailureCase.objects.values_list("pk", "cluster_id"))
    assert len(others) >= 3
    assert len(before) > 80
    assert [(pk, after[pk]) for pk, _cluster in pinned] == pinned
    assert sum(after[pk] == cluster for pk, cluster in before.items()) >= 0.95 * len(before)
    assert not Cluster.objects.filter(state=ClusterState.ESCALATING).exists()


@needs_data
def test_real_failures_give_the_same_clusters_every_time(embedder: SentenceTransformerEmbedder) -> None:
    found = []
    for name in ("first", "second"):
        harness = Harness.objects.create(name=name, kind="agent", path=f"{name}.git")
        store_records(DEV, harness, read_file(TAU_BENCH), ImportReport(), masker=current_masker())
        Embedding.objects.all().delete()
        result = cluster_failures(DEV, harness, embedder, HdbscanClusterer(), lambda *_: None)
        members = FailureCase.objects.filter(harness=harness).order_by("source_id")
        found.append(list(members.values_list("source_id", "cluster__number", "cluster__name")))
    assert found[0] == found[1]
    assert result["cases"] == 116
    assert 3 <= result["clusters"] <= 20
    assert result["unclustered"] < 40
