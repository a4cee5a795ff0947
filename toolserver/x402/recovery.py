"""Top-ups that the chain has and a restored ledger does not know. Pure: what a transaction says of them.

On the chain a payment for a single call looks like one for a top-up. The amount tells them apart: a payment has exactly
the price of what it pays for, the smallest top-up is 1 USD, and what costs as much as a call is taken for that call.
"""

import hashlib
from collections.abc import Collection
from typing import NamedTuple

from toolserver.core.credit_price import ATOMIC
from toolserver.purchases.matching import Receipt, authorized_transfers
from toolserver.x402.store import BegunPayment
from toolserver.x402.topup_owner import NEW, TOPUP


class ChainTopup(NamedTuple):
    """A top-up as the chain has it: who signed it, the nonce that was used, and 0.000001 USDC."""

    payer: bytes
    nonce: bytes
    amount: int


def find_topups(receipt: Receipt, payee: bytes, prices: Collection[int]) -> list[ChainTopup]:
    """Return the top-ups that a transaction settled. `prices` are those of single calls, in 0.000001 USDC."""
    paid = [one for one in authorized_transfers(receipt) if one.payee == payee]
    return [ChainTopup(one.payer, one.nonce, one.amount) for one in paid if is_topup(one.amount, prices)]


def is_topup(amount: int, prices: Collection[int]) -> bool:
    """Whether so much can only have paid for a top-up."""
    return amount >= ATOMIC and amount not in prices


def recovered_id(payer: bytes, nonce: bytes) -> bytes:
    """Return the id under which a recovered payment is stored: its signature, which others are named by, is gone."""
    return hashlib.sha256(b"recovered x402 payment" + payer + nonce).digest()


def begin_recovered(topup: ChainTopup, now: int) -> BegunPayment:
    """Return a top-up as a payment for a new token that is handed on now, in epoch milliseconds."""
    id = recovered_id(topup.payer, topup.nonce)
    return BegunPayment(id, topup.payer, topup.nonce, topup.amount, f"{TOPUP}{NEW}", 0, None, now)
