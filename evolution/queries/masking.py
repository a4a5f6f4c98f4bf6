"""The masking rules as people see them, and what a rule finds in a text or in the newest cases."""

import time
from collections import Counter
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from evolution.loop.masking import SHIPPED, Found, Masker, Rule, number_found, rule_of
from evolution.models import FailureCase, MaskingRule

NEWEST = 200
# A slow rule is tried on fewer cases.
SECONDS = 5.0
MOST_EXAMPLES = 10
_AROUND = 30
_FIELDS = ("source_id", "request", "context", "trajectory", "reply", "symptom", "findings")


@dataclass(frozen=True)
class RuleLine:
    """A rule on the list."""

    rule: Rule
    is_enabled: bool
    is_shipped: bool
    # other than it ships; for people's own rules True
    is_changed: bool
    updated_by: str = ""

    @property
    def description(self) -> str:
        """What it finds, in the language of the page."""
        return _(self.rule.description) if self.rule.description else ""


def list_rules() -> list[RuleLine]:
    """Every rule: those that ship in their order, then people's own."""
    rows = {row.name: row for row in MaskingRule.objects.all()}
    shipped = [_line(rule, rows.pop(rule.name, None)) for rule in SHIPPED]
    own = [RuleLine(rule_of(row), row.is_enabled, False, True, row.updated_by) for row in rows.values()]
    return [*shipped, *own]


def find_rule(name: str) -> RuleLine | None:
    """One rule by its name."""
    return next((line for line in list_rules() if line.rule.name == name), None)


def _line(rule: Rule, row: MaskingRule | None) -> RuleLine:
    if row is None:
        return RuleLine(rule, True, True, False)
    now = rule_of(row)
    return RuleLine(now, row.is_enabled, True, now is not rule, row.updated_by)


@dataclass(frozen=True)
class Marked:
    """A piece of a text: as it was, and what stands in for it where it is masked."""

    text: str
    placeholder: str = ""
    rule: str = ""


def mark_text(masker: Masker, text: str) -> list[Marked]:
    """The text in pieces, masked ones among them; raises MaskingError."""
    return _mark(*masker.look_through(text))


def _mark(text: str, found: list[Found]) -> list[Marked]:
    pieces, at = [], 0
    for each, placeholder in zip(found, number_found(found), strict=True):
        pieces += [Marked(text[at : each.start]), Marked(each.text, placeholder, each.rule)]
        at = each.end
    return [piece for piece in [*pieces, Marked(text[at:])] if piece.text]


@dataclass
class Trial:
    """What rules find in stored cases, where everything that other rules found is masked already."""

    looked_at: int = 0
    cases: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    # some of what was found, with what stands around it
    examples: list[list[Marked]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All hits."""
        return self.hits.total()


def try_on_cases(masker: Masker) -> Trial:
    """Look for what the rules find in the newest cases of all harnesses; raises MaskingError."""
    trial, until = Trial(), time.monotonic() + SECONDS
    for case in FailureCase.objects.order_by("-pk").only(*_FIELDS)[:NEWEST].iterator(chunk_size=20):
        texts, found = masker.look_through([getattr(case, name) for name in _FIELDS])
        trial.looked_at += 1
        trial.cases += bool(found)
        trial.hits.update(each.rule for each in found)
        for each in found[: MOST_EXAMPLES - len(trial.examples)]:
            trial.examples.append(_cut(texts, each))
        if time.monotonic() > until:
            break
    return trial


def _cut(text: str, found: Found) -> list[Marked]:
    start = max(found.start - _AROUND, text.rfind("\n", 0, found.start) + 1)
    end = text.find("\n", found.end)
    around = text[start : min(found.end + _AROUND, end if end >= 0 else len(text))]
    moved = replace(found, start=found.start - start, end=found.end - start)
    return _mark(around, [moved]) if moved.end <= len(around) else [Marked(found.text, f"[{found.label} 1]")]
