"""Limits that all processes keep together: at an endpoint, or in an evaluation.

Each process holds a share, on a lease, and agrees on it anew as it wants more or less: nobody waits for the database
while the share has room. The sum of all shares is never more than the limit. Without a limit nothing is asked.
"""

import os
from weakref import WeakValueDictionary

from django.db.models import Sum
from django.db.models.functions import Now

from evolution.limits.keeping import Keeper
from evolution.limits.places import Places
from evolution.limits.rates import Rates
from evolution.limits.shared import Reported, SharedPlaces
from evolution.models import LimitShare

_keeper = Keeper()
# As long as somebody uses them.
_opened: WeakValueDictionary[str, SharedPlaces] = WeakValueDictionary()
_reported: WeakValueDictionary[str, Reported] = WeakValueDictionary()


def open_limit(
    name: str,
    limit: int,
    *,
    requests_per_minute: int = 0,
    tokens_per_minute: int = 0,
    longest: float = 0.0,
) -> Places:
    """This process's part of a limit; the same for every call with the name, with the limit of the last one.

    0 is no limit. Where a place is held for at most `longest` seconds, the limit is kept also while a process can't
    reach the database. Places of a limit have to be used in an event loop: that is where shares are agreed on.
    """
    places = _opened.get(name)
    if places is None:
        _opened[name] = places = SharedPlaces(name, _keeper.poke)
    places.configure(limit, Rates(requests_per_minute, tokens_per_minute), longest)
    return places


def taken_by_all(name: str) -> int:
    """How many of a limit's places all processes have taken, as they said last."""
    shares = LimitShare.objects.filter(limit=name, lease_until__gt=Now())
    return int(shares.aggregate(taken=Sum("taken"))["taken"] or 0)


def report_taken(name: str, taken: int) -> None:
    """Say how many of something this process has under way, where nothing limits it; from within an event loop.

    Others are told within half a second, and that there is none when there is none.
    """
    reported = _reported.get(name)
    if reported is None:
        _reported[name] = reported = Reported(name, _keeper.poke)
    reported.report(taken)


def _start_anew() -> None:
    """Begin without shares, as a process does that was forked off one with them."""
    global _keeper  # noqa: PLW0603
    _keeper = Keeper()
    _opened.clear()
    _reported.clear()


os.register_at_fork(after_in_child=_start_anew)
