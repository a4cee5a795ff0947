"""Implement `toolserver install HOST` and `uninstall HOST`: edit the configuration of an MCP host."""

import sys
from pathlib import Path

import click

from toolserver.cli.host_configs import HOSTS, Change, Config, plan_entry
from toolserver.cli.load_settings import explain_errors

NAME = "toolserver"
_host_argument = click.argument("host", type=click.Choice(sorted(HOSTS)))
_dry_run_option = click.option("--dry-run", is_flag=True, help="Print the resulting file without changing anything")


def make_entry(server: str | None, toolset: str) -> Config:
    """Return the entry that a host starts: this Python by its absolute path, as hosts do not know a shell's PATH."""
    from toolserver.cli.bridge import origin_of

    words = ["-m", "toolserver", "stdio"]
    if server is not None:
        words += ["--server", origin_of(server)]
    return {"command": sys.executable, "args": [*words, *(["--toolset", toolset] if toolset != "core" else [])]}


@click.command()
@_host_argument
@click.option("--server", metavar="URL", help="Act as a bridge to the service at this address")
@click.option("--toolset", type=click.Choice(["core", "all"]), default="core", show_default=True, help="Tools offered")
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
