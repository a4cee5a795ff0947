"""HTTP to addresses that strangers name: every connection goes through the egress guard, whatever a name resolves to.

Deliveries are sent with such a session, and the documents are read with one in which OAuth clients describe themselves.
Neither follows redirects, nor uses proxies of the environment or cookies.
"""

import socket
import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from toolserver.webhooks.dns_lane import DnsLane
from toolserver.webhooks.egress import EgressGuard

KEEP_ALIVE_S = 4.0  # less than the five seconds after which common servers close


class GuardedResolver(AbstractResolver):
    """The lane as aiohttp asks for it."""

    def __init__(self, lane: DnsLane) -> None:
        self._lane = lane

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await self._lane.resolve(host)
        ]

    async def close(self) -> None:
        """The lane belongs to somebody else."""


def make_guarded_session(
    guard: EgressGuard,
    lane: DnsLane,
    *,
    tls: ssl.SSLContext | None,
    times: aiohttp.ClientTimeout,
    headers: Mapping[str, str],
) -> aiohttp.ClientSession:
    """A session that its caller closes. `tls` may hold the certificate authority of a test."""
    connector = aiohttp.TCPConnector(
        resolver=GuardedResolver(lane),
        use_dns_cache=False,
        socket_factory=guard.open_socket,
        ssl=tls or ssl.create_default_context(),
        limit=0,
        keepalive_timeout=KEEP_ALIVE_S,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=times,
        headers=headers,
    )
