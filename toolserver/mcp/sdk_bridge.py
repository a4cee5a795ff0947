"""Run the SDK's server over streams in memory, to answer the uncommon messages of standard input.

Modern and legacy requests each have their own conversation.
"""

from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream, TaskGroup
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from toolserver.core.caller import Caller
from toolserver.mcp import messages
from toolserver.mcp.definitions import ToolChoice
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.messages import INVALID_REQUEST, Id
from toolserver.mcp.sdk_server import RegistryTools, build

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
                    event, found = self._waiting.pop(message.id)
                    found.append(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                    event.set()

    async def notify(self, line: bytes) -> None:
        """Send a notification."""
        await self._to.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def ask(self, line: bytes, value: Id) -> bytes:
        """Send a request and wait for its answer."""
        if value in self._waiting:
            return messages.failure(value, INVALID_REQUEST, "A request with this id is still being answered.")
        event = anyio.Event()
        found: list[bytes] = []
        self._waiting[value] = event, found
        try:
            await self.notify(line)
            await event.wait()
        finally:
            self._waiting.pop(value, None)
        return found[0]
