"""Keeps a pool of connections for each host that sources are on, through a proxy if there is one."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from toolserver.core.exchange import Outlet, ThroughHttpx
from toolserver.core.outbound import Proxies, as_outlet, make_tls_context, make_transport

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx

MOST_POOLS = 512  # hosts with a pool of their own; redirects can name any number of hosts
MOST_TO_HOST, KEPT_S = 32, 20.0  # connections of one pool, and how long an idle one is kept


class _HostPool:
    """The connections to one host, how many requests use them, and when the last one ended."""

    def __init__(self, outlet: Outlet) -> None:
        self.outlet, self.users, self.used_at = outlet, 0, time.monotonic()


class HostPools:
    """A pool of connections for each upstream host.

    One that was not used for `KEPT_S` is closed with a later request to any host. `most` hosts
    have a pool of their own, whose transport `open_transport` opens (as `make_transport` does,
    the default).
    """

    def __init__(
        self,
        proxies: Proxies,
        *,
        via: str | None = None,
        most: int = MOST_POOLS,
        open_transport: "Callable[..., httpx.AsyncBaseTransport] | None" = None,
    ) -> None:
        self._proxies, self._via, self._most = proxies, via, most
        self._open_transport = open_transport or make_transport
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if via else make_tls_context()
        self._http2_hosts: set[str] = set()  # there are as many as hosts that sources are on
        self._pools: dict[str, _HostPool] = {}
        self._swept_at = time.monotonic()

    @asynccontextmanager
    async def use(self, url: "httpx.URL") -> AsyncIterator[Outlet]:
        """Yield the pool of the URL's host, which stays open while the block runs."""
        pool = self._find(url)
        pool.users += 1
        try:
            yield pool.outlet
        finally:
            pool.users -= 1
            pool.used_at = time.monotonic()
        if pool.used_at - self._swept_at > KEPT_S:
            await self._sweep(pool.used_at)

    def _find(self, url: "httpx.URL") -> _HostPool:
        name = f"{url.scheme}://{url.netloc.decode()}"
        if name not in self._pools and len(self._pools) >= self._most:
            name = f"{url.scheme}:"  # one pool for all further hosts
        pool = self._pools.get(name)
        if pool is None:
            target = self._via or str(url)
            transport = self._open_transport(
                target,
                self._proxies,
                self._tls,
                connections=MOST_TO_HOST,
                kept_s=KEPT_S,
                http2=self._via is None,
                http2_hosts=self._http2_hosts,
            )
            pool = self._pools[name] = _HostPool(as_outlet(transport))
        return pool

    async def _sweep(self, now: float) -> None:
        self._swept_at = now
        idle = [name for name, pool in self._pools.items() if not pool.users and now - pool.used_at > KEPT_S]
        for pool in [self._pools.pop(name) for name in idle]:
            await pool.outlet.aclose()

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.outlet.aclose()


class OnePool:
    """A transport that a test or a tool passes, for all hosts."""

    def __init__(self, transport: "httpx.AsyncBaseTransport") -> None:
        self._outlet = ThroughHttpx(transport)

    @asynccontextmanager
    async def use(self, url: "httpx.URL") -> AsyncIterator[Outlet]:
        yield self._outlet

    async def aclose(self) -> None:
        await self._outlet.aclose()
