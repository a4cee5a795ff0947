"""Options that several verbs share."""

import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

data_dir_option = click.option("--data-dir", type=click.Path(path_type=Path), help="Directory for keys and databases")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Maximum number of rows to list"
)
server_option = click.option("--server", metavar="URL", help="Call the service at this address instead of this machine")
TOOLSETS = click.Choice(["core", "all"])

style_option = click.option(
    "--json/--text",
    "as_json",
    default=None,
    help="Print JSON as the service sends it, refusals included, or plain lines. By default plain lines on a terminal, "
    "else JSON",
)
Style = Literal["json", "indented", "lines"]
"""How an answer is printed: as the service sends it, as indented JSON, or as plain lines."""

_LISTENING = (
    click.option("--host", help="Address to listen on [127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free port [8080]"),
    click.option("--server", type=click.Choice(["hypercorn", "uvicorn"]), help="HTTP server [hypercorn]"),
    click.option(
        "--workers", type=click.IntRange(1), help="Worker processes; more than one needs database_url and redis_url [1]"
    ),
    data_dir_option,
    click.option("--ready-json", is_flag=True, help="Print one JSON line on stdout once calls are accepted"),
)


def choose_style(as_json: bool | None) -> Style:
    """Return how to print: as the user says with `style_option`, else plain lines on a terminal, JSON elsewhere."""
    if as_json is None:
        return "lines" if sys.stdout.isatty() else "indented"
    return "json" if as_json else "lines"


def add_options(options: tuple[Callable[[F], F], ...], function: F) -> F:
    """Add options to a command, so that its help lists them in this order."""
    return reduce(lambda command, option: option(command), reversed(options), function)


def listening_options(function: F) -> F:
    """Add the options that `serve` and `demo` share."""
    return add_options(_LISTENING, function)


def output_options(function: F) -> F:
    """Add the options of a command that reads a data directory and prints text or JSON."""
    return data_dir_option(json_option(function))
