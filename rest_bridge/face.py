"""Serves the registry as REST: one ASGI callable, a dict lookup by path, the same pipeline as every other face."""

import logging
from collections.abc import Mapping
from typing import Any

from rest_bridge import headers as h
from rest_bridge.asgi import (
    Header,
    ParsedRequest,
    PlainReply,
    Receive,
    Scope,
    Send,
    body_of,
    from_body,
    from_query,
    parse_request,
    send,
    take_short_meta,
)
from rest_bridge.pages.failure import failure_page, is_for_people
from rest_bridge.routes import Endpoint, Handler, Mounted, RouteTable
from rest_bridge.serving import page_policy
from toolserver.calls.arguments import Call
from toolserver.calls.pipeline import Outcome, Pipeline
from toolserver.calls.response import Disconnected, json_bytes
from toolserver.core import tracing
from toolserver.core.caller import Addresses, Caller, bearer
from toolserver.errors import (
    CallRejected,
    InternalError,
    InvalidArguments,
    MethodNotAllowed,
    NotFound,
    RateLimited,
)
from toolserver.money.x402.wire import REQUIRED, offer_version_1, unheader
from toolserver.registry import error_codes
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import SiteFacts

log = logging.getLogger(__name__)

_LONG_WAY = frozenset({b"payment-signature", b"x-payment"})  # headers with which a cached paid call needs the full path


class RejectionWriter:
    """Writes the failure bodies of one server."""

    def __init__(self, registry: Registry, facts: SiteFacts) -> None:
        self._registry, self._facts = registry, facts

    def write(self, scope: Scope, rejected: CallRejected, request_id: str) -> tuple[bytes, list[Header]]:
        """Return the body and the headers that depend on its form. Payment failures follow the specification."""
        problem = error_codes.body(
            rejected.code, rejected.detail, facts=self._facts, request_id=request_id, **rejected.extra
        )
        if (offer := rejected.headers.get(REQUIRED)) is not None:
            problem |= offer_version_1(unheader(offer))
        if rejected.status != 402 and is_for_people(scope):
            page = failure_page(self._registry, self._facts, problem)
            return page.body, [(b"content-type", page.content_type.encode()), page_policy(page.body)]
        return json_bytes(problem), [h.PROBLEM_TYPE]


class Face:
    """Answers HTTP. `pages` has plain handlers by path, `mounted` whole ASGI callables (MCP) by path."""

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        facts: SiteFacts,
        addresses: Addresses,
        body_limit: int = 65_536,
        pages: Mapping[str, Handler] | None = None,
        mounted: Mapping[str, Mounted] | None = None,
    ) -> None:
        self._pipeline, self._facts, self._addresses = pipeline, facts, addresses
        self._clock = pipeline.answers.clock
        self._rejections = RejectionWriter(registry, facts)
        self._body_limit = body_limit
        self._routes = RouteTable(registry, pages or {}, mounted or {})
        self._book = h.HeaderBook(facts, registry)
        self._policy = pipeline.limits.policy.encode()

    async def __call__(self, scope: Scope, receive: Receive, send_: Send) -> None:
        path: str = scope["path"]
        mounted = self._routes.mounted.get(path)
        if mounted is not None:
            await mounted(scope, receive, send_)
            return
        if scope["method"] == "GET" and not scope["query_string"]:
            endpoint = self._routes.gets.get(path)
            if (
                endpoint is not None
                and endpoint.default_key is not None
                and await self._answer_cached(endpoint, scope, send_)
            ):
                return
        request = parse_request(scope)
        request_id = h.request_id(request.request_id)
        tracing.request_id.set(request_id)
        try:
            await self._answer(scope, receive, send_, request, request_id)
        except CallRejected as rejected:
            await self._reject(scope, send_, rejected, request_id)
        except Exception:
            log.exception("a request failed", extra={"path": path, "request_id": request_id})
            error = InternalError("Something went wrong on our side. Include the request id if you report it.")
            await self._reject(scope, send_, error, request_id)

    async def _answer_cached(self, endpoint: Endpoint, scope: Scope, send_: Send) -> bool:
        """Answer a call without arguments from the cache. Return False, with nothing done, if that does not suffice."""
        lines = scope["headers"]
        headers = dict(lines)
        if len(headers) != len(lines):
            return False
        if endpoint.operation.credits:
            return await self._sell_cached(endpoint, scope, headers, send_)
        client = self._find_client(scope, headers)
        if client is None:
            return False
        now = self._clock.time()
        rendered = self._pipeline.peek(endpoint.operation, endpoint.default_key, now)
        if rendered is None:
            return False
        request_id = h.request_id(headers.get(b"x-request-id", b""))
        accept = headers.get(b"accept-encoding")
        has_bytes = h.match_etag(headers.get(b"if-none-match"), accept)
        unchanged = has_bytes is not None and has_bytes(rendered)
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        try:
            limit_states = await self._pipeline.admit_cached(
                endpoint.operation, endpoint.default_key, client, agent, now, unchanged=unchanged
            )
        except RateLimited as rejected:
            await self._reject(scope, send_, rejected, request_id)
            return True
        encoding = h.choose_encoding(accept, len(rendered.payload)) if accept else None
        answer_headers = [
            *self._book.free(endpoint.operation, rendered, encoding, now, hit=True),
            (b"x-request-id", request_id.encode()),
        ]
        if limit_states:
            answer_headers += h.limits(self._policy, limit_states)
        if unchanged:
            await send(send_, 304, h.without_entity(answer_headers), b"")
            return True
        body = rendered.variant(encoding) if encoding else rendered.payload
        await send_({"type": "http.response.start", "status": 200, "headers": answer_headers})
        await send_({"type": "http.response.body", "body": body})
        return True

    async def _sell_cached(self, endpoint: Endpoint, scope: Scope, headers: Mapping[bytes, bytes], send_: Send) -> bool:
        """Sell a cached answer and send it. Return False, with nothing done, if the call needs the full path."""
        token, arguments, operation = headers.get(b"authorization"), endpoint.arguments, endpoint.operation
        if token is None or arguments is None or not _LONG_WAY.isdisjoint(headers):
            return False
        rendered = self._pipeline.peek(operation, endpoint.default_key, self._clock.time())
        if rendered is None:
            return False
        caller = Caller(
            client=self._client(scope, headers.get(b"x-forwarded-for")),
            token=bearer(token.decode("latin-1")),
            agent=headers.get(b"user-agent", b"").decode("latin-1"),
            request_id=h.request_id(headers.get(b"x-request-id", b"")),
            idempotency_key=h.text(headers.get(b"idempotency-key")),
            nonce=h.text(headers.get(b"x-agent-nonce")),
            receipt_reference=h.prefers_reference(headers.get(b"prefer")),
        )
        try:
            outcome = await self._pipeline.answer(Call(operation, arguments, endpoint.default_key, caller), rendered)
        except CallRejected as rejected:
            await self._reject(scope, send_, rejected, caller.request_id)
            return True
        answer_headers = [
            *self._book.sold(operation),
            (b"x-request-id", caller.request_id.encode()),
            h.digest(outcome.rendered),
            *h.paid_headers(outcome),
            (b"content-length", b"%d" % len(outcome.rendered.payload)),
        ]
        await send_({"type": "http.response.start", "status": 200, "headers": answer_headers})
        await send_({"type": "http.response.body", "body": outcome.rendered.payload})
        return True

    async def _answer(
        self, scope: Scope, receive: Receive, send_: Send, request: ParsedRequest, request_id: str
    ) -> None:
        """Answer all other requests: other methods, arguments, tokens, pages, refusals."""
        method, (path, named) = scope["method"], self._routes.match(scope["path"])
        if request.twice is not None:
            raise InvalidArguments(f"The header {request.twice.decode()} was sent more than once.", errors=[])
        allowed = self._routes.methods(path)
        if not allowed:
            raise self._not_found(path)
        if method == "OPTIONS":
            methods = (b"access-control-allow-methods", ", ".join(allowed).encode())
            await send(send_, 204, [*self._book.preflight, methods, (b"allow", methods[1])], b"")
            return
        if method not in allowed:
            await self._invite(scope, receive, request, path, request_id)
            raise MethodNotAllowed(f"{path} answers {', '.join(allowed)}.", headers={"Allow": ", ".join(allowed)})
        if method in ("GET", "HEAD") and (page := self._routes.page(path)) is not None:
            await self._send_page(scope, send_, await page(scope, request), request_id)
            return
        operation = self._routes.operation(path, method)
        query = from_query(scope["query_string"])
        short_meta = not operation.personal and take_short_meta(query)
        arguments = await self._read_arguments(scope, receive, request, named, query)
        caller = self._caller(scope, request, request_id, short_meta=short_meta)

        if method == "HEAD" and operation.tier is Tier.PREMIUM:
            await self._send_check(send_, operation, arguments, caller)
        else:
            await self._send_call(scope, receive, send_, request, operation, arguments, caller)

    async def _invite(self, scope: Scope, receive: Receive, request: ParsedRequest, path: str, request_id: str) -> None:
        """Raise UnpaidCall, with an offer, for an empty unpaid POST to a path that sells
        answers by x402: so those who list what is sold find out whether it is.
        """
        if scope["method"] != "POST" or (endpoint := self._routes.gets.get(path)) is None:
            return
        if not await body_of(receive, request, self._body_limit):
            caller = self._caller(scope, request, request_id, short_meta=False)
            self._pipeline.invite(endpoint.operation, caller)

    async def _send_check(
        self, send_: Send, operation: Operation, arguments: Mapping[str, Any], caller: Caller
    ) -> None:
        """Send the response to HEAD: check whether a paid call would be accepted, without running it."""
        left = await self._pipeline.check(operation, arguments, caller)
        about = [(b"x-credits-remaining", b"%d" % left), (b"x-request-id", caller.request_id.encode())]
        await send(send_, 200, [*self._book.sold(operation), *about], b"", head=True)

    async def _send_call(
        self,
        scope: Scope,
        receive: Receive,
        send_: Send,
        request: ParsedRequest,
        operation: Operation,
        arguments: Mapping[str, Any],
        caller: Caller,
    ) -> None:
        has_bytes = h.match_etag(request.if_none_match, request.accept_encoding) if operation.reads_only else None
        try:
            outcome = await self._pipeline.call(operation, arguments, caller, receive, has_bytes)
        except Disconnected:
            return
        await self._send_outcome(scope, send_, operation, outcome, request, caller.request_id)

    async def _read_arguments(
        self,
        scope: Scope,
        receive: Receive,
        request: ParsedRequest,
        named: Mapping[str, str],
        query: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the arguments: those in the path, the query parameters, and the members of the body, if any."""
        arguments: dict[str, Any] = dict(query)
        if scope["method"] in ("POST", "DELETE", "PATCH"):
            arguments |= from_body(await body_of(receive, request, self._body_limit), request.content_type)
        if not named.keys().isdisjoint(arguments):
            raise InvalidArguments(f"Give {', '.join(named)} only in the path.", errors=[])
        return {**arguments, **named}

    async def _send_outcome(
        self, scope: Scope, send_: Send, operation: Operation, outcome: Outcome, request: ParsedRequest, request_id: str
    ) -> None:
        rendered, head = outcome.rendered, scope["method"] == "HEAD"
        sold = (
            operation.tier is Tier.PREMIUM
        )  # sent exactly as it was signed, without a coding that a client or proxy would undo
        encoding = None if sold else h.choose_encoding(request.accept_encoding, len(rendered.payload))
        mine: list[Header] = [(b"x-request-id", request_id.encode())]
        mine += h.limits(self._policy, outcome.limit_states)
        body = rendered.variant(encoding) if encoding else rendered.payload
        if operation.tier is not Tier.FREE or not operation.reads_only:
            mine += [h.digest(rendered)] if sold else []
            headers = [*self._book.sold(operation), *mine, *h.paid_headers(outcome, scope["headers"])]
            headers += [(b"content-encoding", encoding.encode())] if encoding else []
            headers.append((b"content-length", b"%d" % len(body)))
            await send(send_, operation.status, headers, body, head=head)
            return
        now = self._clock.time()
        headers = [*self._book.free(operation, rendered, encoding, now, hit=outcome.hit), *mine]
        if outcome.unchanged:
            await send(send_, 304, h.without_entity(headers), b"")
            return
        await send(send_, 200, headers, body, head=head)

    async def _send_page(self, scope: Scope, send_: Send, reply: PlainReply, request_id: str) -> None:
        own = {name for name, _ in reply.headers}
        headers = [*(x for x in self._book.always if x[0] not in own), *reply.headers]
        headers += [(b"x-request-id", request_id.encode()), (b"content-length", b"%d" % len(reply.body))]
        if reply.status == 304:
            headers = h.without_entity(headers)
        await send(send_, reply.status, headers, reply.body, head=scope["method"] == "HEAD" or reply.status == 304)

    async def _reject(self, scope: Scope, send_: Send, rejected: CallRejected, request_id: str) -> None:
        """Send a failure as problem+json, or, for payment failures, in the shape that the specification defines."""
        body, about = self._rejections.write(scope, rejected, request_id)
        own = {name for name, _ in about}
        headers = [*about, h.NO_STORE, *(x for x in self._book.always if x[0] not in own)]
        headers += [(b"vary", b"Accept"), (b"x-request-id", request_id.encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in rejected.headers.items()]
        if rejected.status == 402:
            headers.append(self._book.pricing)
        if rejected.status == 429:
            headers = h.complete_policy(headers, self._policy)
        headers.append((b"content-length", b"%d" % len(body)))
        await send(send_, rejected.status, headers, body, head=scope["method"] == "HEAD")

    def _not_found(self, path: str) -> NotFound:
        return NotFound(
            "There is nothing at this address.",
            did_you_mean=self._routes.similar(path),
            catalog=self._facts.url("/api/llm-tools"),
        )

    def _find_client(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the name that limits count by, or None if the ledger has to check the token first."""
        header = headers.get(b"authorization")
        token = None if header is None else bearer(header.decode("latin-1"))
        if token is not None:
            return self._pipeline.tokens.find_client(token)
        return self._client(scope, headers.get(b"x-forwarded-for"))

    def _client(self, scope: Scope, forwarded: bytes | None) -> str:
        peer = scope.get("client") or ("unknown", 0)
        return self._addresses.client(peer[0], h.text(forwarded))

    def _caller(self, scope: Scope, request: ParsedRequest, request_id: str, *, short_meta: bool) -> Caller:
        return Caller(
            client=self._client(scope, request.forwarded),
            token=bearer(h.text(request.authorization)),
            agent=h.text(request.agent) or "",
            request_id=request_id,
            idempotency_key=h.text(request.idempotency_key),
            nonce=h.text(request.nonce),
            short_meta=short_meta,
            receipt_reference=h.prefers_reference(request.prefer),
            payment=h.text(request.payment),
        )
