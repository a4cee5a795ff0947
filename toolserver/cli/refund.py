"""Implement `toolserver refund …`: pay unspent credits back to an address that the buyer proved, step by step."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from eth_keys.datatypes import PrivateKey

from toolserver.cli.buyers import Desk, at_desk
from toolserver.cli.documents import document_argument, find_rpc, key_options, load_document, read_key, read_signature
from toolserver.cli.error_lines import explain_errors
from toolserver.cli.options import data_dir_option, json_option
from toolserver.cli.printing import print_facts, print_rows
from toolserver.core.outbound import read_proxies
from toolserver.money.purchases.buyer_proof import find_payers, find_signer, new_nonce, refund_text
from toolserver.money.purchases.chain.ethereum import address_from, checksum_address, tx_hash_of
from toolserver.money.purchases.chain.relay import open_relay
from toolserver.money.purchases.matching import Receipt, is_authorized_transfer
from toolserver.money.purchases.offline_key import read_private_key
from toolserver.money.purchases.refunds import RefundDraft, RefundRefused, StoredRefund, nonce_of, show_refund
from toolserver.money.purchases.sql_refunds import SqlRefunds
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.purchases.transfer_authorization import VALID_S, Authorization
from toolserver.money.purchases.units import CHAIN_ID, USDC


@click.group()
def refund() -> None:
    """Refund unspent credits: ask, book, plan, sign offline (`sweep sign`), submit."""


@refund.command()
@click.argument("fingerprint")
@click.argument("credits", type=click.IntRange(1))
@click.option("--to", required=True, metavar="ADDRESS", help="Address where the buyer wants the money")
@click.option("--reason", required=True, help="Why; shown in the books and in the buyer's statement")
@data_dir_option
@json_option
def ask(fingerprint: str, credits: int, to: str, reason: str, data_dir: Path | None, as_json: bool) -> None:
    """Begin a refund and print the text to sign, either with an account that paid or with ADDRESS."""
    print_facts(at_desk(data_dir, lambda desk: _ask(desk, fingerprint, credits, to, reason)), as_json)


@refund.command()
@click.argument("id")
@click.option("--signature", required=True, help="Signature of the text (EIP-191) by the buyer's wallet: 0x…")
@click.option("--from", "payer", required=True, metavar="ADDRESS", help="Your account that pays")
@click.option("--token", "shown", is_flag=True, help="Read the token itself from standard input, as the buyer's proof")
@data_dir_option
@json_option
def book(id: str, signature: str, payer: str, shown: bool, data_dir: Path | None, as_json: bool) -> None:
    """Check the proof and deduct the credits from the token, once.

    The signature must come from an account that paid for the token. If that account cannot sign (an exchange), it may
    come from the address that receives the money, and the token itself must be shown with --token.
    """
    token = sys.stdin.readline().strip() if shown else None
    print_facts(at_desk(data_dir, lambda desk: _book(desk, id, signature, payer, token)), as_json)


@refund.command()
@click.argument("id")
@data_dir_option
@json_option
def cancel(id: str, data_dir: Path | None, as_json: bool) -> None:
    """Cancel a refund that has not been planned for signing yet. Deducted credits are returned."""

    async def job(desk: Desk) -> dict[str, Any]:
        return show_refund(await SqlRefunds(desk.file).cancel(id, desk.now()))

    print_facts(at_desk(data_dir, job), as_json)


@refund.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only refunds that are still open")
@data_dir_option
@json_option
def list_refunds(only_open: bool, data_dir: Path | None, as_json: bool) -> None:
    """List refunds, oldest first, with their states."""

    async def job(desk: Desk) -> list[dict[str, Any]]:
        ended = () if only_open else ("paid", "cancelled")
        refunds = await SqlRefunds(desk.file).list_refunds(("asked", "booked", "sent", *ended))
        return [show_refund(one) for one in refunds]

    print_rows(at_desk(data_dir, job), as_json, "no refunds")


@refund.command()
@data_dir_option
def plan(data_dir: Path | None) -> None:
    """Print what must be signed to pay the booked refunds, for `toolserver sweep sign`.

    Sign it offline with the key of the paying account. Each refund has one nonce, so it is paid only once, however
    often it is planned and signed.
    """
    click.echo(json.dumps(at_desk(data_dir, _plan), indent=2))


@refund.command()
@document_argument
@key_options
@click.option("--rpc", metavar="URL", help="RPC server to send to; by default, the first in payments.rpc_urls")
@data_dir_option
@json_option
def submit(
    document: Path, key_file: Path | None, key_env: str | None, rpc: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """Submit signed refunds from an account that pays the fees. FILE is the signed plan, or `-`.

    You can run this again after any interruption. Exits with 1 unless all refunds are paid.
    """
    with explain_errors():
        _, entries = load_document(document)
        signed = [(one, read_signature(entry, one)) for entry, one in entries]
        key = read_private_key(read_key(key_file, key_env))
    rows = at_desk(data_dir, lambda desk: _submit(desk, signed, key, rpc))
    print_rows(rows, as_json, "nothing to submit")
    sys.exit(0 if all(row["state"] == "paid" for row in rows) else 1)


@refund.command()
@click.argument("id")
@click.option("--tx", required=True, metavar="TX_HASH", help="The transaction that paid it")
@data_dir_option
@json_option
def paid(id: str, tx: str, data_dir: Path | None, as_json: bool) -> None:
    """Record the transaction that paid a refund, for example one that someone else sent, once the chain shows it."""
    print_facts(at_desk(data_dir, lambda desk: _note_paid(desk, id, tx)), as_json)


async def _ask(desk: Desk, fingerprint: str, credits: int, to: str, reason: str) -> dict[str, Any]:
    payee, host = address_from(to), desk.host
    token = await desk.find_hash(fingerprint)
    draft = RefundDraft(new_nonce("rf"), token, payee, credits, reason, desk.now())
    stored = await SqlRefunds(desk.file).add(draft)
    return show_refund(stored) | {"text": _text(host, stored)}


def _text(host: str, stored: StoredRefund) -> str:
    return refund_text(host, stored.fingerprint, stored.credits, stored.payee, stored.id, stored.expires_at)


async def _book(desk: Desk, id: str, signature: str, payer: str, token: str | None) -> dict[str, Any]:
    refunds, account = SqlRefunds(desk.file), address_from(payer)
    stored = await refunds.find(id)
    async with desk.chain() as chain:
        if token is None:
            payers = await find_payers(chain, await refunds.find_payments(stored.token))
            accounts, proof = sorted(frozenset().union(*payers)), "payer"
        else:
            await _require_token(desk, stored, token)
            accounts, proof = [stored.payee], "token"
        await find_signer(chain, _text(desk.host, stored), signature, accounts)
    return show_refund(await refunds.book(id, proof, account, desk.now()))


async def _require_token(desk: Desk, stored: StoredRefund, token: str) -> None:
    """Raise RefundRefused unless the token is the one being refunded, whether or not it is still valid."""
    standing = await desk.ledger.standing(token)
    if standing.allowance is not None or standing.fingerprint != stored.fingerprint:
        raise RefundRefused("this is not the token being refunded")


async def _plan(desk: Desk) -> dict[str, Any]:
    refunds, now = SqlRefunds(desk.file), desk.now()
    open_ = await refunds.list_refunds(("booked", "sent"))
    numbers = {address: number for number, address in await SqlPurchaseStore(desk.file).list_deposits()}
    entries: list[dict[str, Any]] = []
    for one in open_:
        authorization = one.authorize(now // 1000 + VALID_S)
        number = numbers.get(authorization.payer)
        path = None if number is None else f"0/{number}"
        entries.append({"refund": one.id, "path": path, "typed_data": authorization.typed_data})
    await refunds.note_planned([one.id for one in open_], now)
    facts = {"chain_id": CHAIN_ID, "token": checksum_address(USDC), "total": sum(one.amount for one in open_)}
    return facts | {"authorizations": entries}


async def _submit(
    desk: Desk, signed: list[tuple[Authorization, bytes]], key: PrivateKey, rpc: str | None
) -> list[dict[str, Any]]:
    refunds = SqlRefunds(desk.file)
    stored = await refunds.list_refunds(("booked", "sent", "paid"))
    by_nonce = {nonce_of(one.id): one for one in stored}
    for one, _ in signed:
        booked = by_nonce.get(one.nonce)
        if booked is None or (booked.payer, booked.payee, booked.amount) != (one.payer, one.payee, one.amount):
            raise RefundRefused("the document contains a payment that is not a booked refund in this ledger")
    proxies = read_proxies(desk.settings.upstream.proxy_address)
    async with open_relay(find_rpc(desk.settings, rpc), desk.clock, proxies) as relay:
        return [await _submit_one(desk, relay, by_nonce[one.nonce], one, raw, key) for one, raw in signed]


async def _submit_one(
    desk: Desk, relay: Any, stored: StoredRefund, one: Authorization, signature: bytes, key: PrivateKey
) -> dict[str, Any]:
    refunds = SqlRefunds(desk.file)
    if stored.state == "paid":
        return show_refund(stored)
    done = None if stored.tx_hash is None else await relay.follow(stored.tx_hash)

    async def note(tx: bytes) -> None:
        await refunds.note_sending(stored.id, tx, replaces=stored.tx_hash)

    if done is None or done.outcome == "reverted":
        done = await relay.submit(one, signature, key, note)
    tx = done.tx if done.outcome == "sent" else None
    if done.outcome == "used before" and stored.tx_hash is not None and await relay.is_made(stored.tx_hash):
        tx = stored.tx_hash
    if tx is not None:
        await refunds.note_paid(stored.id, tx, desk.now())
    return show_refund(await refunds.find(stored.id)) | {"outcome": done.outcome}


async def _note_paid(desk: Desk, id: str, tx: str) -> dict[str, Any]:
    tx_hash, refunds = tx_hash_of(tx), SqlRefunds(desk.file)
    if tx_hash is None:
        raise ValueError("a transaction hash has 64 hexadecimal digits")
    stored = await refunds.find(id)
    async with desk.chain() as chain:
        seen = await chain.observe(tx_hash, agreeing=min(2, len(chain)))
    if seen is None or not seen.is_canonical or not _pays(seen.receipt, stored):
        raise RefundRefused("the transaction was not found, or does not pay this refund")
    return show_refund(await refunds.note_paid(id, tx_hash, desk.now()))


def _pays(receipt: Receipt, stored: StoredRefund) -> bool:
    """Return True if a transaction made the transfer of this refund."""
    payer = stored.payer or b""
    return is_authorized_transfer(receipt, payer, stored.payee, stored.amount, nonce_of(stored.id))
