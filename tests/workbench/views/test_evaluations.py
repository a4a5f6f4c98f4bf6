import pytest
from django.test import Client

from evolution.models import CaseResult, Evaluation, FailureCase
from tests.workbench.views.conftest import World


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    assert world.step.base_evaluation is not None
    return world.step.base_evaluation


def test_scores_are_means_over_the_scored_results(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    overall = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).context["overall"]

    # two of twelve right; a wrong reply has effectiveness 0.5
    assert (overall.cases, overall.failing) == (12, 10)
    assert overall.accuracy == pytest.approx(100 * 2 / 12)
    assert overall.effectiveness == pytest.approx(100 * 7 / 12)


def test_an_error_is_no_score(world: World, viewer: Client, evaluation: Evaluation) -> None:
    wrong = CaseResult.objects.filter(evaluation=evaluation, accuracy=0).order_by("pk")[0]
    CaseResult.objects.filter(pk=wrong.pk).update(
        accuracy=None, effectiveness=None, error_kind="policy_error", error="down"
    )

    context = viewer.get(world.url(f"evaluations/{evaluation.pk}/")).context

    assert (context["overall"].cases, context["progress"].errors) == (11, 1)
    assert context["overall"].accuracy == pytest.approx(100 * 2 / 11)


def test_failures_are_taken_into_the_inbox(world: World, developer: Client, evaluation: Evaluation) -> None:
    developer.post(world.url(f"evaluations/{evaluation.pk}/take-failures/"))

    assert FailureCase.objects.filter(evaluation=evaluation).count() == 10


def test_a_running_evaluation_is_followed_and_can_be_cancelled(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(state="running", total=80)
    address = world.url(f"evaluations/{evaluation.pk}/")

    page = developer.get(address).content.decode()
    developer.post(f"{address}cancel/")

    evaluation.refresh_from_db()
    assert "every 1500ms" in page
    assert evaluation.state == "cancelled"


def test_a_cancelled_evaluation_is_resumed(world: World, developer: Client, evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(state="cancelled")
    CaseResult.objects.filter(evaluation=evaluation).order_by("pk")[0].delete()

    developer.post(world.url(f"evaluations/{evaluation.pk}/resume/"))

    evaluation.refresh_from_db()
    assert evaluation.state == "queued"


def test_an_evaluation_of_a_branch_is_started(world: World, developer: Client) -> None:
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": world.proposal.branch, "dataset_version": version.pk, "splits": ["dev"], "repeats": 2}

    answer = developer.post(world.url("evaluations/start/"), fields)

    evaluation = Evaluation.objects.order_by("-pk")[0]
    assert answer.headers["Location"] == world.url(f"evaluations/{evaluation.pk}/")
    assert (evaluation.commit, evaluation.repeats) == (world.proposal.head_commit, 2)


@pytest.mark.parametrize("ref", ["--upload-pack=x", "nowhere", ""])
def test_a_version_that_is_none_is_refused(world: World, developer: Client, ref: str) -> None:
    before = Evaluation.objects.count()
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": ref, "dataset_version": version.pk, "splits": ["dev"], "repeats": 1}

    developer.post(world.url("evaluations/start/"), fields)

    assert Evaluation.objects.count() == before


def test_a_sealed_split_is_not_offered(world: World, developer: Client) -> None:
    before = Evaluation.objects.count()
    version = world.harness.datasets.get().versions.get()
    fields = {"ref": "main", "dataset_version": version.pk, "splits": ["sealed"], "repeats": 1}

    developer.post(world.url("evaluations/start/"), fields)

    assert Evaluation.objects.count() == before


def test_the_means_of_an_unfinished_evaluation_are_marked(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    address = world.url(f"evaluations/{evaluation.pk}/")
    assert "so far" not in viewer.get(address).content.decode()

    Evaluation.objects.filter(pk=evaluation.pk).update(state="running", total=80)

    assert "so far, 12 of 80" in viewer.get(address).content.decode()
    assert "so far" in viewer.get(world.url("evaluations/")).content.decode()
