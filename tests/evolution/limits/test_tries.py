import asyncio

import pytest

from evolution.limits.tries import announce_retry, watch_tries
from harness_repo.runtime.chat import ChatError

FAILURE = ChatError("busy", "rate_limit", retryable=True)


async def test_whoever_watches_hears_of_each_try_and_only_of_its_own_calls() -> None:
    async def call(name: str, heard: list[str]) -> None:
        async def note(failure: ChatError) -> None:
            heard.append(f"{name}: {failure}")

        with watch_tries(note):
            await asyncio.sleep(0)
            await announce_retry(FAILURE)
        # Nobody watches any more.
        await announce_retry(FAILURE)

    heard: list[str] = []
    await asyncio.gather(call("a", heard), call("b", heard))
    assert sorted(heard) == ["a: busy", "b: busy"]


async def test_what_the_one_who_pays_raises_ends_the_call() -> None:
    async def refuse(_failure: ChatError) -> None:
        raise ChatError("no more", "budget")

    with watch_tries(refuse), pytest.raises(ChatError, match="no more"):
        await announce_retry(FAILURE)
