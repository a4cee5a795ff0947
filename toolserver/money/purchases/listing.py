"""Formats purchases for operators. Neither memos nor tokens are stored, so neither can be shown."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.core.credit_price import ATOMIC
from toolserver.core.models import iso
from toolserver.money.purchases.deposit import checksum_address


class ListedPurchase(NamedTuple):
    """One purchase. `amount` (0.000001 USDC) and `credits` are the quoted ones, or the paid ones once it is credited.

    `created` and `expires` are epoch milliseconds; `tx` is the hash of the transaction that paid.
    """

    id: int
    state: str
    amount: int
    credits: int
    address: bytes
    created: int
    expires: int
    tx: bytes | None


def show_purchase(purchase: ListedPurchase) -> dict[str, Any]:
    """Return a purchase as JSON, with the amount in USD, times in ISO 8601 and the address with its checksum."""
    return {
        "id": purchase.id,
        "state": purchase.state,
        "amount_usd": show_usd(purchase.amount),
        "credits": purchase.credits,
        "address": checksum_address(purchase.address),
        "created": show_time(purchase.created),
        "expires": show_time(purchase.expires),
        "tx": None if purchase.tx is None else f"0x{purchase.tx.hex()}",
    }


def show_usd(amount: int) -> str:
    """Return an amount in 0.000001 USDC as dollars with six decimals."""
    return f"{amount // ATOMIC}.{amount % ATOMIC:06}"


def show_time(milliseconds: int) -> str:
    """Return epoch milliseconds as ISO 8601, in whole seconds."""
    return iso(datetime.fromtimestamp(milliseconds // 1000, UTC))
