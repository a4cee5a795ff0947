"""Charged answers on their way to their callers: the journal forgets each with the next commit after it left."""

import logging

from toolserver.ledger.client.journal import Journal
from toolserver.storage.errors import StorageFailed

log = logging.getLogger(__name__)


class Deliveries:
    """The calls that were charged and whose answers have not left yet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.under_way: set[str] = set()  # call_ids

    def begin(self, call_id: str) -> None:
        """The call is charged; its answer will be sent."""
        self.under_way.add(call_id)

    def finish(self, call_id: str) -> None:
        """The answer was sent. A call that nobody began, or that is released instead, is left alone."""
        if call_id in self.under_way:
            self.under_way.discard(call_id)
            self._journal.strike(call_id)

    def cancel(self, call_id: str) -> None:
        """The call is released instead."""
        self.under_way.discard(call_id)

    async def finish_all(self) -> None:
        """Remove all of them, at an orderly end: every charged answer that is not to be released was sent."""
        if not self.under_way:
            return
        try:
            await self._journal.delivered(list(self.under_way))
        except StorageFailed:
            log.exception("delivered calls could not be removed from the journal")
            return
        self.under_way.clear()
