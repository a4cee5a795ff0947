"""`toolserver recover`: credits for a payment that a restored ledger no longer knows, to the account that paid."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from toolserver.cli.buyers import Desk, at_desk, print_facts
from toolserver.cli.load_settings import data_dir_option, find_ledger, json_option

if TYPE_CHECKING:
    from toolserver.purchases.matching import UsdcTransfer
    from toolserver.purchases.rpc_pool import RpcPool


class LostPayment(NamedTuple):
    """A payment to an address of ours whose purchase is gone: 0.000001 USDC, and the accounts that paid."""

    tx_hash: bytes
    amount: int
    payers: list[bytes]


@click.command()
@click.argument("tx_hash")
@click.option("--signature", help="What the wallet of the account that paid made of the text (EIP-191): 0x…")
@data_dir_option
@json_option
def recover(tx_hash: str, signature: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Give the credits of a payment of the lost time again, once, on a new token.

    Without --signature the payment is looked up and the text printed that its payer has to sign. TX_HASH is the
    transaction; it has to be final, to have paid an address that was given out, and to be in no table of payments.
    """
    print_facts(at_desk(data_dir, lambda desk: _recover(desk, tx_hash, signature)), as_json)


async def _recover(desk: Desk, text: str, signature: str | None) -> dict[str, Any]:
    from toolserver.core.credit_price import credits_for
    from toolserver.ledger.admin import grant
    from toolserver.purchases.buyer_proof import find_signer, recovery_text
    from toolserver.purchases.claim_secret import tx_hash_of
    from toolserver.purchases.deposit import checksum_address
    from toolserver.purchases.listing import show_usd

    tx_hash = tx_hash_of(text)
    if tx_hash is None:
        raise ValueError("a transaction's hash is 64 hexadecimal digits")
    async with desk.chain() as chain:
        found = await _find_lost(desk, chain, tx_hash)
        asked, credits = recovery_text(desk.host, tx_hash), credits_for(found.amount)
        facts = {"amount_usd": show_usd(found.amount), "credits": credits}
        if signature is None:
            return facts | {"payers": ", ".join(map(checksum_address, found.payers)), "text": asked}
        await find_signer(chain, asked, signature, found.payers)
    reason = "a payment that a restored backup did not know"
    done = await grant(find_ledger(desk.settings.data_dir), "new", credits, reason, once=f"0x{tx_hash.hex()}")
    return facts | {"token": done["token"]}


async def _find_lost(desk: Desk, chain: "RpcPool", tx_hash: bytes) -> LostPayment:
    """The payment, which no table has. Raises ValueError, ChainDown."""
    from toolserver.purchases.matching import transfers
    from toolserver.purchases.sqlite_refunds import is_known_payment

    if await is_known_payment(desk.file, tx_hash):
        raise ValueError("this payment is not lost: see `toolserver purchases`")
    seen = await chain.observe(tx_hash, agreeing=min(2, len(chain)))
    if seen is None or not seen.is_canonical or seen.receipt.block_number > seen.finalized:
        raise ValueError("the transaction is not seen, or not final yet")
    ours = await _list_lost_addresses(desk)
    paid: list[UsdcTransfer] = [t for t in transfers(seen.receipt) if t.payee in ours and t.amount]
    if not paid:
        raise ValueError("the transaction paid no address whose purchase was lost; if there is a memo, confirm it")
    return LostPayment(tx_hash, sum(t.amount for t in paid), sorted({t.payer for t in paid}))


async def _list_lost_addresses(desk: Desk) -> set[bytes]:
    """The addresses that were given out and are in no purchase. Raises ValueError."""
    from toolserver.purchases.address_numbers import MARK
    from toolserver.purchases.deposit import DepositKey
    from toolserver.purchases.sqlite_store import SqlitePurchaseStore
    from toolserver.storage.high_water import HighWater

    settings = desk.settings.payments
    if settings.xpub is None:
        raise ValueError("deposit addresses cannot be computed without payments.xpub, which they come from")
    key, known = DepositKey(settings.xpub.get_secret_value()), await SqlitePurchaseStore(desk.file).list_deposits()
    issued = HighWater(desk.settings.data_dir).read(MARK) or 0
    lost = set(range(settings.first_index, issued)) - {number for number, _ in known}
    return {key.address(number) for number in lost}
