"""What tests do with a desk that reads a real chain."""

from typing import Any

from tests.money.purchases.anvil import Anvil, called
from tests.money.purchases.parts import Desk, address_of
from toolserver.money.purchases.credit_sales import CreditedPurchase, PurchaseQuote


def wallet(quote: PurchaseQuote) -> bytes:
    return address_of(quote)


async def confirmed(d: Desk, anvil: Anvil, tx: str, memo: str, **more: Any) -> CreditedPurchase:
    """The claim, with three blocks on top of the payment."""
    anvil.mine(3)
    return await d.confirm(tx, memo, **more)


def execute(*calls: tuple[bytes, bytes]) -> bytes:
    """What a smart account is told to do: calls of contracts, one after the other."""
    return called("execute((address,bytes)[])", list(calls))
