"""Assemble the OAuth of one service: what answers at which path, while its block is open."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio

from toolserver.calls.pipeline import Pipeline
from toolserver.clock import Clock
from toolserver.core.caller import Addresses
from toolserver.core.consent_page import DrawConsent
from toolserver.mcp.asgi import Receive, Scope, Send
from toolserver.mcp.oauth.authorization import AuthorizationRequests
from toolserver.mcp.oauth.client_documents import ClientDocuments
from toolserver.mcp.oauth.client_endpoints import ClientEndpoints, MetadataEndpoint
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.consent import ConsentDefaults, ConsentSteps, FindPayment
from toolserver.mcp.oauth.consent_endpoint import ConsentEndpoint
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.memory_store import MemoryOAuthStore
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
from toolserver.mcp.oauth.protected_endpoint import Endpoint, ProtectedEndpoint
from toolserver.mcp.oauth.replies import OAuthReplies
from toolserver.mcp.oauth.sql_store import SqlOAuthStore
from toolserver.mcp.oauth.store import OAuthStore
from toolserver.money.ledger.protocol import milliseconds
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import Settings, is_loopback
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.webhooks.egress import EgressGuard

log = logging.getLogger(__name__)

SWEEP_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSetup:
    """The parts of OAuth.

    `is_live` and `end_allowance` are those of `OAuthGrants`, `find_payment` that of `ConsentSteps`. `allow_loopback`
    lets clients describe themselves on this machine, for development.
    """

    registry: Registry
    pipeline: Pipeline
    store: OAuthStore
    facts: SiteFacts
    clock: Clock
    is_live: Callable[[str], Awaitable[bool]]
    end_allowance: Callable[[str], Awaitable[object]] | None = None
    defaults: ConsentDefaults = field(default_factory=ConsentDefaults)
    allow_loopback: bool = False
    limited: bool = True
    find_payment: FindPayment | None = None


class OAuthService:
    """OAuth while it is open."""

    def __init__(self, setup: OAuthSetup, documents: ClientDocuments) -> None:
        self._setup, self.store = setup, setup.store
        self._clients = ClientDirectory(setup.store, documents)
        self._grants = OAuthGrants(setup.store, setup.clock, is_live=setup.is_live, end_allowance=setup.end_allowance)

    def mount(self, endpoint: Endpoint, draw: DrawConsent, addresses: Addresses) -> dict[str, Endpoint]:
        """Return the endpoints by path. `endpoint` is the open MCP endpoint; `draw` makes the consent page's HTML."""
        setup, grants = self._setup, self._grants
        facts = setup.facts
        shared: dict[str, Any] = {"clock": setup.clock, "addresses": addresses, "limited": setup.limited}
        replies = OAuthReplies(secure=facts.base_url.startswith("https:"))
        protected = ProtectedEndpoint(endpoint, grants, facts, is_live=setup.is_live, **shared)
        grants.on_end = protected.forget_all
        requests = AuthorizationRequests(self._clients, facts)
        steps = ConsentSteps(
            *(setup.registry, setup.pipeline, setup.store, grants, requests),
            facts=facts,
            clock=setup.clock,
            defaults=setup.defaults,
            find_payment=setup.find_payment,
        )
        pages = ConsentEndpoint(requests, steps, setup.store, draw, facts=facts, **shared)
        programs = ClientEndpoints(self._clients, grants, facts, replies, **shared)
        return {
            RESOURCE: protected,
            well_known_path(RESOURCE_WELL_KNOWN, facts): MetadataEndpoint(describe_resource(facts), replies),
            well_known_path(SERVER_WELL_KNOWN, facts): MetadataEndpoint(describe_server(facts), replies),
            AUTHORIZE: pages.authorize,
            CONSENT: pages.consent,
            TOKEN: programs.of("token"),
            REGISTER: programs.of("register"),
            REVOKE: programs.of("revoke"),
        }

    async def sweep_now_and_then(self) -> None:
        """Delete ended requests and grants every ten minutes."""
        now = milliseconds(self._setup.clock)
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
async def open_oauth(setup: OAuthSetup) -> AsyncIterator[OAuthService]:
    """Run OAuth until the block is left, then end its connections and lookups."""
    documents = ClientDocuments(EgressGuard(allow_loopback=setup.allow_loopback), setup.clock)
    try:
        yield OAuthService(setup, documents)
    finally:
        await documents.close()


@asynccontextmanager
async def open_service_oauth(
    settings: Settings,
    registry: Registry,
    pipeline: Pipeline,
    facts: SiteFacts,
    file: GroupCommit | None,
    end_allowance: Callable[[str], Awaitable[object]] | None,
    find_payment: FindPayment | None = None,
) -> AsyncIterator[OAuthService | OAuthOff]:
    """Open OAuth as the settings say, or an answer why there is none. `file` is the ledger's or its journal's."""
    reason = find_reason_against(registry, facts, enabled=settings.oauth.enabled)
    if reason is not None:
        log.debug("hosts cannot sign in by OAuth", extra={"reason": reason})
        yield OAuthOff(reason, facts)
        return
    setup = OAuthSetup(
        registry=registry,
        pipeline=pipeline,
        store=MemoryOAuthStore() if file is None else SqlOAuthStore(file),
        facts=facts,
        clock=pipeline.answers.clock,
        is_live=pipeline.ledger.knows,
        end_allowance=end_allowance,
        defaults=ConsentDefaults(settings.oauth.credits, settings.oauth.days),
        allow_loopback=settings.webhooks.allow_loopback,
        limited=settings.limits.enabled,
        find_payment=find_payment,
    )
    async with open_oauth(setup) as oauth, anyio.create_task_group() as upkeep:
        upkeep.start_soon(oauth.sweep_now_and_then)
        yield oauth
        upkeep.cancel_scope.cancel()


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
