"""Notices that this machine has no network, so that every call can say so at once.

A failed connection alone says nothing about the network. When one fails before anything was
sent, some hosts that have nothing to do with the source are connected to (witnesses), or the
proxy, if there is one. If that fails too, the network is gone: one line is logged, and
requests fail at once, without a turn, a retry or a mark against their sources.

A witness that has neither answered nor failed in time says nothing: names may take long to
resolve here, or the way is long. Then the network is not called gone.

While it is gone, a request first connects to its own host, at most every `RETRIED_S` for each
host. The first connection that succeeds, and any answer, ends this state. A request whose host
has neither answered nor failed by then is sent.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import anyio

from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.upstream.source import SourceDown

log = logging.getLogger(__name__)

WITHIN_S = 0.6  # for a connection; the first answer without a network must not take longer than a second
RETRIED_S = 2.0
WITNESSES = 3

Place = tuple[str, int]
"""The host and port that a connection is made to."""

TryConnection = Callable[[Place], Awaitable[bool | None]]
"""Connects to a place: True if that succeeded, False if it failed, None if neither happened in time."""


class NoNetwork(SourceDown):
    """This machine has no network. Nothing was sent, and it says nothing about the source."""

    word = "no_network"
    was_sent = False


class NetworkWatch:
    """Knows whether the network is gone. `witnesses` are hosts whose port 443 is connected to;
    without any, it never is. A witness is best given by name, because a network without names
    is of no use here.
    """

    def __init__(
        self,
        witnesses: Sequence[str],
        *,
        monotonic: Callable[[], float],
        proxies: Proxies = NO_PROXIES,
        try_connection: "TryConnection | None" = None,
    ) -> None:
        self._monotonic, self._proxies = monotonic, proxies
        self._witnesses = [f"https://{host}" for host in witnesses[:WITNESSES]]
        self._try_connection = try_connection or try_tcp_connection
        self._checking, self._checked_at, self._answers = anyio.Lock(), -RETRIED_S, 0
        self._tried_at: dict[Place, float] = {}
        self._waiting: set[anyio.CancelScope] = set()
        self.is_gone = False

    async def admit(self, url: str) -> None:
        """Let a request pass, unless the network is gone and a connection to the URL's host fails. Raise NoNetwork."""
        if not self.is_gone:
            return
        place, now = self._find_place(url), self._monotonic()
        if now - self._tried_at.get(place, -RETRIED_S) >= RETRIED_S:
            self._tried_at[place] = now
            answer = await self._try_connection(place)
            if answer is None:
                return
            if answer:
                self.note_answer()
        if self.is_gone:
            raise NoNetwork

    @contextmanager
    def end_wait_when_gone(self) -> Iterator[None]:
        """End the block, which waits for a turn, when the network is lost meanwhile. Then raise NoNetwork."""
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield
            finally:
                self._waiting.discard(scope)
        if scope.cancelled_caught:
            raise NoNetwork

    async def judge_failure(self, url: str) -> None:
        """Find out whether a connection to the URL's host failed because the network is gone. Raise NoNetwork."""
        async with self._checking:
            if not self.is_gone and self._monotonic() - self._checked_at >= RETRIED_S:
                await self._check({self._find_place(witness) for witness in [*self._witnesses, url]})
        if self.is_gone:
            raise NoNetwork

    def note_answer(self) -> None:
        """Note that a host answered, or was connected to."""
        self._answers += 1
        if self.is_gone:
            self.is_gone = False
            self._tried_at.clear()
            log.warning("the network is back")

    async def _check(self, places: set[Place]) -> None:
        answers, all_failed = self._answers, True

        async def visit(place: Place) -> None:
            nonlocal all_failed
            if await self._try_connection(place) is not False:
                all_failed = False
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for place in places:
                tasks.start_soon(visit, place)
        self._checked_at = self._monotonic()
        if self._witnesses and all_failed and self._answers == answers:
            self.is_gone = True
            for scope in self._waiting:
                scope.cancel()
            log.warning("there is no network: sources are asked again as soon as a connection succeeds")

    def _find_place(self, url: str) -> Place:
        """Return what a connection for a URL is made to: its host, or the proxy."""
        proxy = self._proxies.find(url)
        parts = urlsplit(url if proxy is None else proxy.address)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


async def try_tcp_connection(place: Place, within_s: float = WITHIN_S) -> bool | None:
    """Return True if a TCP connection was opened within `within_s`, False if it failed, and None otherwise."""
    with anyio.move_on_after(within_s):
        try:
            stream = await anyio.connect_tcp(*place)
        except OSError:
            return False
        await stream.aclose()
        return True
    return None
