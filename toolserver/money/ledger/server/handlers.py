"""Translates the requests of sister services into operations of the ledger.

A call_id belongs to the service that sends it. The ledger prefixes it with the name of the first service that the key
may charge for, so that no service can touch the reservations of another service or of this one.
"""

import re
from dataclasses import replace

from toolserver.clock import Clock
from toolserver.core import ids
from toolserver.core.models import iso_ms
from toolserver.errors import AllowanceConflict, NotFound, PaymentRequired
from toolserver.money.ledger.allowance import TERMS, Allowance, check_end
from toolserver.money.ledger.client.messages import (
    SILENT,
    AllowancesRefused,
    AskAllowances,
    Commit,
    CommitRefused,
    Committed,
    ToldAllowances,
    Validate,
    Validated,
)
from toolserver.money.ledger.protocol import CallReused, LedgerOwner, UnknownCall, milliseconds
from toolserver.money.ledger.state import AccountRef, Settlement, Who, name_call

MOST_TTL_S = 3600.0
MOST_ENDPOINT = 200
_HASH = re.compile(r"[0-9a-f]{64}")
_CALL_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class NotAllowed(Exception):
    """The key may not charge for that service."""


class LedgerHandlers:
    """Serves Validate and Commit over a ledger."""

    def __init__(self, ledger: LedgerOwner, clock: Clock) -> None:
        self._ledger, self._now = ledger, milliseconds(clock)

    async def validate(self, asked: Validate, services: tuple[str, ...]) -> Validated:
        """Reserve credits. Raises NotAllowed, CallReused, ValueError, PaymentRequired: billing_unavailable."""
        service, who = _service(asked.service, services), _who(asked.token, asked.account_ref)
        if not 0 < asked.ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttl_s must be more than 0 and at most {MOST_TTL_S:.0f}")
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
            expires_at=iso_ms(held.expires_at),
            account_ref=standing.ref.ref,
            token_fp=standing.fingerprint,
            payer=standing.payer,
            allowance=standing.allowance,
            issued_at=iso_ms(standing.issued_at),
            state=held.state,
            replayed=held.replayed,
        )

    async def commit(self, asked: Commit, services: tuple[str, ...]) -> Committed | CommitRefused:
        """Charge or release a reservation. Raises as `validate` does.

        A commit that names no reservation is refused: if it came twice, it would be charged twice.
        """
        if asked.outcome not in (None, "charge", "release"):
            raise ValueError("outcome must be charge or release")
        reason = _reason(asked)
        _service(asked.service, services)
        given = {id for id in (asked.call_id, asked.reservation_id) if id is not None}
        if len(given) > 1:
            raise ValueError("call_id and reservation_id must be the same")
        if not given:
            raise ValueError("call_id or reservation_id must name a reservation: validate answers with its id")
        return await self._settled(_name(_checked(given.pop()), services), asked, reason)

    async def manage_allowances(
        self, asked: AskAllowances, services: tuple[str, ...]
    ) -> ToldAllowances | AllowancesRefused:
        """Create, list, change or revoke. Raises ValueError, PaymentRequired: billing_unavailable.

        It takes the token itself. A sister service has the reference of every account that has ever called it; only
        who holds the token agrees to a second one. What a service creates pays for its own calls only. It lists and
        revokes every allowance of the token, so that people can wherever they are, and changes only its own.
        """
        try:
            found = await self._manage(asked, services[0])
            return ToldAllowances(ok=True, allowances=[_shown_to(services[0], each) for each in found])
        except (AllowanceConflict, NotFound, PaymentRequired) as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return AllowancesRefused(ok=False, reason=refusal.code, detail=refusal.detail)

    async def _manage(self, asked: AskAllowances, service: str) -> list[Allowance]:
        ledger, who, id = self._ledger, _bearer(asked), asked.id or ""
        for terms in (asked.terms, asked.change and asked.change.terms):
            if terms is not None:
                check_end(terms.expires_at, self._now())
        if asked.action == "list":
            return await ledger.list_allowances(who)
        if asked.action == "revoke":
            return [await ledger.revoke_allowance(who, id)]
        if asked.action == "change" and asked.change is not None:
            if not asked.change.given <= TERMS:
                raise ValueError("a change may name only terms of an allowance")
            return [await ledger.change_allowance(who, id, asked.change, service=service)]
        if asked.terms is None or asked.hash is None or not _HASH.fullmatch(asked.hash):
            raise ValueError("create needs terms and the hash of a token, and change needs a change")
        return [await ledger.create_allowance(who, asked.hash, asked.terms, service=service)]

    async def _settled(self, call_id: str, asked: Commit, reason: str | None) -> Committed | CommitRefused:
        """Settle a reservation. If the caller names a token and a cost, they must match the reservation."""
        if asked.token is not None or asked.account_ref is not None:
            other = await self._other(call_id, asked)
            if other is not None:
                return CommitRefused(ok=False, reason=other)
        try:
            return _committed(await self._ledger.settle(call_id, no_charge=reason))
        except UnknownCall:
            return CommitRefused(ok=False, reason="reservation_not_found")

    async def _other(self, call_id: str, asked: Commit) -> str | None:
        """Return why token and cost do not match the reservation, by reserving again; None if they match."""
        who, cost = _who(asked.token, asked.account_ref), _cost(asked)
        try:
            held = await self._ledger.reserve(call_id, who, cost, endpoint=asked.endpoint[:MOST_ENDPOINT], ttl_s=0)
        except CallReused:
            return "reservation_mismatch"
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            # calls of a revoked token can be settled; a token with too few credits never had this reservation
            return {"invalid_token": "reservation_mismatch", "insufficient_credits": "reservation_not_found"}.get(
                refusal.code
            )
        if held.replayed:
            return None
        await self._ledger.settle(call_id, no_charge="reservation_not_found")
        return "reservation_not_found"

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
            payer=found.payer,
            allowance=found.allowance,
            issued_at=iso_ms(found.issued_at),
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
    """Return a refusal as a reply. Re-raises BillingUnavailable, which is not a refusal."""
    if refusal.code == "billing_unavailable":
        raise refusal
    left = refusal.extra.get("credits_remaining")
    return Validated(
        ok=False,
        reason=refusal.code,
        credits_remaining=left,
        sufficient=None if left is None else False,
        cap=(cap := refusal.extra.get("cap")),
        detail=None if cap is None else refusal.detail,
    )


def _who(token: str | None, ref: str | None) -> Who:
    if (token is None) == (ref is None):
        raise ValueError("give either token or account_ref, and not both")
    return token if token is not None else AccountRef(ref or "")


def _shown_to(service: str, allowance: Allowance) -> Allowance:
    """Return an allowance as a sister service sees it: without what charges it, if it was made elsewhere."""
    return allowance if allowance.service == service else replace(allowance, hash="", ref="")


def _bearer(asked: AskAllowances) -> str:
    if asked.token is None or asked.account_ref is not None:
        raise ValueError("allowances are managed with the token whose credits they spend, not with account_ref")
    return asked.token


def _cost(asked: Commit) -> int:
    if asked.cost is None:
        raise ValueError("cost is required with a token or account_ref")
    return asked.cost


def _service(given: str | None, allowed: tuple[str, ...]) -> str:
    if given is not None and given not in allowed:
        raise NotAllowed("this key may not charge for that service")
    return given or allowed[0]


def _name(call_id: str, services: tuple[str, ...]) -> str:
    return name_call(services[0], call_id)


def _checked(call_id: str) -> str:
    if not _CALL_ID.fullmatch(call_id):
        raise ValueError("a call_id must have 1 to 100 letters, digits, dots, dashes and underscores")
    return call_id


def _reason(asked: Commit) -> str | None:
    """Return the reason for not charging, as any text, or None if the call is to be charged."""
    given = asked.no_charge_reason
    if given is not None:
        return given if isinstance(given, str) else str(given)
    return SILENT if asked.outcome == "release" else None
