"""Selling credits, as tools see it: the values of a purchase, and the protocol of what sells them."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from toolserver.errors import NotFound


class PurchaseQuote(NamedTuple):
    """An offer: pay `amount` (0.000001 USDC) to `wallet` before `expires_at`, and claim the credits by `memo`.

    `review` says why a person would have to approve the payment; None when nobody has to.
    """

    wallet: str
    memo: str
    amount: int
    credits: int
    expires_at: datetime
    commitment: str
    uri: str
    review: str | None = None


class Claim(NamedTuple):
    """A buyer's claim that a transaction paid a purchase. `verifier` and `signature` prove the right to claim it."""

    tx_hash: str
    memo: str
    verifier: str | None = None
    signature: str | None = None


class CreditedPurchase(NamedTuple):
    """A purchase that is credited. `late` says that it was paid after the end of the quote."""

    token: str
    credits: int
    late: bool = False


class Balance(NamedTuple):
    """The credits on a token, and when it was issued. `reissue_at`: when it will be replaced, if somebody asked."""

    credits: int
    issued_at: datetime
    reissue_at: datetime | None = None


class CreditSales(Protocol):
    """Sells credits. Tools know nothing else of purchases."""

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> PurchaseQuote:
        """Offer credits for an amount. Raises InvalidArguments, ChainUnavailable."""
        ...

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        """Credit a purchase that was paid; waits some seconds for the chain.

        Raises:
            InvalidArguments, NotFound, PaymentRefused, ChainUnavailable.
        """
        ...

    async def find_payment(self, memo: str) -> str | None:
        """The hash of the transaction that paid a purchase; None while none is seen, or where none can be found.

        Raises:
            InvalidArguments, NotFound, ChainUnavailable.
        """
        ...

    async def balance(self, token: str) -> Balance:
        """The credits on a token. Raises PaymentRequired."""
        ...

    async def cancel_reissue(self, token: str) -> bool:
        """Cancel the reissue of a token that waits; False when none does. Raises PaymentRequired, NotFound."""
        ...


class NoCreditSales:
    """What a service that sells nothing has instead: every method raises NotFound."""

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> PurchaseQuote:
        raise _unsold()

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        raise _unsold()

    async def find_payment(self, memo: str) -> str | None:
        raise _unsold()

    async def balance(self, token: str) -> Balance:
        raise _unsold()

    async def cancel_reissue(self, token: str) -> bool:
        raise _unsold()


def _unsold() -> NotFound:
    return NotFound("This server sells no credits: payments are not set up.")
