"""Defines the price of a credit. Offers, pages, schemas, error bodies and descriptions follow CREDITS_PER_USD.

Amounts of money are integers in units of 0.000001 USDC, never floats.
"""

from decimal import Decimal
from fractions import Fraction

ATOMIC = 1_000_000  # units of 0.000001 USDC in a dollar
CREDITS_PER_USD = 50
ATOMIC_PER_CREDIT = ATOMIC // CREDITS_PER_USD
CREDIT_PRICE = f"1 USD = {CREDITS_PER_USD} credits"
LARGEST_USD = 1_000_000
PRICING = {"1 USD": f"{CREDITS_PER_USD} credits"}  # as in bodies of 402


def credits_for(amount: int) -> int:
    """Return the credits that an amount in units of 0.000001 USDC buys, rounded down."""
    return amount * CREDITS_PER_USD // ATOMIC


def atomic(usd: Decimal) -> int:
    """Return an amount of dollars in 0.000001 USDC.

    Raises ValueError if it has more than 6 decimals, is negative, too large, or not a number.
    """
    exponent = usd.as_tuple().exponent
    if not isinstance(exponent, int) or not -30 < exponent < 30 or not 0 <= usd <= LARGEST_USD:
        raise ValueError(f"an amount must be a number up to {LARGEST_USD}")
    exact = Fraction(usd) * ATOMIC  # not Decimal's product, which is rounded to 28 digits
    if exact.denominator != 1:
        raise ValueError("an amount must have at most 6 decimals")
    return int(exact)
