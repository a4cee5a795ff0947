"""Implement `toolserver reissue …`: replace a lost token for its only payer, once its holder had time to object."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from toolserver.cli.buyers import Desk, at_desk
from toolserver.cli.options import data_dir_option, json_option
from toolserver.cli.printing import print_facts, print_rows
from toolserver.core.caller import token_hash
from toolserver.money.purchases.buyer_proof import find_payers, find_signer, new_nonce, reissue_text
from toolserver.money.purchases.reissues import (
    ReissueDraft,
    ReissueRefused,
    StoredReissue,
    ensure_reissued_token,
    find_only_payer,
    find_reissued_token,
    forget_reissued_token,
    require_due,
    show_reissue,
)
from toolserver.money.purchases.sql_refunds import SqlReissues, complete_reissue
from toolserver.money.purchases.store import ROOM
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.store import WebhookTables


@click.group()
def reissue() -> None:
    """Replace a lost token: ask, prove, wait 48 hours, complete."""


@reissue.command()
@click.argument("fingerprint")
@data_dir_option
@json_option
def ask(fingerprint: str, data_dir: Path | None, as_json: bool) -> None:
    """Begin a reissue and print the text that the buyer has to sign with the account that paid for the token."""
    print_facts(at_desk(data_dir, lambda desk: _ask(desk, fingerprint)), as_json)


@reissue.command()
@click.argument("id")
@click.option("--signature", required=True, help="Signature of the text (EIP-191) by the buyer's wallet: 0x…")
@data_dir_option
@json_option
def prove(id: str, signature: str, data_dir: Path | None, as_json: bool) -> None:
    """Check the signature. The holder of the token then has 48 hours to object."""
    print_facts(at_desk(data_dir, lambda desk: _prove(desk, id, signature)), as_json)


@reissue.command()
@click.argument("id")
@data_dir_option
@json_option
def complete(id: str, data_dir: Path | None, as_json: bool) -> None:
    """Replace the token and print the new one. The old one is refused from then on.

    If the program ended before it printed the token, run this again to print it.
    """
    print_facts(at_desk(data_dir, lambda desk: _complete(desk, id)), as_json)
    sys.stdout.flush()
    at_desk(data_dir, lambda desk: _forget(desk, id))


@reissue.command()
@click.argument("id")
@data_dir_option
@json_option
def cancel(id: str, data_dir: Path | None, as_json: bool) -> None:
    """Cancel a reissue that has not been completed."""

    async def job(desk: Desk) -> dict[str, Any]:
        return show_reissue(await _reissues(desk).cancel(id))

    print_facts(at_desk(data_dir, job), as_json)


@reissue.command("list")
@data_dir_option
@json_option
def list_reissues(data_dir: Path | None, as_json: bool) -> None:
    """List reissues, oldest first, with their states."""

    async def job(desk: Desk) -> list[dict[str, Any]]:
        return [show_reissue(one) for one in await _reissues(desk).list_reissues()]

    print_rows(at_desk(data_dir, job), as_json, "no reissues")


def _reissues(desk: Desk) -> SqlReissues:
    return SqlReissues(desk.file, desk.clock)


async def _find_payer(desk: Desk, token: str) -> bytes:
    """Return the only account that paid for a token, read from the chain.

    Raises:
            ReissueRefused, ProofMissing, ChainDown.
    """
    payments = await _reissues(desk).find_payments(token)
    async with desk.chain() as chain:
        return find_only_payer(await find_payers(chain, payments))


async def _ask(desk: Desk, fingerprint: str) -> dict[str, Any]:
    host, token = desk.host, await desk.find_hash(fingerprint)
    payer = await _find_payer(desk, token)
    stored = await _reissues(desk).add(ReissueDraft(new_nonce("ri"), token, payer, desk.now()))
    return show_reissue(stored) | {"text": _text(host, stored)}


def _text(host: str, stored: StoredReissue) -> str:
    return reissue_text(host, stored.fingerprint, stored.id, stored.expires_at)


async def _prove(desk: Desk, id: str, signature: str) -> dict[str, Any]:
    reissues = _reissues(desk)
    stored = await reissues.find(id)
    async with desk.chain() as chain:
        await find_signer(chain, _text(desk.host, stored), signature, [stored.payer])
    return show_reissue(await reissues.prove(id))


async def _complete(desk: Desk, id: str) -> dict[str, Any]:
    reissues, place = _reissues(desk), desk.settings.data_dir
    stored = await reissues.find(id)
    if stored.state == "done" and (token := find_reissued_token(place, id)) is not None:
        if token_hash(token).hex().startswith(stored.fingerprint):
            return {"token": token} | show_reissue(stored)
        raise ReissueRefused(f"{id} is complete, and its token has been replaced since")
    require_due(stored, desk.now())
    if await _find_payer(desk, stored.token) != stored.payer:
        raise ReissueRefused("another account has paid for this token since")
    token = ensure_reissued_token(place, id)
    await replace_lost_token(desk.file, id, token_hash(token).hex(), desk.now())
    return {"token": token} | show_reissue(await reissues.find(id))


async def _forget(desk: Desk, id: str) -> None:
    forget_reissued_token(desk.settings.data_dir, id)


async def replace_lost_token(file: GroupCommit, id: str, successor: str, now: int) -> None:
    """Give the account and the webhook subscriptions to the new token, in one transaction.

    `successor` is the SHA-256 (hex) of the new token. Raises ReissueRefused, RevokedToken.
    """
    await file.alone(partial(_replace, id, successor, now), room=ROOM)


def _replace(id: str, successor: str, now: int, db: SqlConnection) -> None:
    WebhookTables(db).move_owner(*complete_reissue(id, successor, now, db))
