"""The errors that callers see.

`CallRejected` is raised for a call that gets no payload. Each subclass is one error code with
its HTTP status and the text of its page, and `registry/error_codes` builds the table of all
codes from them. Errors of upstreams are in `upstream/source`.
"""

from typing import Any, ClassVar, Literal


class ToolserverError(Exception):
    """The base of all errors of this package."""


class CallRejected(ToolserverError):
    """A call that gets no payload. Faces turn it into problem+json or into a tool result with `isError`.

    A subclass declares one error code. On the page of the code, its docstring is the text
    under "What happened" and `advice` the text under "What to do". `members` names the extra
    members of the body, and `topic` the part of the service that the code belongs to.
    docs/adding-an-error.md describes the steps. `abstract=True` is for a class that only
    groups others and is never raised.
    """

    declared: ClassVar[dict[str, "type[CallRejected]"]] = {}

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    advice: ClassVar[str]
    meaning: ClassVar[str]  # the docstring on one line
    members: ClassVar[tuple[str, ...]] = ()
    topic: ClassVar[Literal["request", "paid_call", "purchase", "x402"]] = "request"
    next_tool: ClassVar[str | None] = None  # the tool to call next, if one helps

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra
        self.asked_upstream = False  # whether a tool sent a request to a source before it refused the call

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which the same call may succeed, or None if not known."""
        said = self.extra.get("retry_after_seconds")
        return float(said) if isinstance(said, int | float) else None

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        """Enter the error code into `declared`. Raise TypeError naming what the class does not declare."""
        if abstract:
            return
        missing = [name for name in ("code", "advice") if name not in vars(cls)]
        missing += [name for name in ("status", "title") if not hasattr(cls, name)]
        missing += [] if (cls.__doc__ or "").strip() else ["docstring"]
        if missing:
            raise TypeError(f"{cls.__qualname__} declares no {', no '.join(missing)}: see docs/adding-an-error.md")
        cls.meaning = " ".join((cls.__doc__ or "").split())
        if (first := cls.declared.setdefault(cls.code, cls)) is not cls:
            raise TypeError(f"{cls.__qualname__} and {first.__qualname__} both declare the error code {cls.code}")


class InvalidArguments(CallRejected):
    """An argument is unknown, missing, of the wrong type, out of range or not one of the allowed values."""

    code, status, title = "invalid_arguments", 400, "Invalid arguments"
    advice = (
        "Read `errors`: each entry names an argument and what is wrong with it. Nothing was run and nothing charged."
    )
    members = ("errors", "valid_arguments", "did_you_mean", "example")


class InvalidJson(CallRejected):
    """The request body is not a JSON object."""

    code, status, title = "invalid_json", 400, "Invalid JSON"
    advice = "Send one JSON object, encoded as UTF-8, with `Content-Type: application/json`."


class PaymentRequired(CallRejected, abstract=True):
    """A paid call without valid payment. Its six subclasses are the codes of the specification."""

    status, title, topic = 402, "Payment required", "paid_call"


class MissingToken(PaymentRequired):
    """The call needs a bearer token, but none was sent."""

    code, next_tool = "missing_token", "payment_buy_credits"
    advice = "Send `Authorization: Bearer svc_live_…`. A token comes with the first purchase of credits."


class InvalidToken(PaymentRequired):
    """The token is malformed or unknown to this service."""

    code = "invalid_token"
    advice = "Check that you copied the whole token: `svc_live_` followed by 64 hexadecimal digits."


class RevokedToken(PaymentRequired):
    """The token was revoked, by the operator or because its payment was undone on the chain."""

    code, next_tool = "expired", "payment_buy_credits"
    advice = "Buy a new pack. A revoked token cannot be restored."


class InsufficientCredits(PaymentRequired):
    """The token is valid but has fewer credits than the call costs, or the call would exceed the named `cap`."""

    code, next_tool = "insufficient_credits", "payment_buy_credits"
    advice = "Buy credits, or call a cheaper or free tool. Nothing was run and nothing charged."
    members = ("required", "credits_remaining", "cap")


class BillingUnavailable(PaymentRequired):
    """The ledger cannot be reached, so no paid call can be accepted at the moment."""

    code = "billing_unavailable"
    advice = "Wait as long as `Retry-After` says, then send the same call again. Nothing was charged."
    members = ("retry_after_seconds",)


class UnpaidCall(PaymentRequired):
    """This call requires payment."""

    code = "payment_required"
    advice = "Follow `signup` to the prices and the ways to pay."


class NotFound(CallRejected):
    """There is nothing at this address, or the identifier does not belong to your token."""

    code, status, title = "not_found", 404, "Not found"
    advice = "Check `did_you_mean` and the catalogue at `catalog`."
    members = ("did_you_mean", "catalog")


class ReceiptArchived(CallRejected):
    """The receipt is old: its month (UTC) is in an archive of the service, and no longer in its database."""

    code, status, title = "receipt_archived", 410, "Receipt archived"
    advice = "Verify your own copy with `/api/receipt/verify`, or ask the operator for the receipt from that `month`."
    members = ("month",)


class MethodNotAllowed(CallRejected):
    """The address exists but does not accept this HTTP method."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"
    advice = "Use one of the methods in the `Allow` header."


class PaymentRefused(CallRejected, abstract=True):
    """A purchase that is not credited. Its subclasses are the five reasons."""

    status, topic = 409, "purchase"


class PaymentPending(PaymentRefused):
    """The transfer was not found yet, or does not have enough confirmations yet. Over MCP
    also: the page that a call asked somebody to open has not been paid yet.
    """

    code, title, next_tool = "payment_pending", "Payment pending", "payment_confirm"
    advice = (
        "Wait for `Retry-After` seconds, then confirm again with the same hash and memo. With a `purchase`, pay on its"
        " page and repeat the call."
    )
    members = ("confirmations", "required", "retry_after_seconds", "purchase")


class NoMatchingTransfer(PaymentRefused):
    """The transaction contains no USDC transfer to the address of this purchase."""

    code, title = "no_matching_transfer", "No matching transfer"
    advice = "Check the hash, the chain, the token and the address against the quote."


class BelowMinimum(PaymentRefused):
    """The amount that arrived is less than the smallest purchase."""

    code, title = "below_minimum", "Below the minimum"
    advice = "Pay at least 1 USD in a single transfer."


class AlreadyCredited(PaymentRefused):
    """This purchase or this transaction has already been credited."""

    code, title = "already_credited", "Already credited"
    advice = (
        "Use the token that the first confirmation returned. With `new_purchase`, a second payment was credited to it,"
        " as a purchase of its own."
    )
    members = ("new_purchase",)


class PayerProofRequired(PaymentRefused):
    """The purchase has a shared address or a `claim_challenge`, and the request does not prove that it is yours."""

    code, title = "payer_proof_required", "Proof of the payer required"
    advice = "Confirm again with the proof that `detail` asks for: `payer_signature` or `claim_verifier`."


class PaymentUsed(CallRejected):
    """This signed payment (x402) has already paid for what `detail` names, and the time for
    repeating that answer has ended. Or its authorisation was used before, for something
    unknown to this service.
    """

    code, status, title, topic = "payment_used", 409, "Payment used", "x402"
    advice = "Call without a payment to get an offer to sign for another call. This payment cannot buy anything else."


class PayloadTooLarge(CallRejected):
    """The request body is larger than this service accepts."""

    code, status, title = "payload_too_large", 413, "Payload too large"
    advice = "Send at most `limit_bytes` bytes."
    members = ("limit_bytes",)


class UnsupportedMediaType(CallRejected):
    """The `Content-Type` of the request body is not JSON."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"
    advice = "Send `Content-Type: application/json`."


class SubscriptionConflict(CallRejected):
    """The webhook subscriptions of this token forbid it: too many are active or kept, or this one was cancelled."""

    code, status, title, topic = "subscription_conflict", 409, "Subscription conflict", "paid_call"
    advice = "List the subscriptions and cancel one, or wait `retry_after_seconds` if it is given. Nothing was charged."
    members = ("retry_after_seconds",)


class AllowanceConflict(CallRejected):
    """The allowances of this token forbid it: 100 are live, this one was revoked, or the token is an allowance."""

    code, status, title, topic = "allowance_conflict", 409, "Allowance conflict", "paid_call"
    advice = "List the allowances and revoke one. Manage allowances with the token whose credits they spend."


class IdempotencyConflict(CallRejected):
    """The same `Idempotency-Key` was already used with other arguments."""

    code, status, title, topic = "idempotency_conflict", 422, "Idempotency conflict", "paid_call"
    advice = "Use a new key for a new call, and reuse a key only to repeat exactly the same call."


class RateLimited(CallRejected):
    """The client exceeded the limit named in `limit`."""

    code, status, title = "rate_limited", 429, "Rate limit exceeded"
    advice = (
        "`detail` names the rule and what helps. Wait `retry_after_seconds`, then call again. There is no penalty for a"
        " refused call."
    )
    members = ("retry_after_seconds", "limit", "same_data_until", "visitor_token", "work")


class InternalError(CallRejected):
    """An internal error occurred in the service."""

    code, status, title = "internal_error", 500, "Internal error"
    advice = "Try again; if the error persists, tell the operator the `request_id`. Nothing was charged."


class NotSupported(CallRejected):
    """This service supports the request, but the service that keeps the ledger does not."""

    code, status, title, topic = "not_supported", 501, "Not supported", "paid_call"
    advice = "Ask the operator or the service that sells the credits. Retrying does not help."


class UpstreamUnavailable(CallRejected):
    """No section of the premium answer could be composed, because none of its sources answered."""

    code, status, title, topic = "upstream_unavailable", 503, "Upstream unavailable", "paid_call"
    advice = "Wait as long as `Retry-After` says, then call again. Nothing was charged."
    members = ("retry_after_seconds",)


class ChainUnavailable(CallRejected):
    """The payment chain cannot be read at the moment."""

    code, status, title, topic = "chain_unavailable", 503, "Chain unavailable", "purchase"
    advice = "Wait as long as `Retry-After` says, then repeat the request. No payment is lost."
    members = ("retry_after_seconds",)


class StorageUnavailable(CallRejected):
    """The service cannot read or write its own data at the moment."""

    code, status, title = "storage_unavailable", 503, "Storage unavailable"
    advice = "Wait as long as `Retry-After` says, then repeat the request. Nothing was charged, and nothing is lost."
    members = ("retry_after_seconds",)


class TookTooLong(StorageUnavailable, abstract=True):
    """A call about purchases, credits or subscriptions that did not finish in time because of load or a slow disk."""

    def __init__(self, retry_s: int = 5) -> None:
        text = "The request timed out. It is not known whether anything was done."
        super().__init__(text, headers={"Retry-After": str(retry_s)}, retry_after_seconds=retry_s)


class ShuttingDown(CallRejected):
    """The server is shutting down and accepts no new requests."""

    code, status, title = "shutting_down", 503, "Shutting down"
    advice = "Wait as long as `Retry-After` says, then send the request again on a new connection."
    members = ("retry_after_seconds",)


class Overloaded(CallRejected):
    """All places of the service are taken, and this client has more than its share of them."""

    code, status, title = "overloaded", 503, "Overloaded"
    advice = "Wait as long as `Retry-After` says, then send the request again, with fewer requests at the same time."
    members = ("retry_after_seconds",)


class SalesCeilingReached(CallRejected):
    """The payment would exceed a ceiling on automatic sales in an hour or a day."""

    code, status, title, topic = "sales_ceiling_reached", 503, "Sales ceiling reached", "x402"
    advice = "Nothing was taken. Wait for `Retry-After` seconds, or ask the operator."
    members = ("retry_after_seconds",)


class SettlementPending(CallRejected):
    """A signed payment (x402) was submitted, and it is not known yet whether it was made."""

    code, status, title, topic = "settlement_pending", 503, "Settlement pending", "x402"
    advice = (
        "Wait for `Retry-After` seconds, then send exactly the same `PAYMENT-SIGNATURE` again. It is not charged twice."
        " Do not sign another payment."
    )
    members = ("retry_after_seconds",)
