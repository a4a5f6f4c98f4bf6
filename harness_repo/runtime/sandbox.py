"""Answers the tool calls of one run: from the case's fixtures, and from the world only where that was allowed."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from harness_repo.format.json_schema import SchemaUnusable, find_violation
from harness_repo.format.tools import Tool
from harness_repo.runtime.access import NO_ACCESS, AccessDenied, ToolAccess
from harness_repo.runtime.computing import Allowance
from harness_repo.runtime.elapsed import ms_since
from harness_repo.runtime.faults import Fault, FaultPlan
from harness_repo.runtime.hiding import hide_secrets
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.results import check_result, clean_answer, select_result
from harness_repo.runtime.sources.failure import ToolFailure
from harness_repo.runtime.sources.http_source import HttpSource
from harness_repo.runtime.sources.mcp_source import McpSource

logger = logging.getLogger(__name__)

# More than the sources need by themselves.
MOST_CLOSING_SECONDS = 20.0

Fixtures = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class ToolOutcome:
    """What a tool call brought: a result, or an error as "code" or "code: detail"."""

    result: object
    error: str | None
    ms: float
    # The kind of the fault that was injected, if one was.
    fault: str | None = None


class Source(Protocol):
    """A way out to the world, for one run."""

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> object:
        """What the world answers, as JSON values. Raises ToolFailure and AccessDenied; waits as long as it takes."""
        ...

    async def close(self) -> None:
        """Let go of all that calls have opened."""
        ...


_SOURCES: dict[str, Callable[[ToolAccess], Source]] = {"http": HttpSource, "mcp": McpSource}


@dataclass(frozen=True)
class Prepared:
    """A call with good arguments that has to go out to the world to be answered."""

    tool: Tool
    arguments: dict[str, Any]


class ToolSandbox:
    """Answers tool calls, first from fixtures {tool: [{"arguments": {...}, "result": ...}]}.

    An entry matches when each of its arguments equals the call's; {} matches all; the first match wins. A tool of
    kind http or mcp with fixtures, even with none of them, never goes out: an evaluation replays what it has.

    Error codes: unknown_tool, bad_arguments, not_found, timeout, malformed_result, permission_denied, server_error,
    connection. To be used in one event loop, and closed there.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        fixtures: Fixtures,
        *,
        context: Mapping[str, Any] | None = None,
        request: Mapping[str, Any] | None = None,
        faults: Sequence[Fault] = (),
        seed: str = "",
        access: ToolAccess = NO_ACCESS,
    ) -> None:
        self._tools = tools
        self._fixtures = fixtures
        self._data = {"context": context or {}, "request": request or {}}
        self._faults = FaultPlan(faults, seed)
        self._access = access
        # By kind, made when a call first goes out: most runs replay what they have.
        self._sources: dict[str, Source] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection and process that calls have opened; what does not end in time is left alone."""
        if not self._sources:
            return
        closing = [asyncio.ensure_future(source.close()) for source in self._sources.values()]
        done, late = await asyncio.wait(closing, timeout=MOST_CLOSING_SECONDS)
        for task in late:
            task.cancel()
        for failure in filter(None, (task.exception() for task in done if not task.cancelled())):
            logger.warning("a source did not close well: %r", failure)

    async def call(self, name: str, arguments_json: str) -> ToolOutcome:
        """Answer one call: `prepare`, and `perform` when that is not enough."""
        prepared = self.prepare(name, arguments_json)
        return prepared if isinstance(prepared, ToolOutcome) else await self.perform(prepared)

    def prepare(self, name: str, arguments_json: str) -> Prepared | ToolOutcome:
        """Check a call, and answer it unless it has to go out to the world; it computes, and never waits.

        Errors are outcomes and never raised. The order of these calls is the order in which faults count them.
        """
        started = time.monotonic()
        try:
            tool, arguments = self._read_call(name, arguments_json)
            fault = self._faults.next(name)
            if fault is not None:
                return _broken(fault, tool)
            answer = self._answer(tool, arguments)
        except (ToolFailure, AccessDenied) as failure:
            return _failed(failure, started)
        return answer if isinstance(answer, Prepared) else ToolOutcome(answer, None, ms_since(started))

    async def perform(self, prepared: Prepared, computing: Allowance | None = None) -> ToolOutcome:
        """Make a prepared call; what is computed with its answer is taken from the allowance.

        Errors are outcomes and never raised, except TooMuchComputing.
        """
        started = time.monotonic()
        tool, arguments = prepared.tool, prepared.arguments
        secrets = self._access.secrets_of(tool.source)
        try:
            async with asyncio.timeout(tool.seconds):
                raw = await self._open_source(tool.source["kind"]).call(tool, arguments)
            spend = (computing or Allowance()).spend
            result = spend(f"reading the result of {tool.name}", _read_answer, raw, tool, arguments, secrets)
        except TimeoutError:
            return _failed(ToolFailure("timeout", f"no answer within {tool.seconds:g} seconds"), started)
        except (ToolFailure, AccessDenied) as failure:
            return _failed(failure, started, secrets)
        return ToolOutcome(result, None, ms_since(started))

    def _open_source(self, kind: str) -> Source:
        if kind not in self._sources:
            self._sources[kind] = _SOURCES[kind](self._access)
        return self._sources[kind]

    def _read_call(self, name: str, arguments_json: str) -> tuple[Tool, dict[str, Any]]:
        tool = self._tools.get(name)
        if tool is None:
            raise ToolFailure("unknown_tool", f"there is {', '.join(sorted(self._tools)) or 'none'}")
        try:
            arguments = parse_arguments(arguments_json)
            wrong = find_violation(tool.parameters, arguments)
        except (ValueError, SchemaUnusable) as failure:
            wrong = str(failure)
        if wrong:
            raise ToolFailure("bad_arguments", wrong)
        return tool, arguments

    def _answer(self, tool: Tool, arguments: dict[str, Any]) -> object:
        """The result, or the call as Prepared. Raises ToolFailure and AccessDenied."""
        entries = self._fixtures.get(tool.name)
        for entry in entries or ():
            wanted = entry.get("arguments") or {}
            if all(key in arguments and arguments[key] == value for key, value in wanted.items()):
                return check_result(tool, entry.get("result"))
        if tool.source["kind"] == "fixture" and "select" in tool.source:
            data = {**self._data, "arguments": arguments}
            return check_result(tool, select_result(tool, data, arguments))
        if tool.source["kind"] == "fixture" or entries is not None:
            raise ToolFailure("not_found")
        self._access.check_source(tool.source)
        _check_text(arguments)
        return Prepared(tool, arguments)


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments object of a tool call, or ValueError; no text at all means no arguments."""
    arguments = read_json(text) if text.strip() else {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


def _check_text(arguments: dict[str, Any]) -> None:
    """Refuse half of a surrogate pair, which JSON can hold and no request can."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolFailure("bad_arguments", "a text is not Unicode") from None


def _read_answer(raw: object, tool: Tool, arguments: dict[str, Any], secrets: Sequence[str]) -> object:
    answer = hide_secrets(clean_answer(raw), secrets)
    if "select" in tool.source:
        answer = select_result(tool, answer, arguments)
    return check_result(tool, answer, is_live=True)


def _broken(fault: Fault, tool: Tool) -> ToolOutcome:
    """The outcome that a fault makes of a call; a time-out is not waited for, only reported."""
    ms = tool.seconds * 1000 if fault.kind == "timeout" else 0.0
    return ToolOutcome(None, fault.error(tool.seconds), ms, fault.kind)


def _failed(failure: ToolFailure | AccessDenied, started: float, secrets: Sequence[str] = ()) -> ToolOutcome:
    told = failure.tell(secrets) if isinstance(failure, ToolFailure) else f"permission_denied: {failure}"
    return ToolOutcome(None, told, ms_since(started))
