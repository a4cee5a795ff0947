"""The ledger of a sister service, over HTTP: the owner keeps the books, we keep a journal of our calls.

A call is written down before the owner hears of it. Whatever keeps us from knowing how it ended, a lost reply, a crash,
a caller who hangs up, it ends as a release, which is sent until it is acknowledged and wins over every charge.
"""

import logging
import math
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from cachetools import TTLCache

from toolserver.billing.books import Reservation, Settlement, Who, key_of
from toolserver.billing.breaker import Breaker
from toolserver.billing.journal import Journal
from toolserver.billing.ledger import CallReused, UnknownCall
from toolserver.billing.outbox import Outbox
from toolserver.billing.remote import Remote, Transport
from toolserver.billing.replies import CHARGE_TTL_S, Account, account, denied, question, reservation, settlement
from toolserver.billing.rules import Reserve
from toolserver.billing.sister import No, Owner, Unanswered
from toolserver.billing.wire import COMMIT, VALIDATE, Commit, Committed, Validate, Validated
from toolserver.clock import Clock, SystemClock
from toolserver.errors import PaymentRequired
from toolserver.settings import Ledger as Settings
from toolserver.storage.durable import Durable, StorageClosed, durable

log = logging.getLogger(__name__)

AFTER_S = 1.0  # the owner, which has just failed to answer, is asked again no sooner
OWN_TRY_S = 5.0  # the outbox leaves a release to whoever asked for it for so long
LINGER_S = 1.0  # an answer that was handed over is on its way for so long
FORGOTTEN_S = 15.0  # and for so long at most, if nobody says that it was handed over
KNOWN, KNOWN_S, UNKNOWN_S = 10_000, 5.0, 5.0


class Health(NamedTuple):
    """How it goes between us and the owner. `opened`: how often the breaker did; `waiting`: releases not sent yet."""

    state: str
    opened: int
    wait_s: float
    waiting: int


@asynccontextmanager
async def opened_follower(
    settings: Settings, path: Path, clock: Clock | None = None, *, transport: Transport | None = None
) -> AsyncIterator["HttpLedger"]:
    """The ledger that `settings.url` leads to, with a journal in a file of ours. Raises as `durable` does."""
    async with (
        durable(path) as file,
        following(settings, file, clock or SystemClock(), transport=transport) as ledger,
    ):
        yield ledger


@asynccontextmanager
async def following(
    settings: Settings,
    file: Durable,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> AsyncIterator["HttpLedger"]:
    """The same with a file that is open. What died with the process before is released first."""
    ledger = connected(settings, file, clock, transport=transport, chance=chance)
    try:
        if died := await ledger.journal.recover():
            log.warning("calls died with the process before; they are released", extra={"count": died})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.owner.look_after, ledger.outbox.wake)
            tasks.start_soon(ledger.outbox.run)
            tasks.start_soon(ledger.forget)
            try:
                yield ledger
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await ledger.forget_all()
            await ledger.owner.aclose()


def connected(
    settings: Settings,
    file: Durable,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> "HttpLedger":
    """The ledger without what it does in the background."""
    if settings.url is None or settings.key_id is None or settings.secret is None:
        raise ValueError("to follow a ledger, set url, key_id and secret")
    owner = Owner(
        Remote(settings.url, transport=transport),
        key_id=settings.key_id,
        secret=settings.secret.get_secret_value(),
        breaker=Breaker(clock, chance=chance),
        clock=clock,
        chance=chance,
    )
    return HttpLedger(owner, Journal(file, clock), file, service=settings.service, clock=clock)


class HttpLedger:
    """Books that a sister service keeps. Made by `connected`."""

    def __init__(self, owner: Owner, journal: Journal, file: Durable, *, service: str, clock: Clock) -> None:
        self.owner, self.journal, self.file = owner, journal, file
        self.outbox = Outbox(journal, owner)
        self._service, self._clock = service, clock
        self._handed: dict[str, float] = {}  # calls that were charged, and when they no longer are on their way
        self._something = anyio.Event()
        self._known: TTLCache[str, bool] = TTLCache(KNOWN, KNOWN_S, timer=clock.monotonic)

    @property
    def health(self) -> Health:
        """For health and metrics."""
        breaker = self.owner.breaker
        return Health(breaker.state, breaker.opened, breaker.wait_s, self.outbox.size)

    async def knows(self, token: str) -> bool:
        try:
            key = key_of(token)
            known = self._known.get(key)
            if known is None:
                with self._reached():
                    said = await self.owner.ask(VALIDATE, question(token, 0, service=self._service), Validated, tries=1)
                known = self._known[key] = not isinstance(said, No)
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return False
        return known

    async def balance(self, who: Who) -> int:
        return (await self.account(who)).credits

    async def account(self, who: Who) -> Account:
        """What can be spent, and since when the token exists. Raises PaymentRequired: invalid_token or expired."""
        key_of(who)  # what is malformed is not sent
        with self._reached():
            said = await self.owner.ask(VALIDATE, question(who, 0, service=self._service), Validated)
        if isinstance(said, No):
            raise denied(said, 0)
        return account(said)

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        Reserve(call_id, key_of(who), credits, endpoint)  # what no ledger takes is not sent
        asked = question(
            who, credits, call_id=call_id, endpoint=endpoint, ttl_s=ttl_s, service=service or self._service
        )
        if not self.owner.breaker.closed:
            raise self._away("the ledger is left alone for now")
        with self._kept():
            return await self._reserved(call_id, asked)

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        with self._kept():
            if no_charge is None:
                return await self._charged(call_id)
            return await self._released(call_id, no_charge)

    async def charge(self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "") -> Settlement:
        await self.reserve(call_id, who, credits, endpoint=endpoint, ttl_s=CHARGE_TTL_S, service=service)
        return await self.settle(call_id, no_charge=None)

    def delivered(self, call_id: str) -> None:
        """The answer is being handed over now. If we live on for a moment, it got there."""
        if call_id in self._handed:
            self._hand(call_id, LINGER_S)

    # --- one step each ---

    async def _reserved(self, call_id: str, asked: Validate) -> Reservation:
        fresh = False
        try:
            fresh = await self.journal.note(call_id, "reserving") is None
            said = await self.owner.ask(VALIDATE, asked, Validated)
        except Unanswered as failure:
            if failure.perhaps or not fresh:
                await self._queue(call_id, "circuit_breaker", AFTER_S)
            else:
                await self._struck(call_id)
            raise self._away(str(failure)) from failure
        except CallReused:
            if fresh:
                await self._struck(call_id)
            raise
        except anyio.get_cancelled_exc_class():
            await self._queue(call_id, "cancelled")
            raise
        if isinstance(said, No):
            if fresh:
                await self._struck(call_id)
            raise denied(said, asked.cost)
        return reservation(call_id, asked.cost, said)

    async def _charged(self, call_id: str) -> Settlement:
        try:
            if await self.journal.note(call_id, "committing") == "releasing":
                return await self._released(call_id, "delivery_failed")
            asked = Commit(call_id=call_id, reservation_id=call_id, outcome="charge")
            said = await self.owner.ask(COMMIT, asked, Committed)
            if isinstance(said, No) or not said.credits_charged:
                await self.journal.done(call_id)
            else:
                self._hand(call_id, FORGOTTEN_S)
                await self._noted_committed(call_id)
        except Unanswered as failure:
            await self._queue(call_id, "circuit_breaker", AFTER_S)
            raise self._away(str(failure)) from failure
        except anyio.get_cancelled_exc_class():
            await self._queue(call_id, "cancelled")
            raise
        if isinstance(said, No):
            raise UnknownCall(f"{call_id}: {said.reason}")
        return settlement(call_id, said)

    async def _noted_committed(self, call_id: str) -> None:
        """It is charged, whatever our disk says. The step before this one is enough to release it after a crash."""
        try:
            await self.journal.note(call_id, "committed")
        except (sqlite3.Error, StorageClosed):
            log.exception("a charge could not be noted", extra={"call_id": call_id})

    async def _released(self, call_id: str, reason: str) -> Settlement:
        await self._queue(call_id, reason, OWN_TRY_S)
        try:
            said = await self.outbox.send(call_id, reason)
        except Unanswered as failure:
            raise self._away(str(failure)) from failure
        if said is None:
            raise UnknownCall(f"{call_id} was never reserved")
        return settlement(call_id, said)

    async def _queue(self, call_id: str, reason: str, wait_s: float = 0.0) -> None:
        """Write down that the call is to be released. Nothing keeps us from that."""
        self._handed.pop(call_id, None)
        with anyio.CancelScope(shield=True):
            await self.journal.release(call_id, reason, wait_s=wait_s)
        self.outbox.wake()

    async def _struck(self, call_id: str) -> None:
        """Nothing became of the call: the journal forgets it, whoever hangs up meanwhile."""
        with anyio.CancelScope(shield=True):
            await self.journal.done(call_id)

    def _hand(self, call_id: str, for_s: float) -> None:
        self._handed[call_id] = self._clock.monotonic() + for_s
        self._something.set()

    # --- in the background ---

    async def forget(self) -> None:
        """Strike from the journal what was handed over. Until cancelled."""
        while True:
            await self._something.wait()
            await anyio.sleep(LINGER_S)
            now = self._clock.monotonic()
            await self._strike([call_id for call_id, until in self._handed.items() if until <= now])
            if not self._handed:
                self._something = anyio.Event()

    async def forget_all(self) -> None:
        """The same for everything, at the end: whatever was charged and is not to be released was sent."""
        await self._strike(list(self._handed))

    async def _strike(self, call_ids: list[str]) -> None:
        if not call_ids:
            return
        try:
            await self.journal.delivered(call_ids)
        except (sqlite3.Error, StorageClosed):
            log.exception("what was handed over could not be struck from the journal")
            return
        for call_id in call_ids:
            self._handed.pop(call_id, None)

    # --- words ---

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except Unanswered as failure:
            raise self._away(str(failure)) from failure

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Without a journal there are no calls."""
        try:
            yield
        except (sqlite3.Error, StorageClosed) as failure:
            log.exception("the journal of calls cannot be written")
            raise self._away("no journal") from failure

    def _away(self, why: str) -> PaymentRequired:
        log.info("a call could not be billed: %s", why)
        wait = max(1, math.ceil(self.owner.breaker.wait_s)) if not self.owner.breaker.closed else 5
        return PaymentRequired(
            "billing_unavailable",
            "The credit ledger cannot be reached at the moment; nothing was charged.",
            headers={"Retry-After": str(wait)},
        )
