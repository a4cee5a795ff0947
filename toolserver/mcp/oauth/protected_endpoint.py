"""Serve `/api/mcp/auth`: the MCP endpoint for clients with an access token. Others learn where to get one.

The allowance's token replaces the access token, and the request is then handled like any other.
"""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from cachetools import LRUCache

from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.clock import Clock
from toolserver.core import ids
from toolserver.core.caller import Addresses, bearer
from toolserver.errors import BillingUnavailable
from toolserver.mcp.asgi import Header, Receive, ResponseSender, Scope, Send
from toolserver.mcp.messages import INVALID_REQUEST, failure
from toolserver.mcp.oauth.grants import GrantEnded, OAuthGrants, OpenedAccess
from toolserver.mcp.oauth.metadata import RESOURCE_WELL_KNOWN, well_known_url
from toolserver.mcp.oauth.records import hash_secret
from toolserver.money.ledger.protocol import milliseconds
from toolserver.registry.site_facts import SiteFacts

UNKNOWN = Quota("unknown access tokens", 60, 60)
KNOWN, KNOWN_MS = 10_000, 10_000  # how many access tokens are remembered as valid, and for how long
_SHAPE = re.compile(r"svc_access_[0-9a-f]{64}")
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Remembered(NamedTuple):
    access: OpenedAccess
    until: int


class ProtectedEndpoint:
    """The ASGI callable of the protected address. `is_live` says whether the token of an allowance can be spent."""

    def __init__(
        self,
        endpoint: Endpoint,
        grants: OAuthGrants,
        facts: SiteFacts,
        *,
        clock: Clock,
        addresses: Addresses,
        is_live: Callable[[str], Awaitable[bool]],
        limited: bool = True,
    ) -> None:
        self._endpoint, self._grants, self._addresses, self._is_live = endpoint, grants, addresses, is_live
        self._now, self._limited = milliseconds(clock), limited
        self._sender = ResponseSender(facts)
        self._tries = ClientBuckets(UNKNOWN, monotonic=clock.monotonic)
        self._known: LRUCache[bytes, _Remembered] = LRUCache(KNOWN)
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
        access = await self._open(scope, send, token)
        if access is None:
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        headers.append((b"authorization", b"Bearer " + access.child.encode()))
        await self._endpoint({**scope, "headers": headers}, receive, send)

    def forget(self, secret: str) -> None:
        """Look up a token again the next time."""
        self._known.pop(hash_secret(secret), None)

    def forget_all(self) -> None:
        """Look up every token again the next time, because a grant has ended."""
        self._known.clear()

    async def _open(self, scope: Scope, send: Send, token: str) -> OpenedAccess | None:
        """Return what a token opens; None if it was refused."""
        now, hash = self._now(), hash_secret(token)
        remembered = self._known.get(hash)
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
                self._tries.take(self._client(scope))
                await self._refuse_token(scope, send)
                return None
            self._known[hash] = _Remembered(access, now + KNOWN_MS)
        if not await self._is_spendable(access):
            self._known.pop(hash, None)
            await self._refuse_token(scope, send)
            return None
        return access

    async def _is_spendable(self, access: OpenedAccess) -> bool:
        """Return True if the allowance can be spent. Free tools are also answered while the ledger is unavailable."""
        try:
            return await self._is_live(access.child)
        except BillingUnavailable:
            return True

    def _may_try(self, scope: Scope) -> bool:
        return not self._limited or self._tries.look(self._client(scope)).allowed

    def _client(self, scope: Scope) -> str:
        forwarded = next((v.decode("latin-1") for n, v in scope["headers"] if n == b"x-forwarded-for"), None)
        return self._addresses.client((scope.get("client") or ("unknown", 0))[0], forwarded)

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
        await self._sender.json(send, ids.request_id(), body, status, *more, exposed, head=head)
