"""Implement `toolserver keys …`, for operators, and `toolserver receipts …`, with which anyone verifies a receipt."""

import hashlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.load_settings import data_dir_option, find_data_dir, settings_from

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)


@click.group()
def keys() -> None:
    """Manage the keys that sign receipts. A running service picks up changes within seconds."""


@keys.command()
@data_dir_option
@click.option(
    "--after-loss", is_flag=True, help="Start a new key although that of issued receipts is lost. It is valid from now"
)
def new(data_dir: Path | None, after_loss: bool) -> None:
    """Create the key files if there are none yet. Starting the service does the same.

    This also creates the ledger: the service takes keys without a ledger as a sign that the ledger was lost.
    """
    from toolserver.money.ledger.admin import begin
    from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, ReceiptKeysLost, ensure_keys, make_key, write
    from toolserver.serving.receipts import refuse_lost_keys

    settings = settings_from(data_dir=data_dir)
    folder = settings.data_dir
    try:
        refuse_lost_keys(settings)
    except ReceiptKeysLost as lost:
        if not after_loss:
            raise click.ClickException(str(lost)) from None
        write(folder / RECEIPT_KEYS, [make_key(int(time.time()))], replacing=False)
        click.echo("a new key signs from now on; no published key verifies receipts from before", err=True)
    if settings.database_url is None and not (folder / RECEIPT_KEYS).exists():
        anyio.run(begin, folder)
    for name in (RECEIPT_KEYS, LOG_KEYS):
        ensure_keys(folder / name)
    _list(folder)


@keys.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def make(folder: Path) -> None:
    """Create the keys of a service with several instances in FOLDER, if there are none yet.

    Mount FOLDER as a secret in every instance, and set `scaling.keys_dir` to its path.
    """
    from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, KeyFileBroken, ensure_keys
    from toolserver.webhooks.secret_box import KEY_FILE, SecretsUnreadable, ensure_key

    try:
        for name in (RECEIPT_KEYS, LOG_KEYS):
            ensure_keys(folder / Path(name).name)
        ensure_key(folder / Path(KEY_FILE).name)
    except (KeyFileBroken, SecretsUnreadable, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{folder} has {', '.join(sorted(path.name for path in folder.iterdir()))}")


@keys.command()
@data_dir_option
@click.option("--at-once", is_flag=True, help="Sign with the new key immediately, before verifiers can have fetched it")
def rotate(data_dir: Path | None, at_once: bool) -> None:
    """Publish a new key, which takes over in 24 hours. Run this once a year."""
    from toolserver.money.receipts.keys import PUBLISH_AHEAD_S, NoSuchKey, rotate_keys

    try:
        _change(data_dir, lambda found: rotate_keys(found, time.time(), after_s=0 if at_once else PUBLISH_AHEAD_S))
    except NoSuchKey as error:
        raise click.ClickException(f"{error}; --at-once replaces it") from None


@keys.command(context_settings={"ignore_unknown_options": True})  # a key id may begin with a hyphen
@data_dir_option
@click.argument("kid")
def revoke(data_dir: Path | None, kid: str) -> None:
    """Revoke the key KID because someone else may have it. Another key takes over immediately."""
    from toolserver.money.receipts.keys import NoSuchKey, revoke_key

    try:
        _change(data_dir, lambda found: revoke_key(found, kid, time.time()))
    except NoSuchKey as error:
        raise click.ClickException(str(error)) from None


@keys.command()
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print the public key set as it is published")
def show(data_dir: Path | None, as_json: bool) -> None:
    """List the keys, without their private halves."""
    _list(find_data_dir(data_dir), as_json=as_json)


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
    from toolserver.money.receipts.keys import parse_keys
    from toolserver.money.receipts.verify import verdict

    try:
        known = {key.kid: key for key in parse_keys(json.loads(_bytes(key_file)))}
    except ValueError as error:
        raise click.ClickException(f"{key_file} is not a key set: {error}") from None
    body_sha256 = None if body_file is None else hashlib.sha256(_bytes(body_file)).hexdigest()
    found = verdict(_receipt(_bytes(file)), known.get, body_sha256=body_sha256)
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    sys.exit(0 if found["valid"] else 1)


def _receipt(given: bytes) -> Any:
    """Read a receipt: an object, alone or as the service returns it, or else the text of a JWS."""
    text = given.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and "receipt" in value:
        value = value["receipt"]
    return value if isinstance(value, dict | str) else text


def _bytes(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _change(data_dir: Path | None, change: Any) -> None:
    from toolserver.money.receipts.keys import RECEIPT_KEYS, KeyFileBroken, ReceiptKeysLost, ensure_keys, write
    from toolserver.serving.receipts import refuse_lost_keys

    settings = settings_from(data_dir=data_dir)
    folder = settings.data_dir
    try:
        refuse_lost_keys(settings)
        write(folder / RECEIPT_KEYS, change(ensure_keys(folder / RECEIPT_KEYS)))
    except (KeyFileBroken, ReceiptKeysLost, OSError) as error:
        raise click.ClickException(str(error)) from None
    _list(folder)


def _list(folder: Path, *, as_json: bool = False) -> None:
    from toolserver.money.receipts.keys import RECEIPT_KEYS, KeyFileBroken, read_keys

    try:
        found = read_keys(folder / RECEIPT_KEYS)
    except (KeyFileBroken, OSError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({"keys": [key.jwk() for key in found]}, indent=2))
        return
    for key in found:
        click.echo(f"{key.kid}  {_state(key, time.time())}")


def _state(key: Any, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {_day(key.revoked_at)}"
    if key.nbf > now:
        return f"takes over {_day(key.nbf)}"
    if key.exp is not None and key.exp <= now:
        return f"retired {_day(key.exp)}"
    return "in use" if key.exp is None else f"in use until {_day(key.exp)}"


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


@receipts.command("begin-log")
@data_dir_option
@click.confirmation_option(prompt="The log will continue under another name. Did you restore a backup?")
def begin_log(data_dir: Path | None) -> None:
    """Start another log after a restored backup made the old one shorter. Stop the service first.

    The new log has its own name (its address and a number) and begins with the existing leaves. The last checkpoint
    of the old log remains valid for the old log, which is never signed again.
    """
    from toolserver.cli.load_settings import explain_errors, find_ledger, settings_from
    from toolserver.money.receipts.sqlite_log import read_log_state
    from toolserver.money.receipts.transparency_log import begin_log, read_mark
    from toolserver.serving.shared_database import find_marks

    folder = find_data_dir(data_dir)
    with explain_errors():
        state = read_log_state(find_ledger(folder))
        marks = find_marks(settings_from(data_dir=folder), patient=True)
        kept = read_mark(marks)
        if kept is None or state.size >= kept.size:
            raise click.ClickException("the log is not shorter than its last signed checkpoint: no new log is needed")
        part = begin_log(marks, state)
    click.echo(f"log {part} begins with {state.size} leaves; the previous log ended with {kept.size}")
