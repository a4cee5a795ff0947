"""Serve the endpoints for programs: the two metadata documents, and token, registration and revocation requests."""

import importlib
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.clock import Clock
from toolserver.core.caller import Addresses
from toolserver.mcp.asgi import Receive, Scope, Send
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.forms import header_of
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.protected_endpoint import Endpoint
from toolserver.mcp.oauth.replies import OAuthReplies
from toolserver.registry.site_facts import SiteFacts

REGISTRATIONS, REGISTRATIONS_A_DAY = Quota("registrations", 30, 60), Quota("registrations a day", 2000, 86_400)
TOKENS = Quota("token requests", 600, 60)  # all users of a hosted client may share one address


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
        clock: Clock,
        addresses: Addresses,
        limited: bool = True,
    ) -> None:
        self._parts = (clients, grants, facts, clock)
        self._replies, self._addresses, self._limited = replies, addresses, limited
        self._lock, self._handlers = anyio.Lock(), None
        self._registrations = [
            ClientBuckets(quota, monotonic=clock.monotonic) for quota in (REGISTRATIONS, REGISTRATIONS_A_DAY)
        ]
        self._tokens = [ClientBuckets(TOKENS, monotonic=clock.monotonic)]

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
                caller = self._client(scope) if self._limited else None
                made = await getattr(await self._load(), name)(scope, receive, caller)
                await made(scope, receive, self._replies.wrap(send))

        return answer

    async def _admit(self, scope: Scope, send: Send, buckets: list[ClientBuckets]) -> bool:
        client = self._client(scope)
        for bucket in buckets if self._limited else ():
            verdict = bucket.take(client)
            if not verdict.allowed:
                wait = max(1, int(verdict.retry_after_s + 0.999))
                text, retry = f"Too many {bucket.quota.name} from this address.", (b"retry-after", b"%d" % wait)
                await self._replies.problem(scope, send, 429, "temporarily_unavailable", text, retry)
                return False
        return True

    def _client(self, scope: Scope) -> str:
        peer = (scope.get("client") or ("unknown", 0))[0]
        return self._addresses.client(peer, header_of(scope, b"x-forwarded-for") or None)

    async def _load(self) -> Any:
        async with self._lock:
            if self._handlers is None:
                name = "toolserver.mcp.oauth.sdk_handlers"
                module = await anyio.to_thread.run_sync(importlib.import_module, name)
                self._handlers = module.SdkHandlers(*self._parts)
        return self._handlers
