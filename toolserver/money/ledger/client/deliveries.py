"""Tracks charged answers on their way to callers: the journal forgets each with the next commit after it was sent."""

import logging

from toolserver.money.ledger.client.journal import Journal
from toolserver.sql.errors import StorageFailed

log = logging.getLogger(__name__)


class Deliveries:
    """The calls that were charged and whose answers have not been sent yet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.under_way: set[str] = set()  # call_ids

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
