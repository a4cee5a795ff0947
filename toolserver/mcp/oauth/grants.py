"""Manage grants: what a person's consent gives a client, and what happens to its codes and tokens.

A code is used once, within a minute. An access token is valid for an hour. A refresh token is
replaced at each use. A secret that is used twice was copied, so the whole grant ends. A grant
also ends with its allowance, whatever ends it.

Consent without credits gives a visitor token. It is the access token itself, so that its grant
lasts no longer than the code, and nothing is stored of those who only use the free tools.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from toolserver.calls.visitor_tokens import VisitorToken, VisitorTokens
from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import is_visitor_token, token_hash
from toolserver.errors import PaymentRequired, ToolserverError
from toolserver.mcp.oauth.store import (
    HOUR_MS,
    MINUTE_MS,
    ConsentRequest,
    OAuthGrant,
    OAuthStore,
    PresentedSecret,
    SecretKind,
    hash_secret,
    make_secret,
    unseal_with,
)

log = logging.getLogger(__name__)

CODE_MS, ACCESS_MS = MINUTE_MS, HOUR_MS
NO_ALLOWANCE = ""  # the child of a grant that spends nothing


class GrantEnded(ToolserverError):
    """The code or token is unknown, used, expired or revoked. The error does not say which."""


class IssuedTokens(NamedTuple):
    """What a client receives. `lives_s` is the lifetime of the access token in seconds.

    There is no refresh token beside a visitor token.
    """

    access: str
    refresh: str | None
    lives_s: int


class OpenedAccess(NamedTuple):
    """A valid access token, opened: the token of its allowance, its grant, and when it ends."""

    child: str
    grant: OAuthGrant
    expires_at: int


class OAuthGrants:
    """Issues and ends grants.

    `is_live` says whether the token of an allowance can still be spent. `end_allowance` ends
    the allowance by the token's hash, if this service has its own ledger. `on_end` is called
    when a grant has ended here.
    """

    on_end: Callable[[], None] = staticmethod(lambda: None)

    def __init__(
        self,
        store: OAuthStore,
        clock: Clock,
        visitors: VisitorTokens,
        *,
        is_live: Callable[[str], Awaitable[bool]],
        end_allowance: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        self.store, self._now, self._visitors = store, milliseconds(clock), visitors
        self.is_live, self._end_allowance = is_live, end_allowance

    async def allow(self, request: ConsentRequest, child: str, expires_at: int) -> str | None:
        """Answer a request with a grant that spends `child`. Returns the client's code; None if already answered."""
        return await self._grant(request, child, token_hash(child).hex(), expires_at)

    async def allow_visitor(self, request: ConsentRequest, visitor: VisitorToken) -> str | None:
        """Answer a request with a visitor token. Returns the client's code; None if already answered."""
        return await self._grant(request, visitor.token, NO_ALLOWANCE, self._now() + CODE_MS)

    async def _grant(self, request: ConsentRequest, child: str, hash: str, expires_at: int) -> str | None:
        now, id = self._now(), f"grant_{secrets.token_hex(16)}"
        grant = OAuthGrant(
            id=id,
            client_id=request.client_id,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            child=hash,
            created_at=now,
            expires_at=expires_at,
        )
        code, stored = make_secret("code", id, child, now + CODE_MS)
        return code if await self.store.allow_request(request.id, grant, stored, now) else None

    async def find(self, secret: str, kind: SecretKind, client_id: str) -> PresentedSecret | None:
        """Return a code or refresh token that a client may use now. One that was used before ends its grant."""
        presented = await self.store.find_secret(hash_secret(secret))
        if presented is None or presented.secret.kind != kind or presented.grant.client_id != client_id:
            return None
        if presented.secret.used_at is not None:
            await self._end_copied(presented)
            return None
        return presented if self._is_current(presented) else None

    async def exchange(self, secret: str, kind: SecretKind, client_id: str) -> IssuedTokens:
        """Return new tokens for a code or a refresh token, which can then no longer be used. Raises GrantEnded."""
        presented = await self.find(secret, kind, client_id)
        child = None if presented is None else unseal_with(secret, presented.secret.sealed)
        if presented is None or child is None:
            raise GrantEnded
        if is_visitor_token(child):
            return await self._hand_over(presented, child)
        if not await self.is_live(child):
            await self.store.revoke_grant(presented.grant.id, self._now())
            raise GrantEnded
        now, ends = self._now(), presented.grant.expires_at
        access, stored_access = make_secret("access", presented.grant.id, child, min(now + ACCESS_MS, ends))
        refresh, stored_refresh = make_secret("refresh", presented.grant.id, child, ends)
        if not await self.store.exchange(presented.secret.hash, [stored_access, stored_refresh], now):
            await self._end_copied(presented)  # another request with the same secret was faster
            raise GrantEnded
        return IssuedTokens(access, refresh, (stored_access.expires_at - now) // 1000)

    async def _hand_over(self, presented: PresentedSecret, visitor: str) -> IssuedTokens:
        """Return the visitor token of a code, which can then no longer be used. Raises GrantEnded."""
        now, end = self._now(), self._visitors.find_end(visitor)
        if end is None:
            raise GrantEnded
        if not await self.store.exchange(presented.secret.hash, [], now):
            await self._end_copied(presented)
            raise GrantEnded
        return IssuedTokens(visitor, None, int(end.timestamp()) - now // 1000)

    async def open_access(self, secret: str) -> OpenedAccess:
        """Return what a valid access token opens. Raises GrantEnded."""
        presented = await self.store.find_secret(hash_secret(secret))
        if presented is None or presented.secret.kind != "access" or not self._is_current(presented):
            raise GrantEnded
        child = unseal_with(secret, presented.secret.sealed)
        if child is None:
            raise GrantEnded
        return OpenedAccess(child, presented.grant, presented.secret.expires_at)

    async def revoke(self, secret: str, client_id: str) -> OAuthGrant | None:
        """End the grant of a code or token, and its allowance. Returns None if the secret is not this client's."""
        presented = await self.store.find_secret(hash_secret(secret))
        if presented is None or presented.grant.client_id != client_id:
            return None
        await self._end(presented.grant)
        return presented.grant

    def _is_current(self, presented: PresentedSecret) -> bool:
        now = self._now()
        return presented.grant.revoked_at is None and now < min(presented.secret.expires_at, presented.grant.expires_at)

    async def _end_copied(self, presented: PresentedSecret) -> None:
        log.warning("an OAuth secret was used twice: its grant ends", extra={"grant": presented.grant.id})
        await self._end(presented.grant)

    async def _end(self, grant: OAuthGrant) -> None:
        await self.store.revoke_grant(grant.id, self._now())
        self.on_end()
        if self._end_allowance is not None and grant.child != NO_ALLOWANCE:
            try:
                await self._end_allowance(grant.child)
            except PaymentRequired as refused:  # the grant has ended; its allowance has its own cap and expiry
                log.warning("the allowance of a grant could not be ended", extra={"reason": refused.code})
