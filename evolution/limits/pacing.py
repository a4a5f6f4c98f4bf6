"""What is computed between calls goes one at a time, so that answers that arrive meanwhile free their places at once.

Answers come in waves. Were each one worked on as it is read, the last one's place would stand empty for as long as
the work on all the others takes.
"""

import asyncio
from collections import deque
from weakref import WeakKeyDictionary

_Line = deque["asyncio.Future[None]"]
_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()


async def step_back() -> None:
    """Wait for one's turn to compute: one in each round of the event loop, which looks for answers in between."""
    loop = asyncio.get_running_loop()
    line = _lines.setdefault(loop, deque())
    turn = loop.create_future()
    line.append(turn)
    if len(line) == 1:
        loop.call_soon(_call_next, loop, line)
    await turn


def _call_next(loop: asyncio.AbstractEventLoop, line: _Line) -> None:
    while line:
        turn = line.popleft()
        # Who was cancelled meanwhile computes nothing.
        if not turn.done():
            turn.set_result(None)
            break
    if line:
        loop.call_soon(_call_next, loop, line)
