"""What people keep on a case beside its state: tags, whose it is, and notes."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from evolution.actions.legible import is_legible
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.models import CaseNote, FailureCase
from evolution.transitions import record

LONGEST_NOTE = 10_000
LONGEST_TAG = 64
MOST_TAGS = 50


def clean_tag(text: str) -> str:
    """The tag in one spelling: on one line, no comma, which stands between tags. Raises LoopError."""
    tag = " ".join(text.split())
    if not tag or "," in tag or "，" in tag:
        raise LoopError(_("a tag is a word or a few, without a comma"))
    if not is_legible(tag):
        raise LoopError(_("a tag has to be seen: no characters that hide or turn text round"))
    if len(tag) > LONGEST_TAG:
        raise LoopError(_("a tag has at most %(most)d characters") % {"most": LONGEST_TAG})
    return tag


@transaction.atomic
def set_tags(actor: Actor, case: FailureCase, tags: Iterable[str]) -> None:
    """Give a case these tags and no others, each once, in this order. Raises LoopError for one that is none."""
    actor.require(Role.DEVELOPER)
    wanted = list(dict.fromkeys(clean_tag(tag) for tag in tags))
    if len(wanted) > MOST_TAGS:
        raise LoopError(_("a case has at most %(most)d tags") % {"most": MOST_TAGS})
    locked = FailureCase.objects.select_for_update().only("tags").get(pk=case.pk)
    before, case.tags = locked.tags, wanted
    if before == wanted:
        return
    case.save(update_fields=["tags", "updated_at"])
    added = [tag for tag in wanted if tag not in before]
    removed = [tag for tag in before if tag not in wanted]
    record(actor, "failurecase.tagged", case, added=added, removed=removed)


@transaction.atomic
def assign_case(actor: Actor, case: FailureCase, person: User | None) -> None:
    """Make a case somebody's, or nobody's with None."""
    actor.require(Role.DEVELOPER)
    wanted = person.pk if person else None
    others = FailureCase.objects.filter(pk=case.pk).exclude(assignee_id=wanted)
    changed = others.update(assignee_id=wanted, updated_at=Now())
    case.assignee_id = wanted
    if changed:
        name = person.get_username() if person else ""
        record(actor, "failurecase.assigned", case, assignee=name)


@transaction.atomic
def add_note(actor: Actor, case: FailureCase, text: str) -> CaseNote:
    """Write something down about a case, under the actor's name; it stays. Raises LoopError for an empty one."""
    actor.require(Role.ANNOTATOR)
    words = text.strip()
    if not words:
        raise LoopError(_("the note is empty"))
    if len(words) > LONGEST_NOTE:
        raise LoopError(_("a note has at most %(most)d characters") % {"most": LONGEST_NOTE})
    note = CaseNote.objects.create(case=case, author=actor.name, text=words)
    record(actor, "failurecase.noted", case, note=note.pk)
    return note
