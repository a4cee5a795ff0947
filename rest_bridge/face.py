"""The registry as REST: one ASGI callable, a dict lookup by path, and the same pipeline as every other face."""

import difflib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rest_bridge import exchange
from rest_bridge import headers as h
from rest_bridge.arguments import from_body, from_query
from rest_bridge.asgi import (
    Asked,
    Header,
    InvalidRequest,
    MethodNotAllowed,
    Receive,
    Reply,
    Scope,
    Send,
    asked,
    body_of,
    send,
)
from toolserver import problems
from toolserver.access import Addresses, Caller, bearer
from toolserver.clock import Clock
from toolserver.documents import Facts
from toolserver.errors import CallRejected, InternalError, NotFound, RateLimited
from toolserver.pipeline import Outcome, Pipeline
from toolserver.presence import unless_gone
from toolserver.registry import Operation, Registry, Tier
from toolserver.rendering import json_bytes

log = logging.getLogger(__name__)

_LONG_WAY = frozenset({b"idempotency-key", b"payment-signature"})  # what makes a paid call more than a sale

Handler = Callable[[Scope, Asked], Awaitable[Reply]]
Mounted = Callable[[Scope, Receive, Send], Awaitable[None]]


class Face:
    """Answers HTTP. `pages` are plain handlers by path, `mounted` whole ASGI callables (MCP) by path.

    A page whose path ends in `/*` answers every longer path that nothing else answers.
    """

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        facts: Facts,
        clock: Clock,
        addresses: Addresses,
        body_limit: int = 65_536,
        pages: Mapping[str, Handler] | None = None,
        mounted: Mapping[str, Mounted] | None = None,
    ) -> None:
        self._pipeline, self._facts, self._clock, self._addresses = pipeline, facts, clock, addresses
        self._body_limit = body_limit
        self._mounted = dict(mounted or {})
        self._pages = {path: page for path, page in (pages or {}).items() if not path.endswith("/*")}
        self._under = [(path[:-1], page) for path, page in (pages or {}).items() if path.endswith("/*")]
        self._book = h.HeaderBook(facts)
        self._gets = {o.path: exchange.Endpoint(o) for o in registry if o.method == "GET"}
        self._others: dict[str, dict[str, Operation]] = {}
        for operation in registry:
            if operation.method != "GET":
                self._others.setdefault(operation.path, {})[operation.method] = operation

    async def __call__(self, scope: Scope, receive: Receive, send_: Send) -> None:
        path: str = scope["path"]
        mounted = self._mounted.get(path)
        if mounted is not None:
            await mounted(scope, receive, send_)
            return
        if scope["method"] == "GET" and not scope["query_string"]:
            endpoint = self._gets.get(path)
            if (
                endpoint is not None
                and endpoint.default_key is not None
                and await self._at_hand(endpoint, scope, send_)
            ):
                return
        found = asked(scope)
        request_id = exchange.request_id(found.request_id)
        try:
            await self._answer(scope, receive, send_, found, request_id)
        except CallRejected as rejected:
            await self._reject(scope, send_, rejected, request_id)
        except Exception:
            log.exception("a request failed", extra={"path": path, "request_id": request_id})
            error = InternalError("Something went wrong on our side; the request id helps us find it.")
            await self._reject(scope, send_, error, request_id)

    async def _at_hand(self, endpoint: exchange.Endpoint, scope: Scope, send_: Send) -> bool:
        """The common call: a free answer that is at hand. False when the long way is needed; nothing was done then."""
        lines = scope["headers"]
        given = dict(lines)
        if len(given) != len(lines):
            return False
        if endpoint.operation.credits:
            return await self._sold_at_hand(endpoint, scope, given, send_)
        if b"authorization" in given:
            return False
        now = self._clock.time()
        request_id = exchange.request_id(given.get(b"x-request-id", b""))
        known = given.get(b"if-none-match")
        try:
            ready = self._pipeline.at_hand(
                endpoint.operation,
                endpoint.default_key,
                now,
                self._client(scope, given.get(b"x-forwarded-for")),
                exchange.unchanged(known),
                given.get(b"user-agent", b"").decode("latin-1"),
            )
        except RateLimited as rejected:
            await self._reject(scope, send_, rejected, request_id)
            return True
        if ready is None:
            return False
        rendered, standings, unchanged = ready
        accept = given.get(b"accept-encoding")
        encoding = h.choose_encoding(accept, len(rendered.payload)) if accept else None
        headers = [*self._book.free(rendered, encoding, now, hit=True), (b"x-request-id", request_id.encode())]
        if standings:
            headers += h.limits(self._pipeline.limits.policy, standings)
        if unchanged:
            await send(send_, 304, exchange.without_entity(headers), b"")
            return True
        await send_({"type": "http.response.start", "status": 200, "headers": headers})
        await send_(
            {"type": "http.response.body", "body": rendered.variant(encoding) if encoding else rendered.payload}
        )
        return True

    async def _sold_at_hand(
        self, endpoint: exchange.Endpoint, scope: Scope, given: Mapping[bytes, bytes], send_: Send
    ) -> bool:
        """The common paid call: an answer that is at hand. False when the long way is needed; nothing was done then."""
        token, arguments = given.get(b"authorization"), endpoint.arguments
        if token is None or arguments is None or not _LONG_WAY.isdisjoint(given):
            return False
        rendered = self._pipeline.owed_at_hand(endpoint.operation, endpoint.default_key, self._clock.time())
        if rendered is None:
            return False
        caller = Caller(
            client=self._client(scope, given.get(b"x-forwarded-for")),
            token=bearer(token.decode("latin-1")),
            agent=given.get(b"user-agent", b"").decode("latin-1"),
            request_id=exchange.request_id(given.get(b"x-request-id", b"")),
            nonce=exchange.text(given.get(b"x-agent-nonce")),
        )
        try:
            outcome = await self._pipeline.sell_at_hand(endpoint.operation, arguments, rendered, caller)
        except CallRejected as rejected:
            await self._reject(scope, send_, rejected, caller.request_id)
            return True
        headers = [*self._book.sold, (b"x-request-id", caller.request_id.encode()), h.digest(rendered)]
        headers += [*exchange.sold(outcome), (b"content-length", b"%d" % len(rendered.payload))]
        await send_({"type": "http.response.start", "status": 200, "headers": headers})
        await send_({"type": "http.response.body", "body": rendered.payload})
        return True

    async def _answer(self, scope: Scope, receive: Receive, send_: Send, found: Asked, request_id: str) -> None:
        """Everything else: other methods, arguments, tokens, pages, refusals."""
        method, path = scope["method"], scope["path"]
        if found.twice is not None:
            raise InvalidRequest(f"The header {found.twice.decode()} is given more than once.", errors=[])
        allowed = self._allowed(path)
        if not allowed:
            raise self._not_found(path)
        if method == "OPTIONS":
            methods = (b"access-control-allow-methods", ", ".join(allowed).encode())
            await send(send_, 204, [*self._book.preflight, methods, (b"allow", methods[1])], b"")
            return
        if method not in allowed:
            raise MethodNotAllowed(f"{path} answers {', '.join(allowed)}.", headers={"Allow": ", ".join(allowed)})
        if method in ("GET", "HEAD") and (page := self._page(path)) is not None:
            await self._send_page(scope, send_, await page(scope, found), request_id)
            return
        operation = self._operation(path, method)
        given = await self._given(scope, receive, found)
        caller = self._caller(scope, found, request_id)

        async def call() -> Outcome:
            return await self._pipeline.call(operation, given, caller)

        outcome = await (unless_gone(receive, call) if operation.credits else call())
        if outcome is not None:
            await self._send_outcome(scope, send_, operation, outcome, found, request_id)

    async def _given(self, scope: Scope, receive: Receive, found: Asked) -> dict[str, Any]:
        """The arguments: query parameters, and the members of the body where there is one."""
        given = from_query(scope["query_string"])
        if scope["method"] not in ("POST", "DELETE"):
            return dict(given)
        body = await body_of(receive, found, self._body_limit)
        return {**given, **from_body(body, found.content_type)}

    async def _send_outcome(
        self, scope: Scope, send_: Send, operation: Operation, outcome: Outcome, found: Asked, request_id: str
    ) -> None:
        rendered, head = outcome.rendered, scope["method"] == "HEAD"
        sold = operation.tier is Tier.PREMIUM  # sent as it was signed: no coding that client or proxy would undo
        encoding = None if sold else h.choose_encoding(found.accept_encoding, len(rendered.payload))
        mine: list[Header] = [(b"x-request-id", request_id.encode())]
        mine += h.limits(self._pipeline.limits.policy, outcome.standings)
        body = rendered.variant(encoding) if encoding else rendered.payload
        if operation.tier is not Tier.FREE or not operation.reads_only:
            mine += [h.digest(rendered)] if sold else []
            headers = [*self._book.sold, *mine, *exchange.sold(outcome)]
            headers += [(b"content-encoding", encoding.encode())] if encoding else []
            headers.append((b"content-length", b"%d" % len(body)))
            await send(send_, 200, headers, body, head=head)
            return
        now = self._clock.time()
        headers = [*self._book.free(rendered, encoding, now, hit=outcome.hit), *mine]
        if found.if_none_match and not rendered.nothing and h.matches(found.if_none_match, rendered):
            if outcome.standings:
                self._pipeline.give_back(operation, outcome)
            await send(send_, 304, exchange.without_entity(headers), b"")
            return
        await send(send_, 200, headers, body, head=head)

    async def _send_page(self, scope: Scope, send_: Send, reply: Reply, request_id: str) -> None:
        own = {name for name, _ in reply.headers}
        headers = [*(x for x in self._book.always if x[0] not in own), *reply.headers]
        headers += [(b"x-request-id", request_id.encode()), (b"content-length", b"%d" % len(reply.body))]
        if reply.status == 304:
            headers = exchange.without_entity(headers)
        await send(send_, reply.status, headers, reply.body, head=scope["method"] == "HEAD" or reply.status == 304)

    async def _reject(self, scope: Scope, send_: Send, rejected: CallRejected, request_id: str) -> None:
        """A failure as problem+json, or in the shape the specification gives to payment failures."""
        body = json_bytes(
            problems.body(rejected.code, rejected.detail, facts=self._facts, request_id=request_id, **rejected.extra)
        )
        headers = [h.PROBLEM_TYPE, h.NO_STORE, *self._book.always, (b"x-request-id", request_id.encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in rejected.headers.items()]
        if rejected.status == 402:
            headers.append(self._book.pricing)
        if rejected.status == 429:
            headers.append((b"ratelimit-policy", self._pipeline.limits.policy.encode()))
        headers.append((b"content-length", b"%d" % len(body)))
        await send(send_, rejected.status, headers, body, head=scope["method"] == "HEAD")

    def _allowed(self, path: str) -> list[str]:
        methods = ["GET", "HEAD"] if path in self._gets or self._page(path) is not None else []
        methods += sorted(self._others.get(path, {}))
        return [*methods, "OPTIONS"] if methods else []

    def _page(self, path: str) -> Handler | None:
        """The handler of a page, or of what stands above it. Operations come first."""
        page = self._pages.get(path)
        if page is not None or path in self._gets or path in self._others:
            return page
        return next((page for above, page in self._under if path.startswith(above) and len(path) > len(above)), None)

    def _operation(self, path: str, method: str) -> Operation:
        if method in ("GET", "HEAD"):
            return self._gets[path].operation
        return self._others[path][method]

    def _not_found(self, path: str) -> NotFound:
        paths = [*self._gets, *self._others, *self._pages, *self._mounted]
        near = difflib.get_close_matches(path[:200], paths, n=3, cutoff=0.6)
        return NotFound(
            "There is nothing at this address.", did_you_mean=near, catalog=self._facts.url("/api/llm-tools")
        )

    def _client(self, scope: Scope, forwarded: bytes | None) -> str:
        peer = scope.get("client") or ("unknown", 0)
        return self._addresses.client(peer[0], exchange.text(forwarded))

    def _caller(self, scope: Scope, found: Asked, request_id: str) -> Caller:
        return Caller(
            client=self._client(scope, found.forwarded),
            token=bearer(exchange.text(found.authorization)),
            agent=exchange.text(found.agent) or "",
            request_id=request_id,
            idempotency_key=exchange.text(found.idempotency_key),
            nonce=exchange.text(found.nonce),
            payment=exchange.text(found.payment),
        )
