"""Sends releases until the owner of the ledger acknowledges them, across restarts."""

import logging

import anyio

from toolserver.money.ledger.client.http import LedgerOwnerClient, OwnerRefusal, Unanswered
from toolserver.money.ledger.client.journal import Journal, Release
from toolserver.money.ledger.client.messages import COMMIT, Commit, Committed
from toolserver.money.ledger.protocol import CallReused
from toolserver.sql.errors import StorageFailed

log = logging.getLogger(__name__)

LONGEST_S = 60.0  # between two checks of the journal, as its clock may be set
AGAIN_S = 5.0  # until the next check after the journal failed


class Outbox:
    """Sends the releases of the journal. Every acknowledgement ends one, even if the owner does not know the call."""

    def __init__(self, journal: Journal, owner: LedgerOwnerClient) -> None:
        self._journal, self._owner = journal, owner
        self._news = anyio.Event()
        self.size = 0  # the number of releases that were waiting at the last check

    def wake(self) -> None:
        """Check the journal now, because there is a new release or the owner is back."""
        self._news.set()

    async def run(self) -> None:
        """Send due releases, until cancelled."""
        while True:
            try:
                wait = await self._round()
            except StorageFailed:
                log.exception("the outbox of releases cannot be read")
                wait = AGAIN_S
            with anyio.move_on_after(wait):
                await self._news.wait()
            self._news = anyio.Event()

    async def send(self, call_id: str, reason: str) -> Committed | None:
        """Release a call now. Returns None if the owner has nothing to release.

        Raises:
            Unanswered: the release stays in the journal.
        """
        asked = Commit(call_id=call_id, reservation_id=call_id, outcome="release", no_charge_reason=reason)
        said = await self._owner.ask(COMMIT, asked, Committed)
        await self._journal.done(call_id)
        if isinstance(said, OwnerRefusal):
            if said.reason != "reservation_not_found":
                log.error("a release was refused: %s", said.reason, extra={"call_id": call_id})
            return None
        return said

    async def _round(self) -> float:
        """Send all due releases and return the seconds until the next check."""
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
