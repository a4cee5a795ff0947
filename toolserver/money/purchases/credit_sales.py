"""Defines the sale of credits for tools: the values of a purchase, and the protocol of the seller."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from toolserver.errors import NotFound
from toolserver.money.ledger.state import Who


class PurchaseQuote(NamedTuple):
    """An offer: pay `amount` (0.000001 USDC) to `wallet` before `expires_at`, and claim the credits by `memo`.

    `review` says why a person would have to approve the payment, or is None.
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
    """A credited purchase. `late` says that it was paid after the quote had ended. The token
    is empty if an account was topped up whose token was not sent.
    """

    token: str
    credits: int
    late: bool = False


class Balance(NamedTuple):
    """The credits on a token, and when it was issued. `reissue_at` is when a requested
    replacement takes effect. An allowance spends another token's credits.
    """

    credits: int
    issued_at: datetime
    reissue_at: datetime | None = None
    is_allowance: bool = False


class ChainServers(NamedTuple):
    """The number of RPC servers, how many of them are usable, and how many failed when they were last asked.

    Usable ones are known to be on the right chain and are not resting after failures. Those
    that nobody has asked yet are neither usable nor failing.
    """

    configured: int
    usable: int
    failing: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether no server answers, so that no payment is confirmed."""
        return 0 < self.configured == self.failing


class CreditSales(Protocol):
    """Sells credits. Tools know nothing else about purchases."""

    async def quote(
        self, amount_usd: Decimal, *, challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        """Offer credits for an amount, on a token with this cap per day. Raise InvalidArguments, ChainUnavailable."""
        ...

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        """Credit a paid purchase, waiting some seconds for the chain.

        Raises:
            InvalidArguments, NotFound, PaymentRefused, ChainUnavailable.
        """
        ...

    async def quote_topup(self, who: Who | None, amount_usd: Decimal) -> PurchaseQuote:
        """Offer credits for an amount, on a token that there is. Raise as `quote`, and PaymentRequired."""
        ...

    async def confirm_topup(self, who: Who | None, claim: Claim) -> CreditedPurchase:
        """Credit a paid top-up of this token. Raise as `confirm`, and PaymentRequired."""
        ...

    async def find_payment(self, memo: str) -> str | None:
        """Return the hash of the transaction that paid a purchase, or None if none was found or none can be.

        Raises:
            InvalidArguments, NotFound, ChainUnavailable.
        """
        ...

    async def balance(self, token: str) -> Balance:
        """Return the credits on a token. Raise PaymentRequired."""
        ...

    def count_servers(self) -> ChainServers | None:
        """Count the servers from which purchases are read; None if this service watches no chain for purchases."""
        ...

    async def cancel_reissue(self, token: str) -> bool:
        """Cancel the pending reissue of a token. Return False if none is pending. Raise PaymentRequired, NotFound."""
        ...


class NoCreditSales:
    """The replacement in a service that sells nothing: every method raises NotFound."""

    async def quote(
        self, amount_usd: Decimal, *, challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        raise _unsold()

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        raise _unsold()

    async def quote_topup(self, who: Who | None, amount_usd: Decimal) -> PurchaseQuote:
        raise _unsold()

    async def confirm_topup(self, who: Who | None, claim: Claim) -> CreditedPurchase:
        raise _unsold()

    async def find_payment(self, memo: str) -> str | None:
        raise _unsold()

    async def balance(self, token: str) -> Balance:
        raise _unsold()

    async def cancel_reissue(self, token: str) -> bool:
        raise _unsold()

    def count_servers(self) -> ChainServers | None:
        return None


def _unsold() -> NotFound:
    return NotFound("This server sells no credits: payments are not set up.")
