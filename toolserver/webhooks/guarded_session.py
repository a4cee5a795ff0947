"""Open HTTP sessions for untrusted addresses: the egress guard checks every connection, whatever a name resolves to.

Deliveries use such a session, and so does the reader of documents in which OAuth clients describe themselves. These
sessions follow no redirects and use neither proxies from the environment nor cookies.
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
    """Adapts the lane to aiohttp's resolver interface."""

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
        """Do nothing: the lane's owner closes it."""


def make_guarded_session(
    guard: EgressGuard,
    lane: DnsLane,
    *,
    tls: ssl.SSLContext | None,
    times: aiohttp.ClientTimeout,
    headers: Mapping[str, str],
) -> aiohttp.ClientSession:
    """Return a session, which the caller closes. `tls` may have the certificate authority of a test."""
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
