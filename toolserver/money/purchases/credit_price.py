"""Defines the price of a credit. Offers, pages, schemas, error bodies and descriptions follow CREDITS_PER_USD.

Amounts of money are integers in units of 0.000001 USDC, never floats.
"""

ATOMIC = 1_000_000  # units of 0.000001 USDC in a dollar
CREDITS_PER_USD = 50
ATOMIC_PER_CREDIT = ATOMIC // CREDITS_PER_USD
CREDIT_PRICE = f"1 USD = {CREDITS_PER_USD} credits"
PRICING = {"1 USD": f"{CREDITS_PER_USD} credits"}  # as in bodies of 402


def credits_for(amount: int) -> int:
    """Return the credits that an amount in units of 0.000001 USDC buys, rounded down."""
    return amount * CREDITS_PER_USD // ATOMIC
