"""Implement `toolserver install HOST` and `uninstall HOST`: edit the configuration of an MCP host."""

import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import yaml

from toolserver.cli.bridge import origin_of
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.options import TOOLSETS
from toolserver.core.private_file import write_private
from toolserver.errors import ToolserverError

NAME = "toolserver"
Config = dict[str, Any]


Form = Literal["json", "toml", "yaml"]


class ConfigDamaged(ToolserverError):
    """The file does not have the form that this host writes, or one that can be kept. The file is left unchanged."""


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers: its file under the home folder, and the member that lists servers there."""

    title: str
    find_file: Callable[[Path], Path]
    member: str = "mcpServers"
    shape: Callable[[Config], Config] = dict
    """Writes an entry in the host's own words."""
    form: Form = "json"


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


def _typed(entry: Config) -> Config:
    return {"type": "stdio", **entry}


def _as_goose(entry: Config) -> Config:
    renamed = {"cmd": entry["command"], "args": entry["args"]}
    return {"enabled": True, "type": "stdio", "name": NAME, **renamed, "timeout": 60}


def _as_opencode(entry: Config) -> Config:
    return {"type": "local", "command": [entry["command"], *entry["args"]], "enabled": True}


def _in_config(folder: str, name: str, windows: str) -> Callable[[Path], Path]:
    """Return a function that finds a file of a program that keeps to ~/.config, on macOS too."""

    def find_file(home: Path) -> Path:
        if sys.platform == "win32":
            return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / windows / name
        return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / folder / name

    return find_file


def _codex_file(home: Path) -> Path:
    return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"


HOSTS: Mapping[str, Host] = {
    "claude-desktop": Host("Claude Desktop", _in_applications("Claude", "claude_desktop_config.json")),
    "claude-code": Host("Claude Code", lambda home: home / ".claude.json", shape=_typed),
    "cursor": Host("Cursor", lambda home: home / ".cursor" / "mcp.json"),
    "vscode": Host("VS Code", _in_applications("Code/User", "mcp.json"), member="servers", shape=_typed),
    "codex": Host("Codex", _codex_file, member="mcp_servers", form="toml"),
    "gemini-cli": Host("Gemini CLI", lambda home: home / ".gemini" / "settings.json"),
    "goose": Host(
        "Goose",
        _in_config("goose", "config.yaml", "Block/goose/config"),
        member="extensions",
        shape=_as_goose,
        form="yaml",
    ),
    "windsurf": Host("Windsurf", lambda home: home / ".codeium" / "windsurf" / "mcp_config.json"),
    "zed": Host("Zed", _in_config("zed", "settings.json", "Zed"), member="context_servers"),
    "opencode": Host(
        "OpenCode",
        lambda home: Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode" / "opencode.json",
        member="mcp",
        shape=_as_opencode,
    ),
}
DEFERRING = ("claude-code", "claude-desktop", "codex")
"""Hosts that show a model the tools that it searched for: they are offered all tools unless told otherwise."""

_host_argument = click.argument("host", type=click.Choice(sorted(HOSTS)))
_dry_run_option = click.option("--dry-run", is_flag=True, help="Print the resulting file without changing anything")


@click.command()
@_host_argument
@click.option("--server", metavar="URL", help="Act as a bridge to the service at this address")
@click.option("--toolset", type=TOOLSETS, help="Tools offered [default: all in hosts that search tools, else core]")
@_dry_run_option
def install(host: str, server: str | None, toolset: str | None, dry_run: bool) -> None:
    """Add this program to the configuration of HOST, keeping a copy of the old file."""
    offered = toolset or ("all" if host in DEFERRING else "core")
    with explain_errors():
        change = plan_entry(HOSTS[host], Path.home(), NAME, make_entry(server, offered))
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
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else None
    except UnicodeDecodeError:
        raise ConfigDamaged(f"{path} is not UTF-8; fix it first. It was left unchanged") from None
    shaped = None if entry is None else host.shape(entry)
    config, present = _read(host, path, before, shaped), _read(host, path, before, shaped)
    servers = dict(config.get(host.member) or {})
    if shaped is None:
        servers.pop(name, None)
    else:
        there = servers.get(name)
        shaped = {**there, **shaped} if isinstance(there, dict) else shaped  # what a person added to it stays
        servers[name] = shaped
    if servers or host.member in config:
        config[host.member] = servers
    if config == present:
        return Change(path, before, before or "", False)
    if host.form == "json":
        return Change(path, before, _write_json(config), True)
    edit = _edit_toml if host.form == "toml" else _edit_yaml
    after = edit(before or "", host.member, name, shaped)
    try:
        kept = _parse(host.form, after)
    except ValueError:
        kept = {}
    if {**kept, host.member: kept.get(host.member) or {}} != {**config, host.member: servers}:
        raise ConfigDamaged(f"{path} is laid out in a way that cannot be edited safely. {_advise(host, shaped)}")
    return Change(path, before, after, True)


def _read(host: Host, path: Path, text: str | None, entry: Config | None) -> Config:
    if text is None or not text.strip():
        return {}
    try:
        config = _parse(host.form, text)
    except (ValueError, RecursionError) as error:
        form = host.form.upper()
        raise ConfigDamaged(f"{path} is not plain {form} ({error}); fix it first. {_advise(host, entry)}") from None
    if not isinstance(config, dict) or not isinstance(config.get(host.member) or {}, dict):
        raise ConfigDamaged(
            f"{path} is not a list of servers under `{host.member}`; fix it first. It was left unchanged"
        )
    return config


def _advise(host: Host, entry: Config | None) -> str:
    """Return what a person can do about a file that is not edited, because its comments or layout would be lost."""
    if entry is None:
        return "It was left unchanged"
    return f"It was left unchanged; add this under `{host.member}` yourself: {json.dumps({NAME: entry})}"


def _parse(form: Form, text: str) -> Any:
    """Return the content of a file. Raises ValueError."""
    if form == "json":
        return json.loads(text, object_pairs_hook=_read_members, parse_float=_read_number, parse_constant=_read_number)
    if form == "toml":
        return tomllib.loads(text)
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from None


def _read_members(pairs: list[tuple[str, Any]]) -> Config:
    """Return an object. Raises ValueError if a name stands in it twice, as only one of the two could be kept."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return members


def _read_number(text: str) -> float:
    """Return a number. Raises ValueError for one that JSON could not say again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number of JSON")
    return number


def _write_json(config: Config) -> str:
    """Return a configuration as JSON, with characters as they are, or escaped if UTF-8 has no bytes for one."""
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(config, indent=2) + "\n"
    return text


def _write_toml(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"{{ {', '.join(f'{json.dumps(key)} = {_write_toml(member)}' for key, member in value.items())} }}"


def _edit_toml(text: str, member: str, name: str, entry: Config | None) -> str:
    """Return a TOML text with a table of this name at its end, or without one; every other line is kept."""
    ours = re.compile(rf'\s*\[\s*{member}\s*\.\s*"?{re.escape(name)}"?\s*[.\]]')
    kept, is_ours = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            is_ours = ours.match(line) is not None
        if not is_ours:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    if entry is not None:
        values = [f"{key} = {_write_toml(value)}" for key, value in entry.items()]
        kept += [*([""] if kept else []), f"[{member}.{name}]", *values]
    return "".join(f"{line}\n" for line in kept)


def _edit_yaml(text: str, member: str, name: str, entry: Config | None) -> str:
    """Return a YAML text with an entry of this name first under a member, or without one; other lines are kept."""
    lines = text.splitlines()
    at = next((n for n, line in enumerate(lines) if re.match(rf"{member}\s*:", line)), None)
    if at is None:
        lines += [f"{member}:"]
        at = len(lines) - 1
    elif re.match(rf"{member}\s*:\s*(\{{\s*\}}|null|~)\s*$", lines[at]):
        lines[at] = f"{member}:"
    body = [n for n in range(at + 1, len(lines)) if lines[n].strip() and not lines[n].lstrip().startswith("#")]
    indent = len(lines[body[0]]) - len(lines[body[0]].lstrip()) if body and lines[body[0]][0] in " \t" else 2
    start = next(
        (n for n in range(at + 1, len(lines)) if re.match(rf" {{{indent}}}{re.escape(name)}\s*:", lines[n])), None
    )
    if start is not None:
        deeper = (
            n for n in range(start + 1, len(lines)) if lines[n].strip() and not lines[n].startswith(" " * (indent + 1))
        )
        del lines[start : next(deeper, len(lines))]
    if entry is not None:
        values = [f"{' ' * (indent + 2)}{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
        lines[at + 1 : at + 1] = [f"{' ' * indent}{name}:", *values]
    return "".join(f"{line}\n" for line in lines)
