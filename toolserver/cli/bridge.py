"""Talk to a service elsewhere, for `stdio`, `call` and `tools` with `--server`: its address and the tokens for it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import click

from toolserver.cli.load_settings import settings_from
from toolserver.core.caller import real_token
from toolserver.core.http import HttpClient
from toolserver.core.logging import set_up
from toolserver.core.outbound import read_proxies
from toolserver.core.visible_text import disarm
from toolserver.mcp import messages
from toolserver.mcp.credentials import FILE, CredentialsFile
from toolserver.mcp.stdio import Conversation
from toolserver.mcp.stdio_bridge import ANSWER_BYTES, CONNECT_S, StdioBridge, TokenPurse
from toolserver.settings import Settings, is_loopback, normalize_base_url


def origin_of(server: str) -> str:
    """Return a service's address as credentials are stored under it. Refuses addresses that would expose tokens."""
    try:
        origin = normalize_base_url(server.removesuffix("/api/mcp"))
    except ValueError as error:
        raise click.ClickException(f"--server {error}") from None
    if urlsplit(origin).scheme != "https" and not is_loopback(urlsplit(origin).hostname or ""):
        raise click.ClickException("--server must begin with https://, because tokens are sent to it")
    return origin


def open_http(origin: str, settings: Settings) -> HttpClient:
    """Return an HTTP client for a service elsewhere, through the proxy of the settings or of the environment."""
    proxies = read_proxies(settings.upstream.proxy_address)
    return HttpClient(origin, most_bytes=ANSWER_BYTES, connect_s=CONNECT_S, proxies=proxies)


@asynccontextmanager
async def open_bridge(server: str, flags: Mapping[str, Any], tools: Mapping[str, str]) -> AsyncIterator[StdioBridge]:
    """Open a conversation with that service; `tools` is the query that selects its tools.

    Nothing is written to disk unless a purchase returns a token to keep.
    """
    origin = origin_of(server)
    settings = settings_from(**flags)
    set_up(settings.logs.level, settings.logs.format)
    token = real_token(settings.token.get_secret_value() if settings.token else None)
    purse = TokenPurse(origin, CredentialsFile(settings.data_dir / FILE), token)
    http = open_http(origin, settings)
    try:
        yield StdioBridge(origin, http, purse, tools)
    finally:
        await http.aclose()


async def ask(bridge: Conversation, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of one request. An error of the protocol ends the program with its sentence."""
    line = messages.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer = json.loads(await bridge.answer(line, messages.read_message(line)) or b"{}")
    if "result" not in answer:
        said = answer.get("error")
        message = said.get("message") if isinstance(said, dict) else None
        raise click.ClickException(disarm(str(message)) if message else "the service sent an empty answer")
    result = answer["result"]
    if not isinstance(result, dict):
        raise click.ClickException("the service sent an answer that is not of MCP")
    return result
