"""Tools of kind mcp: a server of the Model Context Protocol, started by a command or reached by a URL."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import IO, TYPE_CHECKING, Any

import httpx2

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import AccessDenied, ToolAccess
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.sources.failure import ToolFailure
from harness_repo.runtime.sources.network import build_client

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

logger = logging.getLogger(__name__)

# JSON-RPC's code for arguments that do not fit, and the package's own for a server that is gone or silent.
_INVALID_PARAMS = -32602
_CONNECTION_CLOSED = -32000
_REQUEST_TIMEOUT = -32001

# How long a session that fails may take to say why.
_LAST_WORDS_SECONDS = 1.0
# How long one may take to end: a server that is reached is told so and may not answer; one that was started is ended
# by the package, step by step until it is killed, which must not be cut short.
_GOODBYE_SECONDS = 3.0
_ENDING_SECONDS = 12.0
# After that, how long what is cancelled may take.
_CANCEL_SECONDS = 2.0
# Beyond the longest call that a tool file can ask for, so that a silent server is not waited for in any other place.
_PATIENCE = httpx2.Timeout(150.0, connect=10.0)

_Key = tuple[object, ...]


class McpSource:
    """The sessions of one run with MCP servers: one per server, opened at its first call and kept until `close`."""

    def __init__(self, access: ToolAccess) -> None:
        self._access = access
        self._sessions: dict[_Key, _Session] = {}
        # With those that failed, whose servers may still be ending.
        self._opened: list[_Session] = []

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> object:
        """The structured content of the answer, or else its text, as JSON when it is.

        Raises ToolFailure and AccessDenied.
        """
        key, open_client, seconds = self._plan(tool.source)
        session = self._sessions.get(key)
        if session is None or session.is_over:
            session = self._sessions[key] = _Session(open_client, seconds)
            self._opened.append(session)
        try:
            answer = await session.call_tool(tool.source.get("tool", tool.name), dict(arguments))
        except (ToolFailure, AccessDenied):
            raise
        except Exception as failure:
            raise _translate(failure) from failure
        return _read(answer)

    async def close(self) -> None:
        """End the sessions, and with them the servers that were started; it takes some seconds at most."""
        sessions, self._opened, self._sessions = self._opened, [], {}
        # Whoever is cancelled here leaves servers that end by themselves, and none that stay.
        await asyncio.shield(asyncio.gather(*(session.close() for session in sessions)))

    def _plan(
        self, source: Mapping[str, Any]
    ) -> tuple[_Key, Callable[[], AbstractAsyncContextManager["Client"]], float]:
        """What makes the server the same one, how to reach it, and how long its end may take."""
        if "command" in source:
            command = tuple(source["command"])
            self._access.check_command(command)
            return command, lambda: _start_server(command), _ENDING_SECONDS
        url = source["url"]
        headers = self._access.fill_headers(source.get("headers", {}), url)
        self._access.check_url(url)
        key = (url, *sorted(headers.items()))
        return key, lambda: _reach_server(url, headers, self._access), _GOODBYE_SECONDS


class _Session:
    """A client in a task of its own: what it opens has to be closed by the task that opened it."""

    def __init__(
        self, open_client: Callable[[], AbstractAsyncContextManager["Client"]], seconds: float
    ) -> None:
        self._open = open_client
        # How long its end may take.
        self._seconds = seconds
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._task = asyncio.create_task(self._live(), name="MCP session")

    @property
    def is_over(self) -> bool:
        """Whether the session failed or ended, so that another one has to be opened."""
        return self._stop.is_set() or self._task.done()

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> "CallToolResult":
        # A call that gives up waiting does not take the session from the others.
        client = await asyncio.shield(self._client)
        try:
            return await client.call_tool(name, arguments)
        except Exception as failure:
            if not _is_closed(failure):
                raise
            self._stop.set()
            # The task knows why; what the client says is only that there is nobody any more.
            await asyncio.wait([self._task], timeout=_LAST_WORDS_SECONDS)
            raise self._failure or failure from failure

    async def close(self) -> None:
        """End the session; one that does not end is cancelled, and one that cannot be cancelled is left alone."""
        self._stop.set()
        if not self._client.done():
            self._task.cancel()
        done, _ = await asyncio.wait([self._task], timeout=self._seconds)
        if not done:
            self._task.cancel()
            done, _ = await asyncio.wait([self._task], timeout=_CANCEL_SECONDS)
        if not done:
            logger.warning("an MCP session does not end, and is left alone")

    async def _live(self) -> None:
        try:
            async with self._open() as client:
                self._client.set_result(client)
                await self._stop.wait()
        except asyncio.CancelledError:
            self._give_up(ToolFailure("connection", "the session was closed"))
            raise
        except Exception as failure:  # noqa: BLE001  whatever a server does; the callers are told
            self._give_up(failure)

    def _give_up(self, failure: Exception) -> None:
        self._failure = _leaf(failure)
        if self._client.done():
            logger.debug("an MCP session ended badly: %r", self._failure)
            return
        self._client.set_exception(failure)
        # Read once, so that it is not reported as never read when the callers are gone.
        self._client.exception()


@asynccontextmanager
async def _start_server(command: tuple[str, ...]) -> AsyncIterator["Client"]:
    # Takes most of a second, which only those who use it should wait for.
    from mcp import Client, StdioServerParameters  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    # Not in a folder that a harness has a say in.
    with tempfile.TemporaryDirectory(prefix="mcp-") as folder, tempfile.TemporaryFile("w+") as said:
        parameters = StdioServerParameters(command=command[0], args=list(command[1:]), cwd=folder)
        try:
            async with Client(stdio_client(parameters, errlog=said)) as client:
                yield client
        finally:
            _log_errors(command[0], said)


@asynccontextmanager
async def _reach_server(url: str, headers: Mapping[str, str], access: ToolAccess) -> AsyncIterator["Client"]:
    from mcp import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    async with build_client(access, _PATIENCE) as http:
        http.headers.update(headers)
        async with Client(streamable_http_client(url, http_client=http)) as client:
            yield client


def _log_errors(command: str, said: IO[str]) -> None:
    """What a server wrote to its standard error, for operators."""
    said.seek(0)
    text = said.read(2000).strip()
    if text:
        logger.info("the MCP server %s said: %s", command, text)


def _read(answer: "CallToolResult") -> object:
    texts = [getattr(block, "text", f"[{block.type}]") for block in answer.content]
    text = "\n".join(texts)
    if answer.is_error:
        raise ToolFailure("server_error", text)
    if answer.structured_content is not None:
        return answer.structured_content
    try:
        return read_json(text)
    except ValueError:
        return text


def _translate(failure: Exception) -> ToolFailure:
    """What went wrong, in the sandbox's words."""
    leaf = _leaf(failure)
    # MCPError, told by its code without importing it.
    code, text = getattr(leaf, "code", None), str(getattr(leaf, "message", leaf))
    if isinstance(leaf, TimeoutError | httpx2.TimeoutException) or code == _REQUEST_TIMEOUT:
        return ToolFailure("timeout", text)
    if isinstance(leaf, OSError | httpx2.HTTPError) or _is_closed(leaf):
        return ToolFailure("connection", f"{type(leaf).__name__}: {text}")
    if code == _INVALID_PARAMS:
        return ToolFailure("bad_arguments", text)
    if isinstance(leaf, ToolFailure):
        return leaf
    # The package's own checks of an answer, by its version of the protocol and the tool's output schema.
    is_answer = isinstance(leaf, ValueError | RuntimeError)
    return ToolFailure("malformed_result" if is_answer else "server_error", text)


def _is_closed(failure: BaseException) -> bool:
    is_gone = "ResourceError" in type(failure).__name__
    return is_gone or getattr(failure, "code", None) == _CONNECTION_CLOSED


def _leaf(failure: BaseException) -> BaseException:
    """The first failure inside the groups that task groups make of it."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
