"""Every error code: the one table that error bodies, error pages and the API description are made from."""

from dataclasses import dataclass
from typing import Any

from toolserver.documents import PAYMENTS, PRICING, Facts


@dataclass(frozen=True, slots=True)
class Problem:
    """One error code: what happened, what to do, and the extra members of its body."""

    code: str
    status: int
    title: str
    meaning: str
    advice: str
    members: tuple[str, ...] = ()

    @property
    def about_payment(self) -> bool:
        """Whether it can only happen where something is sold."""
        return self.status in (402, 409, 422, 503)


_TABLE = (
    Problem(
        "invalid_arguments",
        400,
        "Invalid arguments",
        "An argument is missing, of the wrong type, out of range or not one of the allowed values.",
        "Read `errors`: each entry names the argument and what is wrong with it. Nothing was run and nothing charged.",
        ("errors",),
    ),
    Problem(
        "invalid_json",
        400,
        "Invalid JSON",
        "The request body is not a JSON object.",
        "Send one JSON object, encoded as UTF-8, with `Content-Type: application/json`.",
    ),
    Problem(
        "missing_token",
        402,
        "Payment required",
        "The call needs a bearer token and none was sent.",
        "Send `Authorization: Bearer svc_live_…`. A token comes with the first purchase of credits.",
    ),
    Problem(
        "invalid_token",
        402,
        "Payment required",
        "The token has the wrong form or is not known here.",
        "Check that the whole token was copied: `svc_live_` and 64 hexadecimal digits.",
    ),
    Problem(
        "expired",
        402,
        "Payment required",
        "The token was revoked, by the operator or because its payment was undone on the chain.",
        "Buy a new pack; the old token does not come back.",
    ),
    Problem(
        "insufficient_credits",
        402,
        "Payment required",
        "The token is good, but holds fewer credits than the call costs.",
        "Buy credits, or call a cheaper or free tool. Nothing was run and nothing charged.",
        ("required", "credits_remaining"),
    ),
    Problem(
        "billing_unavailable",
        402,
        "Payment required",
        "The ledger cannot be reached, so no paid call can be accepted at the moment.",
        "Wait as long as `Retry-After` says, then send the same call again. Nothing was charged.",
        ("retry_after_seconds",),
    ),
    Problem(
        "payment_required",
        402,
        "Payment required",
        "The call has to be paid for.",
        "Follow `signup`: it leads to the prices and to the ways to pay.",
    ),
    Problem(
        "not_found",
        404,
        "Not found",
        "There is nothing at this address, or the identifier belongs to nobody you can act for.",
        "Look at `did_you_mean` and at the catalogue behind `catalog`.",
        ("did_you_mean", "catalog"),
    ),
    Problem(
        "method_not_allowed",
        405,
        "Method not allowed",
        "The address exists, but not for this HTTP method.",
        "Use one of the methods in the `Allow` header.",
    ),
    Problem(
        "payment_pending",
        409,
        "Payment pending",
        "The transfer is not yet seen, or not yet confirmed often enough.",
        "Wait as long as `Retry-After` says, then confirm again with the same hash and memo.",
        ("confirmations", "required", "retry_after_seconds"),
    ),
    Problem(
        "no_matching_transfer",
        409,
        "No matching transfer",
        "The transaction holds no USDC transfer to the address of this purchase.",
        "Check the hash, the chain, the token and the address that the quote named.",
    ),
    Problem(
        "below_minimum",
        409,
        "Below the minimum",
        "Less than the smallest purchase arrived.",
        "Pay at least 1 USD in a single transfer.",
    ),
    Problem(
        "already_credited",
        409,
        "Already credited",
        "This purchase or this transaction has been turned into credits before.",
        "Use the token that the first confirmation returned.",
    ),
    Problem(
        "payer_proof_required",
        409,
        "Proof of the payer required",
        "Whoever confirms has not shown whose purchase it is: the receiving address is shared, or the quote was locked"
        " with `claim_challenge`.",
        "Confirm again with what `detail` asks for: `payer_signature`, signed by the account that paid, or the"
        " `claim_verifier` behind the challenge.",
    ),
    Problem(
        "payload_too_large",
        413,
        "Payload too large",
        "The request body is larger than this service reads.",
        "Send at most `limit_bytes` bytes.",
        ("limit_bytes",),
    ),
    Problem(
        "unsupported_media_type",
        415,
        "Unsupported media type",
        "The body is announced as something other than JSON.",
        "Send `Content-Type: application/json`.",
    ),
    Problem(
        "idempotency_conflict",
        422,
        "Idempotency conflict",
        "The same `Idempotency-Key` was used before, with other arguments.",
        "Use a new key for a new call, and repeat a key only to repeat the very same call.",
    ),
    Problem(
        "rate_limited",
        429,
        "Rate limit exceeded",
        "More calls than the limit named in `limit` allows.",
        "Wait `retry_after_seconds`, then call again. There is no penalty; until then the data are the same.",
        ("retry_after_seconds", "limit"),
    ),
    Problem(
        "internal_error",
        500,
        "Internal error",
        "Something failed on our side.",
        "Try again; if it stays, tell the operator the `request_id`. Nothing was charged.",
    ),
    Problem(
        "upstream_unavailable",
        503,
        "Upstream unavailable",
        "No section of a premium answer could be composed, because none of its sources answered.",
        "Wait as long as `Retry-After` says, then call again. Nothing was charged.",
        ("retry_after_seconds",),
    ),
    Problem(
        "chain_unavailable",
        503,
        "Chain unavailable",
        "The chain that payments are made on cannot be read at the moment.",
        "Wait as long as `Retry-After` says, then send the same request again. A payment that was made is not lost.",
        ("retry_after_seconds",),
    ),
    Problem(
        "settlement_pending",
        503,
        "Settlement pending",
        "A signed payment (x402) was handed on, and it is not known yet whether it was made.",
        "Wait as long as `Retry-After` says, then send the very same `PAYMENT-SIGNATURE` again: it is not made twice."
        " Do not sign another one.",
        ("retry_after_seconds",),
    ),
)

PROBLEMS: dict[str, Problem] = {problem.code: problem for problem in _TABLE}


def with_status(status: int) -> list[Problem]:
    """The problems that come with an HTTP status."""
    return [problem for problem in _TABLE if problem.status == status]


def example(problem: Problem, *, facts: Facts, request_id: str) -> dict[str, Any]:
    """A body as it could come, for documents."""
    return body(problem.code, problem.meaning.replace("`", ""), facts=facts, request_id=request_id)


def body(code: str, detail: str, *, facts: Facts, request_id: str, **extra: Any) -> dict[str, Any]:
    """The JSON body of a failure: RFC 9457, except that payment failures have the shape of the specification."""
    problem = PROBLEMS[code]
    if problem.status == 402:
        told: dict[str, Any] = {"error": code, "signup": facts.url(PAYMENTS), "pricing": PRICING}
    else:
        url = facts.url(f"/problems/{code}")
        told = {"type": url, "title": problem.title, "status": problem.status, "error": code}
    return {**told, "detail": detail, "request_id": request_id, **extra}
