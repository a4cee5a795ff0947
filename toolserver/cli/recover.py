"""Implement `toolserver recover`: credit a payment that a restored ledger no longer knows to the account that paid."""

import secrets
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from toolserver.cli.buyers import Desk, at_desk
from toolserver.cli.find_ledger import find_ledger
from toolserver.cli.options import data_dir_option, json_option
from toolserver.cli.printing import print_facts
from toolserver.core.caller import token_hash
from toolserver.money.chain.sql_chain_transfers import find_movements, show_movement
from toolserver.money.ledger.admin import grant
from toolserver.money.purchases.buyer_proof import find_signer, recovery_text
from toolserver.money.purchases.chain.ethereum import checksum_address, tx_hash_of
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.credit_price import ATOMIC_PER_CREDIT, credits_for
from toolserver.money.purchases.deposit import DepositKey
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.matching import Receipt, UsdcTransfer, transfers
from toolserver.money.purchases.quotes import ADDRESS_MARK
from toolserver.money.purchases.sql_refunds import is_known_payment
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.money.x402.records import ChainTopup, TopupCredit, begin_recovered, find_topups
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.registry.registry import Registry
from toolserver.serving.shared_database import find_marks
from toolserver.sql.connection import SqlConnection

REASON = "a payment that a restored backup did not know"


class LostPayment(NamedTuple):
    """A payment that no table has: its kind, the amount in 0.000001 USDC, the payers, and its top-ups by x402."""

    kind: str
    amount: int
    payers: list[bytes]
    topups: list[ChainTopup]


@click.command()
@click.argument("tx_hash")
@click.option("--signature", help="Signature of the text (EIP-191) by the account that paid: 0x…")
@data_dir_option
@json_option
def recover(tx_hash: str, signature: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Credit a payment that a restored backup has lost, once, to a new token.

    Without --signature, look up the payment and print the text that its payer has to sign. TX_HASH is the transaction.
    It must be final, be in no table of payments, and have paid an address that the service issued or, by x402, the
    address in x402.pay_to. Payments for single calls do not count: they have been answered.
    """
    print_facts(at_desk(data_dir, lambda desk: _recover(desk, tx_hash, signature)), as_json)


async def _recover(desk: Desk, text: str, signature: str | None) -> dict[str, Any]:
    tx_hash = tx_hash_of(text)
    if tx_hash is None:
        raise ValueError("a transaction hash has 64 hexadecimal digits")
    async with desk.chain() as chain:
        receipt = await _read_final_receipt(chain, tx_hash)
        payment = await _find_lost_transfer(desk, receipt) or await _find_lost_topups(desk, receipt)
        text_to_sign = recovery_text(desk.host, tx_hash)
        if signature is None:
            payers = ", ".join(map(checksum_address, payment.payers))
            on_chain = await desk.file.read(partial(_show_on_chain, tx_hash))
            return _describe(payment) | {"payers": payers, "on_chain": on_chain, "text": text_to_sign}
        payer = await find_signer(chain, text_to_sign, signature, payment.payers)
    if not payment.topups:
        return _describe(payment) | {"token": await _grant(desk, payment, tx_hash)}
    own = _sum_topups([one for one in payment.topups if one.payer == payer])
    return _describe(own) | {"token": await _credit_topups(desk, own, tx_hash)}


def _show_on_chain(tx_hash: bytes, db: SqlConnection) -> list[dict[str, Any]] | None:
    """Return what the book of the chain has of a transaction; None if nothing, because its addresses were lost too."""
    movements = find_movements(db, [tx_hash])[tx_hash]
    return [show_movement(each) for each in movements] or None


def _describe(payment: LostPayment) -> dict[str, Any]:
    credits = sum(credits_for(one.amount) for one in payment.topups) or credits_for(payment.amount)
    return {"payment": payment.kind, "amount_usd": show_usd(payment.amount), "credits": credits}


async def _read_final_receipt(chain: RpcPool, tx_hash: bytes) -> Receipt:
    """Read what a transaction logged, from two servers where there are two. Raises ValueError or ChainDown."""
    seen = await chain.observe(tx_hash, agreeing=min(2, len(chain)))
    if seen is None or not seen.is_canonical or seen.receipt.block_number > seen.finalized:
        raise ValueError("the transaction was not found, or is not yet final")
    return seen.receipt


async def _find_lost_transfer(desk: Desk, receipt: Receipt) -> LostPayment | None:
    """Find what it paid to addresses whose purchase was lost, or None. Raises ValueError for a known payment."""
    if desk.settings.payments.xpub is None and desk.settings.x402.pay_to is not None:
        return None  # nothing but x402 is sold here
    ours = await _list_lost_addresses(desk)
    paid: list[UsdcTransfer] = [t for t in transfers(receipt) if t.payee in ours and t.amount]
    if paid and await is_known_payment(desk.file, receipt.tx_hash):
        raise ValueError("this payment is not lost: see `toolserver purchases`")
    if not paid:
        return None
    return LostPayment("transfer", sum(t.amount for t in paid), sorted({t.payer for t in paid}), [])


async def _find_lost_topups(desk: Desk, receipt: Receipt) -> LostPayment:
    """Find the top-ups by x402 that it settled and that no table has. Raises ValueError if there are none."""
    settled = find_topups(receipt, _payee_of_topups(desk), _list_prices(desk))
    unknown = await SqlPaymentStore(desk.file).find_unknown([(one.payer, one.nonce) for one in settled])
    lost = [one for one in settled if (one.payer, one.nonce) in unknown]
    if lost:
        return _sum_topups(lost)
    if settled or await is_known_payment(desk.file, receipt.tx_hash):
        raise ValueError("this payment is not lost: see `toolserver purchases`")
    raise ValueError(
        "the transaction paid no address whose purchase was lost, and no top-up by x402 (payments for single calls do "
        "not count); if there is a memo, confirm it"
    )


def _sum_topups(topups: list[ChainTopup]) -> LostPayment:
    return LostPayment("x402 top-up", sum(one.amount for one in topups), sorted({one.payer for one in topups}), topups)


def _payee_of_topups(desk: Desk) -> bytes:
    """Return the address that x402 payments go to; empty bytes where none is set. Raises ValueError."""
    payee, shared = (
        bytes.fromhex((address or "0x")[2:])
        for address in (desk.settings.x402.pay_to, desk.settings.payments.shared_wallet)
    )
    if payee and payee == shared:
        raise ValueError("x402.pay_to equals payments.shared_wallet: payments for top-ups cannot be told apart there")
    return payee


def _list_prices(desk: Desk) -> set[int]:
    """Return the prices of single calls in 0.000001 USDC."""
    return {tool.credits * ATOMIC_PER_CREDIT for tool in Registry.load(*desk.settings.tools) if tool.credits}


async def _grant(desk: Desk, payment: LostPayment, tx_hash: bytes) -> str:
    place, once = find_ledger(desk.settings.data_dir), f"0x{tx_hash.hex()}"
    return str((await grant(place, "new", credits_for(payment.amount), REASON, once=once))["token"])


async def _credit_topups(desk: Desk, payment: LostPayment, tx_hash: bytes) -> str:
    """Book the top-ups on a new token as if they were made now, and return the token. Raises NonceUsed."""
    token, now = f"svc_live_{secrets.token_hex(32)}", desk.now()
    begun = [begin_recovered(one, now) for one in payment.topups]
    owner = token_hash(token).hex()
    credits = [TopupCredit(b.payload, tx_hash, owner, credits_for(b.amount), None, None, now) for b in begun]
    await SqlPaymentStore(desk.file).credit_recovered(list(zip(begun, credits, strict=True)))
    return token


async def _list_lost_addresses(desk: Desk) -> set[bytes]:
    """List the addresses that were issued and are in no purchase. Raises ValueError."""
    settings = desk.settings.payments
    if settings.xpub is None:
        raise ValueError("deposit addresses cannot be computed without payments.xpub, which they come from")
    key, purchased = DepositKey(settings.xpub.get_secret_value()), await SqlPurchaseStore(desk.file).list_deposits()
    issued = find_marks(desk.settings, patient=True).read(ADDRESS_MARK) or 0
    lost = set(range(settings.first_index, issued)) - {number for number, _ in purchased}
    return {key.address(number) for number in lost}
