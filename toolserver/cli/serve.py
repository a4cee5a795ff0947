"""Implement `toolserver serve`, in this process or with several workers."""

from typing import Any

import click

from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.options import listening_options
from toolserver.cli.workers import workers_command
from toolserver.serving.listen import run_async


@click.command()
@listening_options
@click.option("--everything", is_flag=True, help="Add the MCP conformance fixtures (development, loopback only)")
def serve(ready_json: bool, everything: bool, **flags: Any) -> None:
    """Serve the tools with live upstreams."""
    settings = prepare_settings(**flags)
    if settings.workers > 1:
        run_async(settings, workers_command, settings, flags, ready_json=ready_json, everything=everything)
        return
    from toolserver.cli.run_service import serve_command  # a supervisor serves nothing itself, and stays small

    run_async(settings, serve_command, settings, ready_json=ready_json, everything=everything)
