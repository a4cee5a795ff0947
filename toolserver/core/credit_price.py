"""The price of a credit. Change CREDITS_PER_USD: offers, pages, schemas, error bodies and descriptions follow.

Amounts of money are whole numbers of 0.000001 USDC, never floats.
"""

ATOMIC = 1_000_000  # of 0.000001 USDC in a dollar
CREDITS_PER_USD = 50
ATOMIC_PER_CREDIT = ATOMIC // CREDITS_PER_USD
CREDIT_PRICE = f"1 USD = {CREDITS_PER_USD} credits"
PRICING = {"1 USD": f"{CREDITS_PER_USD} credits"}  # as bodies of 402 say it


def credits_for(amount: int) -> int:
    """The credits that an amount in 0.000001 USDC buys, rounded down."""
    return amount * CREDITS_PER_USD // ATOMIC
