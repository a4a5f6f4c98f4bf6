from dataclasses import asdict
from typing import Any

import pytest

from evolution.actions.steps import revise_step
from evolution.actors import SYSTEM
from evolution.loop import steps
from evolution.loop.flips import CasePair, CaseScores
from evolution.loop.predictions import Hits, best_prediction, score_prediction, settle_predictions
from evolution.models import Proposal, Step
from evolution.states import ProposalState
from evolution.transitions import record
from tests.evolution.measured import DEV, MANY, make_harness, make_proposal, make_version, measure, teach

PASS, FAIL = CaseScores(1, 1, passes=1), CaseScores(0, 0.5)
ERROR = CaseScores(None, None, errors=1)


def pair(key: str, base: CaseScores | None, candidate: CaseScores | None, split: str = "dev") -> CasePair:
    return CasePair(key, split, "any", base, candidate)


PAIRS = [
    pair("fixed1", FAIL, PASS),
    pair("fixed2", FAIL, PASS),
    pair("fixed3", FAIL, PASS),
    pair("fails1", FAIL, FAIL),
    pair("fails2", FAIL, FAIL),
    pair("broken1", PASS, FAIL),
    pair("broken2", PASS, FAIL),
    pair("passes1", PASS, PASS),
    pair("passes2", PASS, PASS),
    pair("passes3", PASS, PASS),
    pair("error", FAIL, ERROR),
    pair("gone", FAIL, None),
]


def manifest(fixes: list[str], at_risk: list[str], **more: Any) -> dict[str, Any]:
    return {
        "expected_keys": fixes,
        "at_risk": at_risk,
        "at_risk_total": len(at_risk),
        "measured_on": 1,
        **more,
    }


def test_fixes_count_where_the_case_failed_on_the_base_and_is_measured() -> None:
    score = score_prediction(
        PAIRS, manifest(["fixed1", "fixed2", "fails1", "error", "gone", "passes1"], []), []
    )

    assert score.fixes == Hits(predicted=3, happened=3, hits=2, possible=5)
    assert (score.fixes.precision, score.fixes.recall, score.fixes.base_rate) == (2 / 3, 2 / 3, 3 / 5)
    assert (score.not_measured, score.already_passing) == (2, 1)


def test_regressions_count_where_the_case_passed_on_the_base() -> None:
    score = score_prediction(PAIRS, manifest([], ["broken1", "passes1", "passes2", "fails1", "error"]), [])

    assert score.regressions == Hits(predicted=3, happened=2, hits=1, possible=5)


def test_fixes_of_cases_that_no_model_was_shown_are_counted_apart() -> None:
    score = score_prediction(PAIRS, manifest(["fixed1", "fixed2", "fails1"], []), ["fixed1", "fails1"])

    assert score.unseen_fixes == Hits(predicted=1, happened=2, hits=1, possible=3)


@pytest.mark.parametrize("more", [{"measured_on": None}, {"at_risk_total": 99}])
def test_regressions_are_not_scored_where_the_cases_at_risk_are_not_known(more: dict[str, Any]) -> None:
    assert score_prediction(PAIRS, manifest([], ["broken1"]) | more, []).regressions is None


def test_a_guard_case_can_be_fixed_and_other_splits_say_nothing() -> None:
    pairs = [
        pair("guard", FAIL, PASS, "guard"),
        pair("sealed", FAIL, PASS, "sealed"),
        pair("g2", PASS, FAIL, "guard"),
    ]

    score = score_prediction(pairs, manifest(["guard", "sealed"], ["g2"]), [])

    assert (score.fixes, score.regressions) == (Hits(1, 1, 1, 1), Hits())


def test_without_a_prediction_and_without_a_flip_there_is_no_share() -> None:
    assert (Hits().precision, Hits().recall, Hits().base_rate) == (None, None, None)
    assert Hits(1, 2, 3, 4) + Hits(1, 1, 1, 1) == Hits(2, 3, 4, 5)


def predict(proposal: Proposal, fixes: list[str], at_risk: list[str]) -> Proposal:
    proposal.manifest = manifest(fixes, at_risk)
    proposal.save(update_fields=["manifest"])
    return proposal


def make_step_of_two() -> Step:
    """Of a harness that knows q1 and q2: one proposal knows q1 to q3, the other adds a greeting."""
    harness = make_harness()
    make_version(harness, MANY[:6])
    first = predict(make_proposal(harness, teach(1, 3, 4)), ["q3", "q5"], ["q1", "q2"])
    second = predict(make_proposal(harness, b"{{ danmaku[0].text }}\n\n", path="prompts/request.md"), [], [])
    return measure(steps.merge_step(DEV, harness, [first, second]))


@pytest.mark.django_db
def test_a_measured_step_scores_its_proposals_and_says_that_they_share_it() -> None:
    step = make_step_of_two()

    first, second = step.merged.order_by("pk")
    score = first.prediction["step"]
    assert score["fixes"] == asdict(Hits(predicted=2, happened=2, hits=1, possible=4))
    assert score["regressions"] == asdict(Hits(predicted=2, happened=1, hits=1, possible=2))
    assert (score["step"], score["shared_with"]) == (step.number, [second.pk])
    assert second.prediction["step"]["fixes"]["predicted"] == 0


@pytest.mark.django_db
def test_what_one_model_predicts_of_a_step_is_pooled_and_what_people_edited_is_not() -> None:
    step = make_step_of_two()
    candidate = step.candidate_evaluation
    assert candidate is not None
    assert all(each.prediction["step"]["is_edited"] for each in step.merged.all())
    assert not any("pooled" in each.prediction["step"] for each in step.merged.all())
    for proposal in step.merged.all():
        record(SYSTEM, "proposal.committed", proposal, commit=proposal.head_commit, files=[])
    step.merged.filter(pk=step.merged.order_by("pk")[1].pk).update(manifest=manifest(["q3", "q4"], ["q2"]))

    settle_predictions(candidate)

    scores = [each.prediction["step"] for each in step.merged.order_by("pk")]
    assert not any(score["is_edited"] for score in scores)
    pooled = scores[0]["pooled"]
    assert scores[1]["pooled"] == pooled
    # The first predicts q3 and q5, and q1 and q2 at risk.
    assert pooled["fixes"] == asdict(Hits(predicted=3, happened=2, hits=2, possible=4))
    assert pooled["regressions"] == asdict(Hits(predicted=2, happened=1, hits=1, possible=2))


@pytest.mark.django_db
def test_scoring_again_changes_nothing_and_follows_the_results() -> None:
    step = make_step_of_two()
    candidate = step.candidate_evaluation
    assert candidate is not None
    before = step.merged.order_by("pk")[0].prediction
    settle_predictions(candidate)
    assert step.merged.order_by("pk")[0].prediction == before

    candidate.results.filter(case__key="q3").update(accuracy=0)
    settle_predictions(candidate)

    assert step.merged.order_by("pk")[0].prediction["step"]["fixes"]["hits"] == 0


@pytest.mark.django_db
def test_of_two_steps_with_the_same_proposal_the_newer_one_counts() -> None:
    older = make_step_of_two()
    proposals = list(older.merged.order_by("pk"))
    revise_step(DEV, older, "again")
    Proposal.objects.update(state=ProposalState.CONFIRMED)
    again = [Proposal.objects.get(pk=proposal.pk) for proposal in proposals]
    newer = measure(steps.merge_step(DEV, older.harness, again))
    assert newer.base_evaluation is not None
    settle_predictions(newer.base_evaluation)
    assert {each.prediction["step"]["step"] for each in Proposal.objects.all()} == {newer.number}


@pytest.mark.django_db
def test_a_branch_that_moved_after_the_step_keeps_its_old_score() -> None:
    step = make_step_of_two()
    candidate = step.candidate_evaluation
    assert candidate is not None
    first = step.merged.order_by("pk")[0]
    before = first.prediction
    Proposal.objects.filter(pk=first.pk).update(head_commit="f" * 40, manifest=manifest(["q6"], []))

    settle_predictions(candidate)

    assert Proposal.objects.get(pk=first.pk).prediction == before


def test_alone_counts_before_a_step_and_the_branch_as_it_is_before_an_older_one() -> None:
    alone, step = {"commit": "new", "n": 1}, {"commit": "new", "n": 2}
    proposal = Proposal(head_commit="new", prediction={"alone": alone, "step": step})
    assert best_prediction(proposal) == alone

    proposal.prediction = {"alone": {**alone, "commit": "old"}, "step": step}
    assert best_prediction(proposal) == step

    proposal.prediction = {}
    assert best_prediction(proposal) is None
