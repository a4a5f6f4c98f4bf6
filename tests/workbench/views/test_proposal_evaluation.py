from django.test import Client

from evolution.actors import SYSTEM
from evolution.loop.predictions import settle_predictions
from evolution.models import Evaluation, Proposal
from evolution.states import EvaluationState
from evolution.transitions import record
from tests.evolution.measured import run
from tests.workbench.views.conftest import World

HTMX = {"HX-Request": "true", "HX-Target": "alone"}


def address(world: World, page: str) -> str:
    return world.url(f"proposals/{world.proposal.pk}/{page}/")


def test_a_developer_has_a_proposal_evaluated_alone(world: World, developer: Client) -> None:
    answer = developer.post(address(world, "evaluate"))

    assert answer["Location"] == world.url(f"proposals/{world.proposal.pk}/")
    proposal = Proposal.objects.get(pk=world.proposal.pk)
    assert proposal.alone_candidate is not None
    assert proposal.alone_candidate.commit == proposal.head_commit


def test_while_it_is_measured_the_part_asks_again_and_can_be_cancelled(
    world: World, developer: Client
) -> None:
    developer.post(address(world, "evaluate"))
    proposal = Proposal.objects.get(pk=world.proposal.pk)
    assert proposal.alone_candidate is not None

    part = developer.get(address(world, "alone"), headers=HTMX).content.decode()

    assert "<html" not in part
    assert 'hx-trigger="every 1500ms"' in part
    cancel = world.url(f"evaluations/{proposal.alone_candidate.pk}/cancel/")
    assert cancel in part
    back = developer.post(cancel, {"proposal": proposal.pk})
    assert back["Location"] == world.url(f"proposals/{proposal.pk}/")
    assert Evaluation.objects.get(pk=proposal.alone_candidate.pk).state == EvaluationState.CANCELLED


def test_a_measured_one_shows_figures_flips_and_how_its_predictions_came_out(
    world: World, developer: Client
) -> None:
    manifest = {"expected_keys": ["q3"], "at_risk": ["q1"], "at_risk_total": 1, "measured_on": 1}
    Proposal.objects.filter(pk=world.proposal.pk).update(manifest=manifest, model="<b>editor</b>")
    # The commit is the editor's: what people edited is no record of it.
    record(SYSTEM, "proposal.committed", world.proposal, commit=world.proposal.head_commit, files=[])
    developer.post(address(world, "evaluate"))
    proposal = Proposal.objects.get(pk=world.proposal.pk)
    for evaluation in filter(None, (proposal.alone_base, proposal.alone_candidate)):
        run(evaluation)
        settle_predictions(evaluation)

    part = developer.get(address(world, "alone"), headers=HTMX)
    page = developer.get(address(world, "alone"))

    assert "every 1500ms" not in part.content.decode()
    assert 'hx-swap-oob="true"' in part.content.decode()
    assert part.context["alone"].counts["fixed"] == 1
    assert [row.hits.hits for row in page.context["prediction"].rows] == [1, 1, 0]
    assert page.context["history"].proposals == 1
    assert "&lt;b&gt;editor" in page.content.decode()


def test_a_viewer_sees_the_figures_and_no_button(world: World, viewer: Client) -> None:
    page = viewer.get(address(world, "alone"))

    assert page.status_code == 200
    assert address(world, "evaluate") not in page.content.decode()
    assert viewer.post(address(world, "evaluate")).status_code == 403


def test_rules_of_a_manifest_are_shown_with_path_and_line(world: World, viewer: Client) -> None:
    rule = {
        "path": "prompts/role.md",
        "line": 7,
        "text": "<i>never</i> guess\u202e",
        "kind": "rule",
        "name": "",
    }
    rules = {
        "added": [rule],
        "removed": [],
        "changed": [],
        "totals": {"added": 1, "removed": 0, "changed": 0},
    }
    Proposal.objects.filter(pk=world.proposal.pk).update(
        manifest={"rules": rules, "growth": {"always": [1, 2]}}
    )

    page = viewer.get(address(world, "alone")).content.decode()

    assert "prompts/role.md:7" in page
    assert "&lt;i&gt;never&lt;/i&gt; guess" in page
    assert "\u202e" not in page


def test_the_comparison_of_a_steps_two_sides_tells_both_halves(world: World, viewer: Client) -> None:
    base, candidate = world.step.base_evaluation_id, world.step.candidate_evaluation_id

    page = viewer.get(world.url(f"comparison/?base={base}&candidate={candidate}"))

    shown, unseen = page.context["both_halves"]
    assert (shown.cases + unseen.cases, shown.fixed + unseen.fixed) == (12, 8)
