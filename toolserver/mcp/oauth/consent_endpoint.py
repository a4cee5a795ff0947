"""Serve the two addresses that a person's browser visits: the authorization request, and the page that answers it.

There is no session and no password. A page carries a secret of its request, and the browser a cookie. Both are needed
to open the request. Browsers do not send the cookie with forms of other sites, which do not know the secret either.
"""

import re
import secrets
from urllib.parse import urlsplit

import anyio.to_thread

from toolserver.calls.connection import Disconnected, run_unless_disconnected
from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.clock import Clock
from toolserver.core.caller import Addresses, Caller
from toolserver.core.consent_page import ConsentView, DrawConsent
from toolserver.mcp.asgi import Header, Receive, Scope, Send
from toolserver.mcp.oauth.authorization import AuthorizationRequests, ClientToldFault, PersonToldFault
from toolserver.mcp.oauth.client_documents import TOTAL_S, ClientDocumentsBusy
from toolserver.mcp.oauth.consent import BY_HASH, ConsentSteps, Redirected, Visit, close_page, leave_page, page_url
from toolserver.mcp.oauth.forms import BadParameters, OAuthParameters, cookies_of, header_of, read_form, read_parameters
from toolserver.mcp.oauth.redirects import describe_redirect
from toolserver.mcp.oauth.replies import OAuthReplies
from toolserver.mcp.oauth.store import OAuthStore
from toolserver.money.ledger.protocol import milliseconds
from toolserver.registry.site_facts import SiteFacts

AUTHORIZATIONS, VISITS = Quota("authorization requests", 60, 60), Quota("consent pages", 120, 60)
REFUSED = "The app cannot be connected"
_COOKIE_VALUE = re.compile(r"[0-9a-f]{64}")


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
        clock: Clock,
        addresses: Addresses,
        limited: bool = True,
    ) -> None:
        self._requests, self._steps, self._store, self._draw = requests, steps, store, draw
        self._facts, self._addresses, self._limited = facts, addresses, limited
        self._now = milliseconds(clock)
        parts = urlsplit(facts.base_url)
        self._origin, secure = f"{parts.scheme}://{parts.netloc}".lower(), parts.scheme == "https"
        self._replies = OAuthReplies(secure=secure)
        self._cookie = "__Host-toolserver-consent" if secure else "toolserver-consent"
        self._cookie_end = f"; Path=/; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
        self._asked = ClientBuckets(AUTHORIZATIONS, monotonic=clock.monotonic)
        self._visits = ClientBuckets(VISITS, monotonic=clock.monotonic)

    async def authorize(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an authorization request: redirect it to its page, or refuse it."""
        if scope["method"] not in ("GET", "HEAD"):
            await self._refuse_method(scope, send, "GET, HEAD")
            return
        if not await self._admit(scope, send, self._asked):
            return
        try:
            parameters = read_parameters(scope["query_string"])
            await self._begin(scope, receive, send, parameters)
        except (BadParameters, PersonToldFault) as fault:
            await self._close(scope, send, 400, str(fault))
        except ClientToldFault as fault:
            await self._tell_client(scope, send, fault, parameters)
        except ClientDocumentsBusy as busy:
            await self._close(scope, send, 503, str(busy), (b"retry-after", b"%d" % TOTAL_S))

    async def _begin(self, scope: Scope, receive: Receive, send: Send, parameters: OAuthParameters) -> None:
        """Redirect a good request to its page. Raises what `AuthorizationRequests.read` raises.

        A client's document may take seconds, so its reading ends when nobody waits for it any more.
        """
        browser = self._browser(scope) or secrets.token_hex(32)
        caller = self._client(scope) if self._limited else None
        try:
            secret, request = await run_unless_disconnected(
                receive, lambda: self._requests.read(parameters, browser, self._now(), caller)
            )
        except Disconnected:
            return
        await self._store.add_request(request)
        cookie = (b"set-cookie", f"{self._cookie}={browser}{self._cookie_end}".encode())
        await self._replies.redirect(scope, send, page_url(self._facts, secret), cookie)

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
        if method == "POST" and self._is_foreign(scope):
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

    async def _tell_client(self, scope: Scope, send: Send, fault: ClientToldFault, given: OAuthParameters) -> None:
        """Redirect at once only to loopback. Anyone can register other addresses, so those need a click."""
        target = describe_redirect(given["redirect_uri"])
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
        verdict = bucket.take(self._client(scope)) if self._limited else None
        if verdict is None or verdict.allowed:
            return True
        wait = max(1, int(verdict.retry_after_s + 0.999))
        text = f"Too many requests from this address. Try again in {wait} s."
        await self._close(scope, send, 429, text, (b"retry-after", b"%d" % wait))
        return False

    def _is_foreign(self, scope: Scope) -> bool:
        """Return True if a form comes from a page of another site. Some browsers hide where a form comes from."""
        origin = header_of(scope, b"origin").lower()
        return origin not in ("", "null", self._origin) or header_of(scope, b"sec-fetch-site") in (
            "cross-site",
            "same-site",
        )

    def _browser(self, scope: Scope) -> str:
        """Return the secret of the browser's cookie; empty without a cookie."""
        value = cookies_of(scope).get(self._cookie, "")
        return value if _COOKIE_VALUE.fullmatch(value) else ""

    def _client(self, scope: Scope) -> str:
        peer = (scope.get("client") or ("unknown", 0))[0]
        return self._addresses.client(peer, header_of(scope, b"x-forwarded-for") or None)

    def _caller(self, scope: Scope) -> Caller:
        agent = header_of(scope, b"user-agent")
        return Caller(client=self._client(scope), agent=agent, transport="oauth", limited=self._limited)
