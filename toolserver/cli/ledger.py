"""Implement `toolserver ledger …` and `toolserver db …`: read and maintain the ledger, also while it is in use."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from toolserver.cli.load_settings import (
    data_dir_option,
    explain_errors,
    find_data_dir,
    find_ledger,
    json_option,
    settings_from,
)
from toolserver.cli.months import check_archives

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def _common(function: F) -> F:
    """Add the flags that every command here has."""
    return data_dir_option(json_option(function))


@click.group()
def ledger() -> None:
    """Look up balances and reserved credits, and check that the ledger is consistent."""


@ledger.command()
@_common
@click.argument("who")
def balance(who: str, data_dir: Path | None, as_json: bool) -> None:
    """Print a token's balance. WHO is its fingerprint, or `-` to read the token itself from standard input."""
    from toolserver.money.ledger import admin as do

    given = sys.stdin.readline().strip() if who == "-" else who
    _print(_run(do.balance, data_dir, given), as_json)


@ledger.command()
@_common
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of reservations to list"
)
def holds(limit: int, data_dir: Path | None, as_json: bool) -> None:
    """List the credits reserved for calls in progress, soonest to expire first."""
    from toolserver.money.ledger import admin as do

    found = _run(do.holds, data_dir, limit=limit)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for hold in found:
        click.echo("  ".join(str(value) for value in hold.values() if value != ""))
    click.echo(f"{len(found)} open" if found else "no credits are reserved")


@ledger.command()
@_common
def sweep(data_dir: Path | None, as_json: bool) -> None:
    """Release expired reservations. A running service does the same twice a minute."""
    from toolserver.money.ledger import admin as do

    _print(_run(do.sweep, data_dir), as_json)


@ledger.command()
@_common
@click.option("--archive", "archives", type=_FILE, multiple=True, help="Archive of a closed month; repeat for several")
@click.option("--keys", "key_file", type=_FILE, help="Published key set for archives [the one in the data directory]")
def check(archives: tuple[Path, ...], key_file: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Check every rule of the ledger. Exits with 1, and prints what is wrong and where, if a rule is broken.

    With --archive it verifies closed months instead, using only their archives and the public keys.
    """
    if archives:
        check_archives(archives, key_file, data_dir, as_json)
    from toolserver.money.ledger import admin as do

    found = _run(do.check, data_dir)
    _print(found, as_json)
    sys.exit(0 if found["ok"] else 1)


@ledger.command()
@_common
@click.argument("who")
@click.argument("credits", type=click.IntRange(1, 50_000_000))
@click.option("--reason", required=True, help="Why; shown in the books and in the buyer's statement")
@click.option(
    "--once", metavar="TEXT", help="Idempotency key, such as a transaction hash: the same TEXT is granted once"
)
def grant(who: str, credits: int, reason: str, once: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Give credits to a token. WHO is its fingerprint, or `new` to create a token, which is printed only once."""
    from toolserver.money.ledger import admin as do

    _print(_run(do.grant, data_dir, who, credits, reason, once), as_json)


@ledger.command("accept-rows")
@_common
@click.confirmation_option(prompt="Rows that this service did not write will be accepted. Have you looked at them?")
def accept_rows(data_dir: Path | None, as_json: bool) -> None:
    """Accept every row of the ledger as it is now, for example after a manual repair. Stop the service first."""
    from toolserver.money.ledger import admin as do

    _print(_run(do.accept_rows, data_dir), as_json)


@ledger.command()
@_common
@click.argument("fingerprint")
@click.option("--reason", required=True, help="Why; stored with the token")
def revoke(fingerprint: str, reason: str, data_dir: Path | None, as_json: bool) -> None:
    """Revoke a token permanently. FINGERPRINT is the first 16 hexadecimal digits of its SHA-256."""
    from toolserver.money.ledger import admin as do

    _print(_run(do.revoke, data_dir, fingerprint, reason), as_json)


@click.group()
def db() -> None:
    """Check the ledger's database, back up and restore its file, and move it to PostgreSQL."""


@db.command()
@_common
@click.option("--to", type=click.Path(path_type=Path), help="File to write; in the data directory by default")
def backup(to: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Copy the database and check the copy: the file and the ledger in it. The service may be running."""
    from toolserver.money.ledger import admin as do

    with explain_errors():
        _print(do.backup(_find_folder_of_file(data_dir), to), as_json)


@db.command()
@_common
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(file: Path, data_dir: Path | None, as_json: bool) -> None:
    """Replace the database with a verified backup. Stop the service first. The old file is kept beside the new one."""
    from toolserver.money.ledger import admin as do

    with explain_errors():
        _print(do.restore_backup(_find_folder_of_file(data_dir), file), as_json)


@db.command("check")
@_common
def check_database(data_dir: Path | None, as_json: bool) -> None:
    """Read every row of the ledger's file or database and check its rules. Exits with 1 if a rule is broken.

    Two copies of a ledger have the same digests, sums and log root, whichever database engine stores them.
    """
    import anyio

    from toolserver.serving.database_check import check_place

    place = find_ledger(find_data_dir(data_dir))
    with explain_errors():
        found = anyio.run(check_place, place)
    _print(found, as_json)
    sys.exit(0 if found["ok"] else 1)


@db.command()
@_common
@click.option("--to", metavar="URL", help="postgresql://… of an empty database [database_url]")
@click.option("--cancel", is_flag=True, help="Keep using the file: abandon an incomplete move")
def move(to: str | None, cancel: bool, data_dir: Path | None, as_json: bool) -> None:
    """Move the ledger's file to PostgreSQL and compare every row. Stop the service first; rerun to resume.

    Once a move has begun, the file is no longer served. When the move is complete, the file is kept under another name.
    """
    from toolserver.cli.progress import RowProgress
    from toolserver.serving.database_move import cancel_move, move_database
    from toolserver.serving.shared_database import database_terms

    settings = settings_from(data_dir=data_dir, database_url=to)
    with explain_errors():
        if cancel:
            _print(cancel_move(settings.data_dir), as_json)
            return
        if settings.database_url is None:
            raise click.UsageError("--to is missing, and database_url is not set")
        _print(move_database(settings.data_dir, database_terms(settings, patient=True), RowProgress()), as_json)


def _find_folder_of_file(data_dir: Path | None) -> Path:
    """Return the data directory. If the ledger is in a database instead, the program ends with a message."""
    settings = settings_from(data_dir=data_dir)
    if settings.database_url is not None:
        raise click.ClickException("the ledger is in the database of database_url: back it up with pg_dump")
    return settings.data_dir


def _run(verb: Callable[..., Awaitable[Any]], data_dir: Path | None, *args: Any, **named: Any) -> Any:
    """Run one of the operations of `ledger.admin` on an existing ledger, and return what it found."""
    import functools

    import anyio

    place = find_ledger(find_data_dir(data_dir))
    with explain_errors():
        return anyio.run(functools.partial(verb, place, *args, **named))


def _print(found: Mapping[str, Any], as_json: bool) -> None:
    """Print a result as JSON, or one line for each member."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        click.echo(f"{name:12} {json.dumps(value) if isinstance(value, bool | list | dict | None) else value}")
