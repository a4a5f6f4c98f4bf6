"""What operators do with the masking rules: change, add, switch off, and take the shipped ones back."""

import hashlib
import re
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.masking import SHIPPED, Masker, MaskingError, Rule
from evolution.models import MaskingRule
from evolution.transitions import record

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_LABEL = re.compile(r"[^\[\]~\n\r\t\d][^\[\]~\n\r\t]{0,31}")
_GROUPS = frozenset({"secret", "luhn", "cn_id"})
# Texts of a kind that a careless pattern takes for ever on.
_LONG = tuple(f"{piece * 2000}\n!" for piece in ("a", "1", " ", "字", "a1 -@.:="))


def save_rule(actor: Actor, rule: Rule, *, is_enabled: bool = True) -> MaskingRule:
    """Keep a rule; one with the name of a shipped one stands in for that. Raises LoopError for one that can't work."""
    actor.require(Role.OPERATOR)
    check_rule(rule)
    fields = {
        "label": rule.label,
        "pattern": rule.pattern,
        "description": rule.description[:200],
        "is_secret": rule.is_secret,
        "is_enabled": is_enabled,
        "updated_by": actor.name,
    }
    with transaction.atomic():
        row, _is_new = MaskingRule.objects.update_or_create(name=rule.name, defaults=fields)
        record(actor, "maskingrule.changed", row, **_describe(row))
    return row


@transaction.atomic
def set_rule_enabled(actor: Actor, name: str, *, is_enabled: bool) -> None:
    """Switch a rule on or off. Raises LoopError for an unknown one."""
    actor.require(Role.OPERATOR)
    row = MaskingRule.objects.filter(name=name).first()
    if row is None:
        row = _row_of(find_shipped(name), actor)
    row.is_enabled, row.updated_by = is_enabled, actor.name
    row.save()
    record(actor, "maskingrule.enabled" if is_enabled else "maskingrule.disabled", row, **_describe(row))


@transaction.atomic
def restore_rule(actor: Actor, name: str) -> None:
    """Take a shipped rule as it ships; a rule of people's own is gone."""
    actor.require(Role.OPERATOR)
    row = MaskingRule.objects.filter(name=name).first()
    if row is None:
        return
    is_shipped = any(rule.name == name for rule in SHIPPED)
    verb = "maskingrule.restored" if is_shipped else "maskingrule.deleted"
    record(actor, verb, row, **_describe(row))
    row.delete()


def find_shipped(name: str) -> Rule:
    """The rule of that name as it ships; raises LoopError where there is none."""
    found = next((rule for rule in SHIPPED if rule.name == name), None)
    if found is None:
        raise LoopError(_("there is no masking rule %(name)s") % {"name": name})
    return found


def check_rule(rule: Rule) -> None:
    """Raise LoopError, with the reason, for a rule that can't be used."""
    if not _NAME.fullmatch(rule.name) or rule.name == "new":
        raise LoopError(_("a rule's name has small letters, digits and -, 32 of them at most"))
    if not _LABEL.fullmatch(rule.label):
        raise LoopError(
            _("a rule's label has up to 32 characters, no brackets, and does not begin with a digit")
        )
    try:
        masker = Masker([rule])
        _check_matches(masker)
        for text in _LONG:
            masker.find(text)
    except MaskingError as error:
        raise LoopError(str(error)) from None


def _check_matches(masker: Masker) -> None:
    pattern = masker.patterns[0]
    if unknown := set(pattern.groupindex) - _GROUPS:
        what = {"name": min(unknown), "known": ", ".join(sorted(_GROUPS))}
        raise LoopError(_("the group %(name)s means nothing here; known are %(known)s") % what)
    if pattern.search("", timeout=1) or pattern.fullmatch("", timeout=1):
        raise LoopError(_("the pattern matches an empty text, and so stands everywhere"))


def _row_of(rule: Rule, actor: Actor) -> MaskingRule:
    return MaskingRule(
        name=rule.name,
        label=rule.label,
        pattern=rule.pattern,
        description=rule.description[:200],
        is_secret=rule.is_secret,
        updated_by=actor.name,
    )


def _describe(row: MaskingRule) -> dict[str, Any]:
    """What the audit trail says: not the pattern, which may name what it hides, but whether it is another one."""
    digest = hashlib.sha256(row.pattern.encode()).hexdigest()[:12]
    return {"name": row.name, "label": row.label, "pattern": digest, "is_enabled": row.is_enabled}
