"""The configuration files of programs that use MCP servers, and how a server is entered into them and taken out."""

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
    """The file is not a JSON object as this host writes it. It is left as it is."""


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers: its file under the home folder, and the member that lists servers there."""

    title: str
    find_file: Callable[[Path], Path]
    member: str = "mcpServers"
    typed: bool = False
    """Whether an entry says that it is started over stdio."""


def _in_applications(folder: str, name: str) -> Callable[[Path], Path]:
    """A file in the folder of an application, as each system has it."""

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
    """What a file holds, None where there is none, and what it shall hold. Not needed: they say the same."""

    path: Path
    before: str | None
    after: str
    is_needed: bool

    def apply(self) -> Path | None:
        """Write the file as a whole, after a copy of the one before. Returns the copy's path. Raises OSError."""
        copy = None
        if self.before is not None:
            copy = self.path.with_name(f"{self.path.name}.before-toolserver")
            write_private(copy, self.before)
        write_private(self.path, self.after)
        return copy


def plan_entry(host: Host, home: Path, name: str, entry: Config | None) -> Change:
    """The change that enters a server under a name, or with None takes it out. All else stays as it is.

    Raises:
        ConfigDamaged, OSError.
    """
    path = host.find_file(home).resolve()  # a link into a folder of settings stays a link
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
        raise ConfigDamaged(f"{path} is not JSON ({error}); mend it first, it was left as it is") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(m) or {}, dict) for m in ("mcpServers", "servers")):
        raise ConfigDamaged(f"{path} is not a JSON object of servers; mend it first, it was left as it is")
    return found
