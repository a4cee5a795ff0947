"""Answer token, registration and revocation requests with the SDK's handlers.

The provider gives the handlers clients and grants; `SdkHandlers` prepares their input: it
reads parameters once, judges resource indicators, and unifies the two ways to send a client's
secret. Answers do not quote values from the request.

Only this module imports the SDK, and it is imported with the first request that needs it.
Expiry is judged here by the service's own clock, because the handlers use the system's.
"""

import hmac
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
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
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import crowd_of
from toolserver.mcp.asgi import Receive, Scope, replay_body
from toolserver.mcp.oauth.clients import MOST_NAME, READING_LIMITS, ClientDirectory, ClientDocumentsBusy, clean_name
from toolserver.mcp.oauth.grants import GrantEnded, IssuedTokens, OAuthGrants
from toolserver.mcp.oauth.http import (
    FORM_TYPE,
    BadParameters,
    OAuthParameters,
    add_basic_credentials,
    read_bytes,
    read_form,
)
from toolserver.mcp.oauth.metadata import RESOURCE, is_ours
from toolserver.mcp.oauth.redirects import MOST_URIS, RedirectRefused, check_redirect_uri
from toolserver.mcp.oauth.store import OAuthClient, OAuthStoreFull, hash_secret
from toolserver.registry.site_facts import SiteFacts

NEVER = float("inf")
NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}
CHALLENGE = 'Basic realm="oauth"'  # goes with every 401 (RFC 6749, 5.2)


class HashedClient(OAuthClientInformationFull):
    """A client as the SDK sees it. Only the hash of its secret is known."""

    secret_hash: bytes | None = Field(None, exclude=True)


class PresentedCode(AuthorizationCode):
    """A code that a client presented and may exchange."""


class PresentedRefreshToken(RefreshToken):
    """A refresh token that a client presented and may exchange."""


class OAuthProvider:
    """The SDK's `OAuthAuthorizationServerProvider` for one request.

    `redirect_uris` are those of a registration as they were written, because the SDK would
    normalise them. `caller` is who makes the request, by address.
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

    async def get_client(self, client_id: str) -> HashedClient | None:
        """Return a client by its id. Raises ClientDocumentsBusy."""
        client = await self._clients.find_known(client_id, self._caller)
        if client is None:
            return None
        return HashedClient(
            client_id=client.id,
            client_name=client.name,
            token_endpoint_auth_method=client.auth_method,
            secret_hash=client.secret_hash,
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
        client = OAuthClient(
            id=client_info.client_id,
            name=clean_name(client_info.client_name or "") or "An app without a name",
            redirect_uris=uris,
            created_at=self._now(),
            auth_method=client_info.token_endpoint_auth_method or "none",
            secret_hash=None if secret is None else hash_secret(secret),
            owner="" if self._caller is None else crowd_of(self._caller),
        )
        assert len(client.name) <= MOST_NAME
        try:
            await self._clients.store.add_client(client)
        except OAuthStoreFull:
            raise RegistrationError("invalid_client_metadata", "no more clients can be registered today") from None

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Not used: authorization requests are for a person and have their own endpoint."""
        raise NotImplementedError

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> PresentedCode | None:
        """Return a code that this client may exchange now."""
        code = await self._grants.find(authorization_code, "code", client.client_id)
        if code is None:
            return None
        return PresentedCode(
            code=authorization_code,
            scopes=[],
            expires_at=NEVER,
            client_id=client.client_id,
            code_challenge=code.grant.challenge,
            redirect_uri=AnyUrl(code.grant.redirect_uri),
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
        if await self._grants.find(refresh_token, "refresh", client.client_id) is None:
            return None
        return PresentedRefreshToken(token=refresh_token, client_id=client.client_id, scopes=[])

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
        if not isinstance(client, HashedClient):
            raise AuthenticationError("the client is not registered here")
        if client.secret_hash is None:
            return client
        secret_hash = hash_secret(secret) if isinstance(secret, str) else b""
        if not hmac.compare_digest(secret_hash, client.secret_hash):
            raise AuthenticationError("the client's secret is missing or wrong")
        return client


class SdkHandlers:
    """Answers the three requests that programs make. `caller` is who makes one, by address."""

    def __init__(self, clients: ClientDirectory, grants: OAuthGrants, facts: SiteFacts, clock: Clock) -> None:
        self._clients, self._grants, self._facts, self._clock = clients, grants, facts, clock

    async def token(self, scope: Scope, receive: Receive, caller: str | None = None) -> Response:
        """Issue tokens for a code or a refresh token (RFC 6749, 4.1.3 and 6)."""
        try:
            parameters = await self._read_client_form(scope, receive)
        except BadParameters as bad:
            return refuse("invalid_request", str(bad))
        if not all(is_ours(resource, self._facts) for resource in parameters.resources):
            return refuse("invalid_target", f"resource must be {self._facts.url(RESOURCE)}")
        if parameters.get("grant_type") not in ("authorization_code", "refresh_token"):
            return refuse("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
        parameters.pop("scope", None)  # there are no scopes: an allowance says what may be done
        provider = OAuthProvider(self._clients, self._grants, self._clock, caller=caller)
        handler = TokenHandler(provider, HashedClientAuthenticator(provider))
        try:
            answer: Response = await handler.handle(_request(scope, receive, parameters))
        except ClientDocumentsBusy as busy:
            return refuse("temporarily_unavailable", str(busy))
        if answer.status_code == 401:
            answer.headers["www-authenticate"] = CHALLENGE
        return answer

    async def register(self, scope: Scope, receive: Receive, caller: str | None = None) -> Response:
        """Register a new client (RFC 7591)."""
        try:
            body = await read_bytes(receive)
        except BadParameters as bad:
            return refuse("invalid_client_metadata", str(bad))
        provider = OAuthProvider(self._clients, self._grants, self._clock, _written_uris(body), caller=caller)
        handler = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
        answer = await handler.handle(Request(scope, replay_body(body, receive)))
        answer.headers.update(NO_STORE)
        return answer

    async def revoke(self, scope: Scope, receive: Receive, caller: str | None = None) -> Response:
        """End a grant by any of its tokens (RFC 7009). An unknown token is not an error.

        The SDK's handler is not used, because it requires a secret even from clients that have none.
        """
        try:
            parameters = await self._read_client_form(scope, receive)
        except BadParameters as bad:
            return refuse("invalid_request", str(bad))
        provider = OAuthProvider(self._clients, self._grants, self._clock, caller=caller)
        try:
            client = await HashedClientAuthenticator(provider).authenticate_request(
                _request(scope, receive, parameters)
            )
        except ClientDocumentsBusy as busy:
            return refuse("temporarily_unavailable", str(busy))
        except AuthenticationError as error:
            return refuse("invalid_client", error.message)
        if "token" not in parameters:
            return refuse("invalid_request", "token is missing")
        await self._grants.revoke(parameters["token"], client.client_id)
        return Response(status_code=200, headers=NO_STORE)

    async def _read_client_form(self, scope: Scope, receive: Receive) -> OAuthParameters:
        parameters = await read_form(scope, receive)
        add_basic_credentials(parameters, dict(scope["headers"]))
        return parameters


def refuse(error: str, description: str) -> Response:
    """Return an error in the form of RFC 6749, 5.2."""
    headers, status = dict(NO_STORE), {"invalid_client": 401, "temporarily_unavailable": 503}.get(error, 400)
    if status == 503:
        headers["retry-after"] = f"{READING_LIMITS.total_s:.0f}"
    if error == "invalid_client":
        headers["www-authenticate"] = CHALLENGE
    body = {"error": error, "error_description": description}
    return JSONResponse(body, status, headers)


def _request(scope: Scope, receive: Receive, parameters: OAuthParameters) -> Request:
    """Return the request with these parameters as its form."""
    body = urlencode(parameters).encode()
    headers = [(name, value) for name, value in scope["headers"] if name not in (b"content-type", b"content-length")]
    headers.append((b"content-type", FORM_TYPE.encode()))
    return Request({**scope, "headers": headers}, replay_body(body, receive))


def _written_uris(body: bytes) -> list[str]:
    """Return the redirect URIs of a registration as they were written. The handler reports malformed ones."""
    try:
        metadata: Any = json.loads(body)
        uris = metadata.get("redirect_uris") if isinstance(metadata, dict) else None
    except (ValueError, RecursionError):
        return []
    return [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []


def _show(issued: IssuedTokens) -> OAuthToken:
    return OAuthToken(access_token=issued.access, expires_in=issued.lives_s, refresh_token=issued.refresh)
