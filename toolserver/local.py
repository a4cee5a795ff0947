"""What the command line does without a server: one call, stdio, listings."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import msgspec

from toolserver.access import Caller
from toolserver.app import Service, facts_of, running
from toolserver.errors import CallRejected
from toolserver.problems import body as problem_body
from toolserver.registry import Registry
from toolserver.settings import Settings
from toolserver.treasury import OtherWorld

LOCAL = "http://127.0.0.1:8080"


def local_caller(settings: Settings, door: str) -> Caller:
    """The owner of this machine: no limits, the token from the settings."""
    token = settings.token.get_secret_value() if settings.token else None
    return Caller(client="local", token=token, door=door, limited=False, agent=f"toolserver-{door}")


@asynccontextmanager
async def local_service(settings: Settings, registry: Registry | None = None) -> AsyncIterator[Service]:
    """The service in this process. Sharing a server's data directory, it shares its fresh answers too."""
    try:
        async with running(settings, base_url=settings.base_url or LOCAL, registry=registry) as service:
            yield service
    except OtherWorld as error:
        raise click.ClickException(str(error)) from None


async def call_command(settings: Settings, name: str, given: dict[str, Any], *, as_json: bool) -> int:
    """Call one tool, print the answer; 0, or 1 when the call was refused."""
    registry = Registry.load(*settings.tools)
    operation = registry.get(name)
    if operation is None:
        raise click.ClickException(f"there is no tool called {name}; `toolserver tools` lists them")
    async with local_service(settings, registry) as service:
        try:
            outcome = await service.pipeline.call(operation, given, local_caller(settings, "cli"))
        except CallRejected as rejected:
            told = problem_body(
                rejected.code, rejected.detail, facts=service.facts, request_id="local", **rejected.extra
            )
            click.echo(json.dumps(told, indent=None if as_json else 2), err=not as_json)
            return 1
        payload = outcome.rendered.payload
        click.echo(payload if as_json else msgspec.json.format(payload, indent=2))
        return 0


def tools_listing(settings: Settings, toolset: str, *, as_json: bool) -> str:
    """A table of names, prices and what the tools return; or the MCP definitions."""
    operations = Registry.load(*settings.tools).chosen(toolset=toolset)
    if as_json:
        from toolserver.protocol.definitions import definition

        return json.dumps([definition(operation) for operation in operations], indent=2, ensure_ascii=False)
    width = max(len(o.name) for o in operations)
    lines = [f"{o.name:{width}}  {o.credits or 'free':>5}  {o.method:4} {o.path:32} {o.title}" for o in operations]
    return "\n".join([f"{'tool':{width}}  price  {'path':37} title", *lines])


def openapi_document(settings: Settings, base_url: str) -> str:
    """The OpenAPI document for a public address."""
    from rest_bridge.openapi import openapi

    document = openapi(Registry.load(*settings.tools), facts_of(settings, base_url))
    return json.dumps(document, indent=2, ensure_ascii=False)
