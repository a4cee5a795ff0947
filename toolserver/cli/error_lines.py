"""End a command with one line for a person instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from toolserver.sql.failures import describe_failure, explain, list_causes


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
