"""Reasons of verdicts and advice: a code with its values, so that they can be stored once and read in two languages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Reason:
    """Why something was decided; `code` is a key of TEXTS, `values` are what its sentence names."""

    code: str
    values: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The reason as JSON."""
        return asdict(self)


WORDS: dict[str, str | Promise] = {
    "accuracy": _("accuracy"),
    "effectiveness": _("effectiveness"),
    "dataset_version": _("dataset version"),
    "splits": _("splits"),
    "model": _("model"),
    "judge_commit": _("judge version"),
    "judge_model": _("judge's model"),
    "repeats": _("repeats"),
    "runner": _("agent"),
    "native": _("the workbench's runtime"),
    "faults": _("injected faults"),
    "none": _("none"),
    "user_model": _("user's model"),
    "live_tools": _("what tools answer from"),
    "live": _("the world"),
    "fixtures": _("the cases alone"),
}

# What three decimals can show.
SMALLEST_P = 0.001
HYPHEN_AS_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")

# Shares and differences are given as 0-100, p-values as 0-1.
TEXTS: dict[str, str | Promise] = {
    "improved": _("%(metric)s rises by %(delta).1f points (%(low).1f to %(high).1f, p = %(p).3f)"),
    "fell": _("%(metric)s falls by %(drop).1f points (%(low).1f to %(high).1f, p = %(p).3f)"),
    "no_evidence": _(
        "no evidence that %(metric)s changes: %(delta)+.1f points (%(low).1f to %(high).1f, p = %(p).3f)"
    ),
    "outside_margin": _(
        "%(metric)s may have fallen by more than %(margin).1f points: the lower bound is %(bound).1f"
    ),
    "no_difference": _("no case came out differently"),
    "guard_broken": _("guard cases that passed fail now: %(cases)s"),
    "guard_unscored": _("guard cases without a score in both, so nobody knows whether they hold: %(cases)s"),
    "guard_unsteady": _("guard cases that passed fail in some repeats now: %(cases)s"),
    "guard_failing": _("guard cases that fail in both: %(cases)s"),
    "cases_needed": _("about %(cases)d cases would settle it"),
    "differs": _("not comparable: %(what)s differs (%(base)s and %(candidate)s)"),
    "unfinished": _("not comparable: an evaluation has not ended"),
    "coverage": _(
        "not comparable: %(scored)d of %(total)d cases have scores in both, %(minimum).0f %% are needed"
    ),
    "no_cases": _("not comparable: there is no case to compare"),
    "patience": _("%(steps)d steps in a row brought no version worth promoting"),
    "nothing_left": _("what still fails has been tried, or is too sparse for a rule of its own"),
    "still_to_try": _("clusters that nobody tried to mend yet: %(clusters)d"),
    "best_version": _("no measured version is better than the last one promoted"),
    "dominated": _("an earlier version was better on both metrics than the last one promoted"),
}


def explain_reason(reason: Mapping[str, Any]) -> str:
    """The sentence of a stored reason in the current language; an unknown code is shown as it is."""
    text = TEXTS.get(reason["code"])
    if text is None:
        return str(reason["code"])
    values = reason.get("values", {})
    return _typeset(str(text) % {name: _word(value) for name, value in values.items()}, values.get("p"))


def _typeset(sentence: str, p: float | None) -> str:
    """The sentence with minus signs before its numbers, and without a p-value that reads as nought."""
    if p is not None and p < SMALLEST_P:
        sentence = sentence.replace(f"p = {p:.3f}", f"p < {SMALLEST_P}")
    return HYPHEN_AS_MINUS.sub("\N{MINUS SIGN}", sentence)


def explain_reasons(reasons: Iterable[Mapping[str, Any]]) -> list[str]:
    """The sentences of stored reasons, in order."""
    return [explain_reason(reason) for reason in reasons]


def _word(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(WORDS[value]) if isinstance(value, str) and value in WORDS else value
