"""A purchase on the consent page: what of its quote is kept until the token is there, and how it is shown."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from toolserver.core.consent_page import ConsentPayment

MOST_HASH = 100


@dataclass(frozen=True, slots=True)
class ConsentPurchase:
    """The quote of payment_buy_credits, and the transaction that the person says has paid it."""

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
        """From the answer of payment_buy_credits."""
        amount = f"{quote['amount_atomic'] / 1_000_000:.6f}".rstrip("0").rstrip(".")
        about = (amount, quote["quote"]["credits"], quote["payment_uri"], quote["expires_at"], quote.get("review"))
        return cls(quote["wallet"], quote["memo"], *about)

    @classmethod
    def read(cls, stored: str) -> "ConsentPurchase":
        """From what `write` wrote."""
        return cls(**json.loads(stored))

    def write(self) -> str:
        """As it is stored, encrypted by its keeper: the memo is a secret."""
        return json.dumps(asdict(self))

    def paid_by(self, tx_hash: str) -> "ConsentPurchase":
        """The same with its transaction."""
        return replace(self, tx_hash=tx_hash[:MOST_HASH])

    @property
    def claim(self) -> dict[str, str]:
        """The arguments of payment_confirm."""
        return {"tx_hash": self.tx_hash, "nonce": self.memo}

    def show(self, confirmations: int | None = None, required: int | None = None) -> ConsentPayment:
        """As the page shows it."""
        ends = datetime.fromisoformat(self.expires_at).astimezone(UTC)
        about = (self.wallet, self.amount_usd, self.credits, self.uri, ends, self.review, self.tx_hash)
        return ConsentPayment(*about, confirmations, required)
