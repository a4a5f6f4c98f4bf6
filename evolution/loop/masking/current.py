"""The rules that are in force: those that ship, as far as people have not put others in their place."""

from functools import lru_cache

from evolution.loop.masking.masker import Masker
from evolution.loop.masking.rule import Rule
from evolution.loop.masking.shipped import SHIPPED
from evolution.models import MaskingRule


def current_masker(*, only_secrets: bool = False) -> Masker:
    """The masker by the rules that are in force now; those for secrets alone where personal data may stay."""
    rules = tuple(rule for rule in current_rules() if rule.is_secret or not only_secrets)
    return _build_masker(rules)


def current_rules() -> list[Rule]:
    """The rules in force: those that ship, unless one that people made has their name, and people's own."""
    changed = {row.name: row for row in MaskingRule.objects.all()}
    shipped = [rule for rule in SHIPPED if rule.name not in changed]
    own = {name: rule_of(row) for name, row in changed.items() if row.is_enabled}
    # In the place of the one that it stands in for, since the first of two finds gives the name.
    order = {rule.name: place for place, rule in enumerate(SHIPPED)}
    return sorted([*shipped, *own.values()], key=lambda rule: (order.get(rule.name, -1), rule.name))


def rule_of(row: MaskingRule) -> Rule:
    """The rule of a row; one that says what the shipped one says is as quick as that."""
    shipped = next((rule for rule in SHIPPED if rule.name == row.name), None)
    if shipped is not None and (shipped.pattern, shipped.label) == (row.pattern, row.label):
        return shipped
    return Rule(row.name, row.label, row.pattern, row.description, row.is_secret)


@lru_cache(maxsize=8)
def _build_masker(rules: tuple[Rule, ...]) -> Masker:
    return Masker(rules)
