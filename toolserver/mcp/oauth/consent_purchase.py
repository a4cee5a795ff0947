"""Store a purchase on the consent page until its token arrives, and show it."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from toolserver.core.consent_page import ConsentPayment

MOST_HASH = 100


@dataclass(frozen=True, slots=True)
class ConsentPurchase:
    """The quote of payment_buy_credits, and the transaction that paid it according to the person."""

    wallet: str
    memo: str
    amount_usd: str
    credits: int
    uri: str
    expires_at: str
    review: str | None = None
    tx_hash: str = ""

    @classmethod
    def of_quote(cls, quote: dict[str, Any]) -> "ConsentPurchase":
        """Make a purchase from the answer of payment_buy_credits."""
        amount = f"{quote['amount_atomic'] / 1_000_000:.6f}".rstrip("0").rstrip(".")
        about = (amount, quote["quote"]["credits"], quote["payment_uri"], quote["expires_at"], quote.get("review"))
        return cls(quote["wallet"], quote["memo"], *about)

    @classmethod
    def read(cls, stored: str) -> "ConsentPurchase":
        """Read a purchase that `write` wrote."""
        return cls(**json.loads(stored))

    def write(self) -> str:
        """Write the purchase for storage. The caller encrypts it, because the memo is a secret."""
        return json.dumps(asdict(self))

    def paid_by(self, tx_hash: str) -> "ConsentPurchase":
        """Return the same purchase with its transaction."""
        return replace(self, tx_hash=tx_hash[:MOST_HASH])

    @property
    def claim(self) -> dict[str, str]:
        """The arguments of payment_confirm."""
        return {"tx_hash": self.tx_hash, "nonce": self.memo}

    def show(self, confirmations: int | None = None, required: int | None = None) -> ConsentPayment:
        """Return the purchase as the page shows it."""
        ends = datetime.fromisoformat(self.expires_at).astimezone(UTC)
        about = (self.wallet, self.amount_usd, self.credits, self.uri, ends, self.review, self.tx_hash)
        return ConsentPayment(*about, confirmations, required)
