"""Releases that the owner of the ledger has not acknowledged: sent until it does, across restarts."""

import logging
import sqlite3

import anyio

from toolserver.billing.journal import Journal, Release
from toolserver.billing.ledger import CallReused
from toolserver.billing.sister import No, Owner, Unanswered
from toolserver.billing.wire import COMMIT, Commit, Committed
from toolserver.storage.durable import StorageClosed

log = logging.getLogger(__name__)

LONGEST_S = 60.0  # without a look: the clock that times are written by may be set
AGAIN_S = 5.0  # after a failure of our own disk


class Outbox:
    """Sends what the journal says is to be released. Every acknowledgement ends it, also that nothing is known."""

    def __init__(self, journal: Journal, owner: Owner) -> None:
        self._journal, self._owner = journal, owner
        self._news = anyio.Event()
        self.size = 0  # as it was when last looked at

    def wake(self) -> None:
        """There is something new to send, or the owner is back."""
        self._news.set()

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        while True:
            try:
                wait = await self._round()
            except (sqlite3.Error, StorageClosed):
                log.exception("the outbox of releases cannot be read")
                wait = AGAIN_S
            with anyio.move_on_after(wait):
                await self._news.wait()
            self._news = anyio.Event()

    async def send(self, call_id: str, reason: str) -> Committed | None:
        """Release a call now; None when the owner knows of nothing to release.

        Raises:
            Unanswered: it stays in the journal.
        """
        asked = Commit(call_id=call_id, reservation_id=call_id, outcome="release", no_charge_reason=reason)
        said = await self._owner.ask(COMMIT, asked, Committed)
        await self._journal.done(call_id)
        if isinstance(said, No):
            if said.reason != "reservation_not_found":
                log.error("a release was refused: %s", said.reason, extra={"call_id": call_id})
            return None
        return said

    async def _round(self) -> float:
        """Everything that is due; how long nothing more will be."""
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
