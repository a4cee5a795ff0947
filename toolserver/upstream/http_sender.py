"""Sends one request of a source, to its upstream or to the simulated world, and judges the status of the response.

Redirects stay on the source's site and receive no secret; bodies are bounded; a TCP
connection is answered as JSON. What upstreams announce is recorded: that an address is
deprecated, ends on a day, or has moved permanently.

Few large bodies are held at once, and one at a time is parsed, off the event loop. A source's
time stops while the service itself makes it wait. A source may send up to its `max_bytes`, in
some cases 24 MiB. A hundred sources at once, each with the objects that its parser makes from
its body, would take gigabytes. Therefore a growing body waits for a place: see STEPS.
"""

import json
import logging
import math
import socket
import ssl
import statistics
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.core import tracing
from toolserver.core.exchange import UnreadResponse
from toolserver.core.http import BodyUnreadable, decode_pieces, read_prefix
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.core.recorded_exchange import RecordedExchange
from toolserver.upstream.host_pools import HostPools, OnePool
from toolserver.upstream.source import (
    MIB,
    Connect,
    HostRefused,
    Keys,
    NoAddress,
    NotConnected,
    Post,
    Request,
    Source,
    SourceChanged,
    SourceDown,
    SourceLimited,
    SourceRefused,
    SourceTooLarge,
)

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx


R = TypeVar("R")
E = TypeVar("E", bound=BaseException)

STEPS = ((256 * 1024, 8), (2 * MIB, 2))
"""The size from which a body needs a place, and the number of places. A very large body takes one of each."""

PARSED_APART_FROM, MOST_PARSED = 64 * 1024, 1
PATIENCE_S = 20.0


class SendingTime:
    """A deadline that carries over from one attempt to the next and stops during pauses."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self.left_s = seconds
        self._scope: anyio.CancelScope | None = None

    @property
    def is_mostly_over(self) -> bool:
        """True if more than half of the time has passed, which is too much for another attempt."""
        return self.left_s < self._seconds / 2

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Let the time run while the block runs. Raise SourceDown (`timeout`) when it has run out."""
        with anyio.CancelScope(deadline=anyio.current_time() + self.left_s) as scope:
            self._scope = scope
            try:
                yield
            finally:
                self.left_s = max(0.0, scope.deadline - anyio.current_time())
                self._scope = None
        if scope.cancelled_caught:
            raise SourceDown(f"no answer within {self._seconds:g} s", word="timeout")

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the time while the block waits for something that does not depend on the source."""
        scope = self._scope
        if scope is None:
            yield
            return
        left_s, scope.deadline = scope.deadline - anyio.current_time(), math.inf
        try:
            yield
        finally:
            scope.deadline = anyio.current_time() + left_s


class TooManyBodies(SourceLimited):
    """Other large bodies occupied the places for too long. This says nothing about this source."""

    word = "budget"
    was_sent = False


class LargeBodies:
    """The places for large bodies of all sources."""

    def __init__(self) -> None:
        self._places = tuple((size, anyio.CapacityLimiter(places)) for size, places in STEPS)
        self._parsed = anyio.CapacityLimiter(MOST_PARSED)

    @contextmanager
    def reserve(self, time: SendingTime) -> Iterator["BodyPlace"]:
        """Yield a place for one body, which is released when the block ends."""
        place = BodyPlace(self._places, time)
        try:
            yield place
        finally:
            place.leave()

    async def parse(self, size: int, parse: Callable[[], R]) -> R:
        """Run the parser of a body of `size` bytes: if it is large, in a worker thread and one at a time."""
        if size < PARSED_APART_FROM:
            return parse()
        async with _hold(self._parsed):
            return await anyio.to_thread.run_sync(parse)


class BodyPlace:
    """Admits the first bytes of a body, and more when there is a place for a larger body. `time` stops meanwhile."""

    def __init__(self, steps: tuple[tuple[int, anyio.CapacityLimiter], ...], time: SendingTime) -> None:
        self._steps, self.time = list(steps), time
        self._held: list[anyio.CapacityLimiter] = []

    async def admit(self, pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces, waiting for a place at each step of the body's size. Raise TooManyBodies."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            while self._steps and size > self._steps[0][0]:
                await self._take(self._steps.pop(0)[1])
            yield piece

    async def _take(self, places: anyio.CapacityLimiter) -> None:
        with self.time.pause():
            await _acquire(places, self)
        self._held.append(places)

    def leave(self) -> None:
        """Release the places that were taken."""
        while self._held:
            self._held.pop().release_on_behalf_of(self)


@asynccontextmanager
async def _hold(places: anyio.CapacityLimiter) -> AsyncIterator[None]:
    await _acquire(places, holder := object())
    try:
        yield
    finally:
        places.release_on_behalf_of(holder)


async def _acquire(places: anyio.CapacityLimiter, holder: object) -> None:
    try:
        with anyio.fail_after(PATIENCE_S):
            await places.acquire_on_behalf_of(holder)
    except TimeoutError:
        raise TooManyBodies("other large answers are being read") from None


log = logging.getLogger(__name__)

AnnouncementKind = Literal["deprecation", "sunset", "warning", "moved"]
LONGEST_ANNOUNCEMENT = 200  # characters kept of a header
DAY_S = 86_400.0
PERMANENT_REDIRECTS = (301, 308)


class Announcement(NamedTuple):
    """One announcement of a source's upstream. `seen_at` is when it was last seen, in Unix seconds."""

    source: str
    kind: AnnouncementKind
    text: str
    seen_at: float


class Announcements:
    """Keeps the last announcement of each kind by source, and logs each once a day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[tuple[str, AnnouncementKind], Announcement] = {}
        self._logged_at: dict[tuple[str, AnnouncementKind], float] = {}

    def record(self, source: str, url: str, status: int, headers: Mapping[str, str]) -> None:
        """Read the headers `Deprecation`, `Sunset` and `Warning: 299`, and a permanent redirect elsewhere."""
        texts: dict[AnnouncementKind, str] = {}
        for kind in ("deprecation", "sunset"):
            if kind in headers:
                texts[kind] = headers[kind]
        if headers.get("warning", "").lstrip().startswith("299"):
            texts["warning"] = headers["warning"]
        target = urljoin(url, headers.get("location", ""))
        if status in PERMANENT_REDIRECTS and urlsplit(target).hostname != urlsplit(url).hostname:
            texts["moved"] = f"to {urlsplit(target).hostname}"
        for kind, text in texts.items():
            self._keep(source, kind, "".join(letter for letter in text if letter.isprintable())[:LONGEST_ANNOUNCEMENT])

    def _keep(self, source: str, kind: AnnouncementKind, text: str) -> None:
        now, key = self._clock.time(), (source, kind)
        previous = self._last.get(key)
        self._last[key] = Announcement(source, kind, text, now)
        is_news = previous is None or previous.text != text
        if is_news or now - self._logged_at[key] >= DAY_S:
            self._logged_at[key] = now
            log.warning("an upstream announces a change", extra={"source": source, "kind": kind, "said": text})

    def list_all(self) -> list[Announcement]:
        """Return the kept announcements, by source and kind."""
        return [self._last[key] for key in sorted(self._last)]


NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})  # unlike EAI_AGAIN
REDIRECTS = 3
SHORTEST_KEY = 8  # characters; shorter values are switches ("1", "yes"), not secrets
ACCEPT = {"json": "application/json", "text": "text/csv, text/plain, */*;q=0.5", "bytes": "*/*"}
TRIES, GAP_S, TIMEOUT_S = 3, 0.15, 2.0  # of a TCP connection

RecordExchange = Callable[[Source[Any, Any], Request, RecordedExchange], None]
"""Gets each finished exchange, with its source and the request of the plan that it belongs to."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A response before its status and body are checked. `latency_ms` covers redirects and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    host: str
    latency_ms: int


class HttpSender:
    """The HTTP client of all sources. With `via`, every request goes to that address, under its upstream's host.

    `record` gets every exchange, including failed ones.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        keys: Keys,
        user_agent: str,
        via: str | None = None,
        transport: "httpx.AsyncBaseTransport | None" = None,
        record: RecordExchange | None = None,
        proxies: Proxies = NO_PROXIES,
    ) -> None:
        self.clock, self._keys, self._via = clock, keys, via.rstrip("/") if via else None
        self._user_agent, self.announcements = user_agent, Announcements(clock)
        self._record, self._proxies = record, proxies
        self._pools: HostPools | OnePool | None = None if transport is None else OnePool(transport)
        self._opening = anyio.Lock()

    async def aclose(self) -> None:
        if self._pools is not None:
            await self._pools.aclose()

    async def send(
        self, source: Source[Any, Any], request: Request, validators: dict[str, str], place: BodyPlace
    ) -> Raw:
        """Send a request, follow its redirects, and return the raw response. Raise SourceError."""
        if isinstance(request, Connect) and self._via is None:
            with self._watch(source, request, request.url) as exchange:
                raw = await connect(request)
                exchange.status, exchange.body = raw.status, raw.body
                return raw
        pools = self._pools or await self._open()
        from toolserver.core.http_library import httpx

        try:
            sends: Callable[..., Awaitable[Raw]] = self._send_http
            if tracing.tracer is not None:
                sends = tracing.wrap(sends, "source", "CLIENT", source=source.name)
            return await sends(pools, source, request, validators if source.conditional else {}, place)
        except httpx.TimeoutException as error:
            raise SourceDown(word="timeout") from error
        except httpx.ConnectError as error:
            raise _judge_connection(error) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceDown(type(error).__name__) from error

    async def _send_http(
        self,
        pools: HostPools | OnePool,
        source: Source[Any, Any],
        request: Request,
        validators: dict[str, str],
        place: BodyPlace,
    ) -> Raw:
        url = parse_url(request.url)
        if request.params:
            url = url.copy_with(params={**request.params})
        started = time.perf_counter()
        for _ in range(REDIRECTS + 1):
            headers = self._headers(request, url, validators)
            with self._watch(source, request, str(url), headers) as exchange:
                async with self._stream(pools, request, url, headers) as received:
                    exchange.status, exchange.headers = received.status, received.fields
                    self.announcements.record(source.name, str(url), received.status, received.headers)
                    if received.is_redirect:
                        url = redirect_target(url, received.headers["location"], request, self._keys)
                        continue
                    exchange.body, exchange.is_cut = await read_source_body(received, source, place)
                    latency = round((time.perf_counter() - started) * 1000)
                    host = url.netloc.decode()
                    return Raw(received.status, received.headers, exchange.body, exchange.is_cut, host, latency)
        raise SourceChanged("too many redirects")

    def _headers(self, request: Request, url: "httpx.URL", validators: dict[str, str]) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": ACCEPT[request.decode], "Accept-Encoding": "gzip"}
        if request.headers and is_same_origin(url, request):  # a redirect must not carry an API key to another host
            headers |= request.headers
        if "etag" in validators:
            headers["If-None-Match"] = validators["etag"]
        if "last-modified" in validators:
            headers["If-Modified-Since"] = validators["last-modified"]
        return headers

    @asynccontextmanager
    async def _stream(
        self, pools: HostPools | OnePool, request: Request, url: "httpx.URL", headers: dict[str, str]
    ) -> AsyncIterator[UnreadResponse]:
        """Send one request and yield its response, whose body is still to be read.

        It goes to the pool itself: a client around it would add cookies, authentication and
        redirects, which no source may use, and a third of the time of a request.
        """
        target, method, content = str(url), "GET", b""
        if isinstance(request, Connect):
            target = f"{self._via}/probe/{url.host}"
        elif self._via:
            target = f"{self._via}/u/{url.netloc.decode()}{url.raw_path.decode()}"
        if isinstance(request, Post):
            method = "POST"
            content = json.dumps(request.json, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
            headers = {"Content-Type": "application/json", **headers}
        async with pools.use(url) as outlet:
            received = await outlet.send(method, target, headers, content)
            try:
                yield received
            finally:
                await received.release()

    @contextmanager
    def _watch(
        self, source: Source[Any, Any], request: Request, url: str, headers: dict[str, str] | None = None
    ) -> Iterator[RecordedExchange]:
        """Yield an exchange to fill in, and record it when the block ends, even by an exception."""
        method = "CONNECT" if isinstance(request, Connect) else "POST" if isinstance(request, Post) else "GET"
        sent_json = request.json if isinstance(request, Post) else None
        exchange = RecordedExchange(source.name, method, url, headers or {}, sent_json, self.clock.time())
        started = time.perf_counter()
        try:
            yield exchange
        except BaseException as error:
            exchange.failure = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise
        finally:
            exchange.latency_ms = round((time.perf_counter() - started) * 1000)
            if self._record is not None:
                self._record(source, request, exchange)

    async def _open(self) -> HostPools:
        """Create the pools at the first request, in a thread: their modules and certificates take 0.2 seconds."""
        async with self._opening:
            if self._pools is None:
                self._pools = await anyio.to_thread.run_sync(self._make_pools)
            assert isinstance(self._pools, HostPools)
            return self._pools

    def _make_pools(self) -> HostPools:
        return HostPools(self._proxies, via=self._via)


def _judge_connection(error: Exception) -> SourceDown:
    """Return the SourceDown for a connection that failed."""
    if find_cause(error, ssl.SSLError) is not None:
        return SourceDown(type(error).__name__)
    unresolved = find_cause(error, socket.gaierror)
    if unresolved is not None and unresolved.errno in NO_SUCH_NAME:
        return NoAddress("the name does not resolve")
    return NotConnected(type(error).__name__)


def find_cause(error: BaseException, kind: type[E]) -> E | None:
    """Return the error of this kind that an error is, or because of which it was raised, or None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__ or cause.__context__
    return cause


async def connect_ms(
    host: str, port: int, *, gap_s: float = GAP_S, timer: Callable[[], float] = time.perf_counter
) -> int | None:
    """Measure how long a TCP connection takes: the one exchange with an upstream that is not HTTP.

    Return the median of the successful tries in milliseconds, rounded up, at least 1; None if
    all fail. The name is resolved before `timer` is read. The tries are `gap_s` seconds
    apart.
    """
    try:
        with anyio.fail_after(TIMEOUT_S):
            addresses = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return None
    address = addresses[0][4][0]
    taken = []
    for number in range(TRIES):
        if number:
            await anyio.sleep(gap_s)
        started = timer()
        try:
            with anyio.fail_after(TIMEOUT_S):
                stream = await anyio.connect_tcp(address, port)
        except (OSError, TimeoutError):
            continue
        taken.append(timer() - started)
        await stream.aclose()
    return max(1, math.ceil(statistics.median(taken) * 1000)) if taken else None


async def connect(request: Connect, measure: Callable[[str, int], Awaitable[int | None]] = connect_ms) -> Raw:
    """Open TCP connections and return the time that `measure` says, as an HTTP response with a JSON body."""
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    latency = await measure(host, parts.port or 443)
    result = {"unreachable": True} if latency is None else {"latency_ms": latency}
    return Raw(200, {}, json.dumps(result).encode(), False, host, latency or 0)


async def read_source_body(received: UnreadResponse, source: Source[Any, Any], place: BodyPlace) -> tuple[bytes, bool]:
    """Return the decoded body and whether it was cut at `max_bytes`, which only a prefix source permits.

    Raises:
        SourceTooLarge: the body of another source has more bytes than that.
        SourceChanged: the body is damaged gzip, or has another encoding.
        TooManyBodies: the body is large, and no place for a large body became free in time.
    """
    try:
        pieces = decode_pieces(received.pieces, received.headers.get("content-encoding"))
        body, is_cut = await read_prefix(place.admit(pieces), source.max_bytes)
    except BodyUnreadable as error:
        raise SourceChanged(str(error)) from error
    if is_cut and not source.prefix:
        raise SourceTooLarge(f"over {source.max_bytes} bytes")
    return body, is_cut


@lru_cache(512)
def parse_url(text: str) -> "httpx.URL":
    """Parse a URL. Most sources request the same one again and again. Raise httpx.InvalidURL."""
    from toolserver.core.http_library import httpx

    return httpx.URL(text)


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
    origin = parse_url(request.url)
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


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds given by Retry-After (a number or a date) or x-ratelimit-reset (epoch seconds), or None."""
    value = headers.get("retry-after", "")
    try:
        if value:
            return float(value) if value.isdigit() else (parsedate_to_datetime(value) - now).total_seconds()
        return float(headers["x-ratelimit-reset"]) - now.timestamp()
    except (KeyError, ValueError, TypeError):
        return None
