"""Implement `toolserver books …`: what was sold, used and is owed, the USDC received, and whether it all agrees."""

import csv
import json
import sys
from collections.abc import Callable
from datetime import MAXYEAR, UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import anyio
import click

from toolserver.cli.chain_book import chain, check_balances
from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_data_dir, find_ledger, find_ledger_file
from toolserver.cli.load_settings import settings_from
from toolserver.cli.months import close, prune, read_published_keys
from toolserver.cli.options import add_options, data_dir_option, output_options
from toolserver.cli.printing import print_table
from toolserver.core.models import iso, iso_of_ms
from toolserver.core.outbound import read_proxies
from toolserver.money.books.sql_books import list_movements, list_transfers, read_books, read_tokens, read_tools
from toolserver.money.books.sql_reconciliation import (
    BooksCheck,
    FollowedLedger,
    check_books,
    check_chain,
    check_held_receipts,
)
from toolserver.money.chain.sql_chain_transfers import BookedMovement
from toolserver.money.ledger.sql_books import BookedTransfer
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import make_rpc_pool
from toolserver.money.purchases.listing import show_usd
from toolserver.money.receipts.transparency_log import read_mark
from toolserver.serving.shared_database import find_marks
from toolserver.settings import Settings
from toolserver.sql.ledger_place import LedgerPlace, open_place

F = TypeVar("F", bound=Callable[..., Any])

_DAY, _MONTH = "%Y-%m-%d", "%Y-%m"


class Span(NamedTuple):
    """A half-open span of time (UTC)."""

    since: datetime
    until: datetime

    @property
    def milliseconds(self) -> tuple[int, int]:
        """Start and end in epoch milliseconds."""
        return int(self.since.timestamp() * 1000), int(self.until.timestamp() * 1000)


def _time(text: str | None, form: str) -> datetime:
    try:
        start = datetime.strptime(text, form).replace(tzinfo=UTC) if text else find_clock(settings_from()).now()
        if start.year == MAXYEAR:
            raise ValueError("the calendar ends before the last month does")
        return start
    except ValueError:
        raise click.BadParameter(f"{text} is not written as {datetime.now(UTC).strftime(form)}") from None


def span_of_day(text: str | None) -> Span:
    """Return the span of a day given by its date; today by default."""
    start = _time(text, _DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    return Span(start, start + timedelta(days=1))


def span_of_month(text: str | None) -> Span:
    """Return the span of a month, such as 2027-01; this month by default."""
    start = _time(text, _MONTH).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Span(start, (start + timedelta(days=32)).replace(day=1))


def _span_of(day: str | None, month: str | None) -> Span:
    if day and month:
        raise click.UsageError("--day and --month cannot be combined")
    return span_of_day(day) if day else span_of_month(month)


_SPAN = (
    click.option("--month", metavar="YYYY-MM", help="Only this month (UTC) [the current one]"),
    click.option("--day", metavar="YYYY-MM-DD", help="Only this day (UTC)"),
)


def _spanned(function: F) -> F:
    return add_options(_SPAN, function)


@click.group()
def books() -> None:
    """Read the books: credits sold, used and owed, and USDC received, by day, month, tool and token."""


@books.command()
@output_options
@click.argument("date", required=False)
def day(date: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Print the books of a day (UTC), such as 2027-01-15; today by default. Exits with 1 if they disagree."""
    _print_books(span_of_day(date), data_dir, as_json)


@books.command()
@output_options
@click.argument("date", metavar="[MONTH]", required=False)
def month(date: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Print the books of a month (UTC), such as 2027-01; this month by default. Exits with 1 if they disagree."""
    _print_books(span_of_month(date), data_dir, as_json)


@books.command()
@output_options
@_spanned
def tool(day: str | None, month: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Print what each tool earned, as CSV, the highest earner first."""
    with explain_errors():
        rows = read_tools(find_ledger(find_data_dir(data_dir)), *_span_of(day, month).milliseconds)
    print_table([row._asdict() for row in rows], as_json)


@books.command()
@output_options
@_spanned
def token(day: str | None, month: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Print what each token bought and used, as CSV, the busiest first. Tokens are named by their fingerprints."""
    with explain_errors():
        rows = read_tokens(find_ledger(find_data_dir(data_dir)), *_span_of(day, month).milliseconds)
    print_table([row._asdict() for row in rows], as_json)


@books.command()
@data_dir_option
@click.option("--chain", is_flag=True, help="The transfers on the chain instead, by way and state")
@_spanned
def export(chain: bool, day: str | None, month: str | None, data_dir: Path | None) -> None:
    """Print every movement of credits as CSV, one line each, in order; with --chain, every transfer on the chain."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_ON_CHAIN if chain else BookedTransfer._fields)
    with explain_errors():
        place, span = find_ledger(find_data_dir(data_dir)), _span_of(day, month).milliseconds
        if chain:
            writer.writerows(map(_show_movement, list_movements(place, *span)))
        else:
            transfers = list_transfers(place, *span)
            writer.writerows((seq, iso_of_ms(at), *rest) for seq, at, *rest in transfers)


_ON_CHAIN = (
    *("at", "block", "transaction", "way", "state", "state_since", "received_usd", "sent_usd", "payer", "payee"),
    "history",
)


def _show_movement(each: BookedMovement) -> tuple[str | int, ...]:
    """Return a transfer on the chain as a line. Its history has every state, with the time at which it was recorded."""
    return (
        *(iso_of_ms(each.at), each.block, f"0x{each.tx_hash.hex()}", each.way, each.state),
        iso_of_ms(each.history[-1].at) if each.history else "",
        *(show_usd(each.received), show_usd(each.sent), checksum_address(each.payer), checksum_address(each.payee)),
        "; ".join(f"{change.state} {iso_of_ms(change.at)}" for change in each.history),
    )


@books.command()
@output_options
@click.option(
    "--chain/--no-chain", default=True, show_default=True, help="Check against the chain too, if it can be reached"
)
@click.option(
    "--owner",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Data directory of the service whose ledger this one follows, to compare receipts with its calls",
)
@click.option(
    "--receipts",
    type=click.File(encoding="utf-8", errors="replace"),
    help="Receipts that callers or logs have, a line each, to find those that the ledger does not know; - is standard"
    " input",
)
def check(chain: bool, owner: Path | None, receipts: TextIO | None, data_dir: Path | None, as_json: bool) -> None:
    """Compare ledger, statements, receipts, books, log and chain to the credit. Exits with 1 if any two disagree."""
    settings = settings_from(data_dir=data_dir)
    with explain_errors():
        place = find_ledger(settings.data_dir)
        checks = anyio.run(_check, settings, place, chain, owner)
        if receipts is not None:
            checks.append(check_held_receipts(place, receipts, read_published_keys(settings)))
    ok = not any(one.differences for one in checks)
    if as_json:
        click.echo(json.dumps({"ok": ok, "checks": [one._asdict() for one in checks]}, indent=2))
    else:
        for one in checks:
            verdict = f"{len(one.differences)} differences" if one.differences else "ok" if one.compared else "nothing"
            click.echo(f"{one.name:12} {one.compared:>10}  {verdict}{'' if one.note is None else f'  ({one.note})'}")
            for line in one.differences:
                click.echo(f"  {line}")
    sys.exit(0 if ok else 1)


async def _check(settings: Settings, path: LedgerPlace, with_chain: bool, owner: Path | None) -> list[BooksCheck]:
    clock, mark, followed = find_clock(settings), read_mark(find_marks(settings, patient=True)), None
    if owner is not None or settings.ledger.url is not None:
        followed = FollowedLedger(settings.ledger.service, None if owner is None else find_ledger_file(owner))
    async with open_place(path) as file:
        keys = read_published_keys(settings)
        checks = await check_books(file, path, mark, int(clock.time() * 1000), followed, keys)
    if not with_chain:
        return checks
    proxies = read_proxies(settings.upstream.proxy_address)
    chain = make_rpc_pool(settings.payments, clock, proxies) if settings.payments.rpc_urls else None
    try:
        return [*checks, await check_chain(path, chain), await check_balances(settings, path)]
    finally:
        if chain is not None:
            await chain.aclose()


books.add_command(chain)
books.add_command(close)
books.add_command(prune)


def _print_books(span: Span, data_dir: Path | None, as_json: bool) -> None:
    with explain_errors():
        figures = read_books(find_ledger(find_data_dir(data_dir)), *span.milliseconds)
    figures = {"from": iso(span.since), "to": iso(span.until), **figures}
    if as_json:
        click.echo(json.dumps(figures, indent=2))
    else:
        _print_lines(figures)
    sys.exit(0 if figures["agrees"] else 1)


def _print_lines(figures: dict[str, Any], indent: str = "") -> None:
    for name, value in figures.items():
        if isinstance(value, dict):
            click.echo(f"{indent}{name}")
            _print_lines(value, indent + "  ")
        elif isinstance(value, list):
            for line in value:
                click.echo(f"{indent}{name}: {line}")
        else:
            click.echo(f"{indent}{name:{28 - len(indent)}} {json.dumps(value) if isinstance(value, bool) else value}")
