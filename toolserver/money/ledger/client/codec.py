"""Translates between our own types and the messages of the ledger's owner."""

from datetime import datetime
from typing import Any, Literal, NamedTuple

from toolserver.errors import (
    AllowanceConflict,
    CallRejected,
    InsufficientCredits,
    InvalidToken,
    NotFound,
    PaymentRequired,
    RevokedToken,
)
from toolserver.money.ledger.client.http import OwnerRefusal
from toolserver.money.ledger.client.messages import AskAllowances, Committed, Validate, Validated
from toolserver.money.ledger.state import AccountRef, Reservation, Settlement, Who, invalid_token, key_of

CHARGE_TTL_S = 60.0  # of a reservation that is charged immediately


def question(
    who: Who,
    cost: int,
    *,
    service: str,
    call_id: str | None = None,
    endpoint: str = "",
    ttl_s: float = CHARGE_TTL_S,
) -> Validate:
    """Return the request for a reservation, or with cost 0 for the balance."""
    token, ref = (None, who.ref) if isinstance(who, AccountRef) else (who, None)
    return Validate(
        cost=cost, call_id=call_id, token=token, account_ref=ref, service=service, endpoint=endpoint, ttl_s=ttl_s
    )


class OwnerAccount(NamedTuple):
    """The balance of an account, and when its token was issued, in epoch seconds. `payer` is
    the SHA-256 (hex) of the token whose credits are spent, if the owner reports it.
    """

    credits: int
    issued_at: float
    ref: AccountRef
    payer: str | None = None
    allowance: str | None = None


def account(said: Validated) -> OwnerAccount:
    """Return the account that a reply holds."""
    ref = AccountRef(said.account_ref or "")
    return OwnerAccount(said.credits_remaining or 0, seconds(said.issued_at), ref, said.payer, said.allowance)


def reservation(call_id: str, credits: int, said: Validated) -> Reservation:
    """Return the reservation that a reply holds."""
    remaining, replayed = said.credits_remaining or 0, bool(said.replayed)
    return Reservation(call_id, credits, remaining, seconds(said.expires_at), said.state or "open", replayed)


def settlement(call_id: str, said: Committed) -> Settlement:
    """Return the settlement that a reply holds."""
    return Settlement(
        call_id, said.credits_charged, said.balance_after, said.no_charge_reason, said.state, said.replayed
    )


def denial(said: OwnerRefusal, cost: int) -> PaymentRequired:
    """Return the exception to raise for a refusal by the owner."""
    if said.reason == "insufficient_credits":
        left = said.credits_remaining or 0
        why = said.detail or f"This call costs {cost} credits, and {left} are left."
        if said.cap is None:
            return InsufficientCredits(why, required=cost, credits_remaining=left)
        return InsufficientCredits(why, required=cost, credits_remaining=left, cap=said.cap)
    return RevokedToken("The token was revoked.") if said.reason == "expired" else invalid_token()


def ask_allowances(who: Who, action: Literal["create", "list", "change", "revoke"], **fields: Any) -> AskAllowances:
    """Return the request about allowances. Raises invalid_token for a malformed token, which is not sent."""
    key_of(who)
    token, ref = (None, who.ref) if isinstance(who, AccountRef) else (who, None)
    return AskAllowances(action=action, token=token, account_ref=ref, **fields)


def allowance_refusal(said: OwnerRefusal) -> CallRejected:
    """Return the exception to raise for a refusal about allowances."""
    kinds = {kind.code: kind for kind in (AllowanceConflict, NotFound, RevokedToken)}
    return kinds.get(said.reason, InvalidToken)(said.detail or "The token is malformed or unknown.")


def seconds(at: str | None) -> float:
    """Return the epoch seconds of an ISO 8601 time, or 0 if it cannot be read."""
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0
