"""An evaluation as one worker sees it: places are given back, whatever becomes of a case."""

import asyncio

from evolution.limits.places import Places
from evolution.loop.members import Member
from evolution.models import Evaluation


async def test_a_case_that_is_cut_off_before_it_began_gives_its_place_back() -> None:
    member = Member(Evaluation(pk=1), "evaluation:1")
    places = member._places = Places(2)

    async def work() -> None:
        await asyncio.sleep(60)

    tasks = [asyncio.create_task(work()) for _ in range(2)]
    for task in tasks:
        assert places.take()
        member.begin(task)
    assert places.is_full()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
    assert (places.in_flight, member.running) == (0, set())
