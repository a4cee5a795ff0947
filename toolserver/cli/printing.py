"""Print what a command has read: an object or a list of objects, as text or as one JSON document."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click


def print_facts(facts: Mapping[str, Any], as_json: bool, *, with_unset: bool = False) -> None:
    """Print an object as JSON, or one line for each member that is set, or for every member."""
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        if value is not None or with_unset:
            click.echo(f"{name:12} {json.dumps(value) if isinstance(value, bool | list | dict | None) else value}")


def print_rows(rows: Iterable[Mapping[str, Any]], as_json: bool, nothing: str | None = None) -> None:
    """Print objects as JSON, or one line each. `nothing` is the line that stands for an empty list."""
    rows = list(rows)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo("  ".join(str(value) for value in row.values() if value is not None))
    if not rows and nothing is not None:
        click.echo(nothing)


def print_table(rows: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """Print objects as JSON, or as CSV with a line of names."""
    rows = list(rows)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
