"""Uses the ledger of a sister service over HTTP: the owner keeps the accounts, and this service a journal of its calls.

Each call is journalled before a request goes to the owner. If this service cannot know how
the call ended, because a reply was lost, the process crashed or the caller hung up, the call
is released. The release is sent until the owner acknowledges it, and it wins over every
charge.
"""

import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
from cachetools import LRUCache, TTLCache

from toolserver.clock import Clock, SystemClock
from toolserver.core.circuit_breaker import CircuitBreaker
from toolserver.core.http import HttpClient, Transport
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
from toolserver.money.ledger.client.http import (
    TRIES,
    LedgerOwnerClient,
    OwnerRefusal,
    Rejected,
    Unanswered,
    choose_pause,
)
from toolserver.money.ledger.client.journal_store import Journal, Release
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
from toolserver.money.ledger.operations import Reserve
from toolserver.money.ledger.protocol import CallReused, UnknownCall
from toolserver.money.ledger.state import Reservation, Settlement, Who, key_of
from toolserver.settings import LedgerSettings as Settings
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.sqlite import durable

log = logging.getLogger(__name__)

AFTER_S = 1.0  # the outbox waits this long before it tries an owner again that has just failed to answer
OWN_TRY_S = 5.0  # the outbox leaves a release to the caller that asked for it for this long
NOBODY = "svc_live_" + "0" * 64  # a token that does not exist: a request about it shows what the owner supports
KNOWN, KNOWN_S, UNKNOWN_S = 10_000, 5.0, 5.0
LONGEST_S = 60.0  # between two checks of the journal, as its clock may be set
AGAIN_S = 5.0  # until the next check after the journal failed
CLOSE_S = 2.0  # for the journal and the connection, at the end


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
        self.deliveries = Deliveries(journal)
        self.outbox = Outbox(journal, owner, self.deliveries)
        self.service = service
        self._known: TTLCache[str, str] = TTLCache(KNOWN, KNOWN_S, timer=clock.monotonic)
        self.prices: LRUCache[str, int] = LRUCache(KNOWN)  # by call_id, of calls that the owner has reserved

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
        self,
        call_id: str,
        who: Who,
        credits: int,
        *,
        endpoint: str,
        ttl_s: float,
        service: str = "",
        undelivered: bool = False,
    ) -> Reservation:
        """Reserve at the owner. The journal notes every call, so that each ends with this process."""
        Reserve(call_id, key_of(who), credits, endpoint)  # an amount that no ledger accepts is not sent
        request = question(
            who, credits, call_id=call_id, endpoint=endpoint, ttl_s=ttl_s, service=service or self.service
        )
        if not self.owner.breaker.closed:
            raise self._unavailable("the circuit to the ledger is open")
        with self._require_journal():
            return await self._reserve_at_owner(call_id, request)

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        with self._require_journal():
            if no_charge is None:
                return await self._charge_at_owner(call_id, undelivered=undelivered)
            return await self._release_at_owner(call_id, no_charge)

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        await self.reserve(call_id, who, credits, endpoint=endpoint, ttl_s=CHARGE_TTL_S, service=service)
        try:
            return await self.settle(call_id, no_charge=None, undelivered=undelivered)
        except UnknownCall as failure:
            raise self._unavailable(f"the owner of the ledger refused to charge {failure}") from failure

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

    async def _ask_allowances(self, request: AskAllowances, tries: int = TRIES) -> list[Allowance]:
        """Send a request about allowances. Raises PaymentRequired, NotFound, AllowanceConflict, NotSupported."""
        try:
            said = await self.owner.ask(ALLOWANCES, request, ToldAllowances, tries=tries)
        except Unanswered as failure:
            if isinstance(failure.__cause__, Rejected) and failure.__cause__.status in (404, 405):
                raise NotSupported("The service that keeps the ledger does not support allowances.") from failure
            raise self._unavailable(str(failure)) from failure
        if isinstance(said, OwnerRefusal):
            raise allowance_refusal(said)
        return said.allowances

    def delivered(self, call_id: str) -> None:
        self.deliveries.finish(call_id)

    def lost(self, call_id: str) -> None:
        self.deliveries.lose(call_id)
        self.outbox.wake()

    # --- one step each ---

    async def _reserve_at_owner(self, call_id: str, request: Validate) -> Reservation:
        fresh = False
        try:
            fresh = await self.journal.note(call_id, "reserving") is None
            said = await self.owner.ask(VALIDATE, request, Validated)
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
            raise denial(said, request.cost)
        self.prices[call_id] = request.cost
        return reservation(call_id, request.cost, said)

    async def _charge_at_owner(self, call_id: str, *, undelivered: bool) -> Settlement:
        try:
            if await self.journal.note(call_id, "committing") == "releasing":
                return await self._release_at_owner(call_id, "delivery_failed")
            request = Commit(call_id=call_id, reservation_id=call_id, outcome="charge")
            said = await self.owner.ask(COMMIT, request, Committed)
            if not self.is_our_price(call_id, said):
                await self._queue(call_id, "circuit_breaker")
                raise self._unavailable("the owner of the ledger charged another price")
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

    def is_our_price(self, call_id: str, said: Committed | OwnerRefusal) -> bool:
        """Return False for a charge that no price of ours allows: it would be signed into a receipt."""
        if isinstance(said, OwnerRefusal):
            return True
        price = self.prices.get(call_id)
        is_ours = said.credits_charged >= 0 if price is None else said.credits_charged in (0, price)
        if not is_ours or said.balance_after < 0:
            figures = {"call_id": call_id, "price": price, "charged": said.credits_charged, "left": said.balance_after}
            log.error("the owner of the ledger charged another price", extra=figures)
            return False
        return True

    async def _note_committed(self, call_id: str) -> None:
        """Journal the charge, which stands even if the disk fails: the step before is enough
        for a release after a crash.
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


class Outbox:
    """Sends the releases of the journal. Every acknowledgement ends one, even if the owner does not know the call."""

    def __init__(
        self, journal: Journal, owner: LedgerOwnerClient, deliveries: "Deliveries", *, again_s: float = AGAIN_S
    ) -> None:
        self._journal, self._owner, self._deliveries, self._again_s = journal, owner, deliveries, again_s
        self._news = anyio.Event()
        self.size = 0  # the number of releases that were waiting at the last check

    def wake(self) -> None:
        """Check the journal now, because there is a new release or the owner is back."""
        self._news.set()

    async def run(self) -> None:
        """Send due releases, until cancelled."""
        while True:
            try:
                wait = await self.send_due()
            except StorageFailed:
                log.exception("the outbox of releases cannot be read")
                wait = self._again_s
            with anyio.move_on_after(wait):
                await self._news.wait()
            self._news = anyio.Event()

    async def send(self, call_id: str, reason: str) -> Committed | None:
        """Release a call now. Returns None if the owner has nothing to release.

        Raises:
            Unanswered: the release stays in the journal.
        """
        request = Commit(call_id=call_id, reservation_id=call_id, outcome="release", no_charge_reason=reason)
        said = await self._owner.ask(COMMIT, request, Committed)
        await self._journal.done(call_id)
        if isinstance(said, OwnerRefusal):
            if said.reason != "reservation_not_found":
                log.error("a release was refused: %s", said.reason, extra={"call_id": call_id})
            return None
        return said

    async def send_due(self) -> float:
        """Send all due releases and return the seconds until the next check."""
        await self._deliveries.release_lost()
        for release in await self._journal.due():
            if not self._owner.breaker.closed:
                break
            await self._try(release)
        self.size, next_s = await self._journal.waiting()
        if next_s is None or not self._owner.breaker.closed:
            return LONGEST_S
        return min(next_s, LONGEST_S)

    async def _try(self, release: Release) -> None:
        try:
            await self.send(release.call_id, release.reason)
        except (Unanswered, CallReused):
            await self._journal.later(release.call_id)


class Deliveries:
    """The calls that were charged and whose answers have not been sent yet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.under_way: set[str] = set()  # call_ids
        self._lost: set[str] = set()  # call_ids that the journal is to release
        self.died: list[str] = []  # calls that were given back, by the last start too, and are not in the log yet

    def begin(self, call_id: str) -> None:
        """Note that the call is charged and that its answer will be sent."""
        self.under_way.add(call_id)

    def finish(self, call_id: str) -> None:
        """Note that the answer was sent. A call that was not begun, or that is being released, is ignored."""
        if call_id in self.under_way:
            self.under_way.discard(call_id)
            self._journal.strike(call_id)

    def cancel(self, call_id: str) -> None:
        """Note that the call is released instead."""
        self.under_way.discard(call_id)

    def lose(self, call_id: str) -> None:
        """Note that the answer could not be sent. A call that was not begun, or that is being released, is ignored."""
        if call_id in self.under_way:
            self.under_way.discard(call_id)
            self._lost.add(call_id)

    async def release_lost(self) -> None:
        """Note in the journal that calls whose answers could not be sent are to be released. Raises StorageFailed."""
        while self._lost:
            call_id = next(iter(self._lost))
            await self._journal.give_back(call_id)
            self._lost.discard(call_id)
            self.died.append(call_id)

    async def finish_all(self) -> None:
        """Remove all calls at an orderly shutdown, when every charged answer that is not released has been sent."""
        if not self.under_way:
            return
        try:
            await self._journal.delivered(list(self.under_way))
        except StorageFailed:
            log.exception("delivered calls could not be removed from the journal")
            return
        self.under_way.clear()


class KeptCalls:
    """Reserves and settles as a `Ledger` does. Every step may be repeated, even after a crash."""

    def __init__(self, ledger: HttpLedger) -> None:
        self._ledger = ledger

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        Reserve(call_id, key_of(who), credits, endpoint)  # an amount that no ledger accepts is not sent
        service = service or self._ledger.service
        request = question(who, credits, call_id=call_id, endpoint=endpoint, ttl_s=ttl_s, service=service)
        try:
            said = await self._ledger.owner.ask(VALIDATE, request, Validated)
        except Unanswered as failure:
            raise _unavailable() from failure
        if isinstance(said, OwnerRefusal):
            raise denial(said, credits)
        self._ledger.prices[call_id] = credits
        return reservation(call_id, credits, said)

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        if no_charge is not None:
            return await self._ledger.settle(call_id, no_charge=no_charge)
        request = Commit(call_id=call_id, reservation_id=call_id, outcome="charge")
        try:
            said = await self._ledger.owner.ask(COMMIT, request, Committed)
        except Unanswered as failure:
            raise _unavailable() from failure
        if not self._ledger.is_our_price(call_id, said):
            raise _unavailable()
        if isinstance(said, OwnerRefusal):
            raise UnknownCall(f"{call_id}: {said.reason}")
        return settlement(call_id, said)

    async def balance(self, who: Who) -> int:
        return await self._ledger.balance(who)


def _unavailable() -> BillingUnavailable:
    return BillingUnavailable("The credit ledger cannot be reached at the moment.", headers={"Retry-After": "5"})


@asynccontextmanager
async def open_ledger_client(
    settings: Settings,
    path: Path,
    clock: Clock | None = None,
    *,
    transport: Transport | None = None,
    least_free: int = 0,
) -> AsyncIterator[HttpLedger]:
    """Open the ledger at `settings.url`, with a journal in a local file. Raises as `durable` does."""
    async with (
        durable(path, least_free=least_free) as file,
        run_ledger_client(settings, file, clock or SystemClock(), transport=transport) as ledger,
    ):
        yield ledger


@asynccontextmanager
async def run_ledger_client(
    settings: Settings,
    file: GroupCommit,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> AsyncIterator[HttpLedger]:
    """Run the client over an open file. Calls that were in progress when the previous process
    ended are released first.
    """
    ledger = build_ledger_client(settings, file, clock, transport=transport, chance=chance)
    try:
        if died := await ledger.journal.recover():
            log.warning("calls died with the process before; they are released", extra={"count": len(died)})
            ledger.deliveries.died += died
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.owner.look_after, ledger.outbox.wake)
            tasks.start_soon(ledger.outbox.run)
            try:
                yield ledger
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await ledger.deliveries.finish_all()
            await ledger.owner.aclose()


def build_ledger_client(
    settings: Settings,
    file: GroupCommit,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> HttpLedger:
    """Return the client without its background tasks. Raises ValueError if url, key_id or secret is not set."""
    if settings.url is None or settings.key_id is None or settings.secret is None:
        raise ValueError("to follow a ledger, set url, key_id and secret")
    owner = LedgerOwnerClient(
        HttpClient(settings.url, transport=transport),
        key_id=settings.key_id,
        secret=settings.secret.get_secret_value(),
        service=settings.service,
        breaker=CircuitBreaker(clock, chance=chance),
        clock=clock,
        choose_pause=partial(choose_pause, chance),
    )
    owner.must_be_signed = settings.require_signed_replies
    return HttpLedger(owner, Journal(file, clock), file, service=settings.service, clock=clock)
