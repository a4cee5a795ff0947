"""Assemble the OAuth of one service: what answers at which path, while its block is open."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio

from toolserver.calls.pipeline import Pipeline
from toolserver.calls.visitor_tokens import VisitorIssuer
from toolserver.clock import milliseconds
from toolserver.core.caller import Addresses
from toolserver.core.consent_page import DrawConsent
from toolserver.core.outbound import names_proxy
from toolserver.mcp.asgi import Receive, Scope, Send
from toolserver.mcp.oauth.authorization import AuthorizationRequests, ConsentEndpoint
from toolserver.mcp.oauth.clients import ClientDirectory, ClientDocuments
from toolserver.mcp.oauth.consent import ConsentDefaults, ConsentSteps, FindPayment
from toolserver.mcp.oauth.endpoints import ClientEndpoints, Endpoint, MetadataEndpoint, ProtectedEndpoint
from toolserver.mcp.oauth.grants import OAuthGrants
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
)
from toolserver.mcp.oauth.store import MemoryOAuthStore, SqlOAuthStore
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import Settings, is_loopback
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.egress import EgressGuard

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
