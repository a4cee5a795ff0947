"""Compares the payments in the tables with the chain: balances first, single transactions where balances fall short.

A deposit address holds what was paid to it, less what was swept. Where it holds less, each transaction is looked up:
either the money was moved by other means, which a note says, or it never came, which is a difference.
"""

from collections.abc import Mapping
from typing import NamedTuple

from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import BATCH, RpcPool
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.matching import is_authorized_transfer, transfers

MOST_LOOKED_UP = 1000  # transactions, the newest first


class ClaimedTransfer(NamedTuple):
    """A payment as a table has it, in 0.000001 USDC. `payee` and `payer` are None where any address would do; `nonce`
    is that of the authorisation (EIP-3009) by which it was made, if any.
    """

    tx_hash: bytes
    payee: bytes | None
    payer: bytes | None
    amount: int
    nonce: bytes | None = None


class ClaimedMoney(NamedTuple):
    """The money in the tables: deposits that were credited, signed payments, refunds that were paid, and what was swept
    from each deposit address, in 0.000001 USDC.
    """

    deposits: list[ClaimedTransfer]
    signed: list[ClaimedTransfer]
    refunds: list[ClaimedTransfer]
    swept: Mapping[bytes, int]


class ChainFindings(NamedTuple):
    """The differences, the number of payments that were compared, and notes for a person."""

    differences: list[str]
    compared: int
    notes: list[str]


async def compare_with_chain(claimed: ClaimedMoney, chain: RpcPool) -> ChainFindings:
    """Compare all payments, of which at most `MOST_LOOKED_UP` are looked up one by one. Raises ChainDown."""
    unexplained = await _find_unexplained(claimed, chain)
    to_look_up = [*unexplained, *claimed.refunds, *claimed.signed]
    looked_up, notes = to_look_up[:MOST_LOOKED_UP], []
    said = [await _find_difference(one, chain) for one in looked_up]
    differences = [why for why in said if why is not None]
    moved = [one for one in unexplained if one in looked_up]
    if moved:
        usd = show_usd(sum(one.amount for one in moved))
        notes.append(f"{len(moved)} deposits of {usd} USDC were moved by other means than `sweep submit`")
    if len(to_look_up) > len(looked_up):
        notes.append(f"{len(to_look_up) - len(looked_up)} older payments were not looked up")
    compared = len(claimed.deposits) - len(unexplained) + len(looked_up)
    return ChainFindings(differences, compared, notes)


async def _find_unexplained(claimed: ClaimedMoney, chain: RpcPool) -> list[ClaimedTransfer]:
    """Return the deposits whose addresses hold less than was paid, even after what was swept is added."""
    short: list[ClaimedTransfer] = []
    for at in range(0, len(claimed.deposits), BATCH):
        part = claimed.deposits[at : at + BATCH]
        amounts = await chain.balances([one.payee or bytes(20) for one in part])
        pairs = zip(part, amounts, strict=True)
        short += [one for one, held in pairs if held + claimed.swept.get(one.payee or b"", 0) < one.amount]
    return short


async def _find_difference(one: ClaimedTransfer, chain: RpcPool) -> str | None:
    """Return in words how the chain differs from the table about one payment, or None if it does not."""
    seen = await chain.observe(one.tx_hash, agreeing=min(2, len(chain)))
    if seen is None or not seen.is_canonical:
        return f"0x{one.tx_hash.hex()}: {show_usd(one.amount)} USDC are booked, but the chain does not have them"
    if one.nonce is not None and one.payer is not None and one.payee is not None:
        is_made = is_authorized_transfer(seen.receipt, one.payer, one.payee, one.amount, one.nonce)
        return None if is_made else _name(one, 0)
    paid = sum(t.amount for t in transfers(seen.receipt) if _fits(one, t.payer, t.payee))
    return None if paid >= one.amount and seen.receipt.status == 1 else _name(one, paid)


def _fits(one: ClaimedTransfer, payer: bytes, payee: bytes) -> bool:
    return one.payer in (None, payer) and one.payee in (None, payee)


def _name(one: ClaimedTransfer, paid: int) -> str:
    where = "" if one.payee is None else f" to {checksum_address(one.payee)}"
    return f"0x{one.tx_hash.hex()}: {show_usd(one.amount)} USDC{where} are booked, the chain has {show_usd(paid)}"
