"""What people do with sources: name one, say how it is read and what counts as a failure, hand out its token."""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.adapters.formats.detect import check_format
from evolution.errors import LoopError
from evolution.loop.failure_rules import FailureRule
from evolution.loop.source_names import check_source_name
from evolution.loop.source_tokens import HINT, digest_token, make_token
from evolution.models import Harness, Source
from evolution.transitions import record


def create_source(actor: Actor, harness: Harness, name: str) -> tuple[Source, str]:
    """Make a source that may push, and its token, which nobody sees again."""
    actor.require(Role.DEVELOPER)
    check_source_name(name)
    token = make_token()
    try:
        with transaction.atomic():
            source = Source.objects.create(
                harness=harness, name=name, created_by=actor.name, **_token_fields(token)
            )
            record(actor, "source.created", source, name=name)
    except IntegrityError:
        raise LoopError(_("there is a source %(name)s already") % {"name": name}) from None
    return source, token


@transaction.atomic
def change_source(
    actor: Actor, source: Source, *, fmt: str, rule: FailureRule | None, mapping: dict[str, str]
) -> None:
    """Say how a source is read, and what counts as a failure; without a rule the default does."""
    actor.require(Role.DEVELOPER)
    check_format(fmt, mapping)
    source.format, source.mapping = fmt, mapping
    source.rule = rule.to_json() if rule else {}
    source.save(update_fields=["format", "mapping", "rule"])
    record(actor, "source.changed", source, format=fmt, rule=str(rule or ""), mapping=mapping)


@transaction.atomic
def rotate_token(actor: Actor, source: Source) -> str:
    """Give a source a new token, shown this once; the old one is refused from now on."""
    actor.require(Role.DEVELOPER)
    token = make_token()
    _save(source, **_token_fields(token))
    record(actor, "source.token_rotated", source)
    return token


@transaction.atomic
def set_enabled(actor: Actor, source: Source, *, is_enabled: bool) -> None:
    """Let a source push, or refuse what it pushes; its cases stay."""
    actor.require(Role.DEVELOPER)
    _save(source, is_enabled=is_enabled)
    record(actor, "source.enabled" if is_enabled else "source.disabled", source)


def _token_fields(token: str) -> dict[str, str]:
    return {"token_digest": digest_token(token), "token_hint": token[:HINT]}


def _save(source: Source, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(source, name, value)
    source.save(update_fields=list(fields))
