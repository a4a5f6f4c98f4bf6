"""What operators do with releases: make an older one live again."""

from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop import promotion
from evolution.models import Harness, Release


def roll_back(actor: Actor, harness: Harness, release: Release, reason: str) -> Release:
    """Make the files of an older release live again; history is kept. Needs a reason."""
    actor.require(Role.OPERATOR)
    if not reason.strip():
        raise LoopError(_("say why the release is rolled back"))
    return promotion.roll_back_to(actor, harness, release, reason)
