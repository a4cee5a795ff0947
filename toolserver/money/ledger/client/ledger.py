"""Uses the ledger of a sister service over HTTP: the owner keeps the accounts, and this service a journal of its calls.

Each call is journalled before a request goes to the owner. If this service cannot know how the call ended, because a
reply was lost, the process crashed or the caller hung up, the call is released. The release is sent until the owner
acknowledges it, and it wins over every charge.
"""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import anyio
from cachetools import TTLCache

from toolserver.clock import Clock
from toolserver.errors import BillingUnavailable, NotSupported, PaymentRequired
from toolserver.money.ledger.allowance import Allowance, AllowanceChange, AllowanceTerms
from toolserver.money.ledger.client.codec import (
    CHARGE_TTL_S,
    OwnerAccount,
    account,
    allowance_refusal,
    ask_allowances,
    denial,
    question,
    reservation,
    settlement,
)
from toolserver.money.ledger.client.deliveries import Deliveries
from toolserver.money.ledger.client.http import TRIES, LedgerOwnerClient, OwnerRefusal, Rejected, Unanswered
from toolserver.money.ledger.client.journal import Journal
from toolserver.money.ledger.client.messages import (
    ALLOWANCES,
    COMMIT,
    VALIDATE,
    AskAllowances,
    Commit,
    Committed,
    ToldAllowances,
    Validate,
    Validated,
)
from toolserver.money.ledger.client.outbox import Outbox
from toolserver.money.ledger.operations import Reserve
from toolserver.money.ledger.protocol import CallReused, UnknownCall
from toolserver.money.ledger.state import Reservation, Settlement, Who, key_of
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit

log = logging.getLogger(__name__)

AFTER_S = 1.0  # the outbox waits this long before it tries an owner again that has just failed to answer
OWN_TRY_S = 5.0  # the outbox leaves a release to the caller that asked for it for this long
NOBODY = "svc_live_" + "0" * 64  # a token that does not exist: a request about it shows what the owner supports
KNOWN, KNOWN_S, UNKNOWN_S = 10_000, 5.0, 5.0


class OwnerHealth(NamedTuple):
    """The state of the connection to the owner: how often the breaker opened, and how many releases are waiting.

    `rejected` is the HTTP status (401 or 403) with which the owner rejects every request, or None.
    """

    state: str
    opened: int
    wait_s: float
    waiting: int
    rejected: int | None = None

    @property
    def is_up(self) -> bool:
        """True if credits can be charged."""
        return self.state == "closed" and self.rejected is None


class HttpLedger:
    """A `Ledger` that a sister service keeps. `connect.build_ledger_client` makes it."""

    def __init__(
        self, owner: LedgerOwnerClient, journal: Journal, file: GroupCommit, *, service: str, clock: Clock
    ) -> None:
        self.owner, self.journal, self.file = owner, journal, file
        self.outbox = Outbox(journal, owner)
        self.deliveries = Deliveries(journal)
        self.died: list[str] = []  # calls whose answers were not sent before the previous process ended
        self.service = service
        self._known: TTLCache[str, str] = TTLCache(KNOWN, KNOWN_S, timer=clock.monotonic)

    @property
    def health(self) -> OwnerHealth:
        """The state of the connection, for health checks and metrics."""
        breaker = self.owner.breaker
        return OwnerHealth(breaker.state, breaker.opened, breaker.wait_s, self.outbox.size, self.owner.rejected)

    async def knows(self, token: str) -> bool:
        return await self.find_payer(token) is not None

    async def find_payer(self, token: str) -> str | None:
        try:
            key = key_of(token)
            payer = self._known.get(key)
            if payer is None:
                with self._require_owner():
                    said = await self.owner.ask(VALIDATE, question(token, 0, service=self.service), Validated, tries=1)
                payer = self._known[key] = "" if isinstance(said, OwnerRefusal) else said.payer or key
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return None
        return payer or None

    async def balance(self, who: Who) -> int:
        return (await self.account(who)).credits

    async def account(self, who: Who) -> OwnerAccount:
        """Return the balance, and when the token was issued. Raises PaymentRequired: invalid_token or expired."""
        key_of(who)  # a malformed token is not sent
        with self._require_owner():
            said = await self.owner.ask(VALIDATE, question(who, 0, service=self.service), Validated)
        if isinstance(said, OwnerRefusal):
            raise denial(said, 0)
        return account(said)

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        Reserve(call_id, key_of(who), credits, endpoint)  # an amount that no ledger accepts is not sent
        asked = question(who, credits, call_id=call_id, endpoint=endpoint, ttl_s=ttl_s, service=service or self.service)
        if not self.owner.breaker.closed:
            raise self._unavailable("the circuit to the ledger is open")
        with self._require_journal():
            return await self._reserve_at_owner(call_id, asked)

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        with self._require_journal():
            if no_charge is None:
                return await self._charge_at_owner(call_id, undelivered=undelivered)
            return await self._release_at_owner(call_id, no_charge)

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        await self.reserve(call_id, who, credits, endpoint=endpoint, ttl_s=CHARGE_TTL_S, service=service)
        return await self.settle(call_id, no_charge=None, undelivered=undelivered)

    async def create_allowance(self, who: Who, hash: str, terms: AllowanceTerms) -> Allowance:
        return (await self._ask_allowances(ask_allowances(who, "create", hash=hash, terms=terms)))[0]

    async def list_allowances(self, who: Who) -> list[Allowance]:
        return await self._ask_allowances(ask_allowances(who, "list"))

    async def change_allowance(self, who: Who, id: str, change: AllowanceChange) -> Allowance:
        return (await self._ask_allowances(ask_allowances(who, "change", id=id, change=change)))[0]

    async def revoke_allowance(self, who: Who, id: str) -> Allowance:
        revoked = (await self._ask_allowances(ask_allowances(who, "revoke", id=id)))[0]
        self._known.pop(revoked.hash, None)
        return revoked

    async def keeps_allowances(self) -> bool:
        """Return True if the owner keeps allowances, or cannot be reached now."""
        try:
            await self._ask_allowances(ask_allowances(NOBODY, "list"), tries=1)
        except NotSupported:
            return False
        except PaymentRequired:
            pass
        return True

    async def _ask_allowances(self, asked: AskAllowances, tries: int = TRIES) -> list[Allowance]:
        """Send a request about allowances. Raises PaymentRequired, NotFound, AllowanceConflict, NotSupported."""
        try:
            said = await self.owner.ask(ALLOWANCES, asked, ToldAllowances, tries=tries)
        except Unanswered as failure:
            if isinstance(failure.__cause__, Rejected) and failure.__cause__.status in (404, 405):
                raise NotSupported("The service that keeps the ledger does not support allowances.") from failure
            raise self._unavailable(str(failure)) from failure
        if isinstance(said, OwnerRefusal):
            raise allowance_refusal(said)
        return said.allowances

    def delivered(self, call_id: str) -> None:
        self.deliveries.finish(call_id)

    # --- one step each ---

    async def _reserve_at_owner(self, call_id: str, asked: Validate) -> Reservation:
        fresh = False
        try:
            fresh = await self.journal.note(call_id, "reserving") is None
            said = await self.owner.ask(VALIDATE, asked, Validated)
        except Unanswered as failure:
            if failure.perhaps or not fresh:
                await self._queue(call_id, "circuit_breaker", AFTER_S)
            else:
                await self._forget_call(call_id)
            raise self._unavailable(str(failure)) from failure
        except CallReused:
            if fresh:
                await self._forget_call(call_id)
            raise
        except anyio.get_cancelled_exc_class():
            await self._queue(call_id, "cancelled")
            raise
        if isinstance(said, OwnerRefusal):
            if fresh:
                await self._forget_call(call_id)
            raise denial(said, asked.cost)
        return reservation(call_id, asked.cost, said)

    async def _charge_at_owner(self, call_id: str, *, undelivered: bool) -> Settlement:
        try:
            if await self.journal.note(call_id, "committing") == "releasing":
                return await self._release_at_owner(call_id, "delivery_failed")
            asked = Commit(call_id=call_id, reservation_id=call_id, outcome="charge")
            said = await self.owner.ask(COMMIT, asked, Committed)
            if isinstance(said, OwnerRefusal) or not said.credits_charged or not undelivered:
                await self.journal.done(call_id)
            else:
                self.deliveries.begin(call_id)
                await self._note_committed(call_id)
        except Unanswered as failure:
            await self._queue(call_id, "circuit_breaker", AFTER_S)
            raise self._unavailable(str(failure)) from failure
        except anyio.get_cancelled_exc_class():
            await self._queue(call_id, "cancelled")
            raise
        if isinstance(said, OwnerRefusal):
            raise UnknownCall(f"{call_id}: {said.reason}")
        return settlement(call_id, said)

    async def _note_committed(self, call_id: str) -> None:
        """Journal the charge, which stands even if the disk fails: the step before is enough for a release after a
        crash.
        """
        try:
            await self.journal.note(call_id, "committed")
        except StorageFailed:
            log.exception("a charge could not be noted", extra={"call_id": call_id})

    async def _release_at_owner(self, call_id: str, reason: str) -> Settlement:
        await self._queue(call_id, reason, OWN_TRY_S)
        try:
            said = await self.outbox.send(call_id, reason)
        except Unanswered as failure:
            raise self._unavailable(str(failure)) from failure
        if said is None:
            raise UnknownCall(f"{call_id} was never reserved")
        return settlement(call_id, said)

    async def _queue(self, call_id: str, reason: str, wait_s: float = 0.0) -> None:
        """Journal that the call is to be released, even if the caller is cancelled in the meantime."""
        self.deliveries.cancel(call_id)
        with anyio.CancelScope(shield=True):
            await self.journal.release(call_id, reason, wait_s=wait_s)
        self.outbox.wake()

    async def _forget_call(self, call_id: str) -> None:
        """Forget a call that never reached the owner, even if the caller is cancelled in the meantime."""
        with anyio.CancelScope(shield=True):
            await self.journal.done(call_id)

    # --- failures ---

    @contextmanager
    def _require_owner(self) -> Iterator[None]:
        try:
            yield
        except Unanswered as failure:
            raise self._unavailable(str(failure)) from failure

    @contextmanager
    def _require_journal(self) -> Iterator[None]:
        """Refuse the call if the journal cannot be written."""
        try:
            yield
        except StorageFailed as failure:
            log.exception("the journal of calls cannot be written")
            raise self._unavailable("no journal") from failure

    def _unavailable(self, why: str) -> PaymentRequired:
        log.info("a call could not be billed: %s", why)
        wait = max(1, math.ceil(self.owner.breaker.wait_s)) if not self.owner.breaker.closed else 5
        return BillingUnavailable(
            "The credit ledger cannot be reached at the moment. Nothing was charged.",
            headers={"Retry-After": str(wait)},
        )
