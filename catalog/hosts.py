"""Writes ready-to-paste configuration for programs that use MCP servers."""

import base64
import json
import shlex
import sys
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from toolserver.core.public_address import is_local_host
from toolserver.registry.site_facts import SERVICE, SIGN_IN, SiteFacts, Snippet

TOKEN = "svc_live_YOUR_TOKEN"  # to be replaced; free tools ignore an unknown token
_ASKED = "${input:token}"  # VS Code asks for it and keeps it out of the file

Config = dict[str, Any]


_GEMINI = "~/.gemini/settings.json"
_SHELL = "run in a shell"
_CONNECTORS = "Settings, Connectors, Add custom connector (the address must be reachable from the internet; no token)"
_SIGN_IN = "Settings, Connectors, Add custom connector (reachable from the internet; you sign in and set a limit)"


def snippets(facts: SiteFacts, *, token: bool = False) -> tuple[Snippet, ...]:
    """Return one snippet per host and transport. With `token`, they contain a placeholder for the buyer's token.

    Local snippets start the installed command, not a program that fetches packages by name, which anyone may own.
    """
    remote, local = _remote("url", facts, token), _local(facts, token)
    return (
        Snippet("Claude Code", "http", _SHELL, _shell({"type": "http", **remote})),
        Snippet("Claude Code", "stdio", _SHELL, _shell({"type": "stdio", **local})),
        _connector("Claude Desktop", facts),
        Snippet("Claude Desktop", "stdio", "claude_desktop_config.json", _file("mcpServers", local)),
        Snippet("Cursor", "http", "~/.cursor/mcp.json", _file("mcpServers", remote), _cursor_link(remote)),
        Snippet("Cursor", "stdio", "~/.cursor/mcp.json", _file("mcpServers", local), _cursor_link(local)),
        _vscode("http", _remote("url", facts, token, _ASKED), token),
        _vscode("stdio", _local(facts, token, _ASKED), token),
        Snippet("Gemini CLI", "http", _GEMINI, _file("mcpServers", _remote("httpUrl", facts, token))),
        Snippet("Gemini CLI", "stdio", _GEMINI, _file("mcpServers", local)),
    )


def _connector(host: str, facts: SiteFacts) -> Snippet:
    """Return the snippet for hosts that send no token: the address where they sign in, if they can."""
    if facts.oauth:
        return Snippet(host, "http", _SIGN_IN, facts.url(SIGN_IN))
    return Snippet(host, "http", _CONNECTORS, facts.url("/api/mcp"))


def _remote(key: str, facts: SiteFacts, token: bool, value: str = TOKEN) -> Config:
    headers = {"headers": {"Authorization": f"Bearer {value}"}} if token else {}
    return {key: facts.url("/api/mcp"), **headers}


def _local(facts: SiteFacts, token: bool, value: str = TOKEN) -> Config:
    """Return the configuration of the program on the reader's machine: a bridge to this service if it sells.

    On the machine that serves the page, it has the full path of the program, because hosts do not know a shell's PATH.
    """
    here = is_local_host(urlsplit(facts.base_url).hostname or "")
    command = {"command": sys.executable, "args": ["-m", SERVICE]} if here else {"command": SERVICE, "args": []}
    bridge = ["--server", facts.url("")] if token else []
    env = {"env": {"TOOLSERVER_TOKEN": value}} if token else {}
    return {"command": command["command"], "args": [*command["args"], "stdio", *bridge], **env}


def _shell(server: Config) -> str:
    return f"claude mcp add-json {SERVICE} {shlex.quote(json.dumps(server))}"


def _file(member: str, server: Config, **more: Any) -> str:
    return json.dumps({member: {SERVICE: server}, **more}, indent=2, ensure_ascii=False)


def _cursor_link(server: Config) -> str:
    config = quote(base64.b64encode(json.dumps(server).encode()).decode(), safe="")
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={SERVICE}&config={config}"


def _vscode(transport: Literal["http", "stdio"], server: Config, token: bool) -> Snippet:
    typed = {"type": transport, **server}
    asked = {"type": "promptString", "id": "token", "description": "Token (svc_live_…)", "password": True}
    inputs = {"inputs": [asked]} if token else {}
    link = "vscode:mcp/install?" + quote(json.dumps({"name": SERVICE, **typed, **inputs}), safe="")
    return Snippet("VS Code", transport, ".vscode/mcp.json", _file("servers", typed, **inputs), link)
