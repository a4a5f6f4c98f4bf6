"""Limits over several processes, each of which is played by a keeper of its own over a real database."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db.models import Sum
from django.utils import timezone

from evolution.limits import granting
from evolution.limits.keeping import Keeper
from evolution.limits.places import Places
from evolution.limits.rates import Rates
from evolution.limits.shared import SharedPlaces
from evolution.limits.shares import open_limit, report_taken, taken_by_all
from evolution.limits.waiting import Turn, wait_for_place
from evolution.models import LimitShare, SharedLimit


@contextlib.asynccontextmanager
async def hold_place(places: Places) -> AsyncIterator[None]:
    """Hold one of the places, once it is our turn."""
    await wait_for_place(places)
    try:
        yield
    finally:
        places.give_back()


pytestmark = pytest.mark.django_db


class Process:
    """What a process has of the limit "here"."""

    def __init__(self, holder: str, limit: int, rates: Rates | None = None) -> None:
        self.keeper = Keeper(holder)
        self.places = SharedPlaces("here", self.keeper.poke)
        self.places.configure(limit, rates or Rates())
        self.made = 0

    async def call(self, seconds: float = 0.01) -> None:
        async with hold_place(self.places):
            await asyncio.sleep(seconds)
            self.made += 1

    async def work(self, calls: int, seconds: float = 0.01) -> None:
        await asyncio.gather(*(self.call(seconds) for _ in range(calls)))


async def watch(processes: list[Process], work: Awaitable[object]) -> tuple[int, int]:
    """The most that was under way at once while they worked, and the most that was granted."""
    most = most_granted = 0
    task = asyncio.ensure_future(work)
    while not task.done():
        most = max(most, sum(process.places.in_flight for process in processes))
        most_granted = max(most_granted, sum(process.places.share for process in processes))
        await asyncio.sleep(0.001)
    await task
    return most, most_granted


async def until(is_so: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        # What it waits for is no event of ours.
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def granted() -> int:
    return LimitShare.objects.aggregate(granted=Sum("granted"))["granted"] or 0


def test_limit_is_for_all_processes_together_and_all_of_it_is_used() -> None:
    processes = [Process(name, 10) for name in "abc"]

    @async_to_sync
    async def run() -> tuple[int, int]:
        return await watch(processes, asyncio.gather(*(process.work(60) for process in processes)))

    most, most_granted = run()
    assert (most, [process.made for process in processes]) == (10, [60, 60, 60])
    assert most_granted <= 10


def test_process_that_comes_later_gets_its_half() -> None:
    first, second = Process("a", 10), Process("b", 10)

    @async_to_sync
    async def run() -> None:
        working = asyncio.ensure_future(first.work(4000, 0.02))
        await until(lambda: first.places.in_flight == 10)
        others = asyncio.ensure_future(second.work(4000, 0.02))
        await until(lambda: (first.places.share, second.places.share) == (5, 5))
        for task in (working, others):
            task.cancel()

    run()


def test_what_one_does_not_need_the_other_gets() -> None:
    first, second = Process("a", 10), Process("b", 10)

    @async_to_sync
    async def run() -> None:
        working = [asyncio.ensure_future(first.work(2, 15)), asyncio.ensure_future(second.work(4000, 0.02))]
        await until(lambda: (first.places.in_flight, second.places.in_flight) == (2, 8))
        for task in working:
            task.cancel()

    run()


def test_everything_is_given_back_when_the_work_is_done_and_when_its_loop_ends() -> None:
    process = Process("a", 3)
    async_to_sync(process.work)(5)
    assert (LimitShare.objects.count(), SharedLimit.objects.count()) == (0, 0)

    @async_to_sync
    async def work_and_idle() -> None:
        await process.work(5)
        await until(lambda: process.places.share == 0)

    work_and_idle()
    assert process.made == 10


def test_share_of_a_process_that_died_is_free_when_its_lease_ends() -> None:
    SharedLimit.objects.create(name="here")
    share = LimitShare(limit_id="here", holder="gone", wanted=4, granted=4, taken=4)
    share.lease_until = timezone.now() + timedelta(hours=1)
    share.save()
    process = Process("a", 4)

    @async_to_sync
    async def run() -> None:
        working = asyncio.ensure_future(process.work(8))
        asking = LimitShare.objects.filter(holder="a", wanted__gt=0)
        async with asyncio.timeout(10):
            # The database is no event of ours.
            while not await asking.aexists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert process.places.in_flight == 0
        await LimitShare.objects.filter(holder="gone").aupdate(lease_until=timezone.now())
        await working

    run()
    assert process.made == 8


def test_calls_that_last_longer_than_a_lease_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granting, "LEASE_SECONDS", 1.0)
    long, other = Process("a", 2), Process("b", 2)

    @async_to_sync
    async def run() -> int:
        working = asyncio.gather(long.work(2, 2), other.work(2))
        return (await watch([long, other], working))[0]

    assert run() == 2


def test_requests_per_minute_are_those_of_all_processes() -> None:
    # Ten a second, and as many at first; a slow machine only takes longer.
    rates = Rates(requests=620)
    processes = [Process(name, 0, rates) for name in "ab"]

    @async_to_sync
    async def run() -> float:
        working = [asyncio.ensure_future(process.work(100, 0)) for process in processes]
        started = time.monotonic()
        await until(lambda: sum(process.made for process in processes) >= 20)
        for task in working:
            task.cancel()
        return time.monotonic() - started

    assert run() > 0.9


def test_call_that_takes_more_tokens_than_others_waits_its_turn_and_gets_them() -> None:
    process = Process("a", 0, Rates(tokens=6200))

    @async_to_sync
    async def run() -> list[int]:
        ends: list[int] = []

        async def call(cost: int) -> None:
            turn = None
            while not process.places.take(turn, cost):
                turn = turn or Turn()
                process.places.queue(turn, cost)
                await turn.wait(5)
            process.places.give_back()
            ends.append(cost)

        await asyncio.gather(*(call(cost) for cost in (60, 150, 10, 10)))
        return ends

    assert run() == [60, 150, 10, 10]


def test_without_a_limit_the_database_is_not_asked(
    django_assert_num_queries: Callable[[int], object],
) -> None:
    places = open_limit("nothing", 0)

    @async_to_sync
    async def run() -> None:
        async with hold_place(places), hold_place(places):
            assert places.in_flight == 2

    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        run()


def test_limit_has_the_places_that_it_had_and_its_last_figure() -> None:
    places = open_limit("same", 2)
    assert open_limit("same", 3) is places
    assert isinstance(places, Places)
    assert places.limit == 3


def test_what_is_under_way_is_told_to_others() -> None:
    @async_to_sync
    async def run() -> None:
        for taken in (7, 0):
            report_taken("evaluation:1:calls", taken)
            async with asyncio.timeout(10):
                # The database is no event of ours.
                while await sync_to_async(taken_by_all)("evaluation:1:calls") != taken:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    run()
