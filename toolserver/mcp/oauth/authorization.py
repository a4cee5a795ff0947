"""Serve the two addresses that a person's browser visits: the authorization request, and the page that answers it.

A client makes an authorization request by sending a person's browser here. Until it is known
that the redirect address belongs to the client, errors are shown to the person. After that,
they are sent to the client in the redirect, together with the issuer (RFC 9207).

There is no session and no password. A page carries a secret of its request, and the browser a
cookie. Both are needed to open the request. Browsers do not send the cookie with forms of
other sites, which do not know the secret either.
"""

import re
import secrets

import anyio.to_thread

from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.calls.response import Disconnected, run_unless_disconnected
from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import Caller, crowd_of
from toolserver.core.consent_page import ConsentView, DrawConsent
from toolserver.core.cookies import Cookie, header_of, is_foreign
from toolserver.errors import ToolserverError
from toolserver.mcp.asgi import Header, Receive, Scope, Send
from toolserver.mcp.oauth.clients import READING_LIMITS, ClientDirectory, ClientDocumentRefused, ClientDocumentsBusy
from toolserver.mcp.oauth.consent import BY_HASH, ConsentSteps, Redirected, Visit, close_page, leave_page, page_url
from toolserver.mcp.oauth.http import (
    BadParameters,
    OAuthParameters,
    OAuthReplies,
    Visitors,
    read_form,
    read_parameters,
)
from toolserver.mcp.oauth.metadata import RESOURCE, is_ours
from toolserver.mcp.oauth.redirects import add_answer, describe_redirect, is_registered
from toolserver.mcp.oauth.store import HOUR_MS, ConsentRequest, OAuthClient, OAuthStore, hash_secret
from toolserver.registry.site_facts import SiteFacts

LIFE_MS = 2 * HOUR_MS  # long enough to buy credits and to wait for the chain
MOST_STATE = 4096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
AUTHORIZATIONS, VISITS = Quota("authorization requests", 60, 60), Quota("consent pages", 120, 60)
REFUSED = "The app cannot be connected"
_COOKIE_VALUE = re.compile(r"[0-9a-f]{64}")


class UntrustedRequest(ToolserverError):
    """A request whose fault only the person is shown: the redirect address may not belong to the client."""


class InvalidAuthorization(ToolserverError):
    """A request with a fault to report to the client. `url` is the redirect that reports it."""

    def __init__(self, url: str, description: str) -> None:
        super().__init__(description)
        self.url = url


class AuthorizationRequests:
    """Checks requests and creates those that wait for a person."""

    def __init__(self, clients: ClientDirectory, facts: SiteFacts, clock: Clock) -> None:
        self._clients, self._facts, self._now = clients, facts, milliseconds(clock)

    async def read(
        self, parameters: OAuthParameters, browser: str, caller: str | None = None
    ) -> tuple[str, ConsentRequest]:
        """Return the secret that the request's page carries, and the request. `browser` is the
        secret of the cookie, `caller` the browser's address; None has no share of anything.

        Raises:
            UntrustedRequest, InvalidAuthorization, ClientDocumentsBusy
        """
        client = await self._find_client(parameters, caller)
        uri = parameters.get("redirect_uri", "")
        if not is_registered(uri, client.redirect_uris):
            raise UntrustedRequest("The app wants the answer sent to an address that it has not registered.")
        self._check(parameters, uri)
        secret, now = secrets.token_hex(32), self._now()
        request = ConsentRequest(
            id=hash_secret(secret),
            browser=hash_secret(browser),
            client_id=client.id,
            client_name=client.name,
            redirect_uri=uri,
            state=parameters.get("state"),
            challenge=parameters["code_challenge"],
            created_at=now,
            expires_at=now + LIFE_MS,
            owner="" if caller is None else crowd_of(caller),
        )
        return secret, request

    async def _find_client(self, parameters: OAuthParameters, caller: str | None) -> OAuthClient:
        id = parameters.get("client_id", "")
        try:
            client = await self._clients.find(id, caller) if id else None
        except ClientDocumentRefused as refused:
            raise UntrustedRequest(str(refused)) from None
        if client is None:
            raise UntrustedRequest(
                "This app is not registered here. Remove the connection in the app and add it again."
            )
        return client

    def _check(self, parameters: OAuthParameters, uri: str) -> None:
        state, fault = parameters.get("state"), self._find_fault(parameters)
        if state is not None and len(state) > MOST_STATE:
            state, fault = None, ("invalid_request", f"state may have at most {MOST_STATE} characters")
        if fault is not None:
            error, description = fault
            answer = {"error": error, "error_description": description}
            url = add_answer(uri, answer, state=state, issuer=self._facts.url(RESOURCE))
            raise InvalidAuthorization(url, description)

    def _find_fault(self, parameters: OAuthParameters) -> tuple[str, str] | None:
        """Return the error and its description; None for a valid request."""
        if parameters.get("response_type") != "code":
            return "unsupported_response_type", "response_type must be code"
        if parameters.get("code_challenge_method") != "S256":
            return "invalid_request", "PKCE is required: code_challenge_method must be S256"
        if not _CHALLENGE.fullmatch(parameters.get("code_challenge", "")):
            return "invalid_request", "PKCE is required: code_challenge must be 43 characters of base64url"
        if not all(is_ours(resource, self._facts) for resource in parameters.resources):
            return "invalid_target", f"resource must be {self._facts.url(RESOURCE)}"
        return None


class ConsentEndpoint:
    """Answers browsers. `draw` makes the page's HTML."""

    def __init__(
        self,
        requests: AuthorizationRequests,
        steps: ConsentSteps,
        store: OAuthStore,
        draw: DrawConsent,
        *,
        facts: SiteFacts,
        visitors: Visitors,
        replies: OAuthReplies,
    ) -> None:
        self._requests, self._steps, self._store, self._draw = requests, steps, store, draw
        self._facts, self._visitors, self._replies = facts, visitors, replies
        self._cookie = Cookie("toolserver-consent", "Lax", replies.secure)
        self._authorizations = visitors.open_buckets(AUTHORIZATIONS)
        self._visits = visitors.open_buckets(VISITS)

    async def authorize(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an authorization request: redirect it to its page, or refuse it."""
        if scope["method"] not in ("GET", "HEAD"):
            await self._refuse_method(scope, send, "GET, HEAD")
            return
        if not await self._admit(scope, send, self._authorizations):
            return
        try:
            parameters = read_parameters(scope["query_string"])
            await self._begin(scope, receive, send, parameters)
        except (BadParameters, UntrustedRequest) as fault:
            await self._close(scope, send, 400, str(fault))
        except InvalidAuthorization as fault:
            await self._report(scope, send, fault, parameters)
        except ClientDocumentsBusy as busy:
            await self._close(scope, send, 503, str(busy), (b"retry-after", b"%d" % READING_LIMITS.total_s))

    async def _begin(self, scope: Scope, receive: Receive, send: Send, parameters: OAuthParameters) -> None:
        """Redirect a good request to its page. Raises what `AuthorizationRequests.read` raises.

        A client's document may take seconds, so its reading ends when nobody waits for it any more.
        """
        browser = self._browser(scope) or secrets.token_hex(32)
        caller = self._visitors.find_sharer(scope)
        try:
            secret, request = await run_unless_disconnected(
                receive, lambda: self._requests.read(parameters, browser, caller)
            )
        except Disconnected:
            return
        await self._store.add_request(request)
        await self._replies.redirect(scope, send, page_url(self._facts, secret), self._cookie.write(browser))

    async def consent(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the page and its forms."""
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            await self._refuse_method(scope, send, "GET, HEAD, POST")
            return
        if not await self._admit(scope, send, self._visits):
            return
        try:
            form = await read_form(scope, receive) if method == "POST" else read_parameters(scope["query_string"])
        except BadParameters as bad:
            await self._close(scope, send, 400, str(bad))
            return
        if method == "POST" and is_foreign(scope, self._facts.base_url):
            await self._close(scope, send, 403, "The form was sent by another site.")
            return
        visit = await self._steps.open(form.get("request", ""), self._browser(scope), self._caller(scope))
        if isinstance(visit, ConsentView):
            await self._draw_page(scope, send, 409 if method == "POST" else 410, visit)
            return
        answer = await (
            self._steps.act(visit, form) if method == "POST" else self._steps.show(visit, by_hash=BY_HASH in form)
        )
        if isinstance(answer, Redirected):
            await self._leave(scope, send, answer, visit)
        else:
            await self._draw_page(scope, send, 200 if answer.problem is None else 422, answer, visit)

    async def _leave(self, scope: Scope, send: Send, answer: Redirected, visit: Visit) -> None:
        """Redirect, but let a program be started by a click: a browser that is sent there asks nobody."""
        if answer.outside and describe_redirect(visit.request.redirect_uri).own_scheme:
            await self._draw_page(scope, send, 200, leave_page(visit.request, answer.url))
        else:
            await self._replies.redirect(scope, send, answer.url)

    async def _report(self, scope: Scope, send: Send, fault: InvalidAuthorization, parameters: OAuthParameters) -> None:
        """Report a fault to the client: on loopback at once, elsewhere by a click, as anyone may register."""
        target = describe_redirect(parameters["redirect_uri"])
        if target.local and not target.own_scheme:
            await self._replies.redirect(scope, send, fault.url)
            return
        page = close_page(f"The app's request is invalid: {fault}.", REFUSED, fault.url)
        await self._draw_page(scope, send, 400, page._replace(target=target.shown))

    async def _close(self, scope: Scope, send: Send, status: int, text: str, *more: Header) -> None:
        body = await anyio.to_thread.run_sync(self._draw, close_page(text, REFUSED))
        await self._replies.page(scope, send, status, body, "", *more)

    async def _draw_page(
        self, scope: Scope, send: Send, status: int, view: ConsentView, visit: Visit | None = None
    ) -> None:
        target = None if visit is None else describe_redirect(visit.request.redirect_uri)
        source = "" if target is None or target.own_scheme else target.source  # the form never redirects to a program
        body = await anyio.to_thread.run_sync(self._draw, view)
        await self._replies.page(scope, send, status, body, source)

    async def _refuse_method(self, scope: Scope, send: Send, allowed: str) -> None:
        allow: Header = (b"allow", allowed.encode())
        await self._replies.problem(scope, send, 405, "invalid_request", f"Use {allowed}.", allow)

    async def _admit(self, scope: Scope, send: Send, bucket: ClientBuckets) -> bool:
        exceeded = self._visitors.count(scope, bucket)
        if exceeded is None:
            return True
        wait = exceeded.retry_after_s
        text = f"Too many requests from this address. Try again in {wait} s."
        await self._close(scope, send, 429, text, (b"retry-after", b"%d" % wait))
        return False

    def _browser(self, scope: Scope) -> str:
        """Return the secret of the browser's cookie; empty without a cookie."""
        value = self._cookie.read(scope)
        return value if _COOKIE_VALUE.fullmatch(value) else ""

    def _caller(self, scope: Scope) -> Caller:
        agent = header_of(scope, b"user-agent")
        return Caller(
            client=self._visitors.find_address(scope), agent=agent, transport="oauth", limited=self._visitors.limited
        )
