"""Finds the top-ups in a transaction that a restored ledger no longer knows. Pure.

On the chain a payment for a single call looks like one for a top-up. Only the amount distinguishes them: a payment has
exactly the price of what it pays for, the smallest top-up is 1 USD, and a payment with the price of a call counts as
one for that call.
"""

import hashlib
from collections.abc import Collection
from typing import NamedTuple

from toolserver.core.credit_price import ATOMIC
from toolserver.money.purchases.matching import Receipt, authorized_transfers
from toolserver.money.x402.store import BegunPayment
from toolserver.money.x402.topup_owner import NEW, TOPUP


class ChainTopup(NamedTuple):
    """A top-up as the chain has it: the account that signed it, the nonce, and the amount in 0.000001 USDC."""

    payer: bytes
    nonce: bytes
    amount: int


def find_topups(receipt: Receipt, payee: bytes, prices: Collection[int]) -> list[ChainTopup]:
    """Return the top-ups that a transaction settled. `prices` are those of single calls, in 0.000001 USDC."""
    paid = [one for one in authorized_transfers(receipt) if one.payee == payee]
    return [ChainTopup(one.payer, one.nonce, one.amount) for one in paid if is_topup(one.amount, prices)]


def is_topup(amount: int, prices: Collection[int]) -> bool:
    """Return True if this amount (0.000001 USDC) can only have paid for a top-up."""
    return amount >= ATOMIC and amount not in prices


def recovered_id(payer: bytes, nonce: bytes) -> bytes:
    """Return the id under which a recovered payment is stored. Its signature, which is part of other ids, is lost."""
    return hashlib.sha256(b"recovered x402 payment" + payer + nonce).digest()


def begin_recovered(topup: ChainTopup, now: int) -> BegunPayment:
    """Return a top-up as a payment for a new token, handed on at `now` (epoch milliseconds)."""
    id = recovered_id(topup.payer, topup.nonce)
    return BegunPayment(id, topup.payer, topup.nonce, topup.amount, f"{TOPUP}{NEW}", 0, None, now)
