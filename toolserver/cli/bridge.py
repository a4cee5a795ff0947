"""Talk to a remote service for `stdio --server` and `call --server`: its address, its token, one call."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import click

from toolserver.cli.load_settings import settings_from
from toolserver.core.caller import real_token
from toolserver.core.credentials import FILE, CredentialsFile
from toolserver.core.http_client import HttpClient
from toolserver.core.logging import set_up
from toolserver.mcp import messages
from toolserver.mcp.stdio_bridge import ANSWER_BYTES, CONNECT_S, StdioBridge, TokenPurse
from toolserver.settings import is_loopback, normalize_base_url


def origin_of(server: str) -> str:
    """Return a service's address as credentials are stored under it. Refuses addresses that would expose tokens."""
    try:
        origin = normalize_base_url(server.removesuffix("/api/mcp"))
    except ValueError as error:
        raise click.ClickException(f"--server {error}") from None
    if urlsplit(origin).scheme != "https" and not is_loopback(urlsplit(origin).hostname or ""):
        raise click.ClickException("--server must begin with https://, because tokens are sent to it")
    return origin


@asynccontextmanager
async def open_bridge(server: str, flags: Mapping[str, Any], chosen: Mapping[str, str]) -> AsyncIterator[StdioBridge]:
    """Open a conversation with that service. Nothing is written to disk unless a purchase returns a token to keep."""
    origin = origin_of(server)
    settings = settings_from(**flags)
    set_up(settings.logs.level, settings.logs.format)
    given = real_token(settings.token.get_secret_value() if settings.token else None)
    http = HttpClient(
        origin, most_bytes=ANSWER_BYTES, connect_s=CONNECT_S, by_proxy=not is_loopback(urlsplit(origin).hostname or "")
    )
    try:
        yield StdioBridge(origin, http, TokenPurse(origin, CredentialsFile(settings.data_dir / FILE), given), chosen)
    finally:
        await http.aclose()


async def call_server(server: str, name: str, given: dict[str, Any], flags: Mapping[str, Any], *, as_json: bool) -> int:
    """Call one tool of the service and print the answer. Returns 1 when the call is refused or returns no data."""
    params = {"name": name, "arguments": given}
    line = messages.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    async with open_bridge(server, flags, {"toolset": "all"}) as bridge:
        answer = json.loads(await bridge.answer(line, messages.read_message(line)) or b"{}")
    if "result" not in answer:
        raise click.ClickException(answer.get("error", {}).get("message", "the service sent an empty answer"))
    result = answer["result"]
    text = result["content"][0]["text"]
    failed = bool(result.get("isError"))
    click.echo(text if as_json else _indent(text), err=failed and not as_json)
    return 1 if failed or not has_data(result.get("structuredContent") or {}) else 0


def has_data(payload: Mapping[str, Any]) -> bool:
    """Return True if an answer holds any of the requested data."""
    return payload.get("data", payload) is not None


def _indent(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
