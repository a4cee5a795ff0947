"""Answer token, registration and revocation requests with the SDK's handlers.

This module prepares their input: it reads parameters once, judges resource indicators, and unifies the two ways to
send a client's secret. Answers do not quote values from the request.
"""

import json
from typing import Any
from urllib.parse import urlencode

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from toolserver.clock import Clock
from toolserver.mcp.asgi import Receive, Scope, replay_body
from toolserver.mcp.oauth.client_documents import TOTAL_S, ClientDocumentsBusy
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.forms import (
    FORM_TYPE,
    BadParameters,
    OAuthParameters,
    add_basic_credentials,
    read_bytes,
    read_form,
)
from toolserver.mcp.oauth.grants import OAuthGrants
from toolserver.mcp.oauth.metadata import is_ours
from toolserver.mcp.oauth.sdk_provider import HashedClientAuthenticator, OAuthProvider
from toolserver.registry.site_facts import SiteFacts

NO_STORE = {"cache-control": "no-store", "pragma": "no-cache"}
CHALLENGE = 'Basic realm="oauth"'  # goes with every 401 (RFC 6749, 5.2)


class SdkHandlers:
    """Answers the three requests that programs make. `caller` is who makes one, by address."""

    def __init__(self, clients: ClientDirectory, grants: OAuthGrants, facts: SiteFacts, clock: Clock) -> None:
        self._clients, self._grants, self._facts, self._clock = clients, grants, facts, clock

    async def token(self, scope: Scope, receive: Receive, caller: str | None = None) -> Response:
        """Issue tokens for a code or a refresh token (RFC 6749, 4.1.3 and 6)."""
        try:
            given = await self._read_client_form(scope, receive)
        except BadParameters as bad:
            return refuse("invalid_request", str(bad))
        if not all(is_ours(resource, self._facts) for resource in given.resources):
            return refuse("invalid_target", "resource must be the address of the MCP endpoint")
        if given.get("grant_type") not in ("authorization_code", "refresh_token"):
            return refuse("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
        given.pop("scope", None)  # there are no scopes: an allowance says what may be done
        provider = OAuthProvider(self._clients, self._grants, self._clock, caller=caller)
        handler = TokenHandler(provider, HashedClientAuthenticator(provider))
        try:
            answer: Response = await handler.handle(_request(scope, receive, given))
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
            given = await self._read_client_form(scope, receive)
        except BadParameters as bad:
            return refuse("invalid_request", str(bad))
        provider = OAuthProvider(self._clients, self._grants, self._clock, caller=caller)
        try:
            client = await HashedClientAuthenticator(provider).authenticate_request(_request(scope, receive, given))
        except ClientDocumentsBusy as busy:
            return refuse("temporarily_unavailable", str(busy))
        except AuthenticationError as error:
            return refuse("invalid_client", error.message)
        if "token" not in given:
            return refuse("invalid_request", "token is missing")
        await self._grants.revoke(given["token"], client.client_id)
        return Response(status_code=200, headers=NO_STORE)

    async def _read_client_form(self, scope: Scope, receive: Receive) -> OAuthParameters:
        given = await read_form(scope, receive)
        add_basic_credentials(given, dict(scope["headers"]))
        return given


def refuse(error: str, description: str) -> Response:
    """Return an error in the form of RFC 6749, 5.2."""
    headers, status = dict(NO_STORE), {"invalid_client": 401, "temporarily_unavailable": 503}.get(error, 400)
    if status == 503:
        headers["retry-after"] = f"{TOTAL_S:.0f}"
    if error == "invalid_client":
        headers["www-authenticate"] = CHALLENGE
    body = {"error": error, "error_description": description}
    return JSONResponse(body, status, headers)


def _request(scope: Scope, receive: Receive, given: OAuthParameters) -> Request:
    """Return the request with these parameters as its form."""
    body = urlencode(given).encode()
    headers = [(name, value) for name, value in scope["headers"] if name not in (b"content-type", b"content-length")]
    headers.append((b"content-type", FORM_TYPE.encode()))
    return Request({**scope, "headers": headers}, replay_body(body, receive))


def _written_uris(body: bytes) -> list[str]:
    """Return the redirect URIs of a registration as they were written. The handler reports malformed ones."""
    try:
        given: Any = json.loads(body)
        uris = given.get("redirect_uris") if isinstance(given, dict) else None
    except (ValueError, RecursionError):
        return []
    return [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
