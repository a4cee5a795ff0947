"""Provide clients and grants to the SDK's handlers of token, registration and revocation requests.

Only this module and `sdk_handlers` import the SDK, and they are imported with the first request that needs them. Expiry
is judged here by the service's own clock, because the handlers use the system's.
"""

import hmac
from collections.abc import Sequence

from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, Field
from starlette.requests import Request

from toolserver.clock import Clock
from toolserver.core.caller import crowd_of
from toolserver.mcp.oauth.client_documents import MOST_NAME, clean_name
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.grants import GrantEnded, IssuedTokens, OAuthGrants
from toolserver.mcp.oauth.records import OAuthClient, hash_secret
from toolserver.mcp.oauth.redirects import MOST_URIS, RedirectRefused, check_redirect_uri
from toolserver.mcp.oauth.store import OAuthStoreFull
from toolserver.money.ledger.protocol import milliseconds

NEVER = float("inf")


class KnownClient(OAuthClientInformationFull):
    """A client as the SDK sees it. Only the hash of its secret is known."""

    secret_hash: bytes | None = Field(None, exclude=True)


class PresentedCode(AuthorizationCode):
    """A code that a client presented and may exchange."""


class PresentedRefreshToken(RefreshToken):
    """A refresh token that a client presented and may exchange."""


class OAuthProvider:
    """The SDK's `OAuthAuthorizationServerProvider` for one request.

    `redirect_uris` are those of a registration as they were written, because the SDK would normalise them. `caller` is
    who makes the request, by address.
    """

    def __init__(
        self,
        clients: ClientDirectory,
        grants: OAuthGrants,
        clock: Clock,
        redirect_uris: Sequence[str] = (),
        *,
        caller: str | None = None,
    ) -> None:
        self._clients, self._grants, self._now = clients, grants, milliseconds(clock)
        self._redirect_uris, self._caller = redirect_uris, caller

    async def get_client(self, client_id: str) -> KnownClient | None:
        """Return a client by its id. Raises ClientDocumentsBusy."""
        found = await self._clients.find_known(client_id, self._caller)
        if found is None:
            return None
        return KnownClient(
            client_id=found.id,
            client_name=found.name,
            token_endpoint_auth_method=found.auth_method,
            secret_hash=found.secret_hash,
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a new client. Raises RegistrationError."""
        uris = tuple(self._redirect_uris)
        if len(uris) > MOST_URIS:
            raise RegistrationError("invalid_redirect_uri", f"a client may have at most {MOST_URIS} redirect URIs")
        try:
            for uri in uris:
                check_redirect_uri(uri)
        except RedirectRefused as refused:
            raise RegistrationError("invalid_redirect_uri", str(refused)) from None
        secret = client_info.client_secret
        made = OAuthClient(
            client_info.client_id,
            clean_name(client_info.client_name or "") or "An app without a name",
            uris,
            self._now(),
            client_info.token_endpoint_auth_method or "none",
            None if secret is None else hash_secret(secret),
            owner="" if self._caller is None else crowd_of(self._caller),
        )
        assert len(made.name) <= MOST_NAME
        try:
            await self._clients.store.add_client(made)
        except OAuthStoreFull:
            raise RegistrationError("invalid_client_metadata", "no more clients can be registered today") from None

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Not used: authorization requests are for a person and have their own endpoint."""
        raise NotImplementedError

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> PresentedCode | None:
        """Return a code that this client may exchange now."""
        found = await self._grants.find(authorization_code, "code", client.client_id)
        if found is None:
            return None
        return PresentedCode(
            code=authorization_code,
            scopes=[],
            expires_at=NEVER,
            client_id=client.client_id,
            code_challenge=found.grant.challenge,
            redirect_uri=AnyUrl(found.grant.redirect_uri),
            redirect_uri_provided_explicitly=True,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: PresentedCode
    ) -> OAuthToken:
        """Return tokens for a code. Raises TokenError."""
        try:
            return _show(await self._grants.exchange(authorization_code.code, "code", client.client_id))
        except GrantEnded:
            raise TokenError("invalid_grant", "the code was used, or its allowance has ended") from None

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> PresentedRefreshToken | None:
        """Return a refresh token that this client may exchange now."""
        found = await self._grants.find(refresh_token, "refresh", client.client_id)
        return (
            None if found is None else PresentedRefreshToken(token=refresh_token, client_id=client.client_id, scopes=[])
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: PresentedRefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return new tokens for a refresh token. Raises TokenError."""
        try:
            return _show(await self._grants.exchange(refresh_token.token, "refresh", client.client_id))
        except GrantEnded:
            raise TokenError("invalid_grant", "the refresh token was used, or its allowance has ended") from None

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Not used: the endpoint opens access tokens itself, and revocation handles every kind of token."""
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | PresentedRefreshToken) -> None:
        """Not used: see `load_access_token`."""
        raise NotImplementedError

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        """Refuse. Raises TokenError."""
        raise TokenError("unsupported_grant_type", "assertions are not accepted")


class HashedClientAuthenticator(ClientAuthenticator):
    """Authenticates clients of whose secrets only hashes are known. Both ways to send a secret are now form fields."""

    async def authenticate_request(self, request: Request) -> OAuthClientInformationFull:
        form = await request.form()
        id, secret = form.get("client_id"), form.get("client_secret")
        client = await self.provider.get_client(id) if isinstance(id, str) else None
        if not isinstance(client, KnownClient):
            raise AuthenticationError("the client is not registered here")
        if client.secret_hash is None:
            return client
        given = hash_secret(secret) if isinstance(secret, str) else b""
        if not hmac.compare_digest(given, client.secret_hash):
            raise AuthenticationError("the client's secret is missing or wrong")
        return client


def _show(issued: IssuedTokens) -> OAuthToken:
    return OAuthToken(access_token=issued.access, expires_in=issued.lives_s, refresh_token=issued.refresh)
