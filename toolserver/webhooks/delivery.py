"""One attempt to deliver: a POST over a connection that the egress guard judged, and one word for how it ended.

Redirects are failures, proxies of the environment are not used, and what the receiver answers is read only as far as
it takes to use the connection again: it is never shown to anyone.
"""

import asyncio
import email.utils
import socket
import ssl
import time
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from toolserver.webhooks.attempt import Attempt
from toolserver.webhooks.dns_lane import DnsLane, NameUnknown
from toolserver.webhooks.egress import EgressGuard, TargetRefused

USER_AGENT = "toolserver-webhook/1.0"
CONNECT_S, TOTAL_S, REST_S = 5.0, 10.0, 0.5
MOST_ANSWER = 64 * 1024
LONGEST_WAIT_S = 240.0  # of a Retry-After
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


class WebhookSender:
    """Sends bodies. One for the process; `tls` may hold the certificate authority of a test."""

    def __init__(self, guard: EgressGuard, lane: DnsLane, *, tls: ssl.SSLContext | None = None) -> None:
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(lane),
            use_dns_cache=False,
            socket_factory=guard.open_socket,
            ssl=tls or ssl.create_default_context(),
            limit=0,
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S),
            headers={"User-Agent": USER_AGENT, "Content-Type": "application/json", "Accept": "*/*"},
        )

    async def send(self, url: URL, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """POST a body; whatever happens is an Attempt. Takes 10 s at most."""
        started = time.perf_counter()
        status, retry_after = None, None
        try:
            posted = self._session.post(url, data=body, headers=headers, allow_redirects=False)
            async with posted as answer:
                status = answer.status
                retry_after = _retry_after(answer.headers.get("Retry-After"))
                await _discard(answer)
            error = _judge(status)
        except Exception as failure:
            error = _name_failure(failure) if status is None else _judge(status)
        duration = int((time.perf_counter() - started) * 1000)
        return Attempt(status, error, duration, retry_after if error else None)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


async def _discard(answer: aiohttp.ClientResponse) -> None:
    """Read a short answer to its end, so that the connection can be used again; a long or slow one is cut off."""
    if answer.content.at_eof():
        return
    left = MOST_ANSWER
    try:
        async with asyncio.timeout(REST_S):
            async for chunk in answer.content.iter_any():
                left -= len(chunk)
                if left < 0:
                    break
            else:
                return
    except (TimeoutError, aiohttp.ClientError):
        pass  # the status has been read, and it alone counts
    answer.close()


def _judge(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirect" if 300 <= status < 400 else f"http_{status}"


def _name_failure(failure: Exception) -> str:
    """One word for a failure without an answer. Raises what is no failure of the receiver."""
    causes = [failure, failure.__cause__, getattr(failure, "os_error", None)]
    if any(isinstance(cause, TargetRefused | aiohttp.InvalidURL) for cause in causes):
        return "target_refused"
    if any(isinstance(cause, NameUnknown) for cause in causes):
        return "dns"
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ClientSSLError | ssl.SSLError):
        return "tls"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return "connect"
    if isinstance(failure, aiohttp.ClientError | OSError):
        return "closed"
    raise failure


def _retry_after(header: str | None) -> float | None:
    """Seconds from a Retry-After, as a number or a date; None for nonsense and for more than four minutes."""
    if header is None:
        return None
    if header.isascii() and header.isdecimal():
        seconds = float(header)
    else:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if seconds <= LONGEST_WAIT_S else None
