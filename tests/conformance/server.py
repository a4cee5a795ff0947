"""Build the server that the MCP conformance suite tests: the registry's tools, and everything the suite requires.

Unlike the real server, it has sessions and streams, because the suite tests them. The address,
admission, checks and fast path are the real ones.
"""

import itertools
import json
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    JSONRPCMessage,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.methods import CacheableMethod

from tests.conformance.fixtures import (
    BUS,
    FIXED,
    FIXTURES,
    IMAGE,
    PIXEL,
    SCHEMAS,
    Context,
    Result,
    an_object,
    ask,
    input_required,
    resource,
)
from toolserver import API_VERSION
from toolserver.mcp import messages
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.sdk import McpExtension
from toolserver.mcp.sdk_server import RegistryTools

RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", None),
    "test://watched-resource": ("text/plain", "Watched."),
}
TEMPLATE = "test://template/{id}/data"
CACHEABLE: tuple[CacheableMethod, ...] = get_args(CacheableMethod)
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


Handler = Callable[[Context, Any], Awaitable[Any]]


def definitions() -> list[Result]:
    """Return the fixtures as `tools/list` shows them."""
    return [{"name": n, "description": f"Conformance fixture {n}", "inputSchema": s} for n, s in SCHEMAS.items()]


def fixed() -> dict[str, bytes]:
    """Return the cores of the results that never change."""
    return {name: messages.encode(result)[:-1] for name, result in FIXED.items()}


class EverythingTools(RegistryTools):
    """The registry's tools and the fixtures."""

    async def call(self, ctx: Context, params: CallToolRequestParams) -> Any:
        """Return the result of a fixture or of a tool."""
        if params.name in FIXED:
            return FIXED[params.name]
        if params.name in FIXTURES:
            return await FIXTURES[params.name](ctx, params)
        return await self.call_tool(ctx, params)


# --- resources ---


async def _list_resources(ctx: Context, params: PaginatedRequestParams) -> Result:
    return {"resources": [{"uri": uri, "name": uri, "mimeType": kind} for uri, (kind, _) in RESOURCES.items()]}


async def _list_templates(ctx: Context, params: PaginatedRequestParams) -> Result:
    return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}]}


async def _read(ctx: Context, params: ReadResourceRequestParams) -> Result:
    uri = str(params.uri)
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}
    if uri not in RESOURCES:
        raise MCPError(code=INVALID_PARAMS, message="Resource not found", data={"uri": uri})
    kind, text = RESOURCES[uri]
    return {"contents": [{"uri": uri, "mimeType": kind, **({"blob": PIXEL} if text is None else {"text": text})}]}


async def _done(ctx: Context, params: Any) -> Result:
    return {}


# --- prompts ---


async def _list_prompts(ctx: Context, params: PaginatedRequestParams) -> Result:
    return {
        "prompts": [
            {"name": name, "description": name, "arguments": [{"name": a, "required": True} for a in names]}
            for name, names in PROMPTS.items()
        ]
    }


async def _get_prompt(ctx: Context, params: GetPromptRequestParams) -> Result:
    arguments = params.arguments or {}
    if params.name not in PROMPTS:
        raise MCPError(code=INVALID_PARAMS, message="Unknown prompt")
    if missing := [name for name in PROMPTS[params.name] if name not in arguments]:
        raise MCPError(code=INVALID_PARAMS, message=f"Missing: {', '.join(missing)}")
    if params.name == "test_input_required_result_prompt":
        context = (params.input_responses or {}).get("user_context")
        if context is None:
            return input_required(
                {"user_context": ask("What is the context?", an_object(["context"], context={"type": "string"}))}
            )
        return _messages(_text(f"Context: {getattr(context, 'content', None)}"))
    if params.name == "test_prompt_with_arguments":
        return _messages(_text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))
    if params.name == "test_prompt_with_embedded_resource":
        embedded = resource(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return _messages(embedded, _text("Please process the embedded resource above."))
    if params.name == "test_prompt_with_image":
        return _messages(IMAGE, _text("Please analyze the image above."))
    return _messages(_text("This is a simple prompt for testing."))


def _text(text: str) -> Result:
    return {"type": "text", "text": text}


def _messages(*contents: Result) -> Result:
    return {"messages": [{"role": "user", "content": content} for content in contents]}


async def _complete(ctx: Context, params: CompleteRequestParams) -> Result:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


# --- the server ---


class Events(EventStore):
    """The last messages of every stream, for clients that reconnect."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, str, JSONRPCMessage | None]] = deque(maxlen=2000)
        self._count = itertools.count(1)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store a message and number it."""
        number = str(next(self._count))
        self._events.append((number, stream_id, message))
        return number

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the messages of a stream that follow a given message."""
        stream = next((stream for number, stream, _ in self._events if number == last_event_id), None)
        for number, of, message in list(self._events):
            if of == stream and int(number) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, number))
        return stream


def build(fast: FastPath) -> Server[Any]:
    """Build the SDK's server with all of its features."""
    tools = EverythingTools(fast)
    hints = dict.fromkeys(CACHEABLE, CacheHint(messages.LIST_TTL_MS, "public"))
    server: Server[Any] = Server(
        messages.NAME,
        version=API_VERSION,
        title=messages.TITLE,
        instructions=messages.INSTRUCTIONS,
        cache_hints=hints,
        get_tool_input_schema=SCHEMAS.get,
    )
    handlers: list[tuple[str, Any, Any]] = [
        ("tools/list", PaginatedRequestParams, tools.list_tools),
        ("tools/call", CallToolRequestParams, tools.call),
        ("resources/list", PaginatedRequestParams, _list_resources),
        ("resources/templates/list", PaginatedRequestParams, _list_templates),
        ("resources/read", ReadResourceRequestParams, _read),
        ("resources/subscribe", SubscribeRequestParams, _done),
        ("resources/unsubscribe", UnsubscribeRequestParams, _done),
        ("prompts/list", PaginatedRequestParams, _list_prompts),
        ("prompts/get", GetPromptRequestParams, _get_prompt),
        ("completion/complete", CompleteRequestParams, _complete),
        ("logging/setLevel", SetLevelRequestParams, _done),
        ("subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(BUS)),
    ]
    for method, params, handler in handlers:
        server.add_request_handler(method, params, _shaped(handler))
    security = RequestStateSecurity(keys=[secrets.token_bytes(32)])
    server.middleware.append(RequestStateBoundary(security, default_audience=messages.NAME))
    return server


def _shaped(handler: Handler) -> Handler:
    """Mark results written as plain objects as complete in the modern era, unless they say otherwise."""

    async def shaped(ctx: Context, params: Any) -> Any:
        result = await handler(ctx, params)
        modern = ctx.protocol_version == messages.MODERN
        return {"resultType": "complete", **result} if modern and isinstance(result, dict) else result

    return shaped


def manager(fast: FastPath, *, body_limit: int) -> StreamableHTTPSessionManager:
    """Return the SDK's HTTP side with sessions and streams."""
    return StreamableHTTPSessionManager(
        build(fast), json_response=False, stateless=False, event_store=Events(), retry_interval=100
    )


EXTENSION = McpExtension(manager=manager, definitions=definitions(), fixed=fixed())
