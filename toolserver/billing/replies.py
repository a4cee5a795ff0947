"""Our words as the owner of the ledger reads them, and its own as ours."""

from datetime import datetime
from typing import NamedTuple

from toolserver.billing.books import AccountRef, Reservation, Settlement, Who, invalid_token
from toolserver.billing.sister import No
from toolserver.billing.wire import Committed, Validate, Validated
from toolserver.errors import PaymentRequired

CHARGE_TTL_S = 60.0  # of what is charged at once


def question(
    who: Who,
    cost: int,
    *,
    service: str,
    call_id: str | None = None,
    endpoint: str = "",
    ttl_s: float = CHARGE_TTL_S,
) -> Validate:
    """What is asked about an account."""
    token, ref = (None, who.ref) if isinstance(who, AccountRef) else (who, None)
    return Validate(
        cost=cost, call_id=call_id, token=token, account_ref=ref, service=service, endpoint=endpoint, ttl_s=ttl_s
    )


class Account(NamedTuple):
    """What can be spent, and since when there is a token for it, in epoch seconds."""

    credits: int
    issued_at: float


def account(said: Validated) -> Account:
    """How an account stands."""
    return Account(said.credits_remaining or 0, seconds(said.issued_at))


def reservation(call_id: str, credits: int, said: Validated) -> Reservation:
    """What was set aside."""
    remaining, replayed = said.credits_remaining or 0, bool(said.replayed)
    return Reservation(call_id, credits, remaining, seconds(said.expires_at), said.state or "open", replayed)


def settlement(call_id: str, said: Committed) -> Settlement:
    """How a call ended."""
    return Settlement(
        call_id, said.credits_charged, said.balance_after, said.no_charge_reason, said.state, said.replayed
    )


def denied(said: No, cost: int) -> PaymentRequired:
    """A refusal as the caller is told it."""
    if said.reason == "insufficient_credits":
        left = said.credits_remaining or 0
        why = f"This call costs {cost} credits and {left} are left."
        return PaymentRequired(said.reason, why, required=cost, credits_remaining=left)
    return PaymentRequired("expired", "The token was revoked.") if said.reason == "expired" else invalid_token()


def seconds(at: str | None) -> float:
    """Epoch seconds of a time as replies have it; 0 when it is none."""
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0
