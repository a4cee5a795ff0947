"""Implement `toolserver install HOST` and `uninstall HOST`: edit the configuration of an MCP host."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolserver.cli.bridge import origin_of
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.options import TOOLSETS
from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

NAME = "toolserver"
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

_host_argument = click.argument("host", type=click.Choice(sorted(HOSTS)))
_dry_run_option = click.option("--dry-run", is_flag=True, help="Print the resulting file without changing anything")


@click.command()
@_host_argument
@click.option("--server", metavar="URL", help="Act as a bridge to the service at this address")
@click.option("--toolset", type=TOOLSETS, default="core", show_default=True, help="Tools offered")
@_dry_run_option
def install(host: str, server: str | None, toolset: str, dry_run: bool) -> None:
    """Add this program to the configuration of HOST, keeping a copy of the old file."""
    with explain_errors():
        change = plan_entry(HOSTS[host], Path.home(), NAME, make_entry(server, toolset))
        _carry_out(change, f"{HOSTS[host].title} already has it", dry_run)


@click.command()
@_host_argument
@_dry_run_option
def uninstall(host: str, dry_run: bool) -> None:
    """Remove this program from the configuration of HOST. Stored credentials are kept."""
    with explain_errors():
        change = plan_entry(HOSTS[host], Path.home(), NAME, None)
        if change.before is None:
            click.echo(f"{HOSTS[host].title} has no configuration at {change.path}")
            return
        _carry_out(change, f"{HOSTS[host].title} does not have it", dry_run)


def _carry_out(change: Change, unchanged: str, dry_run: bool) -> None:
    if not change.is_needed:
        click.echo(f"{unchanged}: {change.path} is unchanged")
    elif dry_run:
        click.echo(f"{change.path} would be:\n{change.after}", nl=False)
    else:
        copy = change.apply()
        click.echo(f"wrote {change.path}{f'; the old file is {copy}' if copy else ''}")
        click.echo("restart the host or reload its servers")


def make_entry(server: str | None, toolset: str) -> Config:
    """Return the entry that a host starts: this Python by its absolute path, as hosts do not know a shell's PATH."""
    words = ["-m", "toolserver", "stdio"]
    if server is not None:
        words += ["--server", origin_of(server)]
    return {"command": sys.executable, "args": [*words, *(["--toolset", toolset] if toolset != "core" else [])]}


def plan_entry(host: Host, home: Path, name: str, entry: Config | None) -> Change:
    """Plan the change that adds a server under a name, or removes it where `entry` is None. Keeps everything else.

    Raises:
        ConfigDamaged, OSError.
    """
    path = host.find_file(home).resolve()  # a link, such as into a folder of dotfiles, stays a link
    before = path.read_text(encoding="utf-8") if path.exists() else None
    config, present = _read(path, before), _read(path, before)
    servers = dict(config.get(host.member) or {})
    if entry is None:
        servers.pop(name, None)
    else:
        servers[name] = {**({"type": "stdio"} if host.typed else {}), **entry}
    if servers or host.member in config:
        config[host.member] = servers
    return Change(path, before, json.dumps(config, indent=2, ensure_ascii=False) + "\n", config != present)


def _read(path: Path, text: str | None) -> Config:
    if text is None or not text.strip():
        return {}
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ConfigDamaged(f"{path} is not JSON ({error}); fix it first. It was left unchanged") from None
    if not isinstance(config, dict) or not all(
        isinstance(config.get(m) or {}, dict) for m in ("mcpServers", "servers")
    ):
        raise ConfigDamaged(f"{path} is not a JSON object of servers; fix it first. It was left unchanged")
    return config
