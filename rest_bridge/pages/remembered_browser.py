"""Remembers in a cookie, if its reader asks for that on /account, for which account a browser may buy credits.

The cookie holds no token. It names the account by the SHA-256 of its token and says when it
ends, encrypted under a key that all instances derive from the key that signs receipts. All
that it allows is to pay for credits of that account, on the page of a link that a chat of the
account has made.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rest_bridge import headers as h
from rest_bridge.asgi import ParsedRequest, Scope
from rest_bridge.json_post import JsonReply, json_post
from rest_bridge.routes import Mounted
from toolserver.calls.payment_links import PaymentLinks
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import Clock
from toolserver.core.caller import Addresses, bearer
from toolserver.core.cookies import Cookie, Header, is_foreign
from toolserver.core.models import iso, moment
from toolserver.errors import InvalidArguments, InvalidToken, MissingToken
from toolserver.registry.site_facts import REMEMBERED, SiteFacts

LIFE_S = 30 * 86_400
MOST_COOKIE = 1000  # characters


class _BrowserRecord(msgspec.Struct, frozen=True, array_like=True):
    """What the cookie says: the SHA-256 of the account's token, and when it ends, in epoch seconds."""

    account: bytes
    expires_at: int


class Browser(NamedTuple):
    """The account (SHA-256 in hex) that a browser may buy for, and until when, in epoch seconds."""

    account: str
    expires_at: int


class RememberedBrowsers:
    """Writes and reads the cookies of one service."""

    def __init__(self, links: PaymentLinks, facts: SiteFacts, clock: Clock) -> None:
        self._seal, self._clock, self._base_url = links.open_seal("remembered browsers"), clock, facts.base_url
        self._cookie = Cookie("toolserver-buyer", "Strict", facts.base_url.startswith("https:"))

    def remember(self, account: str) -> tuple[Header, Browser]:
        """Return the header that remembers an account (SHA-256 in hex) for `LIFE_S`, and what it says."""
        said = _BrowserRecord(bytes.fromhex(account), int(self._clock.time()) + LIFE_S)
        value = self._seal.seal(msgspec.json.encode(said).decode())
        return self._cookie.write(value, max_age_s=LIFE_S), Browser(account, said.expires_at)

    def forget(self) -> Header:
        """Return the header that removes the cookie."""
        return self._cookie.write("", max_age_s=0)

    def find(self, scope: Scope) -> Browser | None:
        """Return what the browser of a request is remembered for. Pages of other sites cannot make use of it."""
        value = self._cookie.read(scope)
        if not value or len(value) > MOST_COOKIE or is_foreign(scope, self._base_url):
            return None
        content = self._seal.unseal(value)
        if content is None:
            return None
        said = msgspec.json.decode(content, type=_BrowserRecord)
        return Browser(said.account.hex(), said.expires_at) if said.expires_at > self._clock.time() else None


def mount_remembering(
    browsers: RememberedBrowsers, links: PaymentLinks, facts: SiteFacts, limits: PersonalLimits, addresses: Addresses
) -> dict[str, Mounted]:
    """Return the app, by path, that answers `POST {}` with `{"remembered": bool, "expires_at"}`: until when, or null.

    `{"remember": true}` with a bearer token remembers the account of the token, `{"remember":
    false}` forgets it. Requests count toward the limit of the payment tools.
    """

    async def answer(scope: Scope, request: ParsedRequest, message: Mapping[str, Any]) -> JsonReply:
        peer = scope.get("client") or ("unknown", 0)
        limits.take(addresses.client(peer[0], h.text(request.forwarded)), "payment")
        wanted = message.get("remember")
        if wanted is None:  # also asked by our page where it was opened under another name of the service
            return _tell(browsers.find(scope))
        if not isinstance(wanted, bool) or is_foreign(scope, facts.base_url):
            raise InvalidArguments(
                f"Send `remember` as true or false, from this service's own page, {facts.base_url}/account.", errors=[]
            )
        if not wanted:
            return _tell(None, browsers.forget())
        token = bearer(h.text(request.authorization))
        if token is None:
            raise MissingToken("Send the token of the account as a bearer token.")
        account = await links.find_account(token)
        if account is None:
            raise InvalidToken("The token is unknown or was revoked.")
        header, browser = browsers.remember(account)
        return _tell(browser, header)

    return {REMEMBERED: json_post(answer, facts)}


def _tell(browser: Browser | None, *headers: Header) -> JsonReply:
    until = None if browser is None else iso(moment(browser.expires_at))
    return JsonReply({"remembered": browser is not None, "expires_at": until}, headers)
