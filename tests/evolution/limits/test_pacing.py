"""Computing between calls goes one at a time, and the event loop looks for answers in between."""

import asyncio

from evolution.limits.pacing import step_back


async def test_what_happens_meanwhile_comes_between_two_that_stepped_back() -> None:
    happened: list[str] = []

    async def compute(name: str) -> None:
        await step_back()
        happened.append(name)
        # An answer that arrives while this one computes.
        asyncio.get_running_loop().call_soon(happened.append, f"answer during {name}")

    await asyncio.gather(*(compute(name) for name in "abc"))
    assert happened[:5] == ["a", "answer during a", "b", "answer during b", "c"]


async def test_one_that_is_cancelled_leaves_its_turn_to_the_next() -> None:
    happened: list[str] = []

    async def compute(name: str) -> None:
        await step_back()
        happened.append(name)

    tasks = [asyncio.create_task(compute(name)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert happened == ["c"]
    async with asyncio.timeout(5):
        await compute("later")
    assert happened == ["c", "later"]
