"""Divides limits among processes, in the database: what all of them hold together is never more than a limit.

Decided purely in `share_out`; `grant_shares` reads, decides and writes in one short transaction. All times are the
database's, so that processes on machines with other clocks agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from evolution.limits.holders import is_gone
from evolution.limits.rates import Buckets, Draw, Rates, burst, draw
from evolution.models import LimitShare, SharedLimit

# Seconds for which a process takes places of a share without agreeing on it anew. It stays with a process that says
# no more for as long as the last call may take besides.
LEASE_SECONDS = 15.0


@dataclass(frozen=True)
class Wish:
    """What a process would have of a limit."""

    name: str
    # 0: nothing is divided; others are told what is taken.
    limit: int
    # Calls under way and in line, of late; and those under way.
    wanted: int = 0
    taken: int = 0
    # What it goes on holding until it asks again: the share that calls may take from while it asks, and more.
    held: int = 0
    rates: Rates = field(default_factory=Rates)
    draw: Draw = field(default_factory=Draw)
    # Seconds that a call may take.
    longest: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the process is done with it."""
        return not self.wanted and not self.taken


@dataclass(frozen=True)
class Holding:
    """What a process wants and holds of a limit."""

    wanted: int
    granted: int


@dataclass(frozen=True)
class Grant:
    """What a process may have of a limit."""

    # May be under way; `granted` is more while calls end that are beyond it.
    share: int = 0
    granted: int = 0
    # Whether others hold what is ours by rights, and whether there is less than all want.
    is_behind: bool = False
    is_scarce: bool = False
    requests: int = 0
    tokens: float = 0.0


def fair_shares(wanted: Mapping[str, int], limit: int) -> dict[str, int]:
    """Max-min fair: nobody gets more than it wants, nor could get more but from one that has less."""
    shares, left, waiting = {}, limit, len(wanted)
    # Those that want least first; of equals in the order of names, so that all processes agree.
    for holder, wants in sorted(wanted.items(), key=lambda item: (item[1], item[0])):
        shares[holder] = min(wants, left // waiting)
        left -= shares[holder]
        waiting -= 1
    return shares


def share_out(wish: Wish, holder: str, others: Mapping[str, Holding]) -> Grant:
    """What a process gets when it asks: its fair share, as far as others do not hold it yet.

    All that is granted stays within the limit, whoever asks when. What a process has to give back it goes on holding
    until it asks again, as its calls may take places while it asks.
    """
    if wish.is_over or not wish.limit:
        return Grant()
    wanted = {name: other.wanted for name, other in others.items()} | {holder: wish.wanted}
    fair = fair_shares(wanted, wish.limit)[holder]
    # What nobody wants is kept ready where calls come from, and half of it for whoever comes next.
    spare = max(wish.limit - sum(wanted.values()), 0) // (2 * len(wanted))
    free = max(wish.limit - sum(other.granted for other in others.values()), 0)
    share = min(fair + spare, free)
    return Grant(share, max(share, wish.held), share < fair, sum(wanted.values()) > wish.limit)


def grant_shares(holder: str, wishes: Sequence[Wish]) -> dict[str, Grant]:
    """Note what a process wants, and give it what it may have; by name. One transaction, errors as they come."""
    with transaction.atomic(), connection.cursor() as cursor:
        limits = _lock(cursor, sorted(wish.name for wish in wishes))
        now, shares = _read_shares(cursor, list(limits))
        others: dict[str, dict[str, Holding]] = {name: {} for name in limits}
        for share in shares:
            if share.holder != holder and not _is_over(share, now):
                others[share.limit][share.holder] = Holding(share.wanted, share.granted)
        grants = {wish.name: share_out(wish, holder, others[wish.name]) for wish in wishes}
        for wish in wishes:
            if wish.rates:
                grants[wish.name] = _draw(cursor, limits[wish.name], wish, grants[wish.name], now)
        _write(cursor, holder, [wish for wish in wishes if not wish.is_over], grants)
        over = {wish.name for wish in wishes if wish.is_over}
        _remove([share.pk for share in shares if _is_to_go(share, holder, over, now)])
        _remove_unused([wish for wish in wishes if wish.is_over], others)
    return grants


# Written out, for this is done several times a second wherever anything is under way: it takes a third of the
# processor time that the same takes through the models.
_LOCK = """
SELECT name, requests_left, tokens_left, filled_at
FROM evolution_sharedlimit WHERE name = ANY(%s) ORDER BY name FOR UPDATE
"""
# The moment, not that of the transaction's beginning; it is wanted without shares too.
_READ = """
SELECT clock_timestamp(), share.id, share.limit_id, share.holder, share.wanted, share.granted, share.lease_until
FROM (SELECT 1) AS once LEFT JOIN evolution_limitshare AS share ON share.limit_id = ANY(%s)
"""
_FILL = (
    "UPDATE evolution_sharedlimit SET requests_left = %s, tokens_left = %s, filled_at = %s WHERE name = %s"
)
_WRITE = """
INSERT INTO evolution_limitshare (limit_id, holder, wanted, granted, taken, lease_until)
SELECT limit_id, %s, wanted, granted, taken, clock_timestamp() + make_interval(secs => lease)
FROM unnest(%s::text[], %s::int[], %s::int[], %s::int[], %s::float[]) AS new (limit_id, wanted, granted, taken, lease)
ON CONFLICT (limit_id, holder) DO UPDATE SET wanted = EXCLUDED.wanted, granted = EXCLUDED.granted,
    taken = EXCLUDED.taken, lease_until = EXCLUDED.lease_until
"""


class _Limit(NamedTuple):
    name: str
    requests_left: float
    tokens_left: float
    filled_at: datetime | None


class _Share(NamedTuple):
    pk: int
    limit: str
    holder: str
    wanted: int
    granted: int
    lease_until: datetime


def _lock(cursor: CursorWrapper, names: list[str]) -> dict[str, _Limit]:
    """The locked rows of limits, made where they are missing; in the order of names, against deadlocks."""
    while True:
        cursor.execute(_LOCK, [names])
        limits = {row[0]: _Limit(*row) for row in cursor.fetchall()}
        if len(limits) == len(names):
            return limits
        missing = [SharedLimit(name=name) for name in names if name not in limits]
        SharedLimit.objects.bulk_create(missing, ignore_conflicts=True)


def _read_shares(cursor: CursorWrapper, names: list[str]) -> tuple[datetime, list[_Share]]:
    """The time, and what all processes hold of limits."""
    cursor.execute(_READ, [names])
    rows = cursor.fetchall()
    now: datetime = rows[0][0]
    return now, [_Share(*row[1:]) for row in rows if row[1] is not None]


def _draw(cursor: CursorWrapper, limit: _Limit, wish: Wish, grant: Grant, now: datetime) -> Grant:
    left = Buckets(limit.requests_left, limit.tokens_left)
    if limit.filled_at is None:
        left = Buckets(burst(wish.rates.requests), burst(wish.rates.tokens))
    seconds = (now - limit.filled_at).total_seconds() if limit.filled_at else 0.0
    left, requests, tokens = draw(wish.rates, left, seconds, wish.draw)
    cursor.execute(_FILL, [left.requests, left.tokens, now, limit.name])
    return replace(grant, requests=requests, tokens=tokens)


def _write(cursor: CursorWrapper, holder: str, wishes: list[Wish], grants: Mapping[str, Grant]) -> None:
    if wishes:
        names = [wish.name for wish in wishes]
        granted = [grants[name].granted for name in names]
        wanted, taken = [wish.wanted for wish in wishes], [wish.taken for wish in wishes]
        leases = [LEASE_SECONDS + wish.longest for wish in wishes]
        cursor.execute(_WRITE, [holder, names, wanted, granted, taken, leases])


def _is_to_go(share: _Share, holder: str, over: set[str], now: datetime) -> bool:
    return share.limit in over if share.holder == holder else _is_over(share, now)


def _is_over(share: _Share, now: datetime) -> bool:
    return share.lease_until <= now or is_gone(share.holder)


def _remove(shares: list[int]) -> None:
    if shares:
        LimitShare.objects.filter(pk__in=shares).delete()


def _remove_unused(over: list[Wish], others: Mapping[str, Mapping[str, Holding]]) -> None:
    """Forget limits that nobody holds any of: every evaluation has its own. Rates are for longer than that."""
    unused = [wish.name for wish in over if not wish.rates and not others[wish.name]]
    if unused:
        SharedLimit.objects.filter(name__in=unused).delete()


# Of evaluations, each of which has limits of its own.
OF_EVALUATIONS = "evaluation:"
# In one transaction; short enough to hold nobody up.
_MOST_FORGOTTEN = 500


def forget_abandoned() -> int:
    """Remove limits of evaluations that only dead processes held any of; returns how many. One transaction.

    Those of endpoints stay: their rates are for longer than any process.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        limits = SharedLimit.objects.filter(name__startswith=OF_EVALUATIONS).order_by("name")
        # One that is locked is in use. What processes hold is read once nobody can change it.
        free = limits.select_for_update(skip_locked=True).values_list("name", flat=True)[:_MOST_FORGOTTEN]
        names = set(free)
        now, shares = _read_shares(cursor, list(names))
        unused = names - {share.limit for share in shares if not _is_over(share, now)}
        _remove([share.pk for share in shares if share.limit in unused])
        SharedLimit.objects.filter(name__in=unused).delete()
    return len(unused)
