"""Implement `toolserver ledger …`: read and maintain the ledger, also while it is in use."""

import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_data_dir, find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.months import check_archives
from toolserver.cli.options import output_options
from toolserver.cli.printing import print_facts
from toolserver.clock import Clock
from toolserver.money.ledger import admin

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def ledger() -> None:
    """Look up balances and reserved credits, and check that the ledger is consistent."""


@ledger.command()
@output_options
@click.argument("who")
def balance(who: str, data_dir: Path | None, as_json: bool) -> None:
    """Print a token's balance. WHO is its fingerprint, or `-` to read the token itself from standard input."""
    token = sys.stdin.readline().strip() if who == "-" else who
    print_facts(_run(admin.balance, data_dir, token), as_json, with_unset=True)


@ledger.command()
@output_options
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of reservations to list"
)
def holds(limit: int, data_dir: Path | None, as_json: bool) -> None:
    """List the credits reserved for calls in progress, soonest to expire first."""
    reserved = _run(admin.holds, data_dir, limit=limit)
    if as_json:
        click.echo(json.dumps(reserved, indent=2))
        return
    for hold in reserved:
        click.echo("  ".join(str(value) for value in hold.values() if value != ""))
    click.echo(f"{len(reserved)} open" if reserved else "no credits are reserved")


@ledger.command()
@output_options
def sweep(data_dir: Path | None, as_json: bool) -> None:
    """Release expired reservations. A running service does the same twice a minute."""
    print_facts(_run(admin.sweep, data_dir, clock=_find_clock()), as_json, with_unset=True)


@ledger.command()
@output_options
@click.option("--archive", "archives", type=_FILE, multiple=True, help="Archive of a closed month; repeat for several")
@click.option("--keys", "key_file", type=_FILE, help="Published key set for archives [the one in the data directory]")
def check(archives: tuple[Path, ...], key_file: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Check every rule of the ledger. Exits with 1, and prints what is wrong and where, if a rule is broken.

    With --archive it verifies closed months instead, using only their archives and the public keys.
    """
    if archives:
        check_archives(archives, key_file, data_dir, as_json)

    verdict = _run(admin.check, data_dir)
    print_facts(verdict, as_json, with_unset=True)
    sys.exit(0 if verdict["ok"] else 1)


@ledger.command()
@output_options
@click.argument("who")
@click.argument("credits", type=click.IntRange(1, 50_000_000))
@click.option("--reason", required=True, help="Why; shown in the books and in the buyer's statement")
@click.option(
    "--once", metavar="TEXT", help="Idempotency key, such as a transaction hash: the same TEXT is granted once"
)
def grant(who: str, credits: int, reason: str, once: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Give credits to a token. WHO is its fingerprint, or `new` to create a token, which is printed only once."""
    print_facts(_run(admin.grant, data_dir, who, credits, reason, once, clock=_find_clock()), as_json, with_unset=True)


@ledger.command("accept-rows")
@output_options
@click.confirmation_option(prompt="Rows that this service did not write will be accepted. Have you looked at them?")
def accept_rows(data_dir: Path | None, as_json: bool) -> None:
    """Accept every row of the ledger as it is now, for example after a manual repair. Stop the service first."""
    print_facts(_run(admin.accept_rows, data_dir), as_json, with_unset=True)


@ledger.command()
@output_options
@click.argument("fingerprint")
@click.option("--reason", required=True, help="Why; stored with the token")
def revoke(fingerprint: str, reason: str, data_dir: Path | None, as_json: bool) -> None:
    """Revoke a token permanently. FINGERPRINT is the first 16 hexadecimal digits of its SHA-256."""
    print_facts(_run(admin.revoke, data_dir, fingerprint, reason, clock=_find_clock()), as_json, with_unset=True)


def _find_clock() -> Clock:
    return find_clock(settings_from())


def _run(verb: Callable[..., Awaitable[Any]], data_dir: Path | None, *args: Any, **named: Any) -> Any:
    """Run an operation of `ledger.admin` on an existing ledger, and return its result."""
    place = find_ledger(find_data_dir(data_dir))
    with explain_errors():
        return anyio.run(partial(verb, place, *args, **named))
