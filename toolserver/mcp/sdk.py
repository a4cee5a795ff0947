"""Import the MCP SDK in a thread, because the import takes half a second and 25 MB, and run its HTTP side.

A server does so soon after the first MCP message of any kind, so that hardly any caller waits
for the import, and a server that nobody asks over MCP does without it. If a message needs the
SDK earlier, it is imported at once.
"""

import importlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from toolserver.core.caller import Caller
from toolserver.mcp.asgi import CALLER, CHOICE, Receive, Scope, Send
from toolserver.mcp.definitions import ToolChoice
from toolserver.mcp.fast_path import FastPath

log = logging.getLogger(__name__)

SERVER = "toolserver.mcp.sdk_server"
PREPARED_AFTER_S = 10.0  # not while the first messages are answered


async def load_sdk() -> Any:
    """Return the module that imports the SDK, without blocking the event loop."""
    return await anyio.to_thread.run_sync(importlib.import_module, SERVER, abandon_on_cancel=True)


class McpExtension(NamedTuple):
    """What a server offers through the SDK beside the tools of its registry: sessions, streams, prompts, resources.

    Only the server that the MCP conformance suite tests has one. `definitions` and `fixed` are those of `ToolChoices`.
    """

    manager: Callable[..., Any]
    definitions: Sequence[dict[str, Any]]
    fixed: Mapping[str, bytes]


class Sdk:
    """The SDK's HTTP side, started in the service's tasks by `prepare` or on first use."""

    def __init__(
        self,
        fast: FastPath,
        tasks: TaskGroup,
        *,
        body_limit: int,
        extension: McpExtension | None = None,
        load: Callable[[], Awaitable[Any]] = load_sdk,
    ) -> None:
        self._fast, self._tasks, self._body_limit, self._load = fast, tasks, body_limit, load
        self._extension = extension
        self._lock = anyio.Lock()
        self._sessions: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send, *, choice: ToolChoice, caller: Caller) -> None:
        sessions = self._sessions or await self._start()
        scope = {**scope, CHOICE: choice, CALLER: caller}
        await sessions.handle_request(scope, receive, send)

    async def prepare(self, after_s: float = PREPARED_AFTER_S) -> None:
        """Start the SDK after this many seconds, unless it was needed before.

        A failure, such as having no descriptor left during an attack, does not end the
        service: the first message that needs the SDK tries again.
        """
        await anyio.sleep(after_s)
        try:
            await self._start()
        except (ImportError, OSError) as error:
            log.warning("the MCP SDK could not be prepared", extra={"error": str(error)})

    async def _start(self) -> Any:
        async with self._lock:
            if self._sessions is None:
                module = await self._load()
                manager = module.manager if self._extension is None else self._extension.manager
                sessions = manager(self._fast, body_limit=self._body_limit)
                await self._tasks.start(module.live, sessions)
                self._sessions = sessions
        return self._sessions
