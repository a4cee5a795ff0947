"""The registry as a server of the MCP SDK, which answers whatever is not common. Imported when that first happens."""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anyio import TASK_STATUS_IGNORED, sleep_forever
from anyio.abc import TaskStatus
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from toolserver import API_VERSION, ids
from toolserver.access import Caller
from toolserver.payments.x402.headers import META_PAYMENT
from toolserver.protocol import wire
from toolserver.protocol.definitions import Choice
from toolserver.protocol.fast import Fast
from toolserver.protocol.sdk import CALLER, CHOICE

Context = ServerRequestContext[Any, Any]
HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(wire.LIST_TTL_MS, "public"),
    "server/discover": CacheHint(wire.DISCOVER_TTL_MS, "public"),
}


class RegistryTools:
    """`tools/list` and `tools/call` for the SDK. `choice` and `caller` are those of a door that has only one."""

    def __init__(self, fast: Fast, choice: Choice | None = None, caller: Caller | None = None) -> None:
        self._fast, self._choice, self._caller = fast, choice, caller

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """The client's choice, on one page."""
        if params is not None and params.cursor is not None:
            raise MCPError(code=INVALID_PARAMS, message="There is one page: no cursor was ever given out.")
        return ListToolsResult.model_validate({"tools": self.choice(ctx).definitions})

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        """The same result as the fast path gives."""
        routes = self.choice(ctx).routes
        route = routes.get(params.name)
        if route is None:
            near = difflib.get_close_matches(params.name[:64], list(routes), n=3)
            data = {"did_you_mean": near} if near else None
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name[:64]}", data=data)
        result = await self._fast.made(route.operation, params.arguments or {}, self.caller(ctx))
        return CallToolResult.model_validate(wire.decode(result.core + b"}") | {"_meta": result.meta or None})

    def choice(self, ctx: Context) -> Choice:
        """What this client sees."""
        request: Any = ctx.request
        found: Choice = self._choice or request.scope[CHOICE]
        return found

    def caller(self, ctx: Context) -> Caller:
        """Who calls, and what its message's `_meta` adds."""
        request: Any = ctx.request
        caller: Caller = self._caller or request.scope[CALLER]
        meta: dict[str, Any] = dict(ctx.meta or {})
        key, nonce = meta.get("idempotency_key"), meta.get("agent_nonce", caller.nonce)
        if not isinstance(key, str | None) or not isinstance(nonce, str | None):
            raise MCPError(code=INVALID_PARAMS, message="`_meta` `idempotency_key` and `agent_nonce` are strings.")
        request_id = caller.request_id or ids.request_id()
        payment = wire.paid(wire.encode(meta.get(META_PAYMENT)))
        return replace(caller, idempotency_key=key, nonce=nonce, request_id=request_id, payment=payment)


def build(tools: RegistryTools) -> Server[Any]:
    """The SDK's server, whose every word about itself is the fast path's."""
    return Server(
        wire.NAME,
        version=API_VERSION,
        title=wire.TITLE,
        instructions=wire.INSTRUCTIONS,
        cache_hints=HINTS,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        get_tool_input_schema=lambda name: None,  # no tool of ours is mirrored in headers
    )


def manager(fast: Fast, *, body_limit: int) -> StreamableHTTPSessionManager:
    """The SDK's HTTP side: no sessions, plain JSON. Who may connect is checked before it."""
    server = build(RegistryTools(fast))
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=body_limit)


async def live(sessions: StreamableHTTPSessionManager, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Keep the SDK's HTTP side running until cancelled."""
    async with sessions.run():
        task_status.started()
        await sleep_forever()
