"""Translation between our terms and the messages of the ledger's owner."""

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
from toolserver.ledger.client.http import OwnerRefusal
from toolserver.ledger.client.messages import AskAllowances, Committed, Validate, Validated
from toolserver.ledger.state import AccountRef, Reservation, Settlement, Who, invalid_token, key_of

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
    """The request for a reservation, or with cost 0 for the balance."""
    token, ref = (None, who.ref) if isinstance(who, AccountRef) else (who, None)
    return Validate(
        cost=cost, call_id=call_id, token=token, account_ref=ref, service=service, endpoint=endpoint, ttl_s=ttl_s
    )


class OwnerAccount(NamedTuple):
    """The balance of an account, and when its token was issued, in epoch seconds. `payer` is the SHA-256 (hex) of the
    token whose credits are spent, where the owner says it.
    """

    credits: int
    issued_at: float
    ref: AccountRef
    payer: str | None = None
    allowance: str | None = None


def account(said: Validated) -> OwnerAccount:
    """The account in a reply."""
    ref = AccountRef(said.account_ref or "")
    return OwnerAccount(said.credits_remaining or 0, seconds(said.issued_at), ref, said.payer, said.allowance)


def reservation(call_id: str, credits: int, said: Validated) -> Reservation:
    """The reservation in a reply."""
    remaining, replayed = said.credits_remaining or 0, bool(said.replayed)
    return Reservation(call_id, credits, remaining, seconds(said.expires_at), said.state or "open", replayed)


def settlement(call_id: str, said: Committed) -> Settlement:
    """The settlement in a reply."""
    return Settlement(
        call_id, said.credits_charged, said.balance_after, said.no_charge_reason, said.state, said.replayed
    )


def denial(said: OwnerRefusal, cost: int) -> PaymentRequired:
    """The exception for the caller that a refusal of the owner means."""
    if said.reason == "insufficient_credits":
        left = said.credits_remaining or 0
        why = said.detail or f"This call costs {cost} credits and {left} are left."
        more: dict[str, Any] = {} if said.cap is None else {"cap": said.cap}
        return InsufficientCredits(why, required=cost, credits_remaining=left, **more)
    return RevokedToken("The token was revoked.") if said.reason == "expired" else invalid_token()


def ask_allowances(who: Who, action: Literal["create", "list", "change", "revoke"], **given: Any) -> AskAllowances:
    """The request about allowances. Raises invalid_token for a malformed token, which is not sent."""
    key_of(who)
    token, ref = (None, who.ref) if isinstance(who, AccountRef) else (who, None)
    return AskAllowances(action=action, token=token, account_ref=ref, **given)


def allowance_refusal(said: OwnerRefusal) -> CallRejected:
    """The exception for the caller that a refusal about allowances means."""
    kinds = {kind.code: kind for kind in (AllowanceConflict, NotFound, RevokedToken)}
    return kinds.get(said.reason, InvalidToken)(said.detail or "The token is malformed or unknown.")


def seconds(at: str | None) -> float:
    """Epoch seconds of an ISO 8601 time; 0 when it cannot be read."""
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0
