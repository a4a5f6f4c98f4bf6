"""Scores and figures as sources have them: read strictly, since what is no score must not become one."""

import math
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.wanted import Wanted

# What tau2-bench, for one, allows a reward of 1 to be off.
TOLERANCE = 1e-6
MOST_COUNT = 2**31 - 1
# Trials of a case; a larger number is a mistake, and stands for as many results that are missing.
MOST_REPEATS = 1000
MOST_MS = 1e12
MOST_COST = 100_000


class NoScore(Exception):
    """A value that is no score on the scale; the text says why."""


def grade(value: object, wanted: Wanted) -> dict[str, float]:
    """Accuracy and effectiveness of a score between 0 and the full marks.

    Accuracy is 1 from the threshold on, else 0. Effectiveness is 1 for a pass, and else the share of the full marks: so
    a case passes here exactly when it passed there. Raises NoScore.
    """
    share = float(value) if isinstance(value, bool) else _share(value, wanted.full_marks)
    return of_verdict(passed=share >= wanted.threshold - TOLERANCE, share=share)


def of_verdict(*, passed: bool, share: float) -> dict[str, float]:
    """The same where the source says whether it passed."""
    return {"accuracy": float(passed), "effectiveness": 1.0 if passed else min(max(share, 0.0), 1.0)}


def _share(value: object, full_marks: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise NoScore(_("no number: %(value)s") % {"value": str(value)[:100]})
    try:
        share = float(value) / full_marks
    except OverflowError:
        share = math.inf
    if not math.isfinite(share):
        raise NoScore(_("no number: %(value)s") % {"value": str(value)[:100]})
    if not -TOLERANCE <= share <= 1 + TOLERANCE:
        text = _("%(value)s is not between 0 and %(full)g; say with --full-marks what a full score is")
        raise NoScore(text % {"value": str(value)[:100], "full": full_marks})
    return min(max(share, 0.0), 1.0)


def read_share(value: object) -> float:
    """The score of what has failed or passed already: a number, cut to 0-1, and 0 where there is none.

    Raises NoScore for infinity and what is not a number.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise NoScore(_("no number: %(value)s") % {"value": value})
    return min(max(_finite(value), 0.0), 1.0)


def read_repeat(record: Mapping[str, Any], name: str, first: int = 0) -> int:
    """The number of a trial, from 0 on, where the source counts from `first`; 0 where the record has no such field.

    Raises RecordProblem for what is no such number: it would be taken for another trial's result.
    """
    value = record.get(name, first)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value - first < MOST_REPEATS:
        raise RecordProblem(
            _("`%(name)s` is no number of a trial: %(value)s") % {"name": name, "value": repr(value)[:100]}
        )
    return value - first


def read_count(value: Any) -> int:
    """A count of tokens; 0 for what is none."""
    return int(min(max(_finite(value), 0.0), MOST_COUNT))


def read_ms(value: Any, factor: float = 1.0) -> float:
    """Milliseconds; 0 for what is no time."""
    return min(max(_finite(value) * factor, 0.0), MOST_MS)


def read_cost(value: Any, tokens: int = 0) -> float | None:
    """A sum of money, or None: nothing at all for tokens that were used stands for a price that nobody knew."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_COST:
        return None
    return float(value) if value or not tokens else None


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0
