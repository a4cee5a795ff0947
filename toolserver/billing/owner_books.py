"""What sister services ask of the ledger, in the ledger's terms.

A call_id is a follower's own: in the books it is kept behind the first service that its keys may charge for, so that
none can touch what another one, or we ourselves, have set aside.
"""

import re

from toolserver import ids
from toolserver.billing.books import AccountRef, Settlement, Who
from toolserver.billing.ledger import CallReused, LedgerOwner, UnknownCall
from toolserver.billing.receipts import moment
from toolserver.billing.wire import SILENT, Commit, Committed, Refused, Validate, Validated
from toolserver.errors import PaymentRequired

MOST_TTL_S = 3600.0
MOST_ENDPOINT = 200
_CALL_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class NotAllowed(Exception):
    """The key may not speak for that service."""


class OwnerBooks:
    """The requests, in the ledger's terms."""

    def __init__(self, ledger: LedgerOwner) -> None:
        self._ledger = ledger

    async def validate(self, asked: Validate, services: tuple[str, ...]) -> Validated:
        """Set credits aside. Raises NotAllowed, CallReused, ValueError, PaymentRequired: billing_unavailable."""
        service, who = _service(asked.service, services), _who(asked.token, asked.account_ref)
        if not 0 < asked.ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttl_s is more than 0 and at most {MOST_TTL_S:.0f}")
        if asked.cost == 0:
            return await self._standing(who)
        call_id = _checked(asked.call_id) if asked.call_id is not None else ids.call_id()
        try:
            held = await self._ledger.reserve(
                _name(call_id, services),
                who,
                asked.cost,
                endpoint=asked.endpoint[:MOST_ENDPOINT],
                ttl_s=asked.ttl_s,
                service=service,
            )
            standing = await self._ledger.standing(who)
        except PaymentRequired as refusal:
            return _denied(refusal)
        return Validated(
            ok=True,
            sufficient=True,
            reservation_id=call_id,
            credits_remaining=held.remaining,
            expires_at=moment(held.expires_at),
            account_ref=standing.ref.ref,
            token_fp=standing.fingerprint,
            issued_at=moment(standing.issued_at),
            state=held.state,
            replayed=held.replayed,
        )

    async def commit(self, asked: Commit, services: tuple[str, ...]) -> Committed | Refused | Validated:
        """Charge or release. Raises as `validate` does."""
        if asked.outcome not in (None, "charge", "release"):
            raise ValueError("outcome is charge or release")
        reason = _reason(asked)
        service = _service(asked.service, services)
        given = {id for id in (asked.call_id, asked.reservation_id) if id is not None}
        if len(given) > 1:
            raise ValueError("call_id and reservation_id are the same")
        if not given:
            return await self._at_once(asked, reason, _name(ids.call_id(), services), service)
        return await self._settled(_name(_checked(given.pop()), services), asked, reason)

    async def _settled(self, call_id: str, asked: Commit, reason: str | None) -> Committed | Refused:
        """The settlement of a reservation, which has to be the caller's idea of it if there is one."""
        if asked.token is not None or asked.account_ref is not None:
            other = await self._other(call_id, asked)
            if other is not None:
                return Refused(ok=False, reason=other)
        try:
            return _committed(await self._ledger.settle(call_id, no_charge=reason))
        except UnknownCall:
            return Refused(ok=False, reason="reservation_not_found")

    async def _other(self, call_id: str, asked: Commit) -> str | None:
        """Why this is not the reservation that token and cost belong to. Asked for again, a reservation says so."""
        who, cost = _who(asked.token, asked.account_ref), _cost(asked)
        try:
            held = await self._ledger.reserve(call_id, who, cost, endpoint=asked.endpoint[:MOST_ENDPOINT], ttl_s=0)
        except CallReused:
            return "reservation_mismatch"
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            # a revoked token's calls are settled as ever; whoever has too little never had this reservation
            return {"invalid_token": "reservation_mismatch", "insufficient_credits": "reservation_not_found"}.get(
                refusal.code
            )
        if held.replayed:
            return None
        await self._ledger.settle(call_id, no_charge="reservation_not_found")
        return "reservation_not_found"

    async def _at_once(self, asked: Commit, reason: str | None, call_id: str, service: str) -> Committed | Validated:
        """The oldest callers name no reservation: they are charged in one step, or nothing has happened."""
        who, cost = _who(asked.token, asked.account_ref), _cost(asked)
        try:
            if reason is not None:
                left = await self._ledger.balance(who)
                return Committed(
                    ok=True, state="voided", credits_charged=0, balance_after=left, no_charge_reason=reason
                )
            return _committed(
                await self._ledger.charge(call_id, who, cost, endpoint=asked.endpoint[:MOST_ENDPOINT], service=service)
            )
        except PaymentRequired as refusal:
            return _denied(refusal)

    async def _standing(self, who: Who) -> Validated:
        try:
            found = await self._ledger.standing(who)
        except PaymentRequired as refusal:
            return _denied(refusal)
        if found.revoked is not None:
            return Validated(ok=False, reason="expired")
        return Validated(
            ok=True,
            sufficient=True,
            credits_remaining=found.credits,
            account_ref=found.ref.ref,
            token_fp=found.fingerprint,
            issued_at=moment(found.issued_at),
        )


def _committed(settled: Settlement) -> Committed:
    return Committed(
        ok=True,
        state=settled.state,
        credits_charged=settled.charged,
        balance_after=settled.remaining,
        no_charge_reason=settled.reason,
        replayed=settled.replayed,
    )


def _denied(refusal: PaymentRequired) -> Validated:
    """A refusal as a reply. That the ledger is out of order is none."""
    if refusal.code == "billing_unavailable":
        raise refusal
    left = refusal.extra.get("credits_remaining")
    return Validated(ok=False, reason=refusal.code, credits_remaining=left, sufficient=None if left is None else False)


def _who(token: str | None, ref: str | None) -> Who:
    if (token is None) == (ref is None):
        raise ValueError("either token or account_ref is given")
    return token if token is not None else AccountRef(ref or "")


def _cost(asked: Commit) -> int:
    if asked.cost is None:
        raise ValueError("with a token or account_ref, cost is given")
    return asked.cost


def _service(given: str | None, allowed: tuple[str, ...]) -> str:
    if given is not None and given not in allowed:
        raise NotAllowed("this key may not charge for that service")
    return given or allowed[0]


def _name(call_id: str, services: tuple[str, ...]) -> str:
    return f"{services[0]}:{call_id}"


def _checked(call_id: str) -> str:
    if not _CALL_ID.fullmatch(call_id):
        raise ValueError("a call_id has 1 to 100 letters, digits, dots, dashes and underscores")
    return call_id


def _reason(asked: Commit) -> str | None:
    """Why nothing is to be charged; None: it is. Any reason will do, be it one that nobody has heard of."""
    given = asked.no_charge_reason
    if given is not None:
        return given if isinstance(given, str) else str(given)
    return SILENT if asked.outcome == "release" else None
