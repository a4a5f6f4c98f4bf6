"""Beside the actions: what a person undoes or refuses needs a reason."""

from django.utils.translation import gettext as _

from evolution.errors import LoopError


def require_reason(reason: str) -> None:
    """Raise LoopError when no reason is given."""
    if not reason.strip():
        raise LoopError(_("say why: this needs a reason"))
