from typing import Any

import pytest

from evolution.loop.predictions import Hits
from evolution.models import Harness, Proposal
from evolution.queries.predictions import read_history, view_manifest, view_prediction
from tests.evolution.measured import make_evaluation, make_harness, make_proposal, make_version, teach

pytestmark = pytest.mark.django_db


def score(fixes: Hits, regressions: Hits | None = None, **more: Any) -> dict[str, Any]:
    found = {"fixes": vars(fixes), "unseen_fixes": vars(Hits()), "not_measured": 0, "already_passing": 0}
    about = {"base": 1, "candidate": 2, "commit": "c"}
    return {**found, "regressions": vars(regressions) if regressions else None, **about, **more}


def predicted(harness: Harness, model: str = "editor", **prediction: Any) -> Proposal:
    return Proposal.objects.create(
        harness=harness, model=model, head_commit="c", base_commit="b", prediction=prediction
    )


def test_a_drafters_record_pools_the_counts_of_its_measured_proposals() -> None:
    harness = make_harness()
    predicted(harness, alone=score(Hits(4, 5, 3, 20), Hits(10, 2, 1, 40)), step=score(Hits(99, 99, 99, 99)))
    predicted(harness, step=score(Hits(6, 5, 3, 20), shared_with=[1]))
    predicted(harness)
    predicted(harness, "another", alone=score(Hits(9, 9, 9, 9)))

    history = read_history(harness, "editor")

    assert history is not None
    assert (history.proposals, history.shared) == (2, 1)
    fixes, unseen, regressions = history.rows
    assert (fixes.precision.value, fixes.precision.count, fixes.precision.of) == (60.0, 6, 10)
    assert (fixes.recall.value, fixes.base_rate.value) == (60.0, 25.0)
    assert (unseen.precision.value, regressions.precision.value) == (None, 10.0)


def test_a_step_with_several_proposals_of_a_drafter_counts_once() -> None:
    harness = make_harness()
    pooled = {"fixes": vars(Hits(6, 5, 3, 20))}
    for fixes in (Hits(4, 5, 2, 20), Hits(4, 5, 2, 20)):
        predicted(harness, step=score(fixes, step=1, shared_with=[9], pooled=pooled))
    predicted(harness, alone=score(Hits(4, 5, 2, 20)))

    history = read_history(harness, "editor")

    assert history is not None
    assert (history.proposals, history.shared) == (3, 2)
    assert history.rows[0].hits == Hits(10, 10, 5, 40)


def test_what_a_steps_score_has_is_not_counted_alone_too() -> None:
    harness = make_harness()
    step = score(Hits(1, 2, 1, 10), step=1, shared_with=[9], pooled={"fixes": vars(Hits(2, 2, 2, 10))})
    predicted(harness, alone=score(Hits(1, 1, 1, 10), candidate=3), step=step)
    predicted(harness, step=step)

    history = read_history(harness, "editor")

    assert history is not None
    assert (history.proposals, history.shared, history.rows[0].hits) == (2, 2, Hits(2, 2, 2, 10))


def test_a_step_whose_proposals_were_all_measured_alone_is_not_counted() -> None:
    harness = make_harness()
    step = score(Hits(1, 2, 1, 10), step=1, shared_with=[9], pooled={"fixes": vars(Hits(2, 2, 2, 10))})
    for candidate in (3, 4):
        predicted(harness, alone=score(Hits(1, 1, 1, 10), candidate=candidate), step=step)

    history = read_history(harness, "editor")

    assert history is not None
    assert (history.shared, history.rows[0].hits) == (0, Hits(2, 2, 2, 20))


def test_what_people_have_edited_is_no_record_of_the_drafter() -> None:
    harness = make_harness()
    predicted(harness, alone=score(Hits(4, 5, 3, 20)))
    predicted(harness, alone=score(Hits(9, 9, 9, 9), is_edited=True))

    history = read_history(harness, "editor")

    assert history is not None
    assert (history.proposals, history.edited, history.rows[0].hits) == (1, 1, Hits(4, 5, 3, 20))


def test_the_interval_of_a_share_is_wilsons() -> None:
    harness = make_harness()
    predicted(harness, alone=score(Hits(263, 263, 81, 263)))

    history = read_history(harness, "editor")

    # Newcombe 1998, two-sided intervals for the single proportion, table I, method 3.
    assert history is not None
    share = history.rows[0].precision
    assert share.low == pytest.approx(25.53, abs=0.01)
    assert share.high == pytest.approx(36.62, abs=0.01)


def test_who_has_no_measured_proposal_has_no_record() -> None:
    harness = make_harness()
    predicted(harness)

    assert read_history(harness, "editor") is None
    assert read_history(harness, "") is None


def test_a_score_says_what_it_rests_on() -> None:
    harness = make_harness()
    proposal = predicted(harness, step=score(Hits(1, 1, 1, 1), step=3, shared_with=[7], commit="older"))

    view = view_prediction(proposal)

    assert view is not None
    assert (view.source, view.step, view.shared_with, view.is_outdated) == ("step", 3, [7], True)
    assert not view.regressions_known
    assert view_prediction(predicted(harness)) is None


def test_a_manifest_is_shown_with_the_first_of_its_many_cases() -> None:
    harness = make_harness()
    version = make_version(harness)
    evaluation = make_evaluation(harness, version=version)
    proposal = make_proposal(harness, teach(1))
    keys = [f"x{n}" for n in range(200)]
    proposal.manifest = {
        "expected_fixes": [],
        "at_risk": ["q1", *keys],
        "at_risk_total": 900,
        "measured_on": evaluation.pk,
        "growth": {"always": [100, 150]},
        "files": [{"path": "a", "added": 2, "removed": 1}, {"path": "b", "added": 3, "removed": 0}],
    }

    view = view_manifest(proposal)

    assert view is not None
    assert [case.title for case in view.at_risk] == ["q1"]
    assert (view.at_risk_total, view.measured_on, view.is_measured) == (900, evaluation.pk, True)
    assert [(row.delta, row.percent) for row in view.growth] == [(50, 50.0)]
    assert (view.lines_added, view.lines_removed) == (5, 1)


def test_a_manifest_of_earlier_days_is_shown_as_far_as_it_goes() -> None:
    proposal = make_proposal(make_harness(), teach(1))
    assert view_manifest(proposal) is None
    proposal.manifest = {"expected_fixes": [], "at_risk": ["q1"], "expected_effect": "more"}

    view = view_manifest(proposal)

    assert view is not None
    assert (view.expected_effect, view.at_risk_total, view.is_whole) == ("more", 1, False)
