"""Implement `toolserver keys …`: create, rotate, revoke and list the keys that sign receipts."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from toolserver.calls.visitor_tokens import KEY_BYTES as VISITOR_KEY_BYTES
from toolserver.calls.visitor_tokens import KEY_FILE as VISITOR_KEY_FILE
from toolserver.cli.command_clock import find_clock
from toolserver.cli.find_ledger import find_data_dir
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import data_dir_option
from toolserver.core.private_file import ensure_random_file
from toolserver.money.ledger.admin import begin
from toolserver.money.receipts.keys import (
    LOG_KEYS,
    PUBLISH_AHEAD_S,
    RECEIPT_KEYS,
    Key,
    KeyFileBroken,
    LogKeysLost,
    NoSuchKey,
    ReceiptKeysLost,
    ensure_keys,
    make_key,
    read_keys,
    revoke_key,
    rotate_keys,
    write,
)
from toolserver.serving.receipts import refuse_lost_keys
from toolserver.sql.errors import RowsRewritten
from toolserver.sql.row_seal import KEY as ROW_KEY
from toolserver.sql.row_seal import read_key
from toolserver.webhooks.signing import KEY_FILE, SecretsUnreadable, ensure_key


@click.group()
def keys() -> None:
    """Manage the keys that sign receipts. A running service picks up changes within seconds."""


@keys.command()
@data_dir_option
@click.option(
    "--after-loss",
    is_flag=True,
    help="Start a new key although one that signed receipts or the log is lost",
)
def new(data_dir: Path | None, after_loss: bool) -> None:
    """Create the key files if there are none yet. Starting the service does the same.

    This also creates the ledger: the service takes keys without a ledger as a sign that the ledger was lost.
    """
    settings = settings_from(data_dir=data_dir)
    folder = settings.data_dir
    try:
        refuse_lost_keys(settings)
    except (ReceiptKeysLost, LogKeysLost) as lost:
        if not after_loss:
            raise click.ClickException(str(lost)) from None
        if isinstance(lost, ReceiptKeysLost):
            write(folder / RECEIPT_KEYS, [make_key(int(_now()))], replacing=False)
            click.echo("a new key signs from now on; no published key verifies receipts from before", err=True)
        if not (folder / LOG_KEYS).exists():
            click.echo("a new key signs the log from now on; auditors must store its verifier", err=True)
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
    try:
        for name in (RECEIPT_KEYS, LOG_KEYS):
            ensure_keys(folder / Path(name).name)
        ensure_key(folder / Path(KEY_FILE).name)
        ensure_random_file(folder / Path(VISITOR_KEY_FILE).name, VISITOR_KEY_BYTES)
        read_key(folder / Path(ROW_KEY).name)
    except (KeyFileBroken, SecretsUnreadable, RowsRewritten, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{folder} has {', '.join(sorted(path.name for path in folder.iterdir()))}")


@keys.command()
@data_dir_option
@click.option("--at-once", is_flag=True, help="Sign with the new key immediately, before verifiers can have fetched it")
def rotate(data_dir: Path | None, at_once: bool) -> None:
    """Publish a new key, which takes over in 24 hours. Run this once a year."""
    try:
        after_s = 0 if at_once else PUBLISH_AHEAD_S
        _change(data_dir, lambda present: rotate_keys(present, _now(), after_s=after_s))
    except NoSuchKey as error:
        raise click.ClickException(f"{error}; --at-once replaces it") from None


@keys.command(context_settings={"ignore_unknown_options": True})  # a key id may begin with a hyphen
@data_dir_option
@click.argument("kid")
def revoke(data_dir: Path | None, kid: str) -> None:
    """Revoke the key KID because someone else may have it. Another key takes over immediately."""
    try:
        _change(data_dir, lambda present: revoke_key(present, kid, _now()))
    except NoSuchKey as error:
        raise click.ClickException(str(error)) from None


@keys.command()
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print the public key set as it is published")
def show(data_dir: Path | None, as_json: bool) -> None:
    """List the keys, without their private halves."""
    _list(find_data_dir(data_dir), as_json=as_json)


def _now() -> float:
    return find_clock(settings_from()).time()


def _change(data_dir: Path | None, change: Callable[[Sequence[Key]], Sequence[Key]]) -> None:
    settings = settings_from(data_dir=data_dir)
    folder = settings.data_dir
    try:
        refuse_lost_keys(settings)
        write(folder / RECEIPT_KEYS, change(ensure_keys(folder / RECEIPT_KEYS)))
    except (KeyFileBroken, ReceiptKeysLost, LogKeysLost, OSError) as error:
        raise click.ClickException(str(error)) from None
    _list(folder)


def _list(folder: Path, *, as_json: bool = False) -> None:
    try:
        published = read_keys(folder / RECEIPT_KEYS)
    except (KeyFileBroken, OSError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({"keys": [key.jwk() for key in published]}, indent=2))
        return
    for key in published:
        click.echo(f"{key.kid}  {_state(key, _now())}")


def _state(key: Key, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {_day(key.revoked_at)}"
    if key.nbf > now:
        return f"takes over {_day(key.nbf)}"
    if key.exp is not None and key.exp <= now:
        return f"retired {_day(key.exp)}"
    return "in use" if key.exp is None else f"in use until {_day(key.exp)}"


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
