"""What a proposal's page says of its manifest: the cases it names, its scores, and its drafter's record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from evolution.loop.growth import Weight
from evolution.loop.predictions import Hits, best_prediction
from evolution.models import Evaluation, Harness, Proposal
from evolution.queries.proposals import NamedCase, name_cases

# More names than these are not listed on a page; their number is told.
MOST_NAMED = 50
ALPHA = 0.05
# The database has an order of its own.
PARTS = tuple(item.name for item in fields(Weight))


@dataclass(frozen=True)
class Growth:
    """Tokens of one part of the harness before and after."""

    # field of evolution.loop.growth.Weight
    part: str
    before: int
    after: int

    @property
    def delta(self) -> int:
        """Tokens more."""
        return self.after - self.before

    @property
    def percent(self) -> float | None:
        """How much more that is, in percent; None where there was nothing."""
        return 100 * self.delta / self.before if self.before else None


@dataclass(frozen=True)
class ManifestView:
    """A manifest with what it names looked up; older manifests lack some of it."""

    expected_effect: str = ""
    risks: list[str] = field(default_factory=list)
    expected_fixes: list[NamedCase] = field(default_factory=list)
    expected_total: int = 0
    at_risk: list[NamedCase] = field(default_factory=list)
    at_risk_total: int = 0
    # the evaluation that says who is at risk; None when nothing was measured
    measured_on: int | None = None
    reach: list[Mapping[str, Any]] = field(default_factory=list)
    shown_everywhere: list[str] = field(default_factory=list)
    rules: Mapping[str, Any] = field(default_factory=dict)
    growth: list[Growth] = field(default_factory=list)
    files: list[Mapping[str, Any]] = field(default_factory=list)
    lines_added: int = 0
    lines_removed: int = 0
    # whether it was made with rules and growth
    is_whole: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether the cases at risk rest on results."""
        return self.measured_on is not None or bool(self.at_risk_total)


def view_manifest(proposal: Proposal) -> ManifestView | None:
    """The manifest for people; None while there is none."""
    stored = proposal.manifest
    if not stored:
        return None
    fixes, at_risk = _list(stored, "expected_fixes"), _list(stored, "at_risk")
    files = _list(stored, "files")
    growth = stored.get("growth") or {}
    measured_on = stored.get("measured_on")
    return ManifestView(
        expected_effect=str(stored.get("expected_effect") or ""),
        risks=[str(risk) for risk in _list(stored, "risks")],
        expected_fixes=name_cases(proposal.harness, fixes[:MOST_NAMED]),
        expected_total=len(fixes),
        at_risk=name_cases(proposal.harness, at_risk[:MOST_NAMED]),
        at_risk_total=int(stored.get("at_risk_total", len(at_risk))),
        measured_on=measured_on if Evaluation.objects.filter(pk=measured_on).exists() else None,
        reach=_list(stored, "reach"),
        shown_everywhere=_list(stored, "shown_everywhere"),
        rules=stored.get("rules") or {},
        growth=[Growth(part, *growth[part]) for part in PARTS if part in growth],
        files=files,
        lines_added=sum(file["added"] for file in files),
        lines_removed=sum(file["removed"] for file in files),
        is_whole=bool(growth),
    )


def _list(stored: Mapping[str, Any], name: str) -> list[Any]:
    value = stored.get(name)
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Share:
    """A share with what it rests on; all in percent, None where there is nothing to divide by."""

    value: float | None
    count: int
    of: int
    # Wilson's 95 % interval
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PredictionView:
    """How the predictions of one kind came out."""

    # "fixes", "unseen_fixes" or "regressions"
    name: str
    hits: Hits
    precision: Share
    recall: Share
    # the precision of predicting it of every case that could flip
    base_rate: Share


@dataclass(frozen=True)
class ScoreView:
    """The score that counts for a proposal, or the pooled one of its drafter."""

    rows: list[PredictionView] = field(default_factory=list)
    # "alone" or "step"
    source: str = ""
    step: int | None = None
    shared_with: list[int] = field(default_factory=list)
    base: int | None = None
    candidate: int | None = None
    # scored on an earlier version of the branch
    is_outdated: bool = False
    not_measured: int = 0
    already_passing: int = 0
    regressions_known: bool = True


def view_prediction(proposal: Proposal) -> ScoreView | None:
    """How the proposal's predictions came out; None before they are measured."""
    score = best_prediction(proposal)
    if score is None:
        return None
    return ScoreView(
        rows=_rows(_read_hits(score)),
        source="step" if score.get("step") else "alone",
        step=score.get("step"),
        shared_with=score.get("shared_with") or [],
        base=score["base"],
        candidate=score["candidate"],
        is_outdated=score["commit"] != proposal.head_commit,
        not_measured=score["not_measured"],
        already_passing=score["already_passing"],
        regressions_known=score["regressions"] is not None,
    )


@dataclass(frozen=True)
class DrafterHistory:
    """What became of the predictions of one drafter on one harness, pooled over what was measured of it.

    A step that has several of its proposals counts once, and proposals that people have edited not at all.
    """

    model: str
    proposals: int
    # of them, how many were measured in a step together with others
    shared: int
    # measured ones that are left out since people have edited them
    edited: int = 0
    rows: list[PredictionView] = field(default_factory=list)


def read_history(harness: Harness, model: str) -> DrafterHistory | None:
    """The record of a drafter, by its model's name; None without a measured proposal of its."""
    if not model:
        return None
    proposals = Proposal.objects.filter(harness=harness, model=model).exclude(prediction={})
    found = _counted_scores(list(proposals.only("prediction", "head_commit")))
    scores = [score for score in found if not score.get("is_edited")]
    if not scores:
        return None
    pooled: dict[str, Hits] = {}
    for counted in _each_once(scores):
        for name, hits in _read_hits(counted).items():
            pooled[name] = pooled.get(name, Hits()) + hits
    shared = sum(bool(score.get("shared_with")) for score in scores)
    return DrafterHistory(model, len(scores), shared, len(found) - len(scores), _rows(pooled))


def _counted_scores(proposals: Sequence[Proposal]) -> list[Mapping[str, Any]]:
    """The score of each that counts; where a step counts as a whole, that of the step also for those measured alone."""
    best = [(proposal.prediction, score) for proposal in proposals if (score := best_prediction(proposal))]
    steps = {score["candidate"] for _prediction, score in best if _is_pooled(score)}
    by_step = [(prediction.get("step") or {}, score) for prediction, score in best]
    return [step if _is_pooled(step) and step["candidate"] in steps else score for step, score in by_step]


def _is_pooled(score: Mapping[str, Any]) -> bool:
    return bool(score.get("pooled")) and not score.get("is_edited")


def _each_once(scores: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The scores, those of one measured step as the one of all together."""
    alone = [score for score in scores if not score.get("pooled")]
    steps = {score["candidate"]: score["pooled"] for score in scores if score.get("pooled")}
    return [*alone, *steps.values()]


def _read_hits(score: Mapping[str, Any]) -> dict[str, Hits]:
    names = ("fixes", "unseen_fixes", "regressions")
    return {name: Hits(**score[name]) for name in names if score.get(name) is not None}


def _rows(found: Mapping[str, Hits]) -> list[PredictionView]:
    return [
        PredictionView(
            name,
            hits,
            _share(hits.hits, hits.predicted),
            _share(hits.hits, hits.happened),
            _share(hits.happened, hits.possible),
        )
        for name, hits in found.items()
    ]


def _share(count: int, of: int) -> Share:
    from statsmodels.stats.proportion import proportion_confint  # noqa: PLC0415  heavy

    if not of:
        return Share(None, count, of)
    low, high = proportion_confint(count, of, alpha=ALPHA, method="wilson")
    return Share(100 * count / of, count, of, 100 * float(low), 100 * float(high))
