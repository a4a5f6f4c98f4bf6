"""What a source can be called, wherever one is made."""

import re

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.masking import current_masker

LONGEST = 64
_NAME = re.compile(r"[\w-]{1,64}")
# What cases have that no source sent, and an address of a page.
_RESERVED = frozenset({"evaluation", "create"})


def check_source_name(name: str) -> None:
    """Raise LoopError for a name that a source can't have.

    Cases are booked under it, and what masking would make another of is no name to find them by.
    """
    what = {"name": name}
    if name in _RESERVED:
        raise LoopError(_("%(name)s can't be the name of a source: it stands for something else") % what)
    if not _NAME.fullmatch(name):
        text = _("%(name)s can't be the name of a source: letters, digits, - and _ can, 64 of them")
        raise LoopError(text % what)
    masker = current_masker()
    if masker.mask_id(name) != name:
        text = _("%(name)s can't be the name of a source: the rules of masking find something in it")
        raise LoopError(text % {"name": masker.mask_text(name)})
