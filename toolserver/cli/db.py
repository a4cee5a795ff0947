"""Implement `toolserver db …`: check, back up and restore the ledger's database, and move it to PostgreSQL or back."""

import sys
import time
from collections import Counter
from pathlib import Path

import anyio
import click

from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_data_dir, find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import output_options
from toolserver.cli.printing import print_facts
from toolserver.money.ledger import admin
from toolserver.serving.database_check import check_place
from toolserver.serving.database_move import cancel_move, move_database
from toolserver.serving.database_return import cancel_return, return_database
from toolserver.serving.shared_database import database_terms

EVERY_S = 2.0  # between two reports of progress


@click.group()
def db() -> None:
    """Check the ledger's database, back up and restore its file, and move it to PostgreSQL or back."""


@db.command()
@output_options
@click.option("--to", type=click.Path(path_type=Path), help="File to write; in the data directory by default")
def backup(to: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Copy the database and check the copy: the file and the ledger in it. The service may be running."""
    with explain_errors():
        print_facts(admin.backup(_find_folder_of_file(data_dir), to), as_json, with_unset=True)


@db.command()
@output_options
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(file: Path, data_dir: Path | None, as_json: bool) -> None:
    """Replace the database with a verified backup. Stop the service first. The old file is kept beside the new one."""
    with explain_errors():
        print_facts(admin.restore_backup(_find_folder_of_file(data_dir), file), as_json, with_unset=True)


@db.command("check")
@output_options
def check_database(data_dir: Path | None, as_json: bool) -> None:
    """Read every row of the ledger's file or database and check its rules. Exits with 1 if a rule is broken.

    Two copies of a ledger have the same digests, sums and log root, whichever database engine stores them.
    """
    place = find_ledger(find_data_dir(data_dir))
    with explain_errors():
        verdict = anyio.run(check_place, place)
    print_facts(verdict, as_json, with_unset=True)
    sys.exit(0 if verdict["ok"] else 1)


@db.command()
@output_options
@click.option("--to", metavar="URL", help="postgresql://… of an empty database [database_url]")
@click.option("--to-file", is_flag=True, help="Move the database of database_url to a file in the data directory")
@click.option("--cancel", is_flag=True, help="Keep using what was used before: abandon an incomplete move")
def move(to: str | None, to_file: bool, cancel: bool, data_dir: Path | None, as_json: bool) -> None:
    """Move the ledger's file to PostgreSQL, or back, and compare every row. Stop the service first; rerun to resume.

    Once a move has begun, the ledger is no longer served from where it was. A file that was moved is kept under another
    name. With --to-file, unset database_url afterwards.
    """
    settings = settings_from(data_dir=data_dir, database_url=to)
    with explain_errors():
        if to_file:
            if to is not None or settings.database_url is None:
                raise click.UsageError("--to-file moves the database of the setting database_url, and takes no --to")
            terms = database_terms(settings, patient=True)
            facts = (
                cancel_return(settings.data_dir, terms)
                if cancel
                else return_database(settings.data_dir, terms, RowProgress())
            )
            print_facts(facts, as_json, with_unset=True)
            return
        if cancel:
            print_facts(cancel_move(settings.data_dir), as_json, with_unset=True)
            return
        if settings.database_url is None:
            raise click.UsageError("--to is missing, and database_url is not set")
        moved = move_database(settings.data_dir, database_terms(settings, patient=True), RowProgress())
    print_facts(moved, as_json, with_unset=True)


def _find_folder_of_file(data_dir: Path | None) -> Path:
    """Return the data directory. If the ledger is in a database instead, the program ends with a message."""
    settings = settings_from(data_dir=data_dir)
    if settings.database_url is not None:
        raise click.ClickException("the ledger is in the database of database_url: back it up with pg_dump")
    return settings.data_dir


class RowProgress:
    """Counts rows by what is done with them, and prints the counts from time to time."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s, self._rows = every_s, Counter[str]()
        self._reported_at = self._began = time.monotonic()

    def __call__(self, done: str, rows: int) -> None:
        """Count rows, and print the count if nothing was printed for a while."""
        self._rows[done] += rows
        now = time.monotonic()
        if now - self._reported_at >= self._every_s:
            self._reported_at = now
            counts = ", ".join(f"{count:,} rows {what}" for what, count in self._rows.items())
            print(f"{counts} after {now - self._began:.0f} s", file=sys.stderr, flush=True)
