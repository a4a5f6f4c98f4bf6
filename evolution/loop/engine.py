"""Inside an evaluation: one worker pulls shards of a batch and keeps as many cases under way as it may.

A batch is an evaluation with those that it is compared with: they are worked on side by side, so that all see the
same endpoints at the same time. What is made is stored as it comes; nothing is kept here but what is under way.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from time import monotonic

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from evolution.errors import LoopError
from evolution.limits.holders import name_process
from evolution.limits.shares import report_taken
from evolution.loop.evaluation import ACTIVE
from evolution.loop.members import Member, Piece, make_members
from evolution.loop.outcomes import CASE_ERROR, shorten
from evolution.loop.patience import patiently
from evolution.loop.scoring import CaseOutcome, Scorer, score_case
from evolution.loop.shards import (
    HeldShard,
    claim_together,
    give_up_failing,
    release_shards,
    renew_leases,
)
from evolution.loop.storing import Batch, Finished, Standing, forget_receipt, show_life, store_batch
from evolution.models import Evaluation
from harness_repo.git.errors import HarnessRepoError

# Seconds for which results are gathered before they are stored together.
GATHERING = 0.02
# Seconds between two looks at what others may have changed.
LOOK = 1.0
# Seconds after which shards are asked for again where there were none.
NONE_LEFT = 1.0
# Seconds between two looks at whether this process ends.
LOOK_AT_END = 0.2

logger = logging.getLogger(__name__)

BuildScorer = Callable[[Evaluation], Scorer]


def never() -> bool:
    """Nobody else wants this process."""
    return False


class Engine:
    """Works on a batch until nothing of it is left to take, or until it has to give way.

    `is_wanted_elsewhere` is asked now and then, on the thread of the database. `is_stopping` says that the process
    ends: what is under way is cut off then, and made again by others.
    """

    def __init__(
        self,
        evaluations: Collection[Evaluation],
        build: BuildScorer,
        *,
        seconds: float = float("inf"),
        is_wanted_elsewhere: Callable[[], bool] = never,
        is_stopping: Callable[[], bool] = never,
        on_stored: Callable[[], None] | None = None,
    ) -> None:
        self.holder = name_process()
        self.has_worked = False
        self.held: dict[int, HeldShard] = {}
        self._members = make_members(evaluations)
        self._build = build
        self._ends_at = monotonic() + seconds
        self._is_wanted_elsewhere = is_wanted_elsewhere
        self._is_stopping = is_stopping
        self._on_stored = on_stored
        self._gives_way_since: float | None = None
        self._finished: list[Finished] = []
        self._unstored = 0
        self._ended: list[int] = []
        # evaluations that had ended, and are to be worked on again
        self._resumed: set[int] = set()

    def work(self) -> None:
        """Work, from the thread of the database. Shards that are not done are left to the next worker.

        A failure is raised, the first one if there are several, and costs its shards an attempt; an interruption
        costs nothing.
        """
        try:
            async_to_sync(self._run)()
        except Exception as failure:  # noqa: BLE001  it is raised, or what it is a group of
            self._leave(given_back=0)
            first = _first_of(failure)
            raise first from first.__cause__
        except BaseException:
            self._leave(given_back=1)
            raise
        self._leave(given_back=1)

    def _leave(self, *, given_back: int) -> None:
        # If the database is away the leases end by themselves.
        with contextlib.suppress(Exception):
            release_shards(list(self.held), self.holder, given_back=given_back)
            forget_receipt(self.holder)
            if not given_back:
                give_up_failing()

    @property
    def obstacles(self) -> dict[int, str]:
        """The evaluations that can't be started in this process, and why."""
        return {pk: member.obstacle for pk, member in self._members.items() if member.obstacle}

    def take(self, shards: Collection[HeldShard]) -> None:
        """Put shards that were claimed by this holder in line."""
        self.has_worked = self.has_worked or bool(shards)
        for shard in shards:
            self.held[shard.pk] = shard
            if not shard.missing:
                self._ended.append(shard.pk)
                self._news.set()
            # Meanwhile others may have come to want this process: who holds it at the end leaves it to the next.
            if not self.has_given_way:
                self._members[shard.evaluation_id].take(shard)

    async def _run(self) -> None:
        self._changed, self._news = asyncio.Event(), asyncio.Event()
        async with contextlib.AsyncExitStack() as self._connections, asyncio.TaskGroup() as self._tasks:
            aside = [
                self._tasks.create_task(work)
                for work in (self._store_all(), self._look_about(), self._watch_end())
            ]
            await self._pull()
            for task in aside:
                task.cancel()
            for member in self._members.values():
                await member.close()

    async def _pull(self) -> None:
        """Take shards wherever there is room, until there are none and all that was made is stored."""
        while True:
            self._changed.clear()
            await self._take_up()
            await self._claim_all()
            if self._is_idle() and not self.held:
                # There may be what only those take who hold nothing.
                for member in self._members.values():
                    member.none_left_until = 0.0
                await self._claim_all()
            if self._is_idle():
                return
            await self._changed.wait()

    async def _claim_all(self) -> None:
        for pk in list(self._members):
            if not self._gives_way() and not any(shard.is_alone for shard in self.held.values()):
                await self._claim(pk)

    @property
    def has_given_way(self) -> bool:
        """Whether it ended because others wanted this process, and not because nothing was left."""
        return self._gives_way_since is not None

    def _is_idle(self) -> bool:
        is_at_work = any(member.is_at_work() for member in self._members.values())
        return not (is_at_work or self._unstored or self._ended)

    def _gives_way(self) -> bool:
        if self._gives_way_since is None and monotonic() > self._ends_at:
            self._give_way()
        return self._gives_way_since is not None

    def _give_way(self) -> None:
        """Begin nothing any more."""
        self._gives_way_since = self._gives_way_since or monotonic()
        for member in self._members.values():
            member.drop_waiting()

    async def _claim(self, pk: int) -> None:
        """Take as many shards of an evaluation as there is room for, and the same ones of those after it."""
        members = [one for one in self._members.values() if one.pk >= pk and self._may_claim(one)]
        wanted = min((one.room() for one in members), default=0)
        if not wanted or members[0].pk != pk:
            return
        batch = [one.evaluation for one in members]
        shards = await patiently(claim_together, batch, wanted, self.holder, list(self.held))
        if sum(shard.evaluation_id == pk for shard in shards) < wanted:
            members[0].none_left_until = monotonic() + NONE_LEFT
        for member in members:
            await self._begin(member, [shard for shard in shards if shard.evaluation_id == member.pk])

    def _may_claim(self, member: Member) -> bool:
        return member.may_take() and monotonic() >= member.none_left_until

    async def _begin(self, member: Member, shards: Sequence[HeldShard]) -> None:
        """Put what was claimed of an evaluation in line, if it can be started here."""
        if shards and member.scorer is None and not await self._set_up(member):
            # Another machine may have what this one lacks.
            await patiently(release_shards, [shard.pk for shard in shards], self.holder, given_back=1)
            return
        self.take(shards)

    async def _set_up(self, member: Member) -> bool:
        """Build what scores its cases, and begin to start them; False when that can't be done here."""
        try:
            scorer = await patiently(self._build, member.evaluation)
            for connection in scorer.connections():
                await self._connections.enter_async_context(connection)
        except (LoopError, HarnessRepoError) as failure:
            member.obstacle = shorten(str(failure))
            logger.warning("%s can't be worked on here: %s", member.evaluation, failure)
            return False
        member.set_up(scorer, self._news.set)
        member.starter = self._tasks.create_task(self._start_cases(member))
        return True

    async def _start_cases(self, member: Member) -> None:
        """Start a case whenever there is a place for it."""
        while not member.is_over:
            piece = await member.next_piece()
            if piece is None:
                continue
            member.begin(self._tasks.create_task(self._work_on(member, piece)))
            if member.room():
                self._changed.set()

    async def _work_on(self, member: Member, piece: Piece) -> None:
        assert member.scorer is not None  # noqa: S101  it was there when the piece was taken
        self._unstored += 1
        try:
            outcome = await score_case(piece.case, member.scorer, piece.repeat)
        except asyncio.CancelledError:
            # Nobody wants it any more.
            self._unstored -= 1
            self._changed.set()
            return
        except Exception as failure:
            logger.exception("%s, repeat %d, could not be scored", piece.case, piece.repeat)
            error = shorten(f"{type(failure).__name__}: {failure}")
            outcome = CaseOutcome(error_kind=CASE_ERROR, error=error)
        self._finished.append(Finished(member.pk, piece.case, piece.repeat, piece.attempts + 1, outcome))
        piece.shard.missing.pop((piece.case.pk, piece.repeat), None)
        if not piece.shard.missing:
            self._ended.append(piece.shard.pk)
        self._news.set()

    async def _store_all(self) -> None:
        """Store what is made as it comes, what came while the last was stored together."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHERING)
            self._news.clear()
            await self._store()

    async def _store(self) -> None:
        members = sorted(self._members.values(), key=lambda member: member.pk)
        settled = [member for member in members if member.is_ended and not member.is_at_work()]
        batch = Batch(
            self._finished,
            [(member.ledger, member.ledger.take()) for member in members if member.ledger],
            self._ended,
            self.holder,
            list(self._members),
            {
                member.pk: member.ledger.stopped_by
                for member in members
                if member.ledger and member.ledger.stopped_by
            },
        )
        self._finished, self._ended = [], []
        standings = await patiently(store_batch, batch)
        self._unstored -= len(batch.finished)
        for member in settled:
            member.is_settled = True
        for pk in batch.ended:
            self.held.pop(pk, None)
        self._follow(standings)
        self._changed.set()
        if self._on_stored:
            await patiently(self._on_stored)

    def _follow(self, standings: dict[int, Standing]) -> None:
        """Stop what nobody wants any more: evaluations that are cancelled, gone, or have used up their budget."""
        for pk, member in self._members.items():
            standing = standings.get(pk)
            is_ended = standing is None or standing.state not in ACTIVE
            member.is_ended = member.is_ended or is_ended or bool(standing and standing.stopped_by)
            if standing is None or is_ended:
                member.stop()
            elif member.is_ended and not standing.stopped_by:
                self._resumed.add(pk)
            elif standing.stopped_by or (member.ledger and member.ledger.stopped_by):
                # What is under way ends as it can.
                member.begin_nothing()

    async def _look_about(self) -> None:
        """Renew leases, show life, and see what others have changed."""
        renewed = monotonic()
        while True:
            await asyncio.sleep(LOOK)
            if await patiently(self._is_wanted_elsewhere):
                self._give_way()
            for pk, member in self._members.items():
                report_taken(f"evaluation:{pk}:cases", len(member.running))
                report_taken(f"evaluation:{pk}:calls", member.ledger.in_flight if member.ledger else 0)
            at_work = [pk for pk, member in self._members.items() if member.is_at_work()]
            self._follow(await patiently(show_life, at_work, list(self._members)))
            await self._let_go()
            if monotonic() - renewed > settings.EVALUATION_LEASE_SECONDS / 3:
                renewed = monotonic()
                await self._renew()
            self._changed.set()

    async def _let_go(self) -> None:
        """Leave the shards of what has ended to others: it may be resumed while we are at the rest of the batch."""
        for pk, member in self._members.items():
            unwanted = [shard.pk for shard in self.held.values() if shard.evaluation_id == pk]
            if unwanted and member.is_ended and not member.is_at_work():
                await patiently(release_shards, unwanted, self.holder, given_back=1)
                for shard in unwanted:
                    self.held.pop(shard, None)
        if self._resumed:
            self._news.set()

    async def _take_up(self) -> None:
        """Begin anew with what was resumed meanwhile, once all that was made of it before is stored."""
        for pk in list(self._resumed):
            member = self._members[pk]
            if not member.is_settled:
                continue
            self._resumed.discard(pk)
            await member.close()
            if (evaluation := await patiently(_read, pk)) is not None:
                self._members[pk] = member.renewed(evaluation)

    async def _renew(self) -> None:
        asked = set(self.held)
        lost = asked - await patiently(renew_leases, asked, self.holder)
        for pk in lost & set(self.held) - set(self._ended):
            shard = self.held.pop(pk)
            self._members[shard.evaluation_id].lose(shard)

    async def _watch_end(self) -> None:
        """Stop all that is under way once the process ends: there may be no time left to store what it brings.

        Asks no database, which may end at the same time.
        """
        while not self._is_stopping():  # noqa: ASYNC110  another process says so, which sets no event
            await asyncio.sleep(LOOK_AT_END)
        self._give_way()
        for member in self._members.values():
            member.stop()
        self._changed.set()


def _read(pk: int) -> Evaluation | None:
    return Evaluation.objects.select_related("harness__judge").filter(pk=pk).first()


def _first_of(failure: Exception) -> Exception:
    """The failure that tells most, out of a group of them: the database's, or the one that came first."""
    failures = _list_failures(failure)
    return next((one for one in failures if isinstance(one, DatabaseError | InterfaceError)), failures[0])


def _list_failures(failure: Exception) -> list[Exception]:
    if not isinstance(failure, ExceptionGroup):
        return [failure]
    return [leaf for one in failure.exceptions for leaf in _list_failures(one)]
