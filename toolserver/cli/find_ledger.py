"""Find the data directory and the ledger that a command works on."""

from pathlib import Path

import click

from toolserver.cli.error_lines import explain_errors
from toolserver.cli.load_settings import settings_from
from toolserver.money.ledger.store import FILE
from toolserver.serving.shared_database import locate_ledger
from toolserver.sql.ledger_place import LedgerPlace
from toolserver.sql.move_mark import require_not_moved
from toolserver.sql.schema_version import require_current


def find_data_dir(data_dir: Path | None) -> Path:
    """Return the data directory: the one that the option names, or else the one in the settings."""
    return data_dir or settings_from().data_dir


def find_ledger(folder: Path) -> LedgerPlace:
    """Return where the ledger is: the database in the settings, if they name one, else a file in the data directory.

    If there is no ledger, or its tables are those of an older version that a command must not
    change, the program ends with a message.
    """
    settings = settings_from(data_dir=folder)
    if settings.database_url is None:
        find_ledger_file(folder)
    place = locate_ledger(settings, patient=True)
    if settings.storage.migrate == "manual":
        with explain_errors():
            require_current(place)
    return place


def find_ledger_file(folder: Path) -> Path:
    """Return the ledger's file in a data directory. If there is none, the program ends with a message."""
    with explain_errors():
        require_not_moved(folder)
    if not (folder / FILE).exists():
        raise click.ClickException(f"there is no ledger in {folder}")
    return folder / FILE
