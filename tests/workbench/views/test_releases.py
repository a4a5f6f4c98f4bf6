from django.test import Client

from evolution.loop.repositories import open_repository
from evolution.models import Event, Release
from harness_repo.git.objects import Author
from tests.workbench.views.conftest import World


def promote(operator: Client, world: World) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})


def test_rolling_back_restores_the_files_and_keeps_history(world: World, operator: Client) -> None:
    promote(operator, world)

    operator.post(world.url("releases/1/roll-back/"), {"reason": "prices were wrong"})

    repository = open_repository(world.harness)
    assert repository.read_file("main", "prompts/role.md") == b"knows: q1 q2\n"
    assert Release.objects.order_by("-number")[0].reason == "prices were wrong"


def test_rolling_back_needs_a_reason(world: World, operator: Client) -> None:
    promote(operator, world)

    answer = operator.post(world.url("releases/1/roll-back/"), follow=True)

    assert "error" in [message.level_tag for message in answer.context["messages"]]
    assert world.harness.releases.count() == 2


def test_a_main_that_no_release_names_can_be_rolled_back_to_the_newest(
    world: World, operator: Client
) -> None:
    repository = open_repository(world.harness)
    assert world.url("releases/1/roll-back/") not in operator.get(world.url("releases/")).content.decode()
    edit = {"prompts/a.md": b"x\n"}
    repository.commit("main", edit, parent="main", author=Author("x", "x@y"), message="by hand")

    assert world.url("releases/1/roll-back/") in operator.get(world.url("releases/")).content.decode()
    operator.post(world.url("releases/1/roll-back/"), {"reason": "nobody measured it"})

    assert world.harness.releases.order_by("-number")[0].commit == repository.resolve("main")


def test_a_developer_is_told_who_may_roll_back(world: World, developer: Client) -> None:
    page = developer.get(world.url("releases/")).content.decode()

    assert "needs an operator" in page


def test_the_audit_trail_leads_to_what_it_is_about(world: World, operator: Client) -> None:
    promote(operator, world)

    links = {item.event.verb: item.url for item in operator.get(world.url("events/")).context["events"]}

    assert links["step.promoted"] == world.url("steps/1/")
    assert links["release.promotion"] == world.url("releases/")
    assert Event.objects.get(verb="step.promoted").actor == "operator"


def test_a_release_measured_after_it_was_made_has_its_scores(world: World, viewer: Client) -> None:
    (first,) = viewer.get(world.url("releases/")).context["releases"]

    assert first.release.evaluation is None
    assert (first.evaluation, first.is_later) == (world.step.base_evaluation, True)
