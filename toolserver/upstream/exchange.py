"""The pieces of one exchange with an upstream: the raw answer, its capped body, redirects, waiting times."""

import json
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolserver.errors import SourceChanged, SourceTooLarge
from toolserver.upstream.connecting import connect_ms
from toolserver.upstream.source import Connect, Source

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class Raw:
    """A response before it is judged."""

    status: int
    headers: "httpx.Headers"
    body: bytes
    cut: bool
    host: str
    latency_ms: int


async def connected(request: Connect) -> Raw:
    """A connection attempt, told in the words of an HTTP answer."""
    import httpx

    parts = urlsplit(request.url)
    host = parts.hostname or ""
    latency = await connect_ms(host, parts.port or 443)
    told = {"unreachable": True} if latency is None else {"latency_ms": latency}
    return Raw(200, httpx.Headers(), json.dumps(told).encode(), False, host, latency or 0)


ACCEPT = {"json": "application/json", "text": "text/csv, text/plain, */*;q=0.5", "bytes": "*/*"}


async def read(response: "httpx.Response", source: Source[Any, Any]) -> tuple[bytes, bool]:
    """The decoded body and whether it was cut. More than the source allows is cut (prefix sources) or refused."""
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > source.max_bytes:
            if not source.prefix:
                raise SourceTooLarge(f"over {source.max_bytes} bytes")
            return b"".join(chunks)[: source.max_bytes], True
    return b"".join(chunks), False


def followed(url: "httpx.URL", location: str) -> "httpx.URL":
    """Where a redirect leads, if that is https and the same site."""
    target = url.join(location)
    site = ".".join(url.host.split(".")[-2:])
    if target.scheme != "https" or not (target.host == site or target.host.endswith("." + site)):
        raise SourceChanged(f"redirected to {target.host[:60]}")
    return target


def retry_after(headers: "httpx.Headers", now: datetime) -> float | None:
    """Seconds from Retry-After (a number or a date) or x-ratelimit-reset (epoch seconds)."""
    value = headers.get("retry-after", "")
    try:
        if value:
            return float(value) if value.isdigit() else (parsedate_to_datetime(value) - now).total_seconds()
        return float(headers["x-ratelimit-reset"]) - now.timestamp()
    except (KeyError, ValueError, TypeError):
        return None
