"""Beside stage 6: how a manifest's predictions came out, once what it predicts of is measured.

A prediction of a case counts where it could come true: of a fix, where the case failed on the base; of a regression,
where it passed. Cases without a score on both sides, and evaluations that can't be compared, say nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q

from evolution.loop.evaluation import ENDED
from evolution.loop.flips import CasePair, Flip, flip_case
from evolution.loop.locks import lock_record
from evolution.loop.regressions import load_pairs, run_facts
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import is_edited
from evolution.loop.verdict import compare_facts
from evolution.models import Evaluation, Proposal, Step
from evolution.states import Split
from harness_repo.git.errors import HarnessRepoError

# Which prediction came true is looked for among cases that people may see.
_FIXABLE = (Split.DEV, Split.GUARD)


@dataclass(frozen=True)
class Hits:
    """How many cases were predicted to flip, did flip, and both; of `possible` ones that could."""

    predicted: int = 0
    happened: int = 0
    hits: int = 0
    possible: int = 0

    def __add__(self, other: "Hits") -> "Hits":
        """Both counts pooled."""
        return Hits(
            *(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True))
        )

    @property
    def precision(self) -> float | None:
        """Share of the predictions that came true, 0-1; None without a prediction."""
        return self.hits / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Share of what happened that was predicted, 0-1; None when nothing happened."""
        return self.hits / self.happened if self.happened else None

    @property
    def base_rate(self) -> float | None:
        """The precision of predicting it of every case that could flip, 0-1."""
        return self.happened / self.possible if self.possible else None


@dataclass(frozen=True)
class Score:
    """How the predictions of one manifest came out between two evaluations."""

    fixes: Hits
    # those fixes of which no model was shown the case
    unseen_fixes: Hits
    # None when the cases at risk are not known: nothing of the base was measured then, or they are too many to list
    regressions: Hits | None
    # predicted fixes of cases that were not measured, or passed on the base already
    not_measured: int
    already_passing: int


def score_prediction(
    pairs: Sequence[CasePair], manifest: dict[str, Any], shown_keys: Collection[str]
) -> Score:
    """Score a manifest's expected_keys and at_risk against what became of the cases."""
    flips = {pair.key: flip_case(pair) for pair in pairs if pair.is_scored and pair.split in _FIXABLE}
    expected = set(manifest.get("expected_keys") or ())
    shown = set(shown_keys)
    failing = {key for key, flip in flips.items() if flip in {Flip.FIXED, Flip.STILL_FAILING}}
    fixed = {key for key, flip in flips.items() if flip == Flip.FIXED}
    return Score(
        fixes=_count(expected, fixed, failing),
        unseen_fixes=_count(expected - shown, fixed - shown, failing - shown),
        regressions=_count_regressions(pairs, flips, manifest),
        not_measured=len(expected - flips.keys()),
        already_passing=len((expected & flips.keys()) - failing),
    )


def _count(predicted: set[str], happened: set[str], possible: set[str]) -> Hits:
    counted = predicted & possible
    return Hits(len(counted), len(happened), len(counted & happened), len(possible))


def _count_regressions(
    pairs: Sequence[CasePair], flips: dict[str, Flip], manifest: dict[str, Any]
) -> Hits | None:
    if not _knows_risk(manifest):
        return None
    at_risk = manifest.get("at_risk") or []
    dev = {pair.key for pair in pairs if pair.split == Split.DEV}
    passing = {key for key in dev if flips.get(key) in {Flip.BROKEN, Flip.STILL_PASSING}}
    broken = {key for key in dev if flips.get(key) == Flip.BROKEN}
    return _count(set(at_risk), broken, passing)


def _knows_risk(manifest: Mapping[str, Any]) -> bool:
    """Whether all cases at risk are listed, and rest on results."""
    is_whole = len(manifest.get("at_risk") or []) == manifest.get("at_risk_total", 0)
    return is_whole and manifest.get("measured_on") is not None


def settle_predictions(evaluation: Evaluation) -> None:
    """Score the predictions that an evaluation which ended decides: of proposals alone, and of those in a step.

    Safe to repeat; what was scored before is scored anew.
    """
    for proposal in Proposal.objects.filter(Q(alone_base=evaluation) | Q(alone_candidate=evaluation)):
        settle_alone(proposal)
    concerned = Q(base_evaluation=evaluation) | Q(candidate_evaluation=evaluation)
    # Of two steps with the same proposal the newer one counts.
    for step in Step.objects.filter(concerned).order_by("number"):
        settle_step_predictions(step)


def settle_alone(proposal: Proposal) -> None:
    """Score the predictions of a proposal that was measured by itself, as it stands now."""
    base, candidate = proposal.alone_base, proposal.alone_candidate
    if candidate is None or candidate.commit != proposal.head_commit:
        return
    if base is None or base.commit != proposal.base_commit or not _is_comparable(base, candidate):
        return
    pairs = load_pairs(base, candidate)
    _store(proposal, "alone", pairs, base, candidate, is_edited=is_edited(proposal))


def settle_step_predictions(step: Step) -> None:
    """Score the predictions of all proposals of a measured step; what it fixed is credited to each of them.

    For a drafter's record, `pooled` is the score of all that its model predicted of the step, which happened once.
    """
    base, candidate = step.base_evaluation, step.candidate_evaluation
    if base is None or candidate is None or not _is_comparable(base, candidate):
        return
    pairs = load_pairs(base, candidate)
    proposals = list(step.merged.order_by("pk"))
    measured = [proposal for proposal in proposals if _is_in(proposal, step)]
    edited = {proposal.pk for proposal in measured if is_edited(proposal)}
    for proposal in measured:
        shared = [other.pk for other in proposals if other != proposal]
        more: dict[str, Any] = {"step": step.number, "shared_with": shared}
        mine = [each for each in measured if each.model == proposal.model and each.pk not in edited]
        if proposal in mine:
            more["pooled"] = asdict(_pool(pairs, mine))
        _store(proposal, "step", pairs, base, candidate, is_edited=proposal.pk in edited, **more)


def _pool(pairs: Sequence[CasePair], proposals: Sequence[Proposal]) -> Score:
    """The score of what several proposals predict together: each case is predicted, and flips, once."""
    manifests = [proposal.manifest for proposal in proposals]
    at_risk = {key for manifest in manifests for key in manifest.get("at_risk") or ()}
    together = {
        "expected_keys": {key for manifest in manifests for key in manifest.get("expected_keys") or ()},
        "at_risk": at_risk,
        "at_risk_total": len(at_risk),
        "measured_on": manifests[0].get("measured_on") if all(map(_knows_risk, manifests)) else None,
    }
    return score_prediction(pairs, together, {key for each in proposals for key in each.shown_keys})


def _is_comparable(base: Evaluation, candidate: Evaluation) -> bool:
    has_ended = {base.state, candidate.state} <= set(ENDED)
    return has_ended and not compare_facts(run_facts(base), run_facts(candidate))


def _is_in(proposal: Proposal, step: Step) -> bool:
    """Whether what was measured has the proposal as it stands now, which its manifest speaks of."""
    try:
        return bool(proposal.head_commit) and open_repository(step.harness).is_ancestor(
            proposal.head_commit, step.candidate_commit
        )
    except HarnessRepoError:
        return False


def _store(
    proposal: Proposal,
    name: str,
    pairs: Sequence[CasePair],
    base: Evaluation,
    candidate: Evaluation,
    **more: Any,
) -> None:
    with transaction.atomic():
        lock_record(proposal)
        score = asdict(score_prediction(pairs, proposal.manifest, proposal.shown_keys))
        about = {"base": base.pk, "candidate": candidate.pk, "commit": proposal.head_commit, **more}
        proposal.prediction = {**proposal.prediction, name: {**score, **about}}
        proposal.save(update_fields=["prediction"])


def best_prediction(proposal: Proposal) -> dict[str, Any] | None:
    """The score that counts: measured alone before in a step, of the branch as it is before an older one."""
    scores = [proposal.prediction[name] for name in ("alone", "step") if proposal.prediction.get(name)]
    current = [score for score in scores if score["commit"] == proposal.head_commit]
    return next(iter(current or scores), None)
