"""Run the service in this process, without a server: for one call, for `stdio` and for `doctor`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import click

from toolserver.app import Service, ServiceParts
from toolserver.cli.load_settings import prepare_settings
from toolserver.clock import SystemClock
from toolserver.core.caller import Caller, real_token
from toolserver.mcp.stdio import Conversation
from toolserver.mcp.stdio_session import open_session
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.listen import freeze_startup
from toolserver.serving.money import claim_directory, close_directory, keeps_books, memory_money
from toolserver.settings import Settings
from toolserver.sql.errors import OtherWorld
from toolserver.world.remote_clock import FollowedClock


def local_caller(settings: Settings, transport: str) -> Caller:
    """Return the owner of this machine as a caller: without limits, with the token from the settings."""
    token = real_token(settings.token.get_secret_value() if settings.token else None)
    return Caller(client="local", token=token, transport=transport, limited=False, agent=f"toolserver-{transport}")


@asynccontextmanager
async def local_service(
    settings: Settings, registry: Registry | None = None, *, books: bool = True, **parts: Any
) -> AsyncIterator[Service]:
    """Run the service in this process. On a server's data directory it also reads that server's stored answers.

    Without `books` it creates no ledger and no keys, and has only tools that need neither.
    `parts` are further parts of `ServiceParts`.
    """
    try:
        if not books:
            registry, parts = _leave_books_out(settings, registry, parts)
        async with Service.build(settings, ServiceParts(registry=registry, **parts)) as service:
            yield service
    except OtherWorld as error:
        raise click.ClickException(str(error)) from None


def _leave_books_out(
    settings: Settings, registry: Registry | None, parts: dict[str, Any]
) -> tuple[Registry, dict[str, Any]]:
    close_directory(settings.data_dir)
    claim_directory(settings.data_dir, simulated=settings.upstream.via is not None)
    clock = FollowedClock() if settings.upstream.via else SystemClock()
    free = [o for o in registry or Registry.load(*tool_packages(settings.tools)) if not needs_books(o)]
    return Registry(free), {**parts, "clock": clock, "money": memory_money(clock)}


def needs_books(operation: Operation) -> bool:
    """Return True if a tool needs credits or receipts, which a process without a ledger does not have."""
    return operation.tier is not Tier.FREE or operation.path.startswith(("/api/payment/", "/api/receipt/"))


@asynccontextmanager
async def open_conversation(
    flags: Mapping[str, Any],
    *,
    toolset: str | None,
    tools: list[str] | None,
    output_schema: bool = True,
    wants_views: bool = False,
) -> AsyncIterator[Conversation]:
    """Open an MCP session with the service in this process, for the owner of this machine."""
    settings = prepare_settings(**flags)
    caller = local_caller(settings, "stdio")
    async with local_service(settings, books=keeps_books(settings)) as service:
        freeze_startup()
        async with open_session(
            service.registry,
            service.pipeline,
            caller,
            service.facts,
            toolset=toolset,
            tools=tools,
            output_schema=output_schema,
            wants_views=wants_views,
            resources=service.mcp_resources(has_events=False),
        ) as session:
            yield session


def has_data(payload: Mapping[str, Any]) -> bool:
    """Return True if an answer holds any of the requested data."""
    return payload.get("data", payload) is not None
