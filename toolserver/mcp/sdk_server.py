"""Serve the registry through the MCP SDK, which answers uncommon messages. Imported when the first one arrives.

Over HTTP, the SDK has no sessions. For standard input, its server runs over streams in
memory, where modern and legacy requests each have their own conversation.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
from anyio import TASK_STATUS_IGNORED, sleep_forever
from anyio.abc import ObjectReceiveStream, ObjectSendStream, TaskGroup, TaskStatus
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    JSONRPCError,
    JSONRPCResponse,
    ListToolsResult,
    PaginatedRequestParams,
    jsonrpc_message_adapter,
)

from toolserver import API_VERSION
from toolserver.core import tracing
from toolserver.core.caller import REFERENCE, Caller, new_request_id
from toolserver.mcp import messages
from toolserver.mcp.asgi import CALLER, CHOICE
from toolserver.mcp.definitions import ToolChoice
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.messages import INVALID_REQUEST, NO_PARAMS, Id
from toolserver.money.x402.wire import META_PAYMENT

Context = ServerRequestContext[Any, Any]
HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(messages.LIST_TTL_MS, "private"),
    "server/discover": CacheHint(messages.DISCOVER_TTL_MS, "public"),
}


class RegistryTools:
    """`tools/list` and `tools/call` for the SDK. `choice` and `caller` are set for a transport that has only one."""

    def __init__(self, fast: FastPath, choice: ToolChoice | None = None, caller: Caller | None = None) -> None:
        self._fast, self._choice, self._caller = fast, choice, caller

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the client's choice, on one page."""
        if params is not None and params.cursor is not None:
            raise MCPError(code=INVALID_PARAMS, message="There is only one page: this server never issues cursors.")
        return ListToolsResult.model_validate({"tools": self.choice(ctx).definitions})

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        """Return the same result as the fast path."""
        routes = self.choice(ctx).routes
        route = routes.get(params.name)
        if route is None:
            message, near = self.choice(ctx).describe_unknown(params.name)
            raise MCPError(code=INVALID_PARAMS, message=message, data={"did_you_mean": near} if near else None)
        result = await self._fast.call(route, NO_PARAMS, params.arguments or {}, self.caller(ctx))
        return CallToolResult.model_validate(messages.decode(result.core + b"}") | {"_meta": result.meta or None})

    def choice(self, ctx: Context) -> ToolChoice:
        """Return what this client sees."""
        request: Any = ctx.request
        choice: ToolChoice = self._choice or request.scope[CHOICE]
        return choice

    def caller(self, ctx: Context) -> Caller:
        """Return the caller, with what the message's `_meta` adds."""
        request: Any = ctx.request
        caller: Caller = self._caller or request.scope[CALLER]
        meta: dict[str, Any] = dict(ctx.meta or {})
        key, nonce = meta.get("idempotency_key"), meta.get("agent_nonce", caller.nonce)
        if not isinstance(key, str | None) or not isinstance(nonce, str | None):
            raise MCPError(code=INVALID_PARAMS, message="`_meta` `idempotency_key` and `agent_nonce` must be strings.")
        request_id = caller.request_id or new_request_id()
        tracing.request_id.set(request_id)
        payment = messages.payment_of(messages.encode(meta.get(META_PAYMENT)))
        short_meta = self.choice(ctx).short_meta
        return replace(
            caller,
            idempotency_key=key,
            nonce=nonce,
            request_id=request_id,
            payment=payment,
            short_meta=short_meta,
            receipt_reference=meta.get("receipt") == REFERENCE,
        )


def build(tools: RegistryTools) -> Server[Any]:
    """Build the SDK's server, which describes itself exactly as the fast path does."""
    return Server(
        messages.NAME,
        version=API_VERSION,
        title=messages.TITLE,
        instructions=messages.INSTRUCTIONS,
        cache_hints=HINTS,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        get_tool_input_schema=lambda name: None,  # none of our tools is mirrored in headers
    )


def manager(fast: FastPath, *, body_limit: int) -> StreamableHTTPSessionManager:
    """Return the SDK's HTTP side: no sessions, plain JSON. Access is checked before a request gets here."""
    server = build(RegistryTools(fast))
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=body_limit)


async def live(sessions: StreamableHTTPSessionManager, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Keep the SDK's HTTP side running until cancelled."""
    async with sessions.run():
        task_status.started()
        await sleep_forever()


OURS = "toolserver:initialize"  # the id of the handshake that we perform for the client
_HANDSHAKE = {
    "protocolVersion": messages.NEWEST_LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "toolserver-stdio", "version": "0"},
}
_INITIALIZE = messages.encode({"jsonrpc": "2.0", "id": OURS, "method": "initialize", "params": _HANDSHAKE})


class SdkBridge:
    """Passes requests to the SDK and waits for its answers."""

    def __init__(self, fast: FastPath, choice: ToolChoice, caller: Caller, tasks: TaskGroup) -> None:
        self._tools, self._tasks = RegistryTools(fast, choice, caller), tasks
        self._conversations: dict[bool, _SdkConversation] = {}

    async def ask(self, line: bytes, value: Id, *, modern: bool) -> bytes:
        """Return the SDK's answer to a request."""
        conversation = self._conversations.get(modern)
        if conversation is None:
            conversation = self._conversations[modern] = _SdkConversation(self._tools)
            self._tasks.start_soon(conversation.run)
            if not modern:
                await conversation.ask(_INITIALIZE, OURS)
                await conversation.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            conversation.ready.set()
        await conversation.ready.wait()
        return await conversation.ask(line, value)


class _SdkConversation:
    """One conversation with the SDK."""

    def __init__(self, tools: RegistryTools) -> None:
        self.ready = anyio.Event()
        self._server = build(tools)
        self._to: ObjectSendStream[Any]
        self._from: ObjectReceiveStream[Any]
        self._to, self._read = anyio.create_memory_object_stream[Any](8)
        self._write, self._from = anyio.create_memory_object_stream[Any](8)
        self._waiting: dict[Id, tuple[anyio.Event, list[bytes]]] = {}

    async def run(self) -> None:
        """Run the SDK's loop and deliver its answers."""
        async with anyio.create_task_group() as tasks, self._to, self._from:
            tasks.start_soon(self._server.run, self._read, self._write, self._server.create_initialization_options())
            async for sent in self._from:
                message = sent.message
                if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._waiting:
                    event, answers = self._waiting.pop(message.id)
                    answers.append(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                    event.set()

    async def notify(self, line: bytes) -> None:
        """Send a notification."""
        await self._to.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def ask(self, line: bytes, value: Id) -> bytes:
        """Send a request and wait for its answer."""
        if value in self._waiting:
            return messages.failure(value, INVALID_REQUEST, "A request with this id is still being answered.")
        event = anyio.Event()
        answers: list[bytes] = []
        self._waiting[value] = event, answers
        try:
            await self.notify(line)
            await event.wait()
        finally:
            self._waiting.pop(value, None)
        return answers[0]
