"""`toolserver stdio`: says hello first, imports the rest afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolserver.protocol.stdio import serve_stdio

if TYPE_CHECKING:
    from toolserver.access import Caller
    from toolserver.documents import Facts
    from toolserver.pipeline import Pipeline
    from toolserver.registry import Registry


async def stdio_command(flags: dict[str, Any], *, toolset: str, tools: list[str] | None) -> None:
    """MCP on stdin and stdout. `initialize` is answered while settings, registry and service are still to be made."""

    @asynccontextmanager
    async def load() -> "AsyncIterator[tuple[Registry, Pipeline, Caller, Facts]]":
        from toolserver.configured import prepared
        from toolserver.local import local_caller, local_service
        from toolserver.serving import settled

        settings = prepared(**flags)
        async with local_service(settings) as service:
            settled()
            yield service.registry, service.pipeline, local_caller(settings, "stdio"), service.facts

    await serve_stdio(load, toolset=toolset, tools=tools)
