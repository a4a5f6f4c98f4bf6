"""Before stage 1: what makes a record a failure is a rule of its source, which people can change at an import.

Written out, a rule is a list of its parts: RULE_HELP.

Reasons name values and not limits, so that another limit does not make another failure of the same record.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.ports import Feedback, Record

RULE_HELP = """\
Written out, a rule is a list of its parts, such as "reward<0.5,*<1,!latency,errors,checks,feedback,verdict,unscored":

    NAME<LIMIT   a score of that name below the limit is a failure; `*` stands for every score that is not named
    NAME>LIMIT   a score above the limit is one, as for toxicity; <= and >= take the limit itself in
    !NAME        this score says nothing of success, as for latency; names match in lower and upper case
    errors       what broke: exceptions, spans with an error status
    checks       a check of the source that did not pass
    feedback     feedback that is negative: a number of 0 or less, or a word such as "down" or 差评
    verdict      the source's own word counts, above everything else: that it failed or not, or a symptom
    unscored     a record that says nothing at all of success"""
ANY = "*"
PARTS = ("errors", "checks", "feedback", "verdict", "unscored")
# A reason is a line of a symptom, not a log.
LONGEST_REASON = 500
MOST_REASONS = 20

_THRESHOLD = re.compile(r"(?P<name>[^<>=]+?)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[^<>=\s]+)")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NEGATIVE = frozenset({
    "down", "thumbs_down", "thumbs-down", "thumbsdown", "thumb_down", "👎", "dislike", "disliked", "negative", "bad",
    "poor", "wrong", "incorrect", "no", "false", "fail", "failed", "failure", "unhelpful", "not_helpful", "useless",
    "reject", "rejected", "差评", "踩", "点踩", "不满意", "差", "错误", "负面", "否", "没帮助",
})  # fmt: skip
_FAILED_WORDS = frozenset({"fail", "failed", "failure", "false", "no", "incorrect", "wrong", "i", "n"})
_PASSED_WORDS = frozenset({"pass", "passed", "success", "true", "yes", "correct", "right", "c", "y"})


@dataclass(frozen=True)
class Threshold:
    """Which values of a score are a failure; one without a sign says nothing of success."""

    name: str
    sign: str = ""
    limit: float = 0.0

    def is_missed(self, value: float) -> bool:
        """Whether a record with this value has failed."""
        return bool(self.sign) and _SIGNS[self.sign](value, self.limit)

    def __str__(self) -> str:
        return (
            f"{self.name}{self.sign}{repr(self.limit).removesuffix('.0')}" if self.sign else f"!{self.name}"
        )


# What evaluators call a score that is better when it is low, and what is measured beside success.
USUAL = (
    *(Threshold(name, ">", 0.5) for name in ("hallucination", "toxicity", "bias", "harmfulness")),
    *(Threshold(name) for name in ("latency", "duration", "cost", "tokens")),
)


@dataclass(frozen=True)
class Judgement:
    """Whether a record is a failure, and for which reasons."""

    failed: bool
    # a line each, of what went wrong; fit for a symptom
    reasons: tuple[str, ...] = ()
    # the source says nothing of success
    is_unscored: bool = False


@dataclass(frozen=True)
class FailureRule:
    """What counts as a failure; without arguments the rule for files, where all parts are on."""

    thresholds: tuple[Threshold, ...] = (Threshold(ANY, "<", 1.0), *USUAL)
    errors: bool = True
    checks: bool = True
    feedback: bool = True
    verdict: bool = True
    unscored: bool = True

    def judge(self, record: Record) -> Judgement:
        """Say whether a record is a failure and why."""
        reasons = tuple(dict.fromkeys(self._reasons(record)))[:MOST_REASONS]
        if self.verdict and record.failed is not None:
            return Judgement(record.failed, reasons if record.failed else ())
        has_symptom = self.verdict and bool(record.symptom)
        is_unscored = not says_anything(record)
        failed = bool(reasons) or has_symptom or (is_unscored and self.unscored)
        return Judgement(failed, reasons, is_unscored)

    def _reasons(self, record: Record) -> Iterator[str]:
        for name, value in numbers(record.scores):
            if self._threshold(name).is_missed(value):
                yield f"{name} {value:g}"[:LONGEST_REASON]
        if self.errors:
            yield from (f"error: {_line(text)}" for text in record.errors)
        if self.checks:
            failed = (check for check in record.checks if not check.passed)
            yield from (f"check {_line(': '.join(filter(None, (c.name, c.reason))))}" for c in failed)
        if self.feedback:
            yield from (_describe_feedback(each) for each in record.feedback if is_negative(each))

    def _threshold(self, name: str) -> Threshold:
        named = {threshold.name.lower(): threshold for threshold in self.thresholds}
        return named.get(name.lower()) or named.get(ANY) or Threshold(name)

    def to_json(self) -> dict[str, Any]:
        """The rule as a source keeps it."""
        return asdict(self) | {"thresholds": [asdict(threshold) for threshold in self.thresholds]}

    def __str__(self) -> str:
        """The rule as `parse_rule` reads it."""
        return ",".join([*map(str, self.thresholds), *(part for part in PARTS if getattr(self, part))])


FILES = FailureRule()
# A trace that is pushed and says nothing is one of many that went well.
PUSHED = FailureRule(unscored=False)


def from_json(value: dict[str, Any], default: FailureRule = FILES) -> FailureRule:
    """Read a rule that a source keeps; an empty one is the default. Raises LoopError for what is none."""
    if not value:
        return default
    try:
        thresholds = tuple(_checked(Threshold(**each)) for each in value.get("thresholds", ()))
        return FailureRule(thresholds, **{part: bool(value.get(part, False)) for part in PARTS})
    except (TypeError, ValueError, AttributeError) as error:
        raise LoopError(_("the failure rule can't be read: %(problem)s") % {"problem": error}) from None


def parse_rule(text: str) -> FailureRule:
    """Read a rule as it is written out; what it does not name does not count. Raises LoopError for what is none."""
    thresholds: dict[str, Threshold] = {}
    parts = set()
    for word in filter(None, map(str.strip, re.split(r"[,\n]", text))):
        if word in PARTS:
            parts.add(word)
        else:
            threshold = _parse_threshold(word)
            thresholds[threshold.name] = threshold
    if not thresholds and not parts:
        raise LoopError(_("an empty failure rule: nothing would be a failure"))
    return FailureRule(tuple(thresholds.values()), **{part: part in parts for part in PARTS})


def _parse_threshold(word: str) -> Threshold:
    if word.startswith("!") and word[1:].strip():
        return Threshold(word[1:].strip())
    match = _THRESHOLD.fullmatch(word)
    try:
        if match:
            return _checked(Threshold(match["name"].strip(), match["sign"], float(match["limit"])))
    except ValueError:
        pass
    what = {"part": word, "parts": ", ".join(PARTS)}
    text = _("%(part)s is no part of a failure rule; parts are SCORE<LIMIT, SCORE>LIMIT, !SCORE, %(parts)s")
    raise LoopError(text % what)


def _checked(threshold: Threshold) -> Threshold:
    if threshold.sign not in {"", *_SIGNS} or not math.isfinite(threshold.limit):
        raise ValueError(str(threshold))
    return threshold


def says_anything(record: Record) -> bool:
    """Whether a record tells of success or failure in any way."""
    said = (record.errors, record.checks, record.symptom, any(numbers(record.scores)))
    has_feedback = any(each.value is not None for each in record.feedback)
    return record.failed is not None or record.has_status or has_feedback or any(said)


def lowest_score(scores: dict[str, Any]) -> float | None:
    """The lowest of a record's scores, to find and sort by; None where there is none."""
    return min((value for _name, value in numbers(scores)), default=None)


def numbers(scores: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Scores as numbers; words such as "pass" are 1 and 0, what is neither is left out."""
    for name, value in scores.items():
        number = _number(value)
        if number is not None:
            yield name, number


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        word = value.strip().lower()
        return 1.0 if word in _PASSED_WORDS else 0.0 if word in _FAILED_WORDS else None
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def is_negative(feedback: Feedback) -> bool:
    """Whether feedback says that something is wrong: a number of 0 or less, false, or a word such as "down"."""
    value = feedback.value
    if isinstance(value, str):
        return value.strip().lower().replace(" ", "_") in _NEGATIVE
    return value is not None and value <= 0


def _describe_feedback(feedback: Feedback) -> str:
    value = f"{feedback.value:g}" if isinstance(feedback.value, float) else str(feedback.value).lower()
    said = f"{feedback.name} {value}".strip()
    return f"feedback {_line(': '.join(filter(None, (said, feedback.comment))))}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"
