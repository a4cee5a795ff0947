"""`toolserver ledger …` and `toolserver db …`: what an operator looks up and does in the books, running or not."""

import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _common(function: F) -> F:
    """The flags of every verb here."""
    function = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text")(function)
    return click.option("--data-dir", type=click.Path(path_type=Path), help="Where keys and databases live")(function)


@click.group()
def ledger() -> None:
    """The books: what tokens hold, what is set aside, whether every rule holds."""


@ledger.command()
@_common
@click.argument("who")
def balance(who: str, data_dir: Path | None, as_json: bool) -> None:
    """How a token stands, by its fingerprint, or by the token itself from standard input (`-`)."""
    from toolserver.billing import ledger_commands as do

    given = sys.stdin.readline().strip() if who == "-" else who
    _tell(_run(do.balance, data_dir, given), as_json)


@ledger.command()
@_common
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
def holds(limit: int, data_dir: Path | None, as_json: bool) -> None:
    """Credits that are set aside for calls under way, the first to expire first."""
    from toolserver.billing import ledger_commands as do

    found = _run(do.holds, data_dir, limit=limit)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for hold in found:
        click.echo("  ".join(str(value) for value in hold.values() if value != ""))
    click.echo(f"{len(found)} open" if found else "nothing is set aside")


@ledger.command()
@_common
def sweep(data_dir: Path | None, as_json: bool) -> None:
    """Void reservations past their time. A running service does the same twice a minute."""
    from toolserver.billing import ledger_commands as do

    _tell(_run(do.sweep, data_dir), as_json)


@ledger.command()
@_common
def check(data_dir: Path | None, as_json: bool) -> None:
    """Check every rule of the books; exit status 1, and what is wrong where, when one does not hold."""
    from toolserver.billing import ledger_commands as do

    found = _run(do.check, data_dir)
    _tell(found, as_json)
    sys.exit(0 if found["ok"] else 1)


@ledger.command()
@_common
@click.argument("fingerprint")
@click.option("--reason", required=True, help="Kept with the token, for yourself")
def revoke(fingerprint: str, reason: str, data_dir: Path | None, as_json: bool) -> None:
    """Make a token invalid for good, by its fingerprint (the first 16 digits of its SHA-256)."""
    from toolserver.billing import ledger_commands as do

    _tell(_run(do.revoke, data_dir, fingerprint, reason), as_json)


@click.group()
def db() -> None:
    """The ledger's database file."""


@db.command()
@_common
@click.option("--to", type=click.Path(path_type=Path), help="Where to; beside the data by default")
def backup(to: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Copy the database, running or not, and verify the copy: the file, and the books in it."""
    from toolserver.billing import ledger_commands as do

    with _readable():
        _tell(do.backup(_folder(data_dir), to), as_json)


@db.command()
@_common
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(file: Path, data_dir: Path | None, as_json: bool) -> None:
    """Put a verified backup in the database's place, with the service stopped. What was there is kept beside it."""
    from toolserver.billing import ledger_commands as do

    with _readable():
        _tell(do.restored(_folder(data_dir), file), as_json)


def _run(verb: Callable[..., Awaitable[Any]], data_dir: Path | None, *args: Any, **named: Any) -> Any:
    import functools

    import anyio

    from toolserver.billing.sqlite import FILE

    folder = _folder(data_dir)
    if not (folder / FILE).exists():
        raise click.ClickException(f"there is no ledger in {folder}")
    with _readable():
        return anyio.run(functools.partial(verb, folder, *args, **named))


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong, in a sentence."""
    from toolserver.errors import ToolserverError

    try:
        yield
    except (ToolserverError, sqlite3.Error, OSError) as error:
        raise click.ClickException(str(error)) from None


def _folder(data_dir: Path | None) -> Path:
    from toolserver.configured import settings_from

    return data_dir or settings_from().data_dir


def _tell(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        click.echo(f"{name:12} {json.dumps(value) if isinstance(value, bool | list | None) else value}")
