import asyncio
from collections.abc import Collection, Mapping

import pytest

from evolution.loop import coalescing
from evolution.loop.coalescing import Coalesced


class Shelf:
    """Knows the squares of even numbers; notes what it was asked at once."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def look(self, keys: Collection[int]) -> Mapping[int, int]:
        self.asked.append(sorted(keys))
        if 13 in keys:
            raise RuntimeError("unlucky")
        return {key: key**2 for key in keys if key % 2 == 0}


async def test_what_is_wanted_at_once_is_asked_at_once() -> None:
    shelf = Shelf()
    squares = Coalesced(shelf.look)
    found = await asyncio.gather(*(squares.get(key) for key in (4, 3, 4, 2)))
    assert found == [16, None, 16, 4]
    assert shelf.asked == [[2, 3, 4]]


async def test_what_came_up_meanwhile_is_asked_together_next() -> None:
    shelf = Shelf()
    squares = Coalesced(shelf.look)
    first = asyncio.create_task(squares.get(2))
    await asyncio.sleep(0)
    later = [asyncio.create_task(squares.get(key)) for key in (4, 6)]
    await asyncio.gather(first, *later)
    assert sorted(key for keys in shelf.asked for key in keys) == [2, 4, 6]
    assert len(shelf.asked) <= 2


async def test_very_many_are_asked_in_several_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "MOST_AT_ONCE", 2)
    shelf = Shelf()
    squares = Coalesced(shelf.look)
    assert await asyncio.gather(*(squares.get(key) for key in (2, 4, 6))) == [4, 16, 36]
    assert shelf.asked == [[2, 4], [6]]


async def test_one_that_is_cancelled_does_not_stop_the_others() -> None:
    squares = Coalesced(Shelf().look)
    first, second = (asyncio.create_task(squares.get(2)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 4


async def test_a_failure_is_raised_to_all_who_asked_and_to_nobody_after() -> None:
    squares = Coalesced(Shelf().look)
    outcomes = await asyncio.gather(squares.get(13), squares.get(2), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["unlucky", "unlucky"]
    assert await squares.get(2) == 4
