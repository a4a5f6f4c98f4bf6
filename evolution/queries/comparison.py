"""Two evaluations case by case, for the comparison and step pages: flips, counts, and why they can't be compared."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from evolution.loop.flips import (
    CasePair,
    CaseScores,
    Change,
    Flip,
    change_effectiveness,
    flip_accuracy,
    flip_case,
)
from evolution.loop.reasons import explain_reasons
from evolution.loop.regressions import load_pairs, run_facts
from evolution.loop.verdict import Policy, check_coverage, compare_facts
from evolution.models import DatasetCase, Evaluation, Step


@dataclass(frozen=True)
class FlipRow:
    """One case; `flip` is that of the whole case, which passes with accuracy 1 and effectiveness 1."""

    case_id: int
    key: str
    # the first danmaku; empty in a case without any
    text: str
    category: str
    split: str
    base: CaseScores | None
    candidate: CaseScores | None
    flip: Flip
    accuracy_flip: Flip
    effectiveness_change: Change


@dataclass(frozen=True)
class CategoryRow:
    """Flips of the whole case within a category."""

    category: str
    cases: int
    fixed: int
    broken: int
    still_passing: int
    still_failing: int


@dataclass(frozen=True)
class Comparison:
    """Rows broken first, then fixed; `counts` and `by_category` are over all cases, whatever `rows` is filtered by."""

    rows: list[FlipRow]
    # flip -> number of cases
    counts: dict[str, int]
    by_category: list[CategoryRow]
    # sentences; empty when the two are comparable
    obstacles: list[str] = field(default_factory=list)

    @property
    def fixed(self) -> list[FlipRow]:
        """The rows of cases that pass now."""
        return [row for row in self.rows if row.flip == Flip.FIXED]

    @property
    def broken(self) -> list[FlipRow]:
        """The rows of cases that passed before."""
        return [row for row in self.rows if row.flip == Flip.BROKEN]


# What `flip` of `compare` says for the cases that came out otherwise, either way.
FLIPPED = "flipped"
_WANTED = {FLIPPED: {Flip.BROKEN, Flip.FIXED}}
_ORDER = [Flip.BROKEN, Flip.FIXED, Flip.ERROR, Flip.MISSING, Flip.STILL_FAILING, Flip.STILL_PASSING]


def compare(base: Evaluation, candidate: Evaluation, flip: str = "", category: str = "") -> Comparison:
    """Compare two evaluations; `flip` (one of Flip, or FLIPPED) and `category` limit the rows."""
    pairs = load_pairs(base, candidate)
    cases = _cases(base) | _cases(candidate)
    rows = sorted((_row(pair, cases) for pair in pairs), key=lambda row: (_ORDER.index(row.flip), row.key))
    wanted = _WANTED.get(flip, {flip} if flip else set(Flip))
    reasons = compare_facts(run_facts(base), run_facts(candidate))
    reasons += check_coverage(pairs, Policy.from_dict(candidate.harness.policy))
    return Comparison(
        rows=[row for row in rows if row.flip in wanted and category in {"", row.category}],
        counts={name.value: count for name, count in Counter(row.flip for row in rows).items()},
        by_category=_categories(rows),
        obstacles=explain_reasons(reason.to_dict() for reason in reasons),
    )


def step_between(base: Evaluation, candidate: Evaluation) -> Step | None:
    """The step that was measured by these two evaluations."""
    return Step.objects.filter(base_evaluation=base, candidate_evaluation=candidate).first()


def _cases(evaluation: Evaluation) -> dict[str, tuple[int, str]]:
    """Id and first danmaku of each case of an evaluation's dataset, by key."""
    cases = DatasetCase.objects.filter(version=evaluation.dataset_version_id)
    rows = cases.values_list("key", "pk", "request__danmaku__0__text")
    return {key: (pk, str(text or "")) for key, pk, text in rows}


def _row(pair: CasePair, cases: Mapping[str, tuple[int, str]]) -> FlipRow:
    case_id, text = cases[pair.key]
    return FlipRow(
        case_id=case_id,
        key=pair.key,
        text=text,
        category=pair.category,
        split=pair.split,
        base=pair.base,
        candidate=pair.candidate,
        flip=flip_case(pair),
        accuracy_flip=flip_accuracy(pair),
        effectiveness_change=change_effectiveness(pair),
    )


def _categories(rows: list[FlipRow]) -> list[CategoryRow]:
    flips: dict[str, Counter[Flip]] = {}
    for row in rows:
        flips.setdefault(row.category, Counter())[row.flip] += 1
    return [
        CategoryRow(
            category,
            counts.total(),
            counts[Flip.FIXED],
            counts[Flip.BROKEN],
            counts[Flip.STILL_PASSING],
            counts[Flip.STILL_FAILING],
        )
        for category, counts in sorted(flips.items())
    ]
