"""An MCP server for tests, of the mcp package.

`python shop_server.py` speaks over standard input and output, `python shop_server.py PORT` over HTTP.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("shop")
_present: list[asyncio.Event] = []


@server.tool()
def get_stock(link_id: int) -> dict[str, Any]:
    """Stock of a link."""
    return {"name": "羊绒围巾", "stock": 12, "link_id": link_id}


@server.tool(name="shop.say", structured_output=False)
def say(text: str) -> str:
    """What was said."""
    return text


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("the shop is closed")


@server.tool()
def refuse(context: Context) -> str:
    """Fails, and quotes the caller's key where an error is cut off."""
    key = (context.headers or {}).get("x-key", "")
    raise ToolError("x" * 260 + key)


@server.tool()
async def sleep(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "slept"


@server.tool()
async def meet(guests: int) -> str:
    """Ends when so many calls of it are under way at once."""
    here = asyncio.Event()
    _present.append(here)
    if len(_present) == guests:
        for event in _present:
            event.set()
    await here.wait()
    return "met"


@server.tool()
def end() -> str:
    """Ends the server in the middle of a call."""
    os._exit(3)


@server.tool()
def huge() -> str:
    """More than anybody reads."""
    return "x" * 2_000_000


@server.tool()
def look_around() -> dict[str, Any]:
    """Where the server runs, and as what."""
    return {"cwd": str(Path.cwd()), "pid": os.getpid(), "environment": sorted(os.environ)}


@server.tool()
def get_key(context: Context[Any, Any]) -> dict[str, Any]:
    """The header X-Key that came with the call."""
    request = context.request_context.request
    return {"key": request.headers.get("x-key") if request else None}


if __name__ == "__main__":
    if "--broken" in sys.argv:
        sys.exit("cannot start")
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    server.run("stdio")
