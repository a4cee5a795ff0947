"""Do what the command line does without a server: one call, the list of tools, the OpenAPI document."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import msgspec

from rest_bridge.openapi import openapi
from toolserver.app import Service, ServiceParts
from toolserver.cli.bridge import has_data
from toolserver.clock import SystemClock
from toolserver.core.caller import Caller, real_token
from toolserver.errors import CallRejected
from toolserver.registry.error_codes import body as problem_body
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.money import claim_directory, close_directory, keeps_books, memory_money
from toolserver.serving.public_facts import read_public_facts
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

    Without `books` it creates no ledger and no keys, and has only tools that need neither. `parts` are further parts
    of `ServiceParts`.
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
    free = [o for o in registry or Registry.load(*tool_packages(settings.tools)) if not _needs_books(o)]
    return Registry(free), {**parts, "clock": clock, "money": memory_money(clock)}


def _needs_books(operation: Operation) -> bool:
    """Return True if a tool needs credits or receipts, which a process without a ledger does not have."""
    return operation.tier is not Tier.FREE or operation.path.startswith(("/api/payment/", "/api/receipt/"))


async def call_command(settings: Settings, name: str, given: dict[str, Any], *, as_json: bool) -> int:
    """Call one tool and print the answer. Returns 1 when the call is refused or returns no data."""
    registry = Registry.load(*tool_packages(settings.tools))
    operation = registry.get(name)
    if operation is None:
        raise click.ClickException(f"there is no tool called {name}; `toolserver tools` lists them")
    books = keeps_books(settings)
    if _needs_books(operation) and not books:
        raise click.ClickException(f"{name} needs a service that sells: add --server https://…")
    async with local_service(settings, registry, books=books) as service:
        try:
            outcome = await service.pipeline.call(operation, given, local_caller(settings, "cli"))
        except CallRejected as rejected:
            problem = problem_body(
                rejected.code, rejected.detail, facts=service.facts, request_id="local", **rejected.extra
            )
            click.echo(json.dumps(problem, indent=None if as_json else 2), err=not as_json)
            return 1
        payload = outcome.rendered.payload
        click.echo(payload if as_json else msgspec.json.format(payload, indent=2))
        return 0 if has_data(json.loads(payload)) else 1


def tools_listing(settings: Settings, toolset: str, *, as_json: bool) -> str:
    """Write a table of names, prices, paths and titles, or the MCP definitions as JSON."""
    operations = Registry.load(*tool_packages(settings.tools)).chosen(toolset=toolset)
    if as_json:
        from toolserver.mcp.definitions import definition

        return json.dumps([definition(operation) for operation in operations], indent=2, ensure_ascii=False)
    width = max(len(o.name) for o in operations)
    lines = [f"{o.name:{width}}  {o.credits or 'free':>5}  {o.method:4} {o.path:32} {o.title}" for o in operations]
    return "\n".join([f"{'tool':{width}}  price  {'path':37} title", *lines])


def openapi_document(settings: Settings, base_url: str) -> str:
    """Write the OpenAPI document that a server at this public address returns, without the examples."""
    document = openapi(Registry.load(*tool_packages(settings.tools)), read_public_facts(settings, base_url))
    return json.dumps(document, indent=2, ensure_ascii=False)
