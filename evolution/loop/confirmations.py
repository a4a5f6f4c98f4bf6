"""Beside the steps: whether what somebody settled may go into a merge, or waits for somebody else's word first.

What is written into a conflict is in no proposal, so no approval of a proposal covers it.
"""

import hashlib
from collections.abc import Sequence

from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError, StaleState
from evolution.loop.people import find_barred
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import is_author, names_of
from evolution.models import ConflictResolution, Proposal
from evolution.transitions import record
from harness_repo.git.errors import HarnessRepoError


def holds(resolution: ConflictResolution, proposals: Sequence[Proposal]) -> bool:
    """Whether merges of the proposals take what was settled.

    Where the harness needs a second reviewer, somebody has to have confirmed it who neither settled it nor is an
    author of a proposal that changes the file, and is a developer here still.
    """
    if not resolution.harness.needs_second_reviewer:
        return True
    name = resolution.confirmed_by
    if not name or find_barred(resolution.harness, [name]):
        return False
    return not is_barred(name, resolution, proposals)


def is_barred(name: str, resolution: ConflictResolution, proposals: Sequence[Proposal]) -> bool:
    """Whether a person's confirmation would not count, as they settled it or wrote a side of it.

    Whoever has the address of another account is the same person.
    """
    if names_of(name) & names_of(resolution.decided_by):
        return True
    return any(is_author(proposal, name) for proposal in list_concerned(resolution, proposals))


def list_concerned(resolution: ConflictResolution, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Those of the proposals that change the file; all of them where git can't say."""
    return [proposal for proposal in proposals if _is_concerned(proposal, resolution.path)]


def _is_concerned(proposal: Proposal, path: str) -> bool:
    try:
        repository = open_repository(proposal.harness)
        return path in repository.changed_files(proposal.base_commit, proposal.head_commit)
    except HarnessRepoError:
        return True


def digest_settled(resolution: ConflictResolution) -> str:
    """SHA-256 in hex of the text that was settled, by which a confirmation says what it is of; empty: deleted."""
    return "" if resolution.content is None else hashlib.sha256(resolution.content.encode()).hexdigest()


def confirm_resolution(
    actor: Actor, resolution: ConflictResolution, proposals: Sequence[Proposal], reviewed: str | None = None
) -> None:
    """Keep that a person has looked at what another settled in a locked record; confirmed already, nothing happens.

    Raises StaleState when the text's digest is not what was `reviewed`, LoopError for whoever settled it or is an
    author of a proposal that changes the file.
    """
    if reviewed is not None and reviewed != digest_settled(resolution):
        raise StaleState(_("it was settled otherwise meanwhile; look at it again"))
    if is_barred(actor.name, resolution, proposals):
        text = _(
            "%(path)s was settled by %(name)s: somebody has to confirm it who did not, and who wrote none of the "
            "proposals that change it"
        )
        raise LoopError(text % {"path": resolution.path, "name": resolution.decided_by})
    confirmed = resolution.confirmed_by
    if confirmed and not is_barred(confirmed, resolution, proposals):
        return
    # Not save(): that would say that it was decided now.
    ConflictResolution.objects.filter(pk=resolution.pk).update(confirmed_by=actor.name)
    resolution.confirmed_by = actor.name
    record(actor, "conflict.confirmed", resolution, path=resolution.path, key=resolution.key)
