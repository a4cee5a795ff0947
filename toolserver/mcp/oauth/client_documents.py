"""Read client ID metadata documents: a client whose id is a URL describes itself there and needs no registration.

The URL comes from a stranger, so it is read through the egress guard: public addresses and https only, no redirects, a
few kilobytes within a few seconds. Documents are cached for a while, failures for a shorter time.
"""

import json
import ssl
import unicodedata
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from cachetools import LRUCache

from toolserver.clock import Clock
from toolserver.core.http_body import BodyTooLarge, BodyUnreadable, read_body
from toolserver.core.visible_text import INVISIBLE
from toolserver.errors import ToolserverError
from toolserver.mcp.oauth.records import OAuthClient
from toolserver.mcp.oauth.redirects import MOST_URIS, RedirectRefused, check_redirect_uri
from toolserver.webhooks.dns_lane import DnsLane, Lookup, look_up
from toolserver.webhooks.egress import EgressGuard, TargetRefused

if TYPE_CHECKING:
    from aiohttp import ClientSession

MOST_DOCUMENT, MOST_URL, MOST_NAME = 10 * 1024, 1000, 60
TOTAL_S, CONNECT_S = 5.0, 3.0
KEPT_S, FAILED_S, KEPT = 3600.0, 30.0, 1000
AT_ONCE = 8  # documents that are read at the same time, for all callers together


class ClientDocumentRefused(ToolserverError):
    """A client's id is not the URL of a document that describes it. The text quotes no input, so it may be shown."""


class ClientDocuments:
    """Reads and caches client documents. `tls` and `lookup` are for tests."""

    def __init__(
        self, guard: EgressGuard, clock: Clock, *, lookup: Lookup = look_up, tls: ssl.SSLContext | None = None
    ) -> None:
        self._guard, self._clock, self._tls = guard, clock, tls
        self._lane = DnsLane(guard, clock, lookup=lookup)
        self._kept: LRUCache[str, tuple[OAuthClient | ClientDocumentRefused, float]] = LRUCache(KEPT)
        self._room, self._opening = anyio.CapacityLimiter(AT_ONCE), anyio.Lock()
        self._session: ClientSession | None = None

    async def find(self, url: str) -> OAuthClient:
        """Return the client that the document at its id describes. Raises ClientDocumentRefused."""
        found, until = self._kept.get(url, (None, 0.0))
        if found is None or until <= self._clock.monotonic():
            found = await self._read_anew(url)
            kept_s = FAILED_S if isinstance(found, ClientDocumentRefused) else KEPT_S
            self._kept[url] = found, self._clock.monotonic() + kept_s
        if isinstance(found, ClientDocumentRefused):
            raise ClientDocumentRefused(str(found))
        return found

    async def close(self) -> None:
        """Close connections and stop lookups."""
        if self._session is not None:
            await self._session.close()
        self._lane.close()

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
        session = self._session or await self._open_session()
        from aiohttp import ClientError

        try:
            async with self._room, session.get(url, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise ClientDocumentRefused(f"The document at client_id returned status {answer.status}.")
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise ClientDocumentRefused("The document at client_id is compressed, which was not requested.")
                return await read_body(answer.content.iter_any(), MOST_DOCUMENT)
        except BodyTooLarge:
            raise ClientDocumentRefused(f"The document at client_id is larger than {MOST_DOCUMENT} bytes.") from None
        except (ClientError, OSError, BodyUnreadable, TimeoutError, ValueError) as failure:
            raise ClientDocumentRefused("The document at client_id could not be read.") from failure

    async def _open_session(self) -> "ClientSession":
        async with self._opening:
            if self._session is None:
                tls = await anyio.to_thread.run_sync(_load_reading, self._tls)
                import aiohttp

                from toolserver.webhooks.guarded_session import make_guarded_session

                times = aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S)
                headers = {"User-Agent": "toolserver-oauth/1.0", "Accept": "application/json"}
                headers["Accept-Encoding"] = "identity"
                self._session = make_guarded_session(self._guard, self._lane, tls=tls, times=times, headers=headers)
        return self._session


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
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ClientDocumentRefused("The document at client_id is not JSON.") from None
    if not isinstance(given, dict) or given.get("client_id") != url:
        raise ClientDocumentRefused("The document at client_id does not repeat its own address as client_id.")
    if given.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in given:
        raise ClientDocumentRefused(
            "A client that describes itself is public: token_endpoint_auth_method must be none."
        )
    name = given.get("client_name")
    return OAuthClient(
        url,
        clean_name(name if isinstance(name, str) else "") or (urlsplit(url).hostname or ""),
        _read_redirect_uris(given.get("redirect_uris")),
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


def _read_redirect_uris(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_URIS or not all(isinstance(u, str) for u in given):
        raise ClientDocumentRefused(f"redirect_uris must be a list of 1 to {MOST_URIS} URIs.")
    try:
        for uri in given:
            check_redirect_uri(uri)
    except RedirectRefused as refused:
        raise ClientDocumentRefused(f"redirect_uris: {refused}.") from None
    return tuple(given)


def _load_reading(tls: ssl.SSLContext | None) -> ssl.SSLContext:
    """Import the reader, and load this machine's certificate authorities unless others are given."""
    import toolserver.webhooks.guarded_session  # noqa: F401 - imported here, in a thread, for the first time

    return tls or ssl.create_default_context()
