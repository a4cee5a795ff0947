"""What a loaded service answers over standard input and output. Everyone there is the machine's owner: no limits."""

import importlib
from dataclasses import replace
from typing import Any

import anyio.to_thread
from anyio.abc import TaskGroup

from toolserver import ids
from toolserver.access import Caller
from toolserver.documents import Facts
from toolserver.pipeline import Pipeline
from toolserver.protocol import refusals, wire
from toolserver.protocol.definitions import Choices
from toolserver.protocol.fast import Fast, arguments_of
from toolserver.protocol.refusals import Refusal
from toolserver.protocol.results import Result
from toolserver.protocol.wire import UNSET, Message
from toolserver.registry import Registry


class Conversation:
    """Answers messages, in whatever order they are done."""

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        caller: Caller,
        facts: Facts,
        *,
        chosen: dict[str, Any],
        tasks: TaskGroup,
    ) -> None:
        self._fast, self._caller, self._tasks = Fast(pipeline, facts), caller, tasks
        self._choice = Choices(registry, pipeline).choose(**chosen)
        self._sdk: Any = None

    def at_hand(self, message: Message, *, modern: bool) -> bytes | None:
        """The core of a result that needs no waiting."""
        route = self._choice.routes.get(message.params.name) if message.method == "tools/call" else None
        if route is None:
            return self._fast.prepared(message, self._choice, modern=modern)
        return self._fast.at_hand(route, message.params, None, self._caller.agent)

    async def answer(self, line: bytes, message: Message | None) -> bytes | None:
        """The answer to a message; None when it wants none."""
        if message is not None and message.id is not UNSET and (modern := wire.era(message)) is not None:
            core = self.at_hand(message, modern=modern)
            if core is not None:
                return wire.response(message.id, core, wire.end(modern=modern))
            result = await self._call(message)
            if result is not None:
                return wire.response(message.id, result.core, result.end(modern=modern))
        try:
            return await self._by_sdk(line, refusals.inspect(line))
        except Refusal as refusal:
            return refusal.body

    async def _call(self, message: Message) -> Result | None:
        """The result of a plain call; None for everything else."""
        params = message.params
        route = self._choice.routes.get(params.name) if message.method == "tools/call" else None
        given = arguments_of(params)
        if route is None or given is None or not params.plain:
            return None
        caller = replace(self._caller, request_id=ids.request_id())
        if params.meta is not UNSET:
            meta = params.meta
            caller = replace(caller, idempotency_key=meta.idempotency_key, nonce=meta.agent_nonce, payment=meta.paid)
        return await self._fast.call(route, params, given, caller)

    async def _by_sdk(self, line: bytes, found: dict[str, Any]) -> bytes | None:
        if "id" not in found or "method" not in found:
            return None
        if self._sdk is None:
            module = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.protocol.streams")
            if self._sdk is None:
                self._sdk = module.Streams(self._fast, self._choice, self._caller, self._tasks)
        modern = refusals.enveloped(found) and found["method"] != "initialize"
        answer: bytes = await self._sdk.ask(line, found["id"], modern=modern)
        return answer
