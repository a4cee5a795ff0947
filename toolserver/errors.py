"""The errors that callers see.

`CallRejected` is a call that gets no payload: each subclass is one error code with its HTTP status and the text of its
page, and `registry/error_codes` makes the table of all codes from them. What goes wrong with an upstream is in
`upstream/source_errors`.
"""

from typing import Any, ClassVar, Literal


class ToolserverError(Exception):
    """The base of all errors of this package."""


class CallRejected(ToolserverError):
    """A call that gets no payload. Faces turn it into problem+json, or into a tool result with `isError`.

    A subclass declares one error code. Its docstring is what the page of the code says under "What happened", `advice`
    what it says under "What to do"; `members` names the extra members of the body, and `topic` the part of the
    service that the code belongs to. docs/adding-an-error.md goes through the steps.
    `abstract=True` is for a class that only groups others and is never raised.
    """

    declared: ClassVar[dict[str, "type[CallRejected]"]] = {}

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    advice: ClassVar[str]
    meaning: ClassVar[str]  # the docstring on one line
    members: ClassVar[tuple[str, ...]] = ()
    topic: ClassVar[Literal["request", "paid_call", "purchase", "x402"]] = "request"
    next_tool: ClassVar[str | None] = None  # the tool to call next, where one helps

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which the same call may succeed, where that is known."""
        said = self.extra.get("retry_after_seconds")
        return float(said) if isinstance(said, int | float) else None

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        """Enter the error code into `declared`. Raises TypeError, naming what the class forgets to declare."""
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
    advice = "Read `errors`: each entry names the argument and what is wrong. Nothing was run and nothing charged."
    members = ("errors", "valid_arguments", "did_you_mean", "example")


class InvalidJson(CallRejected):
    """The request body is not a JSON object."""

    code, status, title = "invalid_json", 400, "Invalid JSON"
    advice = "Send one JSON object, encoded as UTF-8, with `Content-Type: application/json`."


class PaymentRequired(CallRejected, abstract=True):
    """A paid call that cannot be paid for. Its six subclasses are the codes of the specification."""

    status, title, topic = 402, "Payment required", "paid_call"


class MissingToken(PaymentRequired):
    """The call needs a bearer token and none was sent."""

    code, next_tool = "missing_token", "payment_buy_credits"
    advice = "Send `Authorization: Bearer svc_live_…`. A token comes with the first purchase of credits."


class InvalidToken(PaymentRequired):
    """The token has the wrong form or is not known here."""

    code = "invalid_token"
    advice = "Check that the whole token was copied: `svc_live_` and 64 hexadecimal digits."


class RevokedToken(PaymentRequired):
    """The token was revoked, by the operator or because its payment was undone on the chain."""

    code, next_tool = "expired", "payment_buy_credits"
    advice = "Buy a new pack; the old token does not come back."


class InsufficientCredits(PaymentRequired):
    """The token is good, but holds fewer credits than the call costs, or is an allowance and `cap` would be crossed."""

    code, next_tool = "insufficient_credits", "payment_buy_credits"
    advice = "Buy credits, or call a cheaper or free tool. Nothing was run and nothing charged."
    members = ("required", "credits_remaining", "cap")


class BillingUnavailable(PaymentRequired):
    """The ledger cannot be reached, so no paid call can be accepted at the moment."""

    code = "billing_unavailable"
    advice = "Wait as long as `Retry-After` says, then send the same call again. Nothing was charged."
    members = ("retry_after_seconds",)


class UnpaidCall(PaymentRequired):
    """The call has to be paid for."""

    code = "payment_required"
    advice = "Follow `signup`: it leads to the prices and to the ways to pay."


class NotFound(CallRejected):
    """There is nothing at this address, or the identifier belongs to nobody you can act for."""

    code, status, title = "not_found", 404, "Not found"
    advice = "Look at `did_you_mean` and at the catalogue behind `catalog`."
    members = ("did_you_mean", "catalog")


class MethodNotAllowed(CallRejected):
    """The address exists, but not for this HTTP method."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"
    advice = "Use one of the methods in the `Allow` header."


class PaymentRefused(CallRejected, abstract=True):
    """A purchase that is not credited. Its subclasses are the five reasons."""

    status, topic = 409, "purchase"


class PaymentPending(PaymentRefused):
    """The transfer is not yet seen, or not yet confirmed often enough."""

    code, title, next_tool = "payment_pending", "Payment pending", "payment_confirm"
    advice = "Wait as long as `Retry-After` says, then confirm again with the same hash and memo."
    members = ("confirmations", "required", "retry_after_seconds")


class NoMatchingTransfer(PaymentRefused):
    """The transaction holds no USDC transfer to the address of this purchase."""

    code, title = "no_matching_transfer", "No matching transfer"
    advice = "Check the hash, the chain, the token and the address that the quote named."


class BelowMinimum(PaymentRefused):
    """Less than the smallest purchase arrived."""

    code, title = "below_minimum", "Below the minimum"
    advice = "Pay at least 1 USD in a single transfer."


class AlreadyCredited(PaymentRefused):
    """This purchase or this transaction has been turned into credits before."""

    code, title = "already_credited", "Already credited"
    advice = "Use the token that the first confirmation returned."


class PayerProofRequired(PaymentRefused):
    """The purchase has a shared address or a `claim_challenge`, and nothing shows that it is yours."""

    code, title = "payer_proof_required", "Proof of the payer required"
    advice = "Confirm again with what `detail` asks for: a `payer_signature`, or the `claim_verifier` of the challenge."


class PaymentUsed(CallRejected):
    """This signed payment (x402) has bought what `detail` names, and the time in which it is answered again is over. Or
    its authorisation was used before for something that this service does not know.
    """

    code, status, title, topic = "payment_used", 409, "Payment used", "x402"
    advice = "Call without a payment to be offered what to sign for another call. This payment buys nothing more."


class PayloadTooLarge(CallRejected):
    """The request body is larger than this service reads."""

    code, status, title = "payload_too_large", 413, "Payload too large"
    advice = "Send at most `limit_bytes` bytes."
    members = ("limit_bytes",)


class UnsupportedMediaType(CallRejected):
    """The request says that its body is something other than JSON."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"
    advice = "Send `Content-Type: application/json`."


class SubscriptionConflict(CallRejected):
    """The webhook subscriptions of this token do not allow it: too many are active or kept, or one was cancelled."""

    code, status, title, topic = "subscription_conflict", 409, "Subscription conflict", "paid_call"
    advice = "List the subscriptions and cancel one, or wait `retry_after_seconds` if it is given. Nothing was charged."
    members = ("retry_after_seconds",)


class AllowanceConflict(CallRejected):
    """The allowances of this token do not allow it: 100 are live, it was revoked, or the token is one itself."""

    code, status, title, topic = "allowance_conflict", 409, "Allowance conflict", "paid_call"
    advice = "List the allowances and revoke one. Allowances are managed with the token whose credits they spend."


class IdempotencyConflict(CallRejected):
    """The same `Idempotency-Key` was used before, with other arguments."""

    code, status, title, topic = "idempotency_conflict", 422, "Idempotency conflict", "paid_call"
    advice = "Use a new key for a new call, and repeat a key only to repeat the very same call."


class RateLimited(CallRejected):
    """More calls were made than the limit named in `limit` allows."""

    code, status, title = "rate_limited", 429, "Rate limit exceeded"
    advice = (
        "`detail` names the rule and what helps. Wait `retry_after_seconds`, then call again. There is no penalty for a"
        " call that was refused."
    )
    members = ("retry_after_seconds", "limit")


class InternalError(CallRejected):
    """Something failed on our side."""

    code, status, title = "internal_error", 500, "Internal error"
    advice = "Try again; if the error persists, tell the operator the `request_id`. Nothing was charged."


class NotSupported(CallRejected):
    """This service could do it, but the service that keeps the ledger cannot."""

    code, status, title, topic = "not_supported", 501, "Not supported", "paid_call"
    advice = "Ask the operator, or the service that sells the credits, about it. Trying again does not help."


class UpstreamUnavailable(CallRejected):
    """No section of a premium answer could be composed, because none of its sources answered."""

    code, status, title, topic = "upstream_unavailable", 503, "Upstream unavailable", "paid_call"
    advice = "Wait as long as `Retry-After` says, then call again. Nothing was charged."
    members = ("retry_after_seconds",)


class ChainUnavailable(CallRejected):
    """The chain that payments are made on cannot be read at the moment."""

    code, status, title, topic = "chain_unavailable", 503, "Chain unavailable", "purchase"
    advice = "Wait as long as `Retry-After` says, then repeat the request. A payment that was made is not lost."
    members = ("retry_after_seconds",)


class StorageUnavailable(CallRejected):
    """The service cannot read or write its own data at the moment."""

    code, status, title = "storage_unavailable", 503, "Storage unavailable"
    advice = "Wait as long as `Retry-After` says, then repeat the request. Nothing was charged, and nothing is lost."
    members = ("retry_after_seconds",)


class TookTooLong(StorageUnavailable, abstract=True):
    """A call about purchases, credits or subscriptions that did not end in time: a matter of load or of a slow disk."""

    def __init__(self, retry_s: int = 5) -> None:
        told = "This took too long; nothing is known to have been done."
        super().__init__(told, headers={"Retry-After": str(retry_s)}, retry_after_seconds=retry_s)


class ShuttingDown(CallRejected):
    """The server is being stopped and takes no new requests."""

    code, status, title = "shutting_down", 503, "Shutting down"
    advice = "Wait as long as `Retry-After` says, then send the request again on a new connection."
    members = ("retry_after_seconds",)


class SalesCeilingReached(CallRejected):
    """The payment would cross a ceiling of what is sold in an hour or a day without a person looking."""

    code, status, title, topic = "sales_ceiling_reached", 503, "Sales ceiling reached", "x402"
    advice = "Nothing was taken. Wait as long as `Retry-After` says, or ask the operator."
    members = ("retry_after_seconds",)


class SettlementPending(CallRejected):
    """A signed payment (x402) was handed on, and it is not known yet whether it was made."""

    code, status, title, topic = "settlement_pending", 503, "Settlement pending", "x402"
    advice = (
        "Wait as long as `Retry-After` says, then send the very same `PAYMENT-SIGNATURE` again: it is not made twice."
        " Do not sign another one."
    )
    members = ("retry_after_seconds",)
