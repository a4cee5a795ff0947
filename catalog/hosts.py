"""Writes ready-to-paste configuration for programs that use MCP servers."""

import base64
import json
import shlex
import sys
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from toolserver.core.public_address import is_local_host
from toolserver.registry.site_facts import SERVICE, SIGN_IN, SiteFacts, Snippet

# What a host replaces by the token. None of them stands in a link, and one that was left as it is counts as no token.
_FROM_SHELL = "${TOOLSERVER_TOKEN:-}"  # Claude Code
_FROM_CURSOR = "${env:TOOLSERVER_TOKEN}"
_FROM_GEMINI = "$TOOLSERVER_TOKEN"
_ASKED = "${input:token}"  # VS Code asks for it and keeps it out of the file
_FROM_OPENCODE = "{env:TOOLSERVER_TOKEN}"
_VARIABLE = "TOOLSERVER_TOKEN"  # Codex and Goose take the name of the variable; Zed reads none

# For hosts that show a model what it searched for: they list everything and load what they need.
ALL = "?toolset=all"

Config = dict[str, Any]


_CURSOR = "~/.cursor/mcp.json"
_GEMINI = "~/.gemini/settings.json"
_CODEX = "~/.codex/config.toml"
_GOOSE = "~/.config/goose/config.yaml"
_WINDSURF = "~/.codeium/windsurf/mcp_config.json"
_ZED = "~/.config/zed/settings.json"
_OPENCODE = "~/.config/opencode/opencode.json"
_SHELL = "run in a shell"
_CLAUDE_CONNECTORS = "Settings, Connectors, Add custom connector"
_CHATGPT_APPS = "Settings, Apps, Create app, with Developer mode on in its advanced settings"
_OPEN = " (the address must be reachable from the internet; no token)"
_SIGNED = " (reachable from the internet; you sign in and set a limit)"


def snippets(facts: SiteFacts, *, token: bool = False) -> tuple[Snippet, ...]:
    """Return one snippet per host and transport. With `token`, they say where the host finds the buyer's token.

    Local snippets start the installed command, not a program that fetches packages by name,
    which anyone may own. Links never carry a token or a place for one: a token is then an
    argument of the call, or the result of a sign-in.
    """

    def remote(value: str | None, key: str = "url", *, all_tools: bool = False) -> Config:
        return _remote(key, facts, value if token else None, ALL if all_tools else "")

    def local(value: str | None, *, all_tools: bool = False) -> Config:
        return _local(facts, value if token else None, bridge=token, all_tools=all_tools)

    return (
        Snippet("Claude Code", "http", _SHELL, _shell({"type": "http", **remote(_FROM_SHELL, all_tools=True)})),
        Snippet("Claude Code", "stdio", _SHELL, _shell({"type": "stdio", **local(_FROM_SHELL, all_tools=True)})),
        _connector("Claude Desktop", _CLAUDE_CONNECTORS, facts),
        Snippet(
            "Claude Desktop", "stdio", "claude_desktop_config.json", _file("mcpServers", local(None, all_tools=True))
        ),
        _connector("ChatGPT", _CHATGPT_APPS, facts),
        Snippet("Cursor", "http", _CURSOR, _file("mcpServers", remote(_FROM_CURSOR)), _cursor_link(remote(None))),
        Snippet("Cursor", "stdio", _CURSOR, _file("mcpServers", local(_FROM_CURSOR)), _cursor_link(local(None))),
        _vscode("http", remote(_ASKED), remote(None), token),
        _vscode("stdio", local(_ASKED), local(None), token),
        Snippet("Gemini CLI", "http", _GEMINI, _file("mcpServers", remote(_FROM_GEMINI, "httpUrl"))),
        Snippet("Gemini CLI", "stdio", _GEMINI, _file("mcpServers", local(_FROM_GEMINI))),
        Snippet("Codex", "http", _CODEX, _toml(_of_codex(remote(None, all_tools=True), is_named=token))),
        Snippet("Codex", "stdio", _CODEX, _toml(_of_codex(local(None, all_tools=True), is_named=token))),
        Snippet("Goose", "http", _GOOSE, _yaml(_of_goose(remote(f"${{{_VARIABLE}}}", "uri"), is_named=token))),
        Snippet("Goose", "stdio", _GOOSE, _yaml(_of_goose(local(None), is_named=token))),
        Snippet("Windsurf", "http", _WINDSURF, _file("mcpServers", remote(_FROM_CURSOR, "serverUrl"))),
        Snippet("Windsurf", "stdio", _WINDSURF, _file("mcpServers", local(_FROM_CURSOR))),
        Snippet("Zed", "http", _ZED, _file("context_servers", remote(None))),
        Snippet("Zed", "stdio", _ZED, _file("context_servers", local(None))),
        Snippet("OpenCode", "http", _OPENCODE, _file("mcp", _of_opencode(remote(_FROM_OPENCODE)))),
        Snippet("OpenCode", "stdio", _OPENCODE, _file("mcp", _of_opencode(local(_FROM_OPENCODE)))),
    )


def _connector(host: str, where: str, facts: SiteFacts) -> Snippet:
    """Return the snippet for hosts that send no token and search tools: the address where they sign in, if they can."""
    if facts.oauth:
        return Snippet(host, "http", where + _SIGNED, facts.url(SIGN_IN) + ALL)
    return Snippet(host, "http", where + _OPEN, facts.url("/api/mcp") + ALL)


def _remote(key: str, facts: SiteFacts, token: str | None, query: str) -> Config:
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token is not None else {}
    return {key: facts.url("/api/mcp") + query, **headers}


def _local(facts: SiteFacts, token: str | None, *, bridge: bool, all_tools: bool) -> Config:
    """Return the configuration of the program on the reader's machine: a bridge to this service if it sells.

    On the machine that serves the page, it has the full path of the program, because hosts do not know a shell's PATH.
    """
    here = is_local_host(urlsplit(facts.base_url).hostname or "")
    command, args = (sys.executable, ["-m", SERVICE]) if here else (SERVICE, [])
    server = ["--server", facts.url("")] if bridge else []
    env = {"env": {"TOOLSERVER_TOKEN": token}} if token is not None else {}
    choice = ["--toolset", "all"] if all_tools else []
    return {"command": command, "args": [*args, "stdio", *server, *choice], **env}


def _of_codex(entry: Config, *, is_named: bool) -> Config:
    """Return an entry for Codex, which reads a token from a variable whose name it is given."""
    if not is_named:
        return entry
    return {**entry, "bearer_token_env_var": _VARIABLE} if "url" in entry else {**entry, "env_vars": [_VARIABLE]}


def _of_goose(entry: Config, *, is_named: bool) -> Config:
    """Return an entry for Goose, which has other words for a program and a type for each transport."""
    words = {"command": "cmd"}
    kind = "streamable_http" if "uri" in entry else "stdio"
    renamed = {words.get(name, name): value for name, value in entry.items()}
    keys = {"env_keys": [_VARIABLE]} if is_named else {}
    return {"enabled": True, "type": kind, "name": SERVICE, **renamed, **keys, "timeout": 60}


def _of_opencode(entry: Config) -> Config:
    """Return an entry for OpenCode, which takes a program and its arguments as one list."""
    if "url" in entry:
        # with a header of ours it must not try to sign in first
        return {"type": "remote", **entry, **({"oauth": False} if "headers" in entry else {}), "enabled": True}
    environment = {"environment": entry["env"]} if "env" in entry else {}
    return {"type": "local", "command": [entry["command"], *entry["args"]], **environment, "enabled": True}


def _toml(entry: Config) -> str:
    """Write an entry of Codex; every value is a text or a list of texts, which TOML writes as JSON does."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    return "\n".join([f"[mcp_servers.{SERVICE}]", *lines])


def _yaml(entry: Config) -> str:
    """Write an entry of Goose; JSON's scalars and lists are YAML too."""
    lines = []
    for name, value in entry.items():
        if isinstance(value, dict):
            lines += [f"    {name}:", *(f"      {key}: {json.dumps(inner)}" for key, inner in value.items())]
        else:
            lines.append(f"    {name}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(["extensions:", f"  {SERVICE}:", *lines])


def _shell(server: Config) -> str:
    return f"claude mcp add-json {SERVICE} {shlex.quote(json.dumps(server))}"


def _file(member: str, server: Config, *, inputs: list[Config] | None = None) -> str:
    content: Config = {member: {SERVICE: server}}
    if inputs is not None:
        content["inputs"] = inputs
    return json.dumps(content, indent=2, ensure_ascii=False)


def _cursor_link(server: Config) -> str:
    config = quote(base64.b64encode(json.dumps(server).encode()).decode(), safe="")
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={SERVICE}&config={config}"


def _vscode(transport: Literal["http", "stdio"], server: Config, linked: Config, token: bool) -> Snippet:
    token_prompt = {"type": "promptString", "id": "token", "description": "Token (svc_live_…)", "password": True}
    inputs = [token_prompt] if token else None
    link = "vscode:mcp/install?" + quote(json.dumps({"name": SERVICE, "type": transport, **linked}), safe="")
    return Snippet(
        "VS Code", transport, ".vscode/mcp.json", _file("servers", {"type": transport, **server}, inputs=inputs), link
    )
