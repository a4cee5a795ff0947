"""Load settings from flags, environment and file, and find the data directory. Every command imports this module.

It therefore imports little.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolserver.sql.failures import DATA_DIR, describe_disk_error, describe_failure, explain, list_causes

if TYPE_CHECKING:
    from toolserver.settings import Settings
    from toolserver.sql.ledger_place import LedgerPlace

log = logging.getLogger(__name__)

data_dir_option = click.option("--data-dir", type=click.Path(path_type=Path), help="Directory for keys and databases")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Maximum number of rows to list"
)


def settings_from(**flags: Any) -> "Settings":
    """Read the settings: flags override the environment, which overrides the file. None means a flag was not given.

    An invalid setting ends the program with a message that quotes no value, because a value may be a secret.
    """
    import tomllib

    from pydantic import ValidationError

    from toolserver.cli.setting_errors import describe_setting_errors, describe_unknown_variable
    from toolserver.settings import FILE, Settings, UnknownVariable

    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        lines = [f"  {line}" for line in describe_setting_errors(error.errors(include_input=False))]
        raise click.ClickException("invalid settings:\n" + "\n".join(lines)) from None
    except tomllib.TOMLDecodeError as error:
        raise click.ClickException(f"{FILE} is not TOML: {error}") from None
    except UnknownVariable as error:
        raise click.ClickException(describe_unknown_variable(error.name)) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def prepare_settings(**flags: Any) -> "Settings":
    """Read the settings, set up logging and create the data directory."""
    from toolserver.core.logging import set_up

    settings = settings_from(**flags)
    set_up(settings.logs.level, settings.logs.format)
    make_data_dir(settings.data_dir)
    return settings


def make_data_dir(folder: Path) -> None:
    """Create the data directory if it does not exist. If that fails, the program ends with a message."""
    try:
        first = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = describe_disk_error(error, folder, DATA_DIR)
        raise click.ClickException(f"the data directory cannot be created: {why}") from None
    if first:
        log.info("first run: keys and databases will be stored in a new folder", extra={"folder": str(folder)})


def find_data_dir(given: Path | None) -> Path:
    """Return the data directory: the one given by the flag, or else the one in the settings."""
    return given or settings_from().data_dir


def find_ledger(folder: Path) -> "LedgerPlace":
    """Return where the ledger is: the database in the settings, if they name one, else a file in the data directory.

    If there is no ledger, the program ends with a message.
    """
    from toolserver.serving.shared_database import database_terms

    settings = settings_from(data_dir=folder)
    return find_ledger_file(folder) if settings.database_url is None else database_terms(settings, patient=True)


def find_ledger_file(folder: Path) -> Path:
    """Return the ledger's file in a data directory. If there is none, the program ends with a message."""
    from toolserver.money.ledger.sqlite import FILE
    from toolserver.sql.move_mark import require_not_moved

    with explain_errors():
        require_not_moved(folder)
    if not (folder / FILE).exists():
        raise click.ClickException(f"there is no ledger in {folder}")
    return folder / FILE


@contextmanager
def explain_errors() -> Iterator[None]:
    """End the program with the error's own message when a file, the database or the chain cannot be read."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        if any(describe_failure(each) is None for each in list_causes(error)):
            raise
        raise click.ClickException(explain(error)) from None


@contextmanager
def end_in_one_line() -> Iterator[None]:
    """Raise ClickException, with one line for a person, for any error that would end the program with a traceback."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError, EOFError):
        raise
    except (Exception, BaseExceptionGroup) as error:
        for cause in list_causes(error):  # a signal, an exit, or a sentence of a command, within a task group
            if isinstance(cause, KeyboardInterrupt | SystemExit | click.ClickException):
                raise cause from None
        raise click.ClickException(explain(error)) from None
