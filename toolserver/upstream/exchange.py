"""Handles the parts of one exchange with an upstream: raw response, bounded body, redirects, waiting times."""

import json
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from toolserver.core.http_body import BodyUnreadable, read_prefix
from toolserver.upstream.large_bodies import BodyPlace
from toolserver.upstream.source import Connect, Keys, Post, Request, Source
from toolserver.upstream.source_errors import (
    HostRefused,
    SourceChanged,
    SourceDown,
    SourceLimited,
    SourceRefused,
    SourceTooLarge,
)
from toolserver.upstream.tcp_probe import connect_ms

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class Raw:
    """A response before its status and body are checked. `latency_ms` covers redirects and the body."""

    status: int
    headers: "httpx.Headers"
    body: bytes
    cut: bool
    host: str
    latency_ms: int


async def connect(request: Connect) -> Raw:
    """Open TCP connections and return the time taken, in the form of an HTTP response with a JSON body."""
    import httpx

    parts = urlsplit(request.url)
    host = parts.hostname or ""
    latency = await connect_ms(host, parts.port or 443)
    result = {"unreachable": True} if latency is None else {"latency_ms": latency}
    return Raw(200, httpx.Headers(), json.dumps(result).encode(), False, host, latency or 0)


SHORTEST_KEY = 8  # characters; shorter values are switches ("1", "yes"), not secrets
ACCEPT = {"json": "application/json", "text": "text/csv, text/plain, */*;q=0.5", "bytes": "*/*"}


async def read_source_body(
    response: "httpx.Response", source: Source[Any, Any], place: BodyPlace
) -> tuple[bytes, bool]:
    """Return the decoded body and whether it was cut at `max_bytes`, which only a prefix source permits.

    Raises:
        SourceTooLarge: the body of another source has more bytes than that.
        SourceChanged: the body is damaged gzip, or has another encoding.
        TooManyBodies: the body is large, and no place for a large body became free in time.
    """
    from toolserver.core.http_client import iter_response

    try:
        body, is_cut = await read_prefix(place.admit(iter_response(response)), source.max_bytes)
    except BodyUnreadable as error:
        raise SourceChanged(str(error)) from error
    if is_cut and not source.prefix:
        raise SourceTooLarge(f"over {source.max_bytes} bytes")
    return body, is_cut


def redirect_target(url: "httpx.URL", location: str, request: Request, keys: Keys) -> "httpx.URL":
    """Return the target of a redirect, which must be https, on the same site, and must not receive a secret.

    Raises:
        SourceChanged: it leads elsewhere, or to another origin with a body to resend or an API key in the URL.
    """
    target = url.join(location)
    site = ".".join(url.host.split(".")[-2:])
    is_our_site = target.scheme == "https" and (target.host == site or target.host.endswith("." + site))
    if not is_our_site or not (is_same_origin(target, request) or _gives_nothing_away(target, request, keys)):
        raise SourceChanged(f"redirected to {target.host[:60]}")
    return target


def is_same_origin(url: "httpx.URL", request: Request) -> bool:
    """Return True if a URL has the scheme, host and port of the original request, so that its headers may be sent."""
    import httpx

    origin = httpx.URL(request.url)
    return (url.scheme, url.host, url.port) == (origin.scheme, origin.host, origin.port)


def _gives_nothing_away(target: "httpx.URL", request: Request, keys: Keys) -> bool:
    """Return True if a request to another origin carries neither a body nor, in its URL, a value of `keys`."""
    written = unquote(str(target))
    has_key = any(len(key) >= SHORTEST_KEY and key in written for key in keys.values())
    return not has_key and not isinstance(request, Post)


def judge_status(source: Source[Any, Any], raw: Raw, now: datetime) -> None:
    """Return if the status is an answer; raise the SourceError for any other status."""
    status = raw.status
    if status == 200 or status in source.also:
        return
    if status in source.hosts.refusing or status == 451:
        raise HostRefused(f"http {status}")
    spent = status == 403 and (raw.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in raw.headers)
    if status in (429, 418) or spent:
        raise SourceLimited(f"http {status}", retry_after_s=retry_after(raw.headers, now))
    if status == 403:
        raise HostRefused("http 403")
    if status == 401:
        raise SourceRefused("http 401")
    if status == 599:
        raise SourceDown("name does not resolve")
    raise SourceDown(word=f"http_{status}") if status >= 500 else SourceChanged(word=f"http_{status}")


def retry_after(headers: "httpx.Headers", now: datetime) -> float | None:
    """Return the seconds given by Retry-After (a number or a date) or x-ratelimit-reset (epoch seconds), or None."""
    value = headers.get("retry-after", "")
    try:
        if value:
            return float(value) if value.isdigit() else (parsedate_to_datetime(value) - now).total_seconds()
        return float(headers["x-ratelimit-reset"]) - now.timestamp()
    except (KeyError, ValueError, TypeError):
        return None
