"""Assemble the OAuth of one service: what answers at which path, while its block is open.

The endpoints that programs call stand here: `/api/mcp/auth` itself, the two metadata
documents, and token, registration and revocation. `/api/mcp/auth` is the MCP endpoint for
clients with an access token; others learn where to get one. The allowance's token replaces the
access token, and the request is then handled like any other.
"""

import importlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec
from cachetools import LRUCache

from toolserver.calls.pipeline import Pipeline
from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.calls.visitor_tokens import VisitorIssuer, VisitorTokens
from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import Addresses, bearer, is_visitor_token, new_request_id
from toolserver.core.consent_page import DrawConsent
from toolserver.core.outbound import names_proxy
from toolserver.errors import BillingUnavailable
from toolserver.mcp.asgi import Header, Receive, ResponseSender, Scope, Send
from toolserver.mcp.messages import INVALID_REQUEST, failure
from toolserver.mcp.oauth.authorization import AuthorizationRequests, ConsentEndpoint
from toolserver.mcp.oauth.clients import ClientDirectory, ClientDocuments
from toolserver.mcp.oauth.consent import ConsentDefaults, ConsentSteps, FindPayment
from toolserver.mcp.oauth.grants import GrantEnded, OAuthGrants, OpenedAccess
from toolserver.mcp.oauth.http import OAuthReplies, Visitors
from toolserver.mcp.oauth.metadata import (
    AUTHORIZE,
    CONSENT,
    REGISTER,
    RESOURCE,
    RESOURCE_WELL_KNOWN,
    REVOKE,
    SERVER_WELL_KNOWN,
    TOKEN,
    describe_resource,
    describe_server,
    well_known_path,
    well_known_url,
)
from toolserver.mcp.oauth.store import MemoryOAuthStore, SqlOAuthStore, hash_secret
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import Settings, is_loopback
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.egress import EgressGuard

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


log = logging.getLogger(__name__)

SWEEP_S = 600.0


class OAuthService:
    """OAuth while it is open.

    `find_payment` is that of `ConsentSteps`. Like webhooks, clients may describe themselves on
    this machine if the settings allow it, for development.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        pipeline: Pipeline,
        facts: SiteFacts,
        grants: OAuthGrants,
        issuer: VisitorIssuer,
        *,
        find_payment: FindPayment | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._pipeline = pipeline
        self._facts = facts
        self.store = grants.store
        self._find_payment = find_payment
        self._clock = pipeline.answers.clock
        self.grants, self._issuer = grants, issuer
        guard = EgressGuard(allow_loopback=settings.webhooks.allow_loopback)
        documents = ClientDocuments(guard, self._clock, proxy=settings.webhooks.proxy_address)
        for room in documents.rooms:
            pipeline.metrics.follow_waits(room.count)
        self.clients = ClientDirectory(self.store, documents)

    def mount(self, endpoint: Endpoint, draw: DrawConsent, addresses: Addresses) -> dict[str, Endpoint]:
        """Return the endpoints by path. `endpoint` is the open MCP endpoint; `draw` makes the consent page's HTML."""
        settings, facts, clock = self._settings, self._facts, self._clock
        visitors = Visitors(addresses, clock, limited=settings.limits.enabled)
        replies = OAuthReplies(secure=facts.base_url.startswith("https:"))
        protected = ProtectedEndpoint(endpoint, self.grants, self._issuer.tokens, facts, visitors=visitors, clock=clock)
        self.grants.on_end = protected.forget_all
        requests = AuthorizationRequests(self.clients, facts, clock)
        steps = ConsentSteps(
            self._registry,
            self._pipeline,
            self.grants,
            self._issuer,
            facts=facts,
            defaults=ConsentDefaults(settings.oauth.credits, settings.oauth.days),
            find_payment=self._find_payment,
        )
        pages = ConsentEndpoint(requests, steps, self.store, draw, facts=facts, visitors=visitors, replies=replies)
        server = describe_server(facts, reads_documents=can_read_documents(settings))
        programs = ClientEndpoints(self.clients, self.grants, facts, replies, visitors=visitors, clock=clock)
        return {
            RESOURCE: protected,
            well_known_path(RESOURCE_WELL_KNOWN, facts): MetadataEndpoint(describe_resource(facts), replies),
            well_known_path(SERVER_WELL_KNOWN, facts): MetadataEndpoint(server, replies),
            AUTHORIZE: pages.authorize,
            CONSENT: pages.consent,
            TOKEN: programs.of("token"),
            REGISTER: programs.of("register"),
            REVOKE: programs.of("revoke"),
        }

    async def sweep_now_and_then(self) -> None:
        """Delete ended requests and grants every ten minutes."""
        now = milliseconds(self._clock)
        while True:
            try:
                await self.store.sweep(now())
            except StorageFailed as failure:
                log.warning("expired OAuth data could not be deleted", extra={"reason": str(failure)})
            await anyio.sleep(SWEEP_S)


class OAuthOff:
    """Answers at the protected address why there is no OAuth."""

    def __init__(self, reason: str, facts: SiteFacts) -> None:
        self._reason = reason
        self._replies = OAuthReplies(secure=facts.base_url.startswith("https:"))
        self._open = facts.url("/api/mcp")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = f"{self._reason} Connect to {self._open} instead, which needs no sign-in."
        await self._replies.problem(scope, send, 404, "not_found", text)

    def mount(self, endpoint: Endpoint, draw: DrawConsent, addresses: Addresses) -> dict[str, Endpoint]:
        """Return this answer alone, at the protected address, in the form of `OAuthService.mount`."""
        return {RESOURCE: self}


@asynccontextmanager
async def open_oauth(
    settings: Settings,
    registry: Registry,
    pipeline: Pipeline,
    facts: SiteFacts,
    file: GroupCommit | None,
    issuer: VisitorIssuer,
    *,
    end_allowance: Callable[[str], Awaitable[object]] | None = None,
    find_payment: FindPayment | None = None,
) -> AsyncIterator[OAuthService | OAuthOff]:
    """Run OAuth as the settings say, or an answer why there is none, until the block is left.

    `file` is the ledger's or its journal's; None keeps everything in memory. `end_allowance` is that of `OAuthGrants`.
    """
    reason = find_reason_against(registry, facts, enabled=settings.oauth.enabled)
    if reason is not None:
        log.debug("hosts cannot sign in by OAuth", extra={"reason": reason})
        yield OAuthOff(reason, facts)
        return
    grants = OAuthGrants(
        MemoryOAuthStore() if file is None else SqlOAuthStore(file),
        pipeline.answers.clock,
        issuer.tokens,
        is_live=pipeline.ledger.knows,
        end_allowance=end_allowance,
    )
    oauth = OAuthService(settings, registry, pipeline, facts, grants, issuer, find_payment=find_payment)
    try:
        async with anyio.create_task_group() as upkeep:
            upkeep.start_soon(oauth.sweep_now_and_then)
            yield oauth
            upkeep.cancel_scope.cancel()
    finally:
        await oauth.clients.documents.close()


def can_read_documents(settings: Settings) -> bool:
    """Return True if the documents of clients can be fetched.

    They are fetched from the address that was checked, never through a proxy of the
    environment, and a service on a simulated world asks nobody else.
    """
    return settings.upstream.via is None and not names_proxy("https")


def find_reason_against(registry: Registry, facts: SiteFacts, *, enabled: bool) -> str | None:
    """Return why a service has no OAuth; None if it has."""
    if not enabled:
        return "OAuth is switched off on this server (oauth.enabled)."
    if facts.sales is None:
        return "This server sells nothing, so no sign-in is needed."
    if all(operation.name != "allowance_create" for operation in registry.listed):
        return "The service that keeps this server's ledger has no allowances, which OAuth needs."
    if not facts.base_url.startswith("https:") and not is_loopback(urlsplit(facts.base_url).hostname or ""):
        return "OAuth needs https: the operator must set base_url to this server's public https address."
    return None
