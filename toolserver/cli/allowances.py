"""Implement `toolserver allowances`: an operator manages the allowances of a token, named by its fingerprint."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click

from toolserver.calls.allowances import AllowanceDetails, Allowances, AllowanceWish
from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import add_options, output_options
from toolserver.core.models import iso
from toolserver.money.ledger.protocol import Who
from toolserver.money.ledger.store import SqlLedger
from toolserver.registry.registry import Registry
from toolserver.registry.tool_packages import tool_packages
from toolserver.sql.ledger_place import open_place

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_OWNER = click.argument("fingerprint")
_ID = click.argument("id")
_TERMS = (
    click.option("--per-day", type=click.IntRange(0), help="Most credits per UTC day; 0 removes this cap"),
    click.option("--expires", metavar="TIME", help="When it expires, such as 2027-02-01; “never” removes the expiry"),
    click.option("--tool", "tools", multiple=True, help="A tool that it may pay for; may be repeated [all tools]"),
)


def _terms(function: F) -> F:
    return add_options(_TERMS, function)


@click.group()
def allowances() -> None:
    """Manage allowances: tokens that spend the credits of another one, up to caps.

    FINGERPRINT is the fingerprint of the token whose credits are spent.
    """


@allowances.command("list")
@output_options
@_OWNER
def list_command(fingerprint: str, data_dir: Path | None, as_json: bool) -> None:
    """List the allowances of a token and what each has spent."""
    _print(_run(data_dir, fingerprint, lambda service, who: service.list_all(who)), as_json)


@allowances.command()
@output_options
@_OWNER
@click.argument("name")
@click.argument("credits", type=click.IntRange(1))
@_terms
def create(
    fingerprint: str,
    name: str,
    credits: int,
    per_day: int | None,
    expires: str | None,
    tools: tuple[str, ...],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Create an allowance and print its token. The token is shown only once."""
    wish = _wish(name, credits, per_day, expires, tools)
    _print([_run(data_dir, fingerprint, lambda service, who: service.create(who, wish))], as_json)


@allowances.command()
@output_options
@_OWNER
@_ID
@click.option("--name", help="A new name")
@click.option("--credits", type=click.IntRange(1), help="The new total cap")
@_terms
def update(
    fingerprint: str,
    id: str,
    name: str | None,
    credits: int | None,
    per_day: int | None,
    expires: str | None,
    tools: tuple[str, ...],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Change the name or caps of an allowance. Options that are not given keep their values."""
    wish = _wish(name, credits, per_day, expires, tools)
    _print([_run(data_dir, fingerprint, lambda service, who: service.change(who, id, wish))], as_json)


@allowances.command()
@output_options
@_OWNER
@_ID
def revoke(fingerprint: str, id: str, data_dir: Path | None, as_json: bool) -> None:
    """Revoke an allowance permanently."""
    _print([_run(data_dir, fingerprint, lambda service, who: service.revoke(who, id))], as_json)


def _wish(
    name: str | None, credits: int | None, per_day: int | None, expires: str | None, tools: tuple[str, ...]
) -> AllowanceWish:
    ends = None
    if expires is not None:
        try:
            ends = datetime.max if expires == "never" else datetime.fromisoformat(expires)
        except ValueError:
            raise click.BadParameter(f"{expires} is not a time such as 2027-02-01T00:00:00Z") from None
        ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
    return AllowanceWish(name, credits, per_day, ends, list(tools) or None)


def _run(data_dir: Path | None, fingerprint: str, job: Callable[[Allowances, Who], Awaitable[R]]) -> R:
    """Run a job on the allowances of a token."""
    settings = settings_from(data_dir=data_dir)
    path, clock = find_ledger(settings.data_dir), find_clock(settings)

    async def run() -> R:
        registry = Registry.load(*tool_packages(settings.tools))
        async with open_place(path) as file:
            ledger = SqlLedger(file, clock)
            who = (await ledger.standing_of_fingerprint(fingerprint)).ref
            return await job(Allowances(ledger, registry, clock), who)

    with explain_errors():
        return anyio.run(run)


def _print(details: list[AllowanceDetails], as_json: bool) -> None:
    rows = [
        {name: _text(value) for name, value in each._asdict().items() if name != "token" or value} for each in details
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo("  ".join(f"{name}={value}" for name, value in row.items() if value is not None))
    if not rows:
        click.echo("no allowances")


def _text(value: Any) -> Any:
    return iso(value) if isinstance(value, datetime) else value
