"""Inside an evaluation: an evaluation of a batch as one worker sees it: what waits, what is under way, its places."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings

from evolution.limits.places import Places
from evolution.limits.shares import open_limit
from evolution.limits.waiting import wait_for_place
from evolution.loop.evaluation import SHARD_PAIRS
from evolution.loop.kept_calls import Ledger
from evolution.loop.scoring import Scorer
from evolution.loop.shards import HeldShard
from evolution.models import DatasetCase, Evaluation

# The least cases that wait in a worker, so that the next one is there when a place is free.
PREFETCH = 2 * SHARD_PAIRS


class Piece(NamedTuple):
    """A pair that is to be made."""

    shard: HeldShard
    case: DatasetCase
    repeat: int
    # how often it has been tried
    attempts: int


@dataclass(eq=False)
class Member:
    """An evaluation of a batch in this worker."""

    evaluation: Evaluation
    # the limit of cases under way that holds for the whole batch, and how many evaluations share it here
    limit_name: str
    sharers: int = 1
    scorer: Scorer | None = None
    # why no scorer can be built, empty when one can
    obstacle: str = ""
    # no more shards are there to take, as of this time of time.monotonic
    none_left_until: float = 0.0
    # nothing more is begun
    is_over: bool = False
    # somebody cancelled it, or its budget is used up: as the database has it, until it is resumed
    is_ended: bool = False
    # all that was made of it before that is stored
    is_settled: bool = False
    waiting: deque[Piece] = field(default_factory=deque)
    running: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.pk: int = self.evaluation.pk
        self._places: Places | None = None
        self._limit = self.evaluation.concurrency or settings.EVALUATION_CONCURRENCY
        self._has_waiting = asyncio.Event()
        self.starter: asyncio.Task[None] | None = None

    @property
    def ledger(self) -> Ledger | None:
        """What counts its calls and keeps their answers; None without."""
        return self.scorer.ledger if self.scorer else None

    def set_up(self, scorer: Scorer, on_news: Callable[[], None]) -> None:
        """Give it what scores its cases; `on_news` is called when there is something to store."""
        self.scorer = scorer
        self._limit = self.evaluation.concurrency or scorer.cases_at_once or self._limit
        self._places = open_limit(self.limit_name, self._limit)
        if self.ledger is not None:
            self.ledger.on_news = on_news

    def is_at_work(self) -> bool:
        """Whether it has anything under way or in line."""
        return bool(self.waiting or self.running)

    def may_take(self) -> bool:
        """Whether shards of it may be begun here, as far as is known."""
        return not self.is_over and not self.obstacle

    def room(self) -> int:
        """How many more shards it should take: enough that no place is without a case for long; some at once."""
        # At first, half of all that may be under way: another worker takes the other half.
        enough = max(PREFETCH, self._limit // 2 // self.sharers - len(self.running))
        if not self.may_take() or len(self.waiting) > enough // 2:
            return 0
        return -(-(enough - len(self.waiting)) // SHARD_PAIRS)

    def take(self, shard: HeldShard) -> None:
        """Put a shard's pairs in line, unless nothing is to be begun any more."""
        if self.is_over:
            return
        for (case, repeat), attempts in shard.missing.items():
            self.waiting.append(Piece(shard, shard.cases[case], repeat, attempts))
        self._has_waiting.set()

    async def next_piece(self) -> Piece | None:
        """The next pair in line, with a place taken for it; None when it was dropped meanwhile."""
        assert self._places is not None  # noqa: S101  it is set up before it is asked
        while not self.waiting:
            self._has_waiting.clear()
            await self._has_waiting.wait()
        await wait_for_place(self._places)
        if self.waiting:
            return self.waiting.popleft()
        self._places.give_back()
        return None

    def begin(self, task: "asyncio.Task[None]") -> None:
        """Count a case as under way; its place is given back when it ends, also if it is cut off before it began."""
        self.running.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self.running.discard(task)
        if self._places is not None:
            self._places.give_back()

    def renewed(self, evaluation: Evaluation) -> "Member":
        """The same evaluation as it is now, with nothing begun."""
        return Member(evaluation, self.limit_name, self.sharers)

    def drop_waiting(self) -> None:
        """Leave to others what has not been begun."""
        self.waiting.clear()

    def begin_nothing(self) -> None:
        """Let what is under way come to its end, and begin nothing any more."""
        self.is_over = True
        self.drop_waiting()

    def stop(self) -> None:
        """Stop at once: calls that are under way are cut off."""
        self.begin_nothing()
        loop = asyncio.get_running_loop()
        for task in self.running:
            # Not before its first step, so that it says that it has ended.
            loop.call_soon(task.cancel)

    async def close(self) -> None:
        """Let go of what it holds beyond its cases."""
        if self.starter is not None:
            self.starter.cancel()
        if self.ledger is not None:
            await self.ledger.close()

    def lose(self, shard: HeldShard) -> None:
        """Forget a shard that has another holder by now; what is under way for it is not wanted."""
        self.waiting = deque(piece for piece in self.waiting if piece.shard is not shard)


def make_members(evaluations: Collection[Evaluation]) -> dict[int, Member]:
    """The evaluations of a batch by their pk. What may be under way at once may be in all of them together."""
    # One that has ended is not here, but names the limit for those that are compared with it.
    first = min((min(one.pk, one.base_id or one.pk) for one in evaluations), default=0)
    in_order = sorted(evaluations, key=lambda one: one.pk)
    return {one.pk: Member(one, f"evaluation:{first}", len(in_order)) for one in in_order}
