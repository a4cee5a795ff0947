"""Check authorization requests, which clients make by sending a person's browser here.

Until it is known that the redirect address belongs to the client, errors are shown to the person. After that, they are
sent to the client in the redirect, together with the issuer (RFC 9207).
"""

import re
import secrets
from urllib.parse import urlencode

from toolserver.core.caller import crowd_of
from toolserver.errors import ToolserverError
from toolserver.mcp.oauth.client_documents import ClientDocumentRefused
from toolserver.mcp.oauth.clients import ClientDirectory
from toolserver.mcp.oauth.forms import OAuthParameters
from toolserver.mcp.oauth.metadata import RESOURCE, is_ours
from toolserver.mcp.oauth.records import HOUR_MS, ConsentRequest, OAuthClient, hash_secret
from toolserver.mcp.oauth.redirects import is_registered
from toolserver.registry.site_facts import SiteFacts

LIFE_MS = 2 * HOUR_MS  # long enough to buy credits and to wait for the chain
MOST_STATE = 4096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class PersonToldFault(ToolserverError):
    """A fault to show to the person only, because the redirect address is not yet known to belong to the client."""


class ClientToldFault(ToolserverError):
    """A fault to report to the client. `url` is the redirect that reports it."""

    def __init__(self, url: str, description: str) -> None:
        super().__init__(description)
        self.url = url


class AuthorizationRequests:
    """Checks requests and creates those that wait for a person."""

    def __init__(self, clients: ClientDirectory, facts: SiteFacts) -> None:
        self._clients, self._facts = clients, facts

    async def read(
        self, given: OAuthParameters, browser: str, now: int, caller: str | None = None
    ) -> tuple[str, ConsentRequest]:
        """Return the secret that the request's page carries, and the request. `browser` is the secret of the cookie,
        `caller` the browser's address; None has no share of anything.

        Raises:
            PersonToldFault, ClientToldFault, ClientDocumentsBusy
        """
        client = await self._find_client(given, caller)
        uri = given.get("redirect_uri", "")
        if not is_registered(uri, client.redirect_uris):
            raise PersonToldFault("The app wants the answer sent to an address that it has not registered.")
        self._check(given, uri)
        secret = secrets.token_hex(32)
        made = ConsentRequest(
            *(hash_secret(secret), hash_secret(browser), client.id, client.name, uri, given.get("state")),
            *(given["code_challenge"], now, now + LIFE_MS),
            owner="" if caller is None else crowd_of(caller),
        )
        return secret, made

    def answer(self, request: ConsentRequest, **answer: str) -> str:
        """Return where to send the browser: the redirect address with the answer, the state and the issuer."""
        return self._answer(request.redirect_uri, request.state, **answer)

    async def _find_client(self, given: OAuthParameters, caller: str | None) -> OAuthClient:
        id = given.get("client_id", "")
        try:
            client = await self._clients.find(id, caller) if id else None
        except ClientDocumentRefused as refused:
            raise PersonToldFault(str(refused)) from None
        if client is None:
            raise PersonToldFault("This app is not registered here. Remove the connection in the app and add it again.")
        return client

    def _check(self, given: OAuthParameters, uri: str) -> None:
        state, fault = given.get("state"), self._find_fault(given)
        if state is not None and len(state) > MOST_STATE:
            state, fault = None, ("invalid_request", f"state may have at most {MOST_STATE} characters")
        if fault is not None:
            error, description = fault
            raise ClientToldFault(self._answer(uri, state, error=error, error_description=description), description)

    def _find_fault(self, given: OAuthParameters) -> tuple[str, str] | None:
        """Return the error and its description; None for a valid request."""
        if given.get("response_type") != "code":
            return "unsupported_response_type", "response_type must be code"
        if given.get("code_challenge_method") != "S256":
            return "invalid_request", "PKCE is required: code_challenge_method must be S256"
        if not _CHALLENGE.fullmatch(given.get("code_challenge", "")):
            return "invalid_request", "PKCE is required: code_challenge must be 43 characters of base64url"
        if not all(is_ours(resource, self._facts) for resource in given.resources):
            return "invalid_target", "resource must be the address of the MCP endpoint"
        return None

    def _answer(self, uri: str, state: str | None, **answer: str) -> str:
        given = {**answer, **({} if state is None else {"state": state}), "iss": self._facts.url(RESOURCE)}
        return f"{uri}{'&' if '?' in uri else '?'}{urlencode(given)}"
