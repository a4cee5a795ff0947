"""Implement `toolserver receipts …`: anyone verifies a receipt; an operator begins another log."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import click

from toolserver.cli.error_lines import explain_errors
from toolserver.cli.find_ledger import find_data_dir, find_ledger
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import data_dir_option
from toolserver.money.receipts import transparency_log
from toolserver.money.receipts.keys import parse_keys
from toolserver.money.receipts.sql_store import read_log_state
from toolserver.money.receipts.verify import verdict
from toolserver.serving.shared_database import find_marks

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.group()
def receipts() -> None:
    """Verify receipts of paid calls."""


@receipts.command()
@click.argument("file", type=_FILE)
@click.option("--keys", "key_file", type=_FILE, required=True, help="The issuer's published key set")
@click.option("--body", "body_file", type=_FILE, help="The response body, to compare with the signed hash")
def verify(file: Path, key_file: Path, body_file: Path | None) -> None:
    """Verify a receipt offline: a JWS, or the object that GET /api/receipt/<id> returns. `-` is standard input.

    Prints the verdict as JSON. Exits with 0 if the receipt is valid, with 1 if it is not.
    """
    try:
        keys = {key.kid: key for key in parse_keys(json.loads(_read(key_file)))}
    except ValueError as error:
        raise click.ClickException(f"{key_file} is not a key set: {error}") from None
    body_sha256 = None if body_file is None else hashlib.sha256(_read(body_file)).hexdigest()
    judgement = verdict(_parse_receipt(_read(file)), keys.get, body_sha256=body_sha256)
    click.echo(json.dumps(judgement, indent=2, ensure_ascii=False))
    sys.exit(0 if judgement["valid"] else 1)


@receipts.command("begin-log")
@data_dir_option
@click.confirmation_option(prompt="The log will continue under another name. Did you restore a backup?")
def begin_log(data_dir: Path | None) -> None:
    """Start another log after a restored backup made the old one shorter. Stop the service first.

    The new log has its own name (its address and a number) and begins with the existing leaves. The last checkpoint
    of the old log remains valid for the old log, which is never signed again.
    """
    folder = find_data_dir(data_dir)
    with explain_errors():
        state = read_log_state(find_ledger(folder))
        marks = find_marks(settings_from(data_dir=folder), patient=True)
        signed = transparency_log.read_mark(marks)
        if signed is None or state.size >= signed.size:
            raise click.ClickException("the log is not shorter than its last signed checkpoint: no new log is needed")
        part = transparency_log.begin_log(marks, state)
    click.echo(f"log {part} begins with {state.size} leaves; the previous log ended with {signed.size}")


def _parse_receipt(content: bytes) -> Any:
    """Parse a receipt: an object, alone or as the service returns it, or else the text of a JWS."""
    text = content.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and "receipt" in value:
        value = value["receipt"]
    return value if isinstance(value, dict | str) else text


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
