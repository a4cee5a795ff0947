"""Everything that can go wrong, as one tree.

ToolserverError
├── CallRejected             the caller is told: a code, a status, a sentence (CONTRACT section 3)
│   ├── InvalidArguments     400, nothing reserved
│   ├── NotFound             404
│   ├── RateLimited          429
│   ├── PaymentRequired      402, one of six codes
│   ├── PaymentRefused       409, a purchase that is not credited: pending, no match, too little, again, proof
│   ├── IdempotencyConflict  422
│   ├── UpstreamUnavailable  503, premium only, not charged
│   ├── ChainUnavailable     503, payment only: nobody can say what was paid
│   └── SettlementPending    503, x402 only: the payment may have been made; send it again, do not sign another
└── SourceError              an upstream gave nothing usable; `reason` goes into `_meta.sources[]`
    ├── SourceDown           no connection, a timeout, a 5xx
    ├── SourceLimited        429, 418, quota text, or our own budget
    ├── SourceRefused        401, 403, 451
    ├── SourceChanged        not the shape we know
    ├── SourceEmpty          fewer items than there must be
    ├── SourceFrozen         the newest item is too old
    ├── SourceTooLarge       more bytes than allowed
    ├── SourceImplausible    a jump nobody confirms
    ├── SourceExcluded       barred by the licence policy
    └── SourceUnusable       needs a key that is not set; never listed
"""

from typing import Any


class ToolserverError(Exception):
    """Base of all our errors."""


class CallRejected(ToolserverError):
    """A call that gets no payload. Faces turn it into problem+json or a tool result with `isError`."""

    code = "internal_error"
    status = 500
    title = "Internal error"

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra


class InvalidArguments(CallRejected):
    """The arguments do not fit the tool. Nothing was reserved or charged."""

    code, status, title = "invalid_arguments", 400, "Invalid arguments"


class NotFound(CallRejected):
    """No such thing here."""

    code, status, title = "not_found", 404, "Not found"


class RateLimited(CallRejected):
    """Too many calls; `retry_after_seconds` says when to come back."""

    code, status, title = "rate_limited", 429, "Rate limit exceeded"


class PaymentRequired(CallRejected):
    """A premium call without a usable token. `code` is one of the six of the specification."""

    status, title = 402, "Payment required"

    def __init__(self, code: str, detail: str, **extra: Any) -> None:
        super().__init__(detail, **extra)
        self.code = code


class PaymentRefused(CallRejected):
    """A purchase is not credited. Base of the five reasons."""


class PaymentPending(PaymentRefused):
    """The transfer is not seen yet, or not for long enough: come back."""

    code, status, title = "payment_pending", 409, "Payment pending"


class NoMatchingTransfer(PaymentRefused):
    """The transaction pays nothing for this purchase."""

    code, status, title = "no_matching_transfer", 409, "No matching transfer"


class BelowMinimum(PaymentRefused):
    """Less arrived than can be bought for."""

    code, status, title = "below_minimum", 409, "Below the minimum"


class AlreadyCredited(PaymentRefused):
    """The purchase, or the transaction, was turned into credits before."""

    code, status, title = "already_credited", 409, "Already credited"


class PayerProofRequired(PaymentRefused):
    """Nothing shows that the transfer was made for this purchase."""

    code, status, title = "payer_proof_required", 409, "Proof of the payer required"


class IdempotencyConflict(CallRejected):
    """The same Idempotency-Key was used with other arguments."""

    code, status, title = "idempotency_conflict", 422, "Idempotency conflict"


class UpstreamUnavailable(CallRejected):
    """Nothing of a premium payload could be composed. Not charged."""

    code, status, title = "upstream_unavailable", 503, "Upstream unavailable"


class ChainUnavailable(CallRejected):
    """The chain that payments are made on cannot be read. What was paid is not lost."""

    code, status, title = "chain_unavailable", 503, "Chain unavailable"


class SettlementPending(CallRejected):
    """Nobody can say yet whether a signed payment was made. The same payment, sent again, is not made twice."""

    code, status, title = "settlement_pending", 503, "Settlement pending"


class InternalError(CallRejected):
    """Our own fault. The body says nothing but the request id."""


class SourceError(ToolserverError):
    """An upstream gave nothing usable.

    `reason` is one word of `_meta.sources[].reason`; the text after it holds no URL query and no key.
    `retry_after_s` is set when the upstream said when to come back.
    """

    word = "changed"

    def __init__(self, detail: str = "", *, word: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.word = word or self.word
        self.retry_after_s = retry_after_s

    @property
    def reason(self) -> str:
        """`word: detail`, at most 100 characters of detail."""
        detail = str(self)[:100]
        return f"{self.word}: {detail}" if detail else self.word


class SourceDown(SourceError):
    """No connection, no answer in time, or a server error. `word` is connect, timeout, http_<code> or breaker_open."""

    word = "connect"


class SourceLimited(SourceError):
    """The upstream (429, 418, quota text) or our own budget says: not now."""

    word = "rate_limited"


class SourceRefused(SourceError):
    """401, 403 or 451."""

    word = "refused"


class SourceChanged(SourceError):
    """The body is not the shape this source is known to have."""

    word = "changed"


class SourceEmpty(SourceError):
    """A well-formed body with fewer items than there must be."""

    word = "empty"


class SourceFrozen(SourceError):
    """The newest item is older than this source may ever be."""

    word = "frozen"


class SourceTooLarge(SourceError):
    """More bytes than the source allows."""

    word = "too_large"


class SourceImplausible(SourceError):
    """A value jumped and no second provider agrees."""

    word = "implausible"


class SourceExcluded(SourceError):
    """The licence policy bars this source."""

    word = "licence"


class SourceUnusable(SourceError):
    """The source needs a key that is not set."""

    word = "no_key"
