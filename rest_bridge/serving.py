"""Serves documents as HTTP handlers: content negotiation, validators, compression."""

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files

from rest_bridge import headers as h
from rest_bridge.asgi import Header, ParsedRequest, PlainReply, Scope, from_query
from rest_bridge.etag import etag_of, holds_etag
from rest_bridge.routes import Handler
from toolserver.calls.response import compress
from toolserver.errors import NotFound
from toolserver.registry.site_facts import JSON, Document

MAX_AGE_S = 300
_SCRIPTS = files("rest_bridge.pages").joinpath("static/js")
THEME_SCRIPT = _SCRIPTS.joinpath("theme.js").read_text()
"""Stands in every page: it chooses the colours, and the first paint would wait for a file."""
START_SCRIPT = _SCRIPTS.joinpath("start.js").read_text()
"""Stands in the pages that people see first: it starts their other scripts after the first paint."""
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def page_policy(page: bytes) -> Header:
    """Return the header that says what a page may load and run.

    Of scripts and styles in the page itself, these are our two scripts and the style sheet in
    the page's head, by their hashes. Nothing in the head but our own files can be a sheet, as
    every value there is escaped.
    """
    style = _STYLE.search(page.partition(b"</head>")[0])
    return (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self' %s %s; style-src 'self'%s; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        % (*_SCRIPT_HASHES, b" " + _hash(style[1]) if style else b""),
    )


def _hash(text: bytes) -> bytes:
    """Return the hash of an inline script or style as a policy names it."""
    return b"'sha256-%s'" % base64.b64encode(hashlib.sha256(text).digest())


_SCRIPT_HASHES = (_hash(THEME_SCRIPT.encode()), _hash(START_SCRIPT.encode()))


class ServedDocument:
    """A document with its validator and its compressed forms, which are made on first use."""

    def __init__(self, document: Document) -> None:
        self._body, self._type = document.body, document.content_type.encode()
        self._digest = hashlib.sha256(document.body).hexdigest()[:32]
        self._packed: dict[str, bytes] = {}
        self._policy = [page_policy(document.body)] if self._type.startswith(b"text/html") else []

    def reply(
        self,
        request: ParsedRequest,
        *,
        cache_control: bytes = b"public, max-age=%d" % MAX_AGE_S,
        vary: bytes = b"Accept-Encoding",
    ) -> PlainReply:
        """Return the document, or a 304 for a client that has it."""
        encoding = h.choose_encoding(request.accept_encoding, len(self._body))
        tag = etag_of(self._digest, encoding)
        headers: list[Header] = [
            (b"content-type", self._type),
            (b"cache-control", cache_control),
            (b"etag", tag),
            (b"vary", vary),
            *self._policy,
        ]
        if request.if_none_match and holds_etag(request.if_none_match, tag):
            return PlainReply(304, b"", headers)
        if encoding is None:
            return PlainReply(200, self._body, headers)
        if encoding not in self._packed:
            self._packed[encoding] = compress(self._body, encoding)
        return PlainReply(200, self._packed[encoding], [*headers, (b"content-encoding", encoding.encode())])


def lazy(make: Callable[[], Document]) -> Handler:
    """Serve a document that never changes while the service runs. It is made on the first request."""
    documents: list[ServedDocument] = []

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        if not documents:
            documents.append(ServedDocument(make()))
        return documents[0].reply(request)

    return handler


def by_query(make: Callable[[Mapping[str, str]], Document], *, most: int = 64) -> Handler:
    """Serve a document made from query parameters, kept for each choice. `make` raises CallRejected for a wrong one."""
    documents: dict[tuple[tuple[str, str], ...], ServedDocument] = {}

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        parameters = from_query(scope["query_string"])
        choice = tuple(sorted(parameters.items()))
        served = documents.get(choice) or ServedDocument(make(parameters))
        if len(documents) < most:
            documents[choice] = served
        return served.reply(request)

    return handler


def brief(make: Callable[[], Document], *, max_age_s: int = 5) -> Handler:
    """Serve a document that is made for every request and that anyone may cache for `max_age_s` seconds."""
    policy = b"public, max-age=%d" % max_age_s

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        return ServedDocument(make()).reply(request, cache_control=policy)

    return handler


def brief_under(above: str, read: Callable[[str], Awaitable[bytes | None]]) -> Handler:
    """Serve JSON at `<above><name>.json`, made for every request. Raise NotFound if `read` returns None."""

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        name, dot, ending = scope["path"].removeprefix(above).rpartition(".")
        body = await read(name) if (dot, ending) == (".", "json") else None
        if body is None:
            raise NotFound("There is nothing at this address.")
        return ServedDocument(Document(body, JSON)).reply(request, cache_control=b"public, max-age=5")

    return handler


def fresh(make: Callable[[], Awaitable[tuple[Document, int]]]) -> Handler:
    """Serve a document that is made for every request, with its status, and never cached."""

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        document, status = await make()
        return PlainReply(status, document.body, [(b"content-type", document.content_type.encode()), h.NO_STORE])

    return handler
