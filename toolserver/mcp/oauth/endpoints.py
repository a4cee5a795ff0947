"""Serve what programs call: `/api/mcp/auth` itself, the two metadata documents, and token, registration and revocation.

`/api/mcp/auth` is the MCP endpoint for clients with an access token; others learn where to
get one. The allowance's token replaces the access token, and the request is then handled like
any other.
"""

import importlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import msgspec
from cachetools import LRUCache

from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.calls.visitor_tokens import VisitorTokens
from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import bearer, is_visitor_token, new_request_id
from toolserver.errors import BillingUnavailable
from toolserver.mcp.asgi import Header, Receive, ResponseSender, Scope, Send
from toolserver.mcp.messages import INVALID_REQUEST, failure
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.grants import GrantEnded, OAuthGrants, OpenedAccess
from toolserver.mcp.oauth.http import OAuthReplies, Visitors
from toolserver.mcp.oauth.metadata import RESOURCE_WELL_KNOWN, well_known_url
from toolserver.mcp.oauth.store import hash_secret
from toolserver.registry.site_facts import SiteFacts

UNKNOWN = Quota("unknown access tokens", 60, 60)
REGISTRATIONS, REGISTRATIONS_A_DAY = Quota("registrations", 30, 60), Quota("registrations a day", 2000, 86_400)
TOKENS = Quota("token requests", 600, 60)  # all users of a hosted client may share one address
REMEMBERED, REMEMBERED_MS = 10_000, 10_000  # how many access tokens are remembered as valid, and for how long
_SHAPE = re.compile(r"svc_access_[0-9a-f]{64}")
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Remembered(NamedTuple):
    access: OpenedAccess
    until: int


class ProtectedEndpoint:
    """The ASGI callable of the protected address, in front of the open endpoint.

    A visitor token is an access token as it is, and the open endpoint handles the request.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        grants: OAuthGrants,
        visitor_tokens: VisitorTokens,
        facts: SiteFacts,
        *,
        visitors: Visitors,
        clock: Clock,
    ) -> None:
        self._endpoint = endpoint
        self._grants = grants
        self._visitors = visitors
        self._now = milliseconds(clock)
        self._visitor_tokens = visitor_tokens
        self._sender = ResponseSender(facts)
        self._failures = visitors.open_buckets(UNKNOWN)
        self._remembered: LRUCache[bytes, _Remembered] = LRUCache(REMEMBERED)
        self._metadata = well_known_url(RESOURCE_WELL_KNOWN, facts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._endpoint(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        token = bearer(sent[0].decode("latin-1")) if len(sent) == 1 else None
        if token is None:
            await self._refuse(scope, send, "Connect with OAuth 2.1: this address needs an access token.")
            return
        if is_visitor_token(token) and self._visitor_tokens.find_client(token) is not None:
            await self._endpoint(scope, receive, send)
            return
        access = await self._open(scope, send, token)
        if access is None:
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        headers.append((b"authorization", b"Bearer " + access.child.encode()))
        await self._endpoint({**scope, "headers": headers}, receive, send)

    def forget(self, secret: str) -> None:
        """Look up a token again the next time."""
        self._remembered.pop(hash_secret(secret), None)

    def forget_all(self) -> None:
        """Look up every token again the next time, because a grant has ended."""
        self._remembered.clear()

    async def _open(self, scope: Scope, send: Send, token: str) -> OpenedAccess | None:
        """Return what a token opens; None if it was refused."""
        now, hash = self._now(), hash_secret(token)
        remembered = self._remembered.get(hash)
        if remembered is not None and now < min(remembered.until, remembered.access.expires_at):
            access = remembered.access
        elif not self._may_try(scope):
            wait = (b"retry-after", b"%d" % int(UNKNOWN.window_s))
            await self._answer(scope, send, 429, "Too many unknown access tokens from this address.", wait)
            return None
        else:
            try:
                if not _SHAPE.fullmatch(token):
                    raise GrantEnded
                access = await self._grants.open_access(token)
            except GrantEnded:
                self._failures.take(self._visitors.find_address(scope))
                await self._refuse_token(scope, send)
                return None
            self._remembered[hash] = _Remembered(access, now + REMEMBERED_MS)
        if not await self._is_spendable(access):
            self._remembered.pop(hash, None)
            await self._refuse_token(scope, send)
            return None
        return access

    async def _is_spendable(self, access: OpenedAccess) -> bool:
        """Return True if the allowance can be spent. Free tools are also answered while the ledger is unavailable."""
        try:
            return await self._grants.is_live(access.child)
        except BillingUnavailable:
            return True

    def _may_try(self, scope: Scope) -> bool:
        visitors = self._visitors
        return not visitors.limited or self._failures.look(visitors.find_address(scope)).allowed

    async def _refuse_token(self, scope: Scope, send: Send) -> None:
        text = "The access token is unknown, expired or revoked."
        await self._refuse(scope, send, text, f'error="invalid_token", error_description="{text}", ')

    async def _refuse(self, scope: Scope, send: Send, text: str, error: str = "") -> None:
        challenge = f'Bearer {error}resource_metadata="{self._metadata}"'
        await self._answer(scope, send, 401, text, (b"www-authenticate", challenge.encode()))

    async def _answer(self, scope: Scope, send: Send, status: int, text: str, *more: Header) -> None:
        exposed = (b"access-control-expose-headers", b"www-authenticate")
        body = failure(None, INVALID_REQUEST, text)
        head = scope["method"] == "HEAD"
        await self._sender.json(send, new_request_id(), body, status, *more, exposed, head=head)


class MetadataEndpoint:
    """A document that is the same for every caller."""

    def __init__(self, document: Mapping[str, Any], replies: OAuthReplies) -> None:
        self._body, self._replies = msgspec.json.encode(document), replies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._replies.options(scope, send, "GET, HEAD, OPTIONS")
        elif scope["method"] in ("GET", "HEAD"):
            await self._replies.document(scope, send, self._body)
        else:
            allow = (b"allow", b"GET, HEAD, OPTIONS")
            await self._replies.problem(scope, send, 405, "invalid_request", "Use GET.", allow)


class ClientEndpoints:
    """Passes requests to the SDK's handlers, which are imported in a thread when the first request arrives."""

    def __init__(
        self,
        clients: ClientDirectory,
        grants: OAuthGrants,
        facts: SiteFacts,
        replies: OAuthReplies,
        *,
        visitors: Visitors,
        clock: Clock,
    ) -> None:
        self._clients, self._grants, self._facts, self._clock = clients, grants, facts, clock
        self._replies, self._visitors = replies, visitors
        self._lock, self._handlers = anyio.Lock(), None
        self._registrations = [visitors.open_buckets(quota) for quota in (REGISTRATIONS, REGISTRATIONS_A_DAY)]
        self._tokens = [visitors.open_buckets(TOKENS)]

    def of(self, name: str) -> Endpoint:
        """Return the ASGI callable that answers `token`, `register` or `revoke`."""
        buckets = self._registrations if name == "register" else self._tokens

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "OPTIONS":
                await self._replies.options(scope, send, "POST, OPTIONS")
            elif scope["method"] != "POST":
                allow = (b"allow", b"POST, OPTIONS")
                await self._replies.problem(scope, send, 405, "invalid_request", "Use POST.", allow)
            elif await self._admit(scope, send, buckets):
                handle = getattr(await self._load_handlers(), name)
                response = await handle(scope, receive, self._visitors.find_sharer(scope))
                await response(scope, receive, self._replies.wrap(send))

        return answer

    async def _admit(self, scope: Scope, send: Send, buckets: list[ClientBuckets]) -> bool:
        exceeded = self._visitors.count(scope, *buckets)
        if exceeded is None:
            return True
        text = f"Too many {exceeded.name} from this address."
        retry = (b"retry-after", b"%d" % exceeded.retry_after_s)
        await self._replies.problem(scope, send, 429, "temporarily_unavailable", text, retry)
        return False

    async def _load_handlers(self) -> Any:
        async with self._lock:
            if self._handlers is None:
                sdk = await anyio.to_thread.run_sync(importlib.import_module, "toolserver.mcp.oauth.sdk")
                self._handlers = sdk.SdkHandlers(self._clients, self._grants, self._facts, self._clock)
        return self._handlers
