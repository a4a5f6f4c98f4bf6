"""A run's time limit leaves out the time that its calls wait to be made."""

import asyncio
from dataclasses import replace

from harness_repo.format.harness import Harness, read_harness
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.chat import ChatReply, ChatRequest
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.waiting import counting_on, uncounted
from tests.harness_repo.build import FILES


class Queued:
    """A model whose calls wait in line first, and then take a while."""

    def __init__(self, waits: float, takes: float) -> None:
        self.waits, self.takes = waits, takes

    async def complete(self, _request: ChatRequest) -> ChatReply:
        with uncounted():
            await asyncio.sleep(self.waits)
        await asyncio.sleep(self.takes)
        return ChatReply("89")


def with_seconds(seconds: float) -> Harness:
    harness = read_harness(FILES)
    return replace(
        harness, hooks=[], reply_skill_required=False, limits=replace(harness.limits, seconds=seconds)
    )


async def run(model: Queued, seconds: float) -> str:
    variables = build_variables({"danmaku": ["hello"]}, {})
    return (await run_agent(with_seconds(seconds), variables, model, model_name="m")).status


async def test_waiting_in_line_is_not_the_agents_time() -> None:
    assert await run(Queued(waits=0.6, takes=0), seconds=0.3) == "ok"


async def test_the_calls_own_time_is() -> None:
    assert await run(Queued(waits=0, takes=5), seconds=0.3) == "time_limit"
    assert await run(Queued(waits=0.2, takes=5), seconds=0.3) == "time_limit"


async def test_the_clock_goes_on_with_what_was_left() -> None:
    async with asyncio.timeout(100) as clock:
        with counting_on(clock):
            before = clock.when()
            with uncounted():
                assert clock.when() is None
                with uncounted():
                    await asyncio.sleep(0.05)
                assert clock.when() is None
            after = clock.when()
    assert before is not None
    assert after is not None
    assert 0.05 <= after - before < 50


async def test_outside_a_run_nothing_is_stopped() -> None:
    with uncounted():
        await asyncio.sleep(0)
