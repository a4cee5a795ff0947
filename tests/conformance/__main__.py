"""Serve the tools and the fixtures of the MCP conformance suite: `python -m tests.conformance serve`."""

from typing import Any

import click

from tests.conformance.server import EXTENSION
from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.options import listening_options
from toolserver.cli.run_service import serve_command
from toolserver.serving.listen import refuse_public, run_async


@click.group()
def main() -> None:
    """Serve what the MCP conformance suite requires."""


@main.command()
@listening_options
def serve(ready_json: bool, **flags: Any) -> None:
    """Serve the tools with live upstreams, and the fixtures."""
    settings = prepare_settings(**flags)
    refuse_public(settings, "the server of the conformance fixtures")
    run_async(settings, serve_command, settings, ready_json=ready_json, extension=EXTENSION)


if __name__ == "__main__":
    main(prog_name="python -m tests.conformance")
