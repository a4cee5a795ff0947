"""Limits a payer's free answers: paid calls that end without a charge because their data are stale or missing.

An uncharged call costs its caller nothing, but it costs the service an answer, a receipt and a line in the public log.
A cached answer that is charged in full is charged in one step and does not reach this limit. A payer is a token with
all its allowances or, for calls with their own payment (x402), the signing account and the client's address.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from toolserver.calls.idempotency import fingerprint
from toolserver.calls.quotas import KEYS, Bucket, Quota, Verdict, make_rejection
from toolserver.errors import PaymentRequired

HOUR_S = 3600
AT_ONCE = 8  # calls of one token and tool whose charge is not certain yet; further calls wait


class CallToSettle:
    """A call that counts as free until it is known to be charged."""

    charged = False


class UnchargedLimit:
    """Counts uncharged calls per payer and tool. `per_hour` of them may come at once."""

    def __init__(
        self, *, per_hour: int = 12, monotonic: Callable[[], float], enabled: bool = True, keys: int = KEYS
    ) -> None:
        self._enabled = enabled
        self._bucket = Bucket(Quota("uncharged", per_hour, HOUR_S), monotonic=monotonic, keys=keys)
        self._open: dict[str, anyio.Semaphore] = {}

    @asynccontextmanager
    async def admit(self, payer: str, tool: str) -> AsyncIterator[CallToSettle]:
        """Admit a call within the limit. It is counted unless it is marked as charged or refused for lack of payment.

        Raises:
            RateLimited: too many calls of this payer to this tool have cost nothing.
        """
        call = CallToSettle()
        if not self._enabled:
            yield call
            return
        key = _name_key(payer, tool)
        async with self._wait_for_place(key):
            if not (verdict := await self._look(key)).allowed:
                raise make_rejection(self._bucket.quota, verdict, self._describe(tool))
            try:
                yield call
            except PaymentRequired:  # refused before anything was composed
                call.charged = True
                raise
            finally:
                if not call.charged:
                    self._note(key)

    async def count(self, payer: str, tool: str) -> None:
        """Count a call that ends without a charge. Raise RateLimited if there were too many: the call gets nothing."""
        if self._enabled and not (verdict := await self._take(_name_key(payer, tool))).allowed:
            raise make_rejection(self._bucket.quota, verdict, self._describe(tool))

    async def _look(self, key: str) -> Verdict:
        """Return the verdict on an uncharged call without counting it."""
        return self._bucket.look(key)

    async def _take(self, key: str) -> Verdict:
        """Count an uncharged call, unless there were too many."""
        return self._bucket.take(key)

    def _note(self, key: str) -> None:
        """Count an uncharged call without waiting, because the caller may have been cancelled."""
        self._bucket.take(key)

    @asynccontextmanager
    async def _wait_for_place(self, key: str) -> AsyncIterator[None]:
        places = self._open.setdefault(key, anyio.Semaphore(AT_ONCE))
        try:
            async with places:
                yield
        finally:
            if places.value == AT_ONCE and not places.statistics().tasks_waiting:
                self._open.pop(key, None)

    def _describe(self, tool: str) -> str:
        allowed = self._bucket.quota.quota
        return f"{allowed} calls of {tool} an hour may end without a charge, and its data are currently not fresh."


def _name_key(payer: str, tool: str) -> str:
    return f"{fingerprint(payer)} {tool}"
