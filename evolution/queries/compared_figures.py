"""What two evaluations came to, side by side: the verdict's figures, and what a case took and cost in each."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import lru_cache

from evolution.loop.evaluation import ENDED
from evolution.loop.figures import Cost, Figures, figures_of
from evolution.loop.regressions import weigh
from evolution.loop.verdict import METRICS, MetricFigures, Policy
from evolution.models import Evaluation, Verdict

# More results take the statistics longer than a page may take: 2,000 about a second, 10,000 a quarter of a minute.
MOST_AT_ONCE = 4_000


@dataclass(frozen=True)
class MetricRow:
    """A metric of both; on the 0-1 scale, guard cases left out."""

    name: str
    # of the cases with a score in both where they are compared, else of each by itself
    base: float | None
    candidate: float | None
    # None where they are not compared: not ended, nothing in common, or too many to do it unasked
    compared: MetricFigures | None = None


@dataclass(frozen=True)
class ComparedFigures:
    """Both evaluations in figures."""

    metrics: list[MetricRow]
    base: Figures
    candidate: Figures
    # what p and the intervals are told by
    policy: Policy = field(default_factory=Policy)
    # whether the statistics were left out for their size
    is_left_out: bool = False

    @property
    def cost_difference(self) -> Decimal | None:
        """Of a result, in the currency of both; None where one is not wholly known, or they are in two currencies."""
        before, after = self.base.cost, self.candidate.cost
        if before.currency != after.currency or not (_is_known(before) and _is_known(after)):
            return None
        return after.money / after.priced - before.money / before.priced

    @property
    def p95_difference(self) -> float | None:
        """Milliseconds of the agent's run on a case; None where nobody timed one."""
        before, after = (side.latencies.get("case") for side in (self.base, self.candidate))
        return after.p95 - before.p95 if before and after else None


def compare_figures(base: Evaluation, candidate: Evaluation, *, is_asked: bool = False) -> ComparedFigures:
    """Both in figures; with `is_asked` also the statistics that take long."""
    found = figures_of([base, candidate])
    before, after = found[base.pk], found[candidate.pk]
    policy = _policy_in_force(base, candidate)
    is_comparable = base.state in ENDED and candidate.state in ENDED
    is_large = max(before.results, after.results) > MOST_AT_ONCE and not is_asked
    metrics: dict[str, MetricFigures] = {}
    if is_comparable and not is_large:
        metrics = _weigh(_Side.of(base, before), _Side.of(candidate, after), policy)
    rows = [_build_row(name, before, after, metrics.get(name)) for name in METRICS]
    return ComparedFigures(rows, before, after, policy, is_comparable and is_large)


def _is_known(cost: Cost) -> bool:
    return bool(cost.priced) and not cost.unpriced


def _policy_in_force(base: Evaluation, candidate: Evaluation) -> Policy:
    """The policy of the verdict that was made over the two, else the harness's."""
    verdict = Verdict.objects.filter(base=base, candidate=candidate).first()
    return Policy.from_dict(verdict.policy if verdict else candidate.harness.policy)


def _build_row(name: str, before: Figures, after: Figures, compared: MetricFigures | None) -> MetricRow:
    if compared is None:
        return MetricRow(name, getattr(before, name), getattr(after, name))
    return MetricRow(name, compared.base, compared.candidate, compared)


@dataclass(frozen=True)
class _Side:
    """An evaluation, and what tells its results from those that it had at another time."""

    pk: int
    end: datetime | None
    results: int
    errors: int

    @classmethod
    def of(cls, evaluation: Evaluation, figures: Figures) -> "_Side":
        """What it is now."""
        return cls(evaluation.pk, evaluation.finished_at, figures.results, figures.errors)


@lru_cache(maxsize=128)
def _weigh(base: _Side, candidate: _Side, policy: Policy) -> dict[str, MetricFigures]:
    """The verdict's figures by metric, made once; not to be changed by who gets them."""
    by_id = Evaluation.objects.select_related("dataset_version", "answers_from").in_bulk(
        [base.pk, candidate.pk]
    )
    return weigh(by_id[base.pk], by_id[candidate.pk], policy).metrics
