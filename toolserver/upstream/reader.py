"""The one place that talks to upstreams: a request goes out, a checked result comes back.

Politeness, circuit, deadline, retry, size and redirect limits are the same for every source.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.errors import (
    SourceChanged,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceFrozen,
    SourceLimited,
    SourceRefused,
    SourceUnusable,
)
from toolserver.upstream.bodies import parsed
from toolserver.upstream.exchange import ACCEPT, Raw, connected, followed, read, retry_after
from toolserver.upstream.health import Health
from toolserver.upstream.pacing import Pacer
from toolserver.upstream.source import Connect, Get, Keys, Post, Request, Source

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

REDIRECTS = 3
AHEAD_S = 86400  # a document may be dated by a day that has begun elsewhere, and not later
LARGE = 128 * 1024  # bodies from this size are parsed in a worker thread
_BARRED = {"any": set(), "no_forbidden": {"no"}, "commercial": {"no", "unclear", "non_commercial"}}


@dataclass(frozen=True, slots=True)
class Fetched:
    """One good exchange. `body` is None when the upstream said "not modified"."""

    value: Any
    body: bytes | None
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    latency_ms: int
    validators: dict[str, str] = field(default_factory=dict)


class Reader:
    """Asks upstreams. `via` sends every request to one loopback address instead (the simulated world)."""

    def __init__(
        self,
        *,
        clock: Clock,
        keys: Keys,
        user_agent: str,
        licence_policy: str = "any",
        via: str | None = None,
        observe: Callable[[str, str, float], None] = lambda source, outcome, seconds: None,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        self._clock, self._keys, self._via = clock, keys, via.rstrip("/") if via else None
        self._user_agent, self._barred = user_agent, _BARRED[licence_policy]
        self._observe, self._transport = observe, transport
        self._pacer = Pacer(clock=clock, keys=keys)
        self.health = Health(monotonic=clock.monotonic)
        self._client: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def fetch(self, source: Source[Any, Any], query: Any, validators: dict[str, str], kept: Any) -> Fetched:
        """Ask a source, its mirrors in order. `validators` and `kept` are those of the answer at hand, if any.

        Raises:
            SourceError: no mirror gave a good answer within the source's time.
        """
        plan = self._plan(source, query)
        self.health.admit(source.name)
        started = time.perf_counter()
        try:
            fetched = await self._first_good(source, query, plan, validators, kept)
        except SourceError as error:
            self._failed(source, error, started)
            raise
        except BaseException:
            self.health.of(source.name).probing = False
            raise
        self.health.succeeded(source.name)
        self._observe(source.name, "ok", time.perf_counter() - started)
        return fetched

    def usable(self, source: Source[Any, Any], query: Any) -> bool:
        """Whether the source may be asked with the keys and the licence policy there are."""
        try:
            self._plan(source, query)
        except SourceError:
            return False
        return True

    def _failed(self, source: Source[Any, Any], error: SourceError, started: float) -> None:
        self.health.failed(source.name, error)
        self._observe(source.name, error.word, time.perf_counter() - started)

    def _plan(self, source: Source[Any, Any], query: Any) -> Sequence[Request]:
        if source.licence.kind in self._barred:
            raise SourceExcluded(source.licence.kind)
        plan = source.request(query, self._keys)
        if plan is None:
            raise SourceUnusable(source.name)
        return [plan] if isinstance(plan, Get) else plan

    async def _first_good(
        self, source: Source[Any, Any], query: Any, plan: Sequence[Request], validators: dict[str, str], kept: Any
    ) -> Fetched:
        """Mirrors one after the other, each with its share of the time: one that hangs must not use up the others'."""
        failure: SourceError = SourceUnusable(source.name)
        share_s = source.timeout_s / min(len(plan), 3)
        for request in plan:
            try:
                with anyio.fail_after(share_s):
                    return await self._exchange(source, query, request, validators, kept)
            except TimeoutError:
                failure = SourceDown(f"no answer in {share_s:g} s", word="timeout")
            except SourceError as error:
                failure = error
        raise failure

    async def _exchange(
        self, source: Source[Any, Any], query: Any, request: Request, validators: dict[str, str], kept: Any
    ) -> Fetched:
        raw = await self._sent(source, request, validators if source.conditional else {})
        if raw.status == 304 and kept is not None:
            value, body = kept, None
        else:
            self._judge_status(source, raw)
            large = len(raw.body) >= LARGE
            read = (source, request, query, raw.body)
            value = (
                await anyio.to_thread.run_sync(lambda: parsed(*read, cut=raw.cut))
                if large
                else parsed(*read, cut=raw.cut)
            )
            body = raw.body
        now = self._clock.now()
        newest = source.newest(value) if source.newest else None
        dated = source.stamp(value) if source.stamp else newest
        if source.newest_max_s is not None and dated and (now - dated).total_seconds() > source.newest_max_s:
            raise SourceFrozen(f"newest is of {dated:%Y-%m-%d %H:%M}")
        if dated and (dated - now).total_seconds() > AHEAD_S:
            raise SourceChanged(f"newest is of {dated:%Y-%m-%d}, which is to come")
        given = {name: raw.headers[name] for name in ("etag", "last-modified") if name in raw.headers}
        return Fetched(value, body, now, newest, dated, raw.latency_ms, given or validators)

    def _judge_status(self, source: Source[Any, Any], raw: Raw) -> None:
        """Turn a status that is not an answer into what it means."""
        status = raw.status
        if status == 200 or status in source.also:
            return
        wait = retry_after(raw.headers, self._clock.now())
        limited = status in (429, 418) or (status == 403 and raw.headers.get("x-ratelimit-remaining") == "0")
        if limited:
            self._pacer.close(source.hosts, raw.host, wait)
            raise SourceLimited(f"http {status}", retry_after_s=wait)
        if status in (401, 403, 451):
            raise SourceRefused(f"http {status}")
        if status == 599:
            raise SourceDown("name does not resolve")
        raise SourceDown(word=f"http_{status}") if status >= 500 else SourceChanged(word=f"http_{status}")

    async def _sent(self, source: Source[Any, Any], request: Request, validators: dict[str, str]) -> Raw:
        """One exchange, and a second one after a short pause when the first failed quickly."""
        host = urlsplit(request.url).netloc
        started = time.perf_counter()
        for attempt in (1, 2):
            try:
                async with self._pacer.turn(source.hosts, host, patience_s=source.timeout_s):
                    raw = await self._send(source, request, validators)
            except SourceDown:
                late = time.perf_counter() - started > source.timeout_s / 2
                if attempt == 2 or late:
                    raise
            else:
                if attempt == 2 or raw.status not in (502, 503, 504):
                    return raw
            await self._clock.sleep(random.uniform(0.2, 0.6))
        raise AssertionError("unreachable")

    async def _send(self, source: Source[Any, Any], request: Request, validators: dict[str, str]) -> Raw:
        if isinstance(request, Connect) and self._via is None:
            return await connected(request)
        return await self._send_http(source, request, validators)

    async def _send_http(self, source: Source[Any, Any], request: Request, validators: dict[str, str]) -> Raw:
        import httpx

        url: str | httpx.URL = httpx.URL(request.url, params={**request.params}) if request.params else request.url
        started = time.perf_counter()
        try:
            for _ in range(REDIRECTS + 1):
                url = httpx.URL(url)
                async with self._stream(request, url, validators) as response:
                    if response.has_redirect_location:
                        url = followed(url, response.headers.get("location", ""))
                        continue
                    body, cut = await read(response, source)
                    latency = round((time.perf_counter() - started) * 1000)
                    return Raw(response.status_code, response.headers, body, cut, url.netloc.decode(), latency)
        except httpx.TimeoutException as error:
            raise SourceDown(word="timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceDown(type(error).__name__) from error
        raise SourceChanged("too many redirects")

    def _stream(self, request: Request, url: "httpx.URL", validators: dict[str, str]) -> Any:
        headers = {"User-Agent": self._user_agent, "Accept": ACCEPT[request.decode], "Accept-Encoding": "gzip"}
        if url.host == urlsplit(request.url).hostname:  # a key never travels to another host
            headers |= request.headers
        if "etag" in validators:
            headers["If-None-Match"] = validators["etag"]
        if "last-modified" in validators:
            headers["If-Modified-Since"] = validators["last-modified"]
        target = str(url)
        if isinstance(request, Connect):
            target = f"{self._via}/probe/{url.host}"
        elif self._via:
            target = f"{self._via}/u/{url.netloc.decode()}{url.raw_path.decode()}"
        if isinstance(request, Post):
            return self._http().stream("POST", target, headers=headers, json=request.json)
        return self._http().stream("GET", target, headers=headers)

    def _http(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            limits = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=20)
            self._client = httpx.AsyncClient(
                http2=self._via is None,
                verify=self._via is None,  # the context costs 30 ms and is of no use on loopback
                trust_env=False,
                limits=limits,
                timeout=None,  # the exchange as a whole has a deadline
                transport=self._transport,
            )
        return self._client
