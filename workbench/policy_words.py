"""The policy of a verdict as rows that people can read: name, value with its unit, and what it decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _


@dataclass(frozen=True)
class PolicyRow:
    """One setting of the policy."""

    name: str
    # with its unit
    value: str
    meaning: str


def explain_policy(policy: Mapping[str, Any]) -> list[PolicyRow]:
    """The settings of a stored policy, those that decide first; one without words is left as it is."""
    words = _words()
    known = [name for name in words if name in policy]
    rows = [_explain(policy[name], *words[name]) for name in known]
    return rows + [PolicyRow(name, str(value), "") for name, value in policy.items() if name not in words]


def _explain(value: float, name: str, unit: str, scale: float, meaning: str) -> PolicyRow:
    return PolicyRow(name, f"{round(scale * value, 4):g}{unit}", meaning)


def _words() -> dict[str, tuple[str, str, float, str]]:
    """Name, unit, factor from the stored value, and meaning."""
    points = _(" points")
    return {
        "alpha": (
            _("Significance level"),
            " %",
            100,
            _("A difference counts when chance alone would bring one as large less often than this."),
        ),
        "margin": (
            _("Margin"),
            points,
            100,
            _("How far the metric that did not rise may have fallen, at worst, for a promotion."),
        ),
        "coverage": (
            _("Coverage"),
            " %",
            100,
            _("How many of the cases need a score in both evaluations, for a comparison at all."),
        ),
        "power": (
            _("Power"),
            " %",
            100,
            _("How surely the number of cases that is asked for would show a difference of this size."),
        ),
        "resamples": (
            _("Resamples"),
            "",
            1,
            _("How often the cases are drawn anew for the interval."),
        ),
        "seed": (_("Seed"), "", 1, _("Of these draws, so that the same scores give the same interval.")),
    }
