"""Sends one request of a source, to its upstream or to the simulated world, and returns the raw response."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.core.recorded_exchange import RecordedExchange
from toolserver.upstream.announcements import Announcements
from toolserver.upstream.exchange import ACCEPT, Raw, connect, is_same_origin, read_source_body, redirect_target
from toolserver.upstream.large_bodies import BodyPlace
from toolserver.upstream.source import Connect, Keys, Post, Request, Source
from toolserver.upstream.source_errors import SourceChanged, SourceDown

if TYPE_CHECKING:
    import httpx

REDIRECTS = 3

RecordExchange = Callable[[Source[Any, Any], Request, RecordedExchange], None]
"""Gets each finished exchange, with its source and the request of the plan that it belongs to."""


class HttpSender:
    """The HTTP client of all sources. With `via`, every request goes to that address, under its upstream's host."""

    def __init__(
        self,
        *,
        clock: Clock,
        keys: Keys,
        user_agent: str,
        via: str | None,
        announcements: Announcements,
        transport: "httpx.AsyncBaseTransport | None",
        record: RecordExchange | None,
    ) -> None:
        self._clock, self._keys, self._via = clock, keys, via.rstrip("/") if via else None
        self._user_agent, self._announcements = user_agent, announcements
        self._transport, self._record = transport, record
        self._client: httpx.AsyncClient | None = None
        self._opening = anyio.Lock()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def send(
        self, source: Source[Any, Any], request: Request, validators: dict[str, str], place: BodyPlace
    ) -> Raw:
        """Send a request, follow its redirects, and return the raw response. Raise SourceError."""
        if isinstance(request, Connect) and self._via is None:
            with self._watch(source, request, request.url) as exchange:
                raw = await connect(request)
                exchange.status, exchange.body = raw.status, raw.body
                return raw
        await self._open()
        import httpx

        try:
            return await self._send_http(source, request, validators if source.conditional else {}, place)
        except httpx.TimeoutException as error:
            raise SourceDown(word="timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceDown(type(error).__name__) from error

    async def _send_http(
        self, source: Source[Any, Any], request: Request, validators: dict[str, str], place: BodyPlace
    ) -> Raw:
        import httpx

        url = httpx.URL(request.url, params={**request.params}) if request.params else httpx.URL(request.url)
        started = time.perf_counter()
        for _ in range(REDIRECTS + 1):
            headers = self._headers(request, url, validators)
            with self._watch(source, request, str(url), headers) as exchange:
                async with self._stream(request, url, headers) as response:
                    exchange.status, exchange.headers = response.status_code, response.headers.multi_items()
                    self._announcements.record(source.name, str(url), response.status_code, response.headers)
                    if response.has_redirect_location:
                        url = redirect_target(url, response.headers.get("location", ""), request, self._keys)
                        continue
                    exchange.body, exchange.is_cut = await read_source_body(response, source, place)
                    latency = round((time.perf_counter() - started) * 1000)
                    host = url.netloc.decode()
                    return Raw(response.status_code, response.headers, exchange.body, exchange.is_cut, host, latency)
        raise SourceChanged("too many redirects")

    def _headers(self, request: Request, url: "httpx.URL", validators: dict[str, str]) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": ACCEPT[request.decode], "Accept-Encoding": "gzip"}
        if is_same_origin(url, request):  # a redirect must not carry an API key to another host
            headers |= request.headers
        if "etag" in validators:
            headers["If-None-Match"] = validators["etag"]
        if "last-modified" in validators:
            headers["If-Modified-Since"] = validators["last-modified"]
        return headers

    def _stream(self, request: Request, url: "httpx.URL", headers: dict[str, str]) -> Any:
        target = str(url)
        if isinstance(request, Connect):
            target = f"{self._via}/probe/{url.host}"
        elif self._via:
            target = f"{self._via}/u/{url.netloc.decode()}{url.raw_path.decode()}"
        if isinstance(request, Post):
            return self._opened().stream("POST", target, headers=headers, json=request.json)
        return self._opened().stream("GET", target, headers=headers)

    @contextmanager
    def _watch(
        self, source: Source[Any, Any], request: Request, url: str, headers: dict[str, str] | None = None
    ) -> Iterator[RecordedExchange]:
        """Yield an exchange to fill in, and record it when the block ends, even by an exception."""
        method = "CONNECT" if isinstance(request, Connect) else "POST" if isinstance(request, Post) else "GET"
        sent_json = request.json if isinstance(request, Post) else None
        exchange = RecordedExchange(source.name, method, url, headers or {}, sent_json, self._clock.time())
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

    async def _open(self) -> None:
        """Create the client at the first request, in a thread: its modules and certificates take 0.2 seconds."""
        if self._client is not None:
            return
        async with self._opening:
            if self._client is not None:
                return
            if self._transport is not None:
                self._client = self._make_client()
            else:
                self._client = await anyio.to_thread.run_sync(self._make_client)

    def _opened(self) -> "httpx.AsyncClient":
        assert self._client is not None, "send opens it"
        return self._client

    def _make_client(self) -> "httpx.AsyncClient":
        import httpx

        return httpx.AsyncClient(
            http2=self._via is None,
            verify=self._via is None,  # the TLS context costs 30 ms and is useless on loopback
            trust_env=False,
            limits=httpx.Limits(max_connections=256, max_keepalive_connections=16, keepalive_expiry=20),
            timeout=None,  # the whole exchange has a deadline
            transport=self._transport,
        )
