"""What operators do with releases: make an older one live again."""

from evolution.actions.reasons import require_reason
from evolution.actors import Actor, Role
from evolution.loop import promotion
from evolution.models import Harness, Release


def roll_back(actor: Actor, harness: Harness, release: Release, reason: str) -> Release:
    """Make the files of an older release live again; history is kept. Needs a reason."""
    actor.require(Role.OPERATOR)
    require_reason(reason)
    return promotion.roll_back_to(actor, harness, release, reason)
