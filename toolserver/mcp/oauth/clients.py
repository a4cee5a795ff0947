"""Find clients by id: those that registered, and those that describe themselves at their id, a URL.

The second kind needs no registration: its id is the address of a client ID metadata document.

The URL comes from a stranger, so it is read through the egress guard: public addresses and
https only, no redirects, a few kilobytes within a few seconds. Documents are cached for a
while, failures for a shorter time.

So many documents are read at once, and so many wait for that; a client has a share of both. A
reading has a second for itself. After it, while others wait, the oldest reading of the client
with most ends, so that addresses that never answer hold nobody else up.
"""

import asyncio
import contextlib
import json
import ssl
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from cachetools import LRUCache

from toolserver.clock import Clock
from toolserver.core.descriptors import read_descriptor_limit
from toolserver.core.http import BodyTooLarge, BodyUnreadable, read_body
from toolserver.core.outbound import make_tls_context
from toolserver.core.visible_text import INVISIBLE
from toolserver.core.waiting_room import WaitingPlace, WaitingRoom, WaitLimits, WaitRefused
from toolserver.errors import ToolserverError
from toolserver.mcp.oauth.redirects import MOST_URIS, RedirectRefused, check_redirect_uri
from toolserver.mcp.oauth.store import OAuthClient, OAuthStore
from toolserver.webhooks.egress import (
    DnsLane,
    EgressGuard,
    GuardedSession,
    Lookup,
    RequestFailed,
    TargetRefused,
    look_up,
)

MOST_DOCUMENT, MOST_URL, MOST_NAME = 10 * 1024, 1000, 60
CONNECT_S = 3.0
DOCUMENTS_PART = 16  # readings at once take so large a part of the descriptors at most
CACHE_S, FAILED_S, CACHED = 3600.0, 30.0, 1000


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What readings may take.

    `at_once` documents are read at the same time and `queue` wait for it, for all callers
    together. Of both together, one client may have `share`, and all clients of a /48
    `crowd_share`. A reading takes at most `total_s` seconds, and is not ended for the sake of
    others in its first `safe_s`.
    """

    at_once: int = 64
    queue: int = 192
    share: int = 4
    crowd_share: int = 16
    total_s: float = 5.0
    safe_s: float = 1.0


READING_LIMITS = ReadingLimits()


def make_reading_limits() -> ReadingLimits:
    """Return limits that leave most of the descriptors of this process to its other connections."""
    most, usual = read_descriptor_limit(), READING_LIMITS
    return usual if most is None else replace(usual, at_once=max(4, min(usual.at_once, most // DOCUMENTS_PART)))


class ClientDocumentRefused(ToolserverError):
    """A client's id is not the URL of a document that describes it. The text quotes no input, so it may be shown."""


class ClientDocumentsBusy(ToolserverError):
    """The document was not read, because too many are being read for this client or for all. Try again."""


@dataclass(slots=True, eq=False)
class _Reading:
    """A document that is being read, since `begun` by the loop's clock, or waits for that (None). Its `place` counts
    for who began it."""

    task: "asyncio.Task[OAuthClient | ClientDocumentRefused]"
    place: WaitingPlace
    waiting: set[object] = field(default_factory=set)
    begun: float | None = None

    @property
    def crowd(self) -> str | None:
        return self.place.crowd


class ClientDocuments:
    """Reads and caches client documents. `load_tls` and `lookup` are for tests."""

    def __init__(
        self,
        guard: EgressGuard,
        clock: Clock,
        *,
        limits: ReadingLimits | None = None,
        lookup: Lookup = look_up,
        load_tls: Callable[[], ssl.SSLContext] = make_tls_context,
        proxy: str | None = None,
    ) -> None:
        limits = limits or make_reading_limits()
        self.limits, self._guard, self._clock = limits, guard, clock
        self._lane = DnsLane(guard, clock, lookup=lookup)
        self._cache: LRUCache[str, tuple[OAuthClient | ClientDocumentRefused, float]] = LRUCache(CACHED)
        most = limits.at_once + limits.queue
        self.room = WaitingRoom("client_documents", WaitLimits(most, limits.share, limits.crowd_share, limits.total_s))
        self._readings: dict[str, _Reading] = {}  # by URL, the oldest first
        self._turn, self._ended = asyncio.Lock(), asyncio.Event()  # the first in the queue waits for the end of one
        self._session = GuardedSession(
            self._lane,
            headers={
                "User-Agent": "toolserver-oauth/1.0",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            connect_s=CONNECT_S,
            total_s=limits.total_s,
            load_tls=load_tls,
            proxy=proxy,
        )

    async def find(self, url: str, client: str | None = None) -> OAuthClient:
        """Return the client that the document at its id describes, within five seconds.
        `client` is who waits for it, by address; None has no share to exceed.

        Raises:
            ClientDocumentRefused, ClientDocumentsBusy
        """
        outcome, until = self._cache.get(url, (None, 0.0))
        if outcome is None or until <= self._clock.monotonic():
            outcome = await self._join(url, client)
        if isinstance(outcome, ClientDocumentRefused):
            raise ClientDocumentRefused(str(outcome))
        return outcome

    @property
    def rooms(self) -> tuple[WaitingRoom, WaitingRoom]:
        """Where those wait who cause readings, and lookups of names."""
        return self.room, self._lane.room

    def count_readings(self) -> int:
        """Return how many documents are being read or wait for that."""
        return len(self._readings)

    async def close(self) -> None:
        """End readings, close connections and stop lookups."""
        tasks = [reading.task for reading in self._readings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()
        self._lane.close()

    async def _join(self, url: str, client: str | None) -> OAuthClient | ClientDocumentRefused:
        """Wait for a reading, which ends with the last who waits. Raises ClientDocumentsBusy.

        One that made room while another client paid for it with its share begins again, in the time that is left.
        """
        ends = asyncio.get_running_loop().time() + self.limits.total_s
        while True:
            reading = self._readings.get(url) or self._begin(url, client, ends)
            me = object()
            reading.waiting.add(me)
            try:
                await asyncio.wait([reading.task])
            finally:
                reading.waiting.discard(me)
                if not reading.waiting:
                    self._end(url, reading)
            if not reading.task.cancelled():
                return reading.task.result()
            if reading.place.client == client:
                raise ClientDocumentsBusy("Too many apps are being looked up. Try again in a few seconds.")

    def _begin(self, url: str, client: str | None, ends: float) -> _Reading:
        """Begin a reading, and end another if there is no place for it. Raises ClientDocumentsBusy."""
        try:
            place = self.room.take(client, lambda: self._end(url, reading))
        except WaitRefused as refusal:
            by_whom = " from this address" if refusal.reason == "share" else ""
            raise ClientDocumentsBusy(
                f"Too many apps are being looked up{by_whom}. Try again in a few seconds."
            ) from None
        task = asyncio.create_task(self._read_until(url, ends))
        reading = self._readings[url] = _Reading(task, place)
        task.add_done_callback(lambda _: self._end(url, reading))
        return reading

    async def _await_place(self, reading: _Reading) -> None:
        """Wait until this document may be read, in the order in which they came."""
        now = asyncio.get_running_loop().time
        async with self._turn:
            while True:
                begun = [(url, each, each.begun) for url, each in self._readings.items() if each.begun is not None]
                old = [(url, each) for url, each, since in begun if since + self.limits.safe_s <= now()]
                if len(begun) < self.limits.at_once:
                    break
                if old:
                    self._end(*_find_greediest(old))
                    break
                self._ended.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(since for _, _, since in begun) + self.limits.safe_s):
                        await self._ended.wait()
            reading.begun = now()

    def _end(self, url: str, reading: _Reading) -> None:
        """Give the place of a reading back."""
        reading.task.cancel()
        self.room.leave(reading.place)
        if self._readings.get(url) is reading:
            del self._readings[url]
            self._ended.set()

    async def _read_until(self, url: str, ends: float) -> OAuthClient | ClientDocumentRefused:
        """Read a document and cache it. The deadline covers the queue, names, certificates, connection and body.

        Raises ClientDocumentsBusy.
        """
        reading = self._readings[url]
        try:
            async with asyncio.timeout_at(ends):
                await self._await_place(reading)
                outcome = await self._read_anew(url)
        except TimeoutError:
            if reading.begun is None:
                raise ClientDocumentsBusy("Too many apps are being looked up. Try again in a few seconds.") from None
            outcome = ClientDocumentRefused("The document at client_id could not be read in time.")
        cached_s = FAILED_S if isinstance(outcome, ClientDocumentRefused) else CACHE_S
        self._cache[url] = outcome, self._clock.monotonic() + cached_s
        return outcome

    async def _read_anew(self, url: str) -> OAuthClient | ClientDocumentRefused:
        try:
            check_client_url(url)
            self._guard.check_url(url)
            return read_client_document(url, await self._fetch(url), int(self._clock.time() * 1000))
        except TargetRefused:
            return ClientDocumentRefused("client_id must be an https URL of the public Internet.")
        except ClientDocumentRefused as refused:
            return refused

    async def _fetch(self, url: str) -> bytes:
        """Fetch the document. Raises ClientDocumentRefused."""
        try:
            async with self._session.request("GET", url) as answer:
                if answer.status != 200:
                    raise ClientDocumentRefused(f"The document at client_id returned status {answer.status}.")
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise ClientDocumentRefused("The document at client_id is compressed, which was not requested.")
                return await read_body(answer.content.iter_any(), MOST_DOCUMENT)
        except BodyTooLarge:
            raise ClientDocumentRefused(f"The document at client_id is larger than {MOST_DOCUMENT} bytes.") from None
        except (RequestFailed, BodyUnreadable, ValueError) as failure:
            raise ClientDocumentRefused("The document at client_id could not be read.") from failure


class ClientDirectory:
    """Finds clients by id. `documents` reads those that describe themselves."""

    def __init__(self, store: OAuthStore, documents: ClientDocuments) -> None:
        self.store, self.documents = store, documents

    async def find(self, id: str, caller: str | None = None) -> OAuthClient | None:
        """Return a client; None if it is not registered. `caller` is who asks, by address.

        Raises:
            ClientDocumentRefused: the id is a URL that describes no client.
            ClientDocumentsBusy: its document was not read, because of others.
        """
        if is_client_url(id):
            return await self.documents.find(id, caller)
        return await self.store.find_client(id)

    async def find_known(self, id: str, caller: str | None = None) -> OAuthClient | None:
        """Return the same, but None also for a URL that describes no client. Raises ClientDocumentsBusy."""
        try:
            return await self.find(id, caller)
        except ClientDocumentRefused:
            return None


def is_client_url(client_id: str) -> bool:
    """Return True if a client's id is meant as the URL of its document."""
    return client_id.startswith(("https://", "http://"))


def check_client_url(url: str) -> None:
    """Raise ClientDocumentRefused for a URL that cannot be the id of a client."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ClientDocumentRefused("client_id is not a URL.") from None
    dots = any(part in (".", "..") for part in parts.path.split("/"))
    if len(url) > MOST_URL or "#" in url or "@" in parts.netloc or parts.path in ("", "/") or dots or not url.isascii():
        raise ClientDocumentRefused(
            f"A client_id that is a URL must have a path, no fragment, user or dots, and at most {MOST_URL} characters."
        )


def read_client_document(url: str, body: bytes, now: int) -> OAuthClient:
    """Return the client that a document describes. Raises ClientDocumentRefused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ClientDocumentRefused("The document at client_id is not JSON.") from None
    if not isinstance(document, dict) or document.get("client_id") != url:
        raise ClientDocumentRefused("The document at client_id does not repeat its own address as client_id.")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        raise ClientDocumentRefused(
            "A client that describes itself is public: token_endpoint_auth_method must be none."
        )
    name = document.get("client_name")
    return OAuthClient(
        url,
        clean_name(name if isinstance(name, str) else "") or (urlsplit(url).hostname or ""),
        _read_redirect_uris(document.get("redirect_uris")),
        now,
        document=True,
    )


def clean_name(name: str) -> str:
    """Return a client's name in a form safe to show: one line, limited length, nothing that cannot be seen.

    Empty if it has no letter and no digit.
    """
    seen = "".join(c if c.isprintable() else " " for c in INVISIBLE.sub("", name))
    short = " ".join(seen.split())[:MOST_NAME].rstrip()
    return short if any(unicodedata.category(c)[0] in "LN" for c in short) else ""


def _find_greediest(readings: list[tuple[str, _Reading]]) -> tuple[str, _Reading]:
    """Return the oldest reading of the client with most of these, and its URL."""
    counts = Counter(reading.crowd for _, reading in readings)
    return max(readings, key=lambda pair: counts[pair[1].crowd])  # of equals, max returns the first


def _read_redirect_uris(uris: Any) -> tuple[str, ...]:
    if not isinstance(uris, list) or not 1 <= len(uris) <= MOST_URIS or not all(isinstance(uri, str) for uri in uris):
        raise ClientDocumentRefused(f"redirect_uris must be a list of 1 to {MOST_URIS} URIs.")
    try:
        for uri in uris:
            check_redirect_uri(uri)
    except RedirectRefused as refused:
        raise ClientDocumentRefused(f"redirect_uris: {refused}.") from None
    return tuple(uris)
