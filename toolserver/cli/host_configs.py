"""Add a server to the configuration files of MCP hosts, and remove it from them."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

Config = dict[str, Any]


class ConfigDamaged(ToolserverError):
    """The file is not a JSON object of the form that this host writes. The file is left unchanged."""


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers: its file under the home folder, and the member that lists servers there."""

    title: str
    find_file: Callable[[Path], Path]
    member: str = "mcpServers"
    typed: bool = False
    """True if the host expects each entry to state that it uses stdio."""


def _in_applications(folder: str, name: str) -> Callable[[Path], Path]:
    """Return a function that finds a file in an application's folder on each operating system."""

    def find_file(home: Path) -> Path:
        if sys.platform == "darwin":
            base = home / "Library" / "Application Support"
        elif sys.platform == "win32":
            base = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
        else:
            base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return base / folder / name

    return find_file


HOSTS: Mapping[str, Host] = {
    "claude-desktop": Host("Claude Desktop", _in_applications("Claude", "claude_desktop_config.json")),
    "claude-code": Host("Claude Code", lambda home: home / ".claude.json", typed=True),
    "cursor": Host("Cursor", lambda home: home / ".cursor" / "mcp.json"),
    "vscode": Host("VS Code", _in_applications("Code/User", "mcp.json"), member="servers", typed=True),
}


@dataclass(frozen=True, slots=True)
class Change:
    """The content of a file before (None where there is no file) and after. No change is needed if both are equal."""

    path: Path
    before: str | None
    after: str
    is_needed: bool

    def apply(self) -> Path | None:
        """Copy the old file, then write the new one in one step. Returns the copy's path. Raises OSError."""
        copy = None
        if self.before is not None:
            copy = self.path.with_name(f"{self.path.name}.before-toolserver")
            write_private(copy, self.before)
        write_private(self.path, self.after)
        return copy


def plan_entry(host: Host, home: Path, name: str, entry: Config | None) -> Change:
    """Plan the change that adds a server under a name, or removes it where `entry` is None. Keeps everything else.

    Raises:
        ConfigDamaged, OSError.
    """
    path = host.find_file(home).resolve()  # a link, such as into a folder of dotfiles, stays a link
    before = path.read_text(encoding="utf-8") if path.exists() else None
    config, found = _read(path, before), _read(path, before)
    servers = dict(config.get(host.member) or {})
    if entry is None:
        servers.pop(name, None)
    else:
        servers[name] = {**({"type": "stdio"} if host.typed else {}), **entry}
    if servers or host.member in config:
        config[host.member] = servers
    return Change(path, before, json.dumps(config, indent=2, ensure_ascii=False) + "\n", config != found)


def _read(path: Path, text: str | None) -> Config:
    if text is None or not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigDamaged(f"{path} is not JSON ({error}); fix it first. It was left unchanged") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(m) or {}, dict) for m in ("mcpServers", "servers")):
        raise ConfigDamaged(f"{path} is not a JSON object of servers; fix it first. It was left unchanged")
    return found
