"""From flags, environment and file to settings, with readable complaints. Imported by every verb: imports little."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from toolserver.settings import Settings


def settings_from(**flags: Any) -> "Settings":
    """Flags over environment over file. Ends the program with a readable message when a setting is wrong."""
    from pydantic import ValidationError

    from toolserver.settings import Settings

    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)]
        raise click.ClickException("a setting is wrong:\n" + "\n".join(lines)) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def prepared(**flags: Any) -> "Settings":
    """Settings, with logging set up and the data directory made."""
    from toolserver.logs import set_up

    settings = settings_from(**flags)
    set_up(settings.logs.level, settings.logs.format)
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise click.ClickException(f"the data directory {settings.data_dir} cannot be made: {error.strerror}") from None
    return settings
