"""Make one delivery attempt: a POST over a connection that the egress guard has allowed, and one word for its result.

Redirects are failures, and proxies from the environment are not used. The receiver's answer is read only as far as
needed to reuse the connection, and it is never shown to anyone.
"""

import asyncio
import email.utils
import ssl
import time
from collections.abc import Mapping

import aiohttp
from yarl import URL

from toolserver.webhooks.dns_lane import DnsLane, NameUnknown
from toolserver.webhooks.egress import EgressGuard, TargetRefused
from toolserver.webhooks.guarded_session import make_guarded_session
from toolserver.webhooks.records import Attempt

USER_AGENT = "toolserver-webhook/1.0"
CONNECT_S, TOTAL_S, REST_S = 5.0, 10.0, 0.5
MOST_ANSWER = 64 * 1024
LONGEST_WAIT_S = 240.0  # maximum accepted Retry-After


class WebhookSender:
    """Sends bodies. There is one for the process; `tls` may have the certificate authority of a test."""

    def __init__(self, guard: EgressGuard, lane: DnsLane, *, tls: ssl.SSLContext | None = None) -> None:
        headers = {"User-Agent": USER_AGENT, "Content-Type": "application/json", "Accept": "*/*"}
        times = aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S)
        self._session = make_guarded_session(guard, lane, tls=tls, times=times, headers=headers)

    async def send(self, url: URL, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """POST a body within 10 s. Every outcome is returned as an Attempt."""
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
    """Read a short answer to its end, so that the connection can be reused; a long or slow one is cut off."""
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
        pass  # the status has been read, and only the status counts
    answer.close()


def _judge(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirect" if 300 <= status < 400 else f"http_{status}"


def _name_failure(failure: Exception) -> str:
    """Return one word for a failure without an answer. Re-raises errors that are not the receiver's failure."""
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
    """Return the seconds of a Retry-After (number or date); None if it is malformed or over four minutes."""
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
