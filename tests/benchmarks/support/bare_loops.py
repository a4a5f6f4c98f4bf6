"""The same calls by the plainest client code, one line per case: what no engine can be much better than.

Run as a module it prints one JSON object: wall and CPU seconds, calls, and the peak of its memory in MB.
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

import aiohttp
import openai
import uvloop

from tests.benchmarks.support.material import JUDGE_SCHEMA, SYSTEM, TOOL, case_text, judge_text

Message = dict[str, Any]
Ask = Callable[[dict[str, Any]], Awaitable[Message]]


@asynccontextmanager
async def aiohttp_client(base_url: str) -> AsyncIterator[Ask]:
    """aiohttp, and a body of our own."""
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def ask(body: dict[str, Any]) -> Message:
            data = json.dumps(body).encode()
            async with session.post(f"{base_url}/chat/completions", data=data) as response:
                response.raise_for_status()
                said: Message = json.loads(await response.read())["choices"][0]["message"]
                return said

        yield ask


@asynccontextmanager
async def official_client(base_url: str) -> AsyncIterator[Ask]:
    """The official client as its documentation shows it."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=4) as client:

        async def ask(body: dict[str, Any]) -> Message:
            completion = await client.chat.completions.create(**body)
            said: Message = completion.choices[0].message.model_dump(exclude_none=True)
            return said

        yield ask


CLIENTS = {"aiohttp": aiohttp_client, "openai": official_client}
THREADS = "threads"


async def run_case(ask: Ask, number: int, *, salt: str, model: str, tools: bool) -> dict[str, Any]:
    """Answer and judge one case."""
    messages: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": case_text(salt, number)},
    ]
    body: dict[str, Any] = {"model": model, "messages": messages, "temperature": 0}
    if tools:
        body["tools"] = [{"type": "function", "function": TOOL}]
    while True:
        said = await ask(body)
        if not said.get("tool_calls"):
            break
        messages.append(said)
        messages += [_result(call) for call in said["tool_calls"]]
    asked = {"role": "user", "content": judge_text(salt, number, str(said["content"]))}
    shape = {"type": "json_schema", "json_schema": {"name": "judge", "schema": JUDGE_SCHEMA}}
    judged = await ask({"model": model, "messages": [asked], "response_format": shape, "temperature": 0})
    return {"case": number, "reply": said["content"], "scores": json.loads(str(judged["content"]))}


def _result(call: Message) -> Message:
    arguments = json.loads(call["function"]["arguments"])
    record = json.dumps({"record": arguments["x"], "state": "delivered"})
    return {"role": "tool", "tool_call_id": call["id"], "content": record}


async def run_all(options: argparse.Namespace, out: TextIO) -> None:
    """All cases, so many at once."""
    numbers = iter(range(1, options.cases + 1))
    async with CLIENTS[options.client](options.base_url) as ask:

        async def work() -> None:
            for number in numbers:
                case = await run_case(
                    ask, number, salt=options.salt, model=options.model, tools=options.tools
                )
                out.write(json.dumps(case) + "\n")
                out.flush()

        await asyncio.gather(*[work() for _ in range(options.concurrency)])


def run_threads(options: argparse.Namespace, out: TextIO) -> None:
    """The official client that blocks, in so many threads."""
    numbers: Iterator[int] = iter(range(1, options.cases + 1))
    turn = Lock()
    with openai.OpenAI(base_url=options.base_url, api_key="none", max_retries=4) as client:

        async def ask(body: dict[str, Any]) -> Message:
            completion = client.chat.completions.create(**body)
            said: Message = completion.choices[0].message.model_dump(exclude_none=True)
            return said

        def work() -> None:
            while True:
                with turn:
                    number = next(numbers, None)
                if number is None:
                    return
                case = finish(
                    run_case(ask, number, salt=options.salt, model=options.model, tools=options.tools)
                )
                with turn:
                    out.write(json.dumps(case) + "\n")
                    out.flush()

        with ThreadPoolExecutor(options.concurrency) as pool:
            for done in [pool.submit(work) for _ in range(options.concurrency)]:
                done.result()


def finish(coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a coroutine returns that blocks instead of waiting."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        returned: dict[str, Any] = end.value
        return returned
    raise RuntimeError("it waits")


def peak_mb() -> float:
    """The most memory this process had; ru_maxrss would begin with what its parent had when it forked."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def main() -> None:
    """Run, and print what it took; CPU without the imports."""
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=[*CLIENTS, THREADS])
    parser.add_argument("base_url")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--model", default="agent-3")
    parser.add_argument("--salt", default="bare")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--out", default="/dev/null")
    options = parser.parse_args()
    began, used = time.monotonic(), time.process_time()
    with Path(options.out).open("w") as out:
        if options.client == THREADS:
            run_threads(options, out)
        else:
            uvloop.run(run_all(options, out))
    figures = {
        "wall_s": time.monotonic() - began,
        "cpu_s": time.process_time() - used,
        "peak_mb": peak_mb(),
    }
    print(json.dumps(figures))  # noqa: T201  who started it reads it


if __name__ == "__main__":
    main()
