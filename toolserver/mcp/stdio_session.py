"""Answer standard input and output with a loaded service. The caller owns the machine, so there are no limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolserver.calls.pipeline import Pipeline
from toolserver.core import tracing
from toolserver.core.caller import Caller, new_request_id
from toolserver.mcp import messages
from toolserver.mcp.definitions import ToolChoice, ToolChoices
from toolserver.mcp.fast_path import FastPath, ToolResult, arguments_of, is_not_offered
from toolserver.mcp.messages import DESCRIBING, METHOD_NOT_FOUND, STDIO, UNSET, Message, MessageRefusal
from toolserver.mcp.resources import METHODS, McpResources
from toolserver.mcp.sdk import load_sdk
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts


@asynccontextmanager
async def open_session(
    registry: Registry,
    pipeline: Pipeline,
    caller: Caller,
    facts: SiteFacts,
    *,
    toolset: str | None = None,
    tools: list[str] | None = None,
    output_schema: bool = True,
    wants_views: bool = False,
    resources: McpResources | None = None,
) -> "AsyncIterator[StdioSession]":
    """Open a conversation with a loaded service, which has the `resources` that standard input has announced.

    Raises UnknownToolChoice if a toolset or tool does not exist.
    """
    choice = ToolChoices(registry).choose(
        toolset=toolset,
        tools=tools,
        output_schema=output_schema,
        token_argument=caller.token is None,
        wants_views=wants_views,
    )
    async with anyio.create_task_group() as tasks:
        yield StdioSession(FastPath(pipeline, facts, STDIO), choice, caller, tasks, resources)
        tasks.cancel_scope.cancel()


class StdioSession:
    """Answers messages in the order in which they finish."""

    def __init__(
        self, fast: FastPath, choice: ToolChoice, caller: Caller, tasks: TaskGroup, resources: McpResources | None
    ) -> None:
        self._fast, self._choice, self._caller, self._tasks = fast, choice, caller, tasks
        self._resources = resources
        self.sdk: Any = None

    def answer_from_cache(self, message: Message, *, modern: bool) -> bytes | None:
        """Return the core of a result that needs no waiting, or None."""
        route = self._choice.routes.get(message.params.name) if message.method == "tools/call" else None
        if route is None:
            shows_views = self._choice.wants_views or messages.client_of(message).shows_views
            find_view = self._resources.find_view if self._resources is not None and shows_views else None
            return self._fast.find_prepared(message, self._choice, modern=modern, find_view=find_view)
        if self._caller.token is not None:
            return None  # the answer says what is left of its credits, which the ledger has to be asked for
        return self._fast.answer_unlimited(route, message.params, self._caller.agent)

    async def answer(self, line: bytes, message: Message | None) -> bytes | None:
        """Return the answer to a message; None if it needs no answer."""
        if (
            message is not None
            and message.id is not UNSET
            and (modern := messages.is_modern_message(message)) is not None
        ):
            core = self.answer_from_cache(message, modern=modern)
            if core is not None:
                return messages.response(message.id, core, messages.end(modern=modern))
            result = await self._call(message)
            if result is not None:
                return messages.response(message.id, result.core, result.end(modern=modern))
            if is_not_offered(message, modern=modern) and not self._answers_method(message.method):
                return messages.failure(message.id, METHOD_NOT_FOUND, "Method not found", message.method)
        try:
            request = messages.parse_message(line)
            modern = messages.has_modern_envelope(request) if message is None else messages.is_modern_message(message)
            if modern is not None and "id" in request and self._answers_method(request.get("method")):
                return await self._answer_method(request, modern=modern)
            return await self.answer_by_sdk(line, request)
        except MessageRefusal as refusal:
            return refusal.body

    def _answers_method(self, method: str | None) -> bool:
        return self._resources is not None and method in METHODS

    async def _answer_method(self, request: dict[str, Any], *, modern: bool) -> bytes:
        """Answer a method of resources without the SDK. Raises MessageRefusal."""
        assert self._resources is not None, "what a service does not have is refused before"
        params = request.get("params") or {}
        try:
            core = await self._resources.answer(request["method"], params, self._caller, modern=modern)
        except MessageRefusal as refusal:
            refusal.value = request["id"]
            raise
        return messages.response(request["id"], core, messages.end(modern=modern))

    async def _call(self, message: Message) -> ToolResult | None:
        """Return the result of a plain call; None for everything else."""
        params = message.params
        route = self._choice.routes.get(params.name) if message.method == "tools/call" else None
        arguments = arguments_of(params)
        if route is None or arguments is None or not params.plain:
            return None
        caller = replace(self._caller, request_id=new_request_id())
        tracing.request_id.set(caller.request_id)
        if params.meta is not UNSET:
            caller = params.meta.add_to(caller)
        return await self._fast.call(route, params, arguments, caller)

    async def answer_by_sdk(self, line: bytes, request: dict[str, Any]) -> bytes | None:
        """Return the SDK's answer to a request; None if the message is none."""
        if "id" not in request or "method" not in request:
            return None
        if self.sdk is None:
            module = await load_sdk()
            if self.sdk is None:
                self.sdk = module.SdkBridge(self._fast, self._choice, self._caller, self._tasks)
        modern = messages.has_modern_envelope(request) and request["method"] != "initialize"
        answer: bytes = await self.sdk.ask(line, request["id"], modern=modern)
        return self._fast.introduction.add_to(answer) if request["method"] in DESCRIBING else answer
