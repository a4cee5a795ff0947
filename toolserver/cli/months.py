"""Close and prune months (`toolserver books close`, `prune`), and verify archives (`toolserver ledger check`)."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import click

from toolserver.cli.command_clock import find_clock
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import data_dir_option, json_option
from toolserver.clock import Clock
from toolserver.money.books.month_proof import prove_months
from toolserver.money.books.months import MonthCloser, MonthPruner
from toolserver.money.receipts.keys import Key, KeyRing, read_keys
from toolserver.money.receipts.month_statement import MonthSpan
from toolserver.serving.receipts import find_receipt_keys, refuse_lost_keys
from toolserver.settings import Settings

_FOLDER = click.Path(path_type=Path, file_okay=False)
archives_option = click.option("--to", "folder", type=_FOLDER, help="Folder of archives [storage.archive_dir]")


@click.command()
@data_dir_option
@json_option
@archives_option
@click.argument("month", required=False)
def close(month: str | None, folder: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Close every month (UTC) up to MONTH, such as 2027-01; by default, all that ended at least a day ago.

    A closed month is written to an archive, which is read back, verified and signed. The service may be running.
    """
    settings = settings_from(data_dir=data_dir)
    clock = find_clock(settings)
    with explain_errors():
        closer = make_closer(settings, folder, clock)
        last = None if month is None else read_month(month)
        closed = anyio.run(closer.close_until, last, int(clock.time() * 1000))
    _print([facts.describe() for facts in closed], as_json)


@click.command()
@data_dir_option
@json_option
@click.option("--from", "folder", type=_FOLDER, help="Folder of archives [storage.archive_dir]")
@click.option("--keep-months", type=click.IntRange(3), help="Whole months to keep [storage.keep_months]")
def prune(folder: Path | None, keep_months: int | None, data_dir: Path | None, as_json: bool) -> None:
    """Remove the calls of closed months from the database after verifying their archives.

    Calls younger than 90 days are kept, as are tokens, balances, purchases and the log. The service may be running.
    """
    settings = settings_from(data_dir=data_dir)
    count = keep_months or settings.storage.keep_months
    if count is None:
        raise click.UsageError("--keep-months is missing, and storage.keep_months is not set")
    clock = find_clock(settings)
    with explain_errors():
        closer = make_closer(settings, folder, clock)
        pruned = MonthPruner(closer.place, closer.folder, closer.ring).prune(count, int(clock.time() * 1000))
    if as_json:
        click.echo(json.dumps(pruned, indent=2))
        return
    for month in pruned["released"]:
        click.echo(f"{month}  its archive contains all of its rows")
    click.echo(f"removed  {', '.join(f'{rows} {name}' for name, rows in pruned['rows'].items())}")


def make_closer(settings: Settings, folder: Path | None, clock: Clock) -> MonthCloser:
    """Return a closer of the ledger's months that writes to a folder, by default the one in the settings."""
    place = find_ledger(settings.data_dir)
    refuse_lost_keys(settings)
    ring = KeyRing(find_receipt_keys(settings), clock)
    service = urlsplit(settings.base_url or "").hostname or "localhost"
    return MonthCloser(place, folder or find_archives(settings), ring, service)


def find_archives(settings: Settings) -> Path:
    """Return the folder of archives: the one in the settings, or one in the data directory."""
    return settings.storage.archive_dir or settings.data_dir / "archive"


def read_published_keys(settings: Settings) -> Sequence[Key]:
    """Return the receipt keys in the data directory, or where the settings say; none if there is no file."""
    path = find_receipt_keys(settings)
    return read_keys(path) if path.exists() else ()


def read_month(text: str) -> MonthSpan:
    """Parse a month such as 2027-01. Any other text ends the program with a message."""
    try:
        return MonthSpan.named(text)
    except ValueError:
        raise click.BadParameter(f"{text} is not written as 2027-01") from None


def check_archives(files: Sequence[Path], key_file: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Verify closed months from their archives alone, and that each follows the one before. Ends the program."""
    with explain_errors():
        keys = read_keys(key_file) if key_file else read_published_keys(settings_from(data_dir=data_dir))
        by_id = {key.kid: key for key in keys}
        months = [facts.describe() for facts in prove_months(files, by_id.get)]
    _print(months, as_json)
    sys.exit(0 if all(month["ok"] for month in months) else 1)


def _print(months: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(months, indent=2))
        return
    for month in months:
        rows, credits = sum(month["rows"].values()), month["credits"]
        verdict = "proved" if month["ok"] else f"{len(month['problems'])} problems"
        click.echo(f"{month['month']}  {rows} rows  used {credits['used']}  owed {credits['owed']}  {verdict}")
        for line in month["problems"]:
            click.echo(f"  {line}")
    if not months:
        click.echo("no month needs closing")
