"""What is said about purchases, and what whoever sells credits can do: plain values between tools and payments."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from toolserver.errors import NotFound


class Quote(NamedTuple):
    """An offer: pay `amount` (0.000001 USDC) to `wallet` before `expires_at`, and claim the credits by `memo`."""

    wallet: str
    memo: str
    amount: int
    credits: int
    expires_at: datetime
    commitment: str
    uri: str


class Claim(NamedTuple):
    """A buyer's word that a transaction paid a purchase, and whatever shows that the buyer may say so."""

    tx_hash: str
    memo: str
    verifier: str | None = None
    signature: str | None = None


class Bought(NamedTuple):
    """A purchase that is credited. `late`: paid after the quote's end, and credited all the same."""

    token: str
    credits: int
    late: bool = False


class Balance(NamedTuple):
    """What a token holds."""

    credits: int
    issued_at: datetime


class Payments(Protocol):
    """Sells credits. Tools know no more of it than this."""

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> Quote:
        """Offer credits for an amount. Raises InvalidArguments, ChainUnavailable."""
        ...

    async def confirm(self, claim: Claim) -> Bought:
        """Credit a purchase that was paid; waits some seconds for the chain.

        Raises:
            InvalidArguments, NotFound, PaymentRefused, ChainUnavailable.
        """
        ...

    async def balance(self, token: str) -> Balance:
        """How much a token holds. Raises PaymentRequired."""
        ...


class Unsold:
    """Where nothing is sold: every method raises NotFound."""

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> Quote:
        raise _unsold()

    async def confirm(self, claim: Claim) -> Bought:
        raise _unsold()

    async def balance(self, token: str) -> Balance:
        raise _unsold()


def _unsold() -> NotFound:
    return NotFound("This server sells no credits: payments are not set up.")
