"""Implement `toolserver serve`, in this process or with several workers."""

import importlib
import sys
from typing import Any

import click

from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.options import listening_options
from toolserver.cli.workers import workers_command
from toolserver.serving.listen import refuse_public, run_async

FIXTURES = "tests.conformance.server"  # part of a checkout, not of the installed package


@click.command()
@listening_options
@click.option("--everything", is_flag=True, help="Deprecated: use `python -m tests.conformance serve` in a checkout")
def serve(ready_json: bool, everything: bool, **flags: Any) -> None:
    """Serve the tools with live upstreams."""
    settings = prepare_settings(**flags)
    extension = None
    if everything:
        refuse_public(settings, "--everything")
        extension = load_fixtures()
    elif settings.workers > 1:
        run_async(settings, workers_command, settings, flags, ready_json=ready_json)
        return
    from toolserver.cli.run_service import serve_command  # a supervisor serves nothing itself, and stays small

    run_async(settings, serve_command, settings, ready_json=ready_json, extension=extension)


def load_fixtures(module: str = FIXTURES) -> Any:
    """Return the MCP conformance fixtures of a checkout. Ends the program with the way to them if there are none."""
    try:
        server = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name not in ("tests", "tests.conformance", module):
            raise
        raise click.ClickException(
            "the MCP conformance fixtures are not part of the installed package. Clone the repository and run"
            " `python -m tests.conformance serve` in it. To test your own tools, run the suite on the address"
            " of `toolserver serve`."
        ) from None
    print(
        "Warning: --everything is deprecated and will be removed; run `python -m tests.conformance serve` instead.",
        file=sys.stderr,
    )
    return server.EXTENSION
