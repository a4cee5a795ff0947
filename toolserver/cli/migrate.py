"""Implement `toolserver migrate`: bring the tables of the ledger up to date, or say what is missing."""

import sys
from pathlib import Path

import click

from toolserver.cli.error_lines import explain_errors
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import output_options
from toolserver.cli.printing import print_facts
from toolserver.serving.money import refuse_lost_ledger
from toolserver.serving.shared_database import locate_ledger
from toolserver.sql.move_mark import require_not_moved
from toolserver.sql.schema_version import migrate_place, read_version

PENDING = 3  # exit code


@click.command()
@output_options
@click.option("--check", is_flag=True, help="Change nothing, and exit with 3 if a migration is missing")
def migrate(check: bool, data_dir: Path | None, as_json: bool) -> None:
    """Bring the tables of the ledger up to date with this version of the software.

    Instances of the version before may run on a database meanwhile, and write to it. A file must not be in use.
    If it is interrupted, run it again. Exits with 0 if the tables are up to date, with 1 after an error, and
    with 3 if --check finds a migration missing.
    """
    settings = settings_from(data_dir=data_dir)
    with explain_errors():
        if settings.database_url is None:
            require_not_moved(settings.data_dir)
            refuse_lost_ledger(settings.data_dir)
        place = locate_ledger(settings, patient=True)
        before = read_version(place)
        if before.pending and not check:
            migrate_place(place)
    facts = {"before": before.version, "version": before.version if check else before.known, "known": before.known}
    print_facts({**facts, "missing" if check else "applied": list(before.pending)}, as_json)
    sys.exit(PENDING if check and before.pending else 0)
