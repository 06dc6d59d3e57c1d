"""Environments over MCP, so that any agent that speaks it can be tested: stdio, and streamable HTTP with a URL a world.

A run serves the world of each conversation at a URL of its own, in its own process, so that the calls of the agent's
process are calls in that very world; ``evaluatorq env serve`` serves one world by itself, or joins a run's over stdio.
Needs the extra ``mcp``, and asyncio for HTTP. The URL is the key: nobody guesses it, and only this machine reaches it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
import uvicorn
from mcp import Client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import tool_call
from evaluatorq.ports import ToolSpec
from evaluatorq.toolset import Recorder

LOCAL = "127.0.0.1"
_PATH = "/mcp/"
Context = ServerRequestContext[dict[str, object], object]
WorldOf = Callable[[Context], Recorder]


def tool_server(world_of: WorldOf, name: str = "evaluatorq") -> Server[dict[str, object]]:
    """An MCP server whose tools are those of the world that a request is about."""

    async def list_tools(context: Context, _page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(spec) for spec in world_of(context).tools])

    async def call_tool(context: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        world = world_of(context)
        call = tool_call(world.next_call_id(), asked.name, asked.arguments or {})
        row = (await world.run([call])).messages[0]
        return types.CallToolResult(content=[types.TextContent(type="text", text=row.text)], is_error=was_rejected(row))

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _tool(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema={"type": "object", **spec.parameters},
        annotations=types.ToolAnnotations(idempotent_hint=spec.idempotent),
    )


# ---------------------------------------------------------------- HTTP


class ToolUrls:
    """Worlds by URL. A world is served as long as somebody else holds it."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._worlds: WeakValueDictionary[str, Recorder] = WeakValueDictionary()
        self.manager = StreamableHTTPSessionManager(tool_server(self._world_of), json_response=True, stateless=True)

    def url_for(self, world: Recorder, token: str | None = None) -> str:
        """A URL of its own for a world; ``token`` is made up unless it is given."""
        token = token or secrets.token_urlsafe(18)
        self._worlds[token] = world
        return f"{self.base}{_PATH}{token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One HTTP request: MCP at a world's URL, its state as JSON at ``<URL>/state``."""
        if scope["type"] != "http":
            return
        token, _, rest = scope["path"].removeprefix(_PATH).partition("/")
        world = self._worlds.get(token) if scope["path"].startswith(_PATH) else None
        if world is None:
            await JSONResponse({"error": "no world is served here (any more)"}, 404)(scope, receive, send)
        elif rest == "state":
            await JSONResponse(world.snapshot())(scope, receive, send)
        else:
            await self.manager.handle_request(scope, receive, send)

    def _world_of(self, context: Context) -> Recorder:
        request = context.request
        assert isinstance(request, Request), "what came over HTTP has a request"
        return self._worlds[request.url.path.removeprefix(_PATH).partition("/")[0]]


@asynccontextmanager
async def tools_over_http(port: int = 0) -> AsyncIterator[ToolUrls]:
    """Serves worlds on this machine while the block runs; port 0 takes a free one. ``ConfigError`` when it is taken."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigError("tools are served over HTTP on asyncio only") from None
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOCAL, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on port {port}: {error.strerror}") from error
    urls = ToolUrls(f"http://{LOCAL}:{listener.getsockname()[1]}")
    server = _Server(uvicorn.Config(urls, lifespan="off", log_config=None, access_log=False))
    async with urls.manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await server.ready.wait()
        try:
            yield urls
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


# ---------------------------------------------------------------- stdio


async def serve_stdio(world: Recorder) -> None:
    """Serves one world on standard input and output until the input ends."""
    await _over_stdio(tool_server(lambda _context: world))


async def join_stdio(url: str) -> None:
    """Serves on standard input and output the world that a run serves at ``url``."""
    async with Client(url) as upstream:

        async def list_tools(_context: Context, _page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return await upstream.list_tools()

        async def call_tool(_context: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
            return await upstream.call_tool(asked.name, asked.arguments)

        await _over_stdio(Server("evaluatorq", on_list_tools=list_tools, on_call_tool=call_tool))


async def _over_stdio(server: Server[dict[str, object]]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
