"""Names the chain and the token in which payments are made, and converts amounts to whole 0.000001 USDC."""

from decimal import Decimal
from fractions import Fraction

from toolserver.money.purchases.credit_price import ATOMIC

CHAIN_ID = 8453
NETWORK = f"eip155:{CHAIN_ID}"
CHAIN = "base"
USDC_TEXT = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
USDC = bytes.fromhex(USDC_TEXT[2:])
DECIMALS = 6
LEAST = ATOMIC  # the smallest purchase, 1 USD
LARGEST_USD = 1_000_000


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
