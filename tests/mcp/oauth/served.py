"""A service with OAuth in memory, a client program, and a person's browser, for tests of the whole way."""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.arranged import FACTS, arrange_service, client_of
from tests.mcp.service import MemoryDesk, asked, oracle, word
from toolserver.app import Service
from toolserver.clock import ManualClock
from toolserver.mcp.oauth.metadata import AUTHORIZE, CONSENT, REGISTER, RESOURCE, REVOKE, TOKEN
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.credit_sales import Claim, CreditedPurchase, PurchaseQuote
from toolserver.registry.registry import Registry, operation_of
from toolserver.registry.site_facts import Sales, SiteFacts
from toolserver.serving.money import memory_money
from toolserver.settings import LimitSettings

START = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
OWNER = "svc_live_" + "ab" * 32
BOUGHT = "svc_live_" + "ef" * 32
BACK = "http://127.0.0.1:3000/callback"
SALES = Sales()
TX = "0x" + "12" * 32
TOOLS = Registry.load("tools")
NAMES = ("payment_buy_credits", "payment_confirm", "payment_balance")
ALLOWANCES = ("allowance_create", "allowance_list", "allowance_update", "allowance_revoke")


class ArrangedSales(ClosedPurchases):
    """Sells as a test says: `outcomes` are what confirming gives, one after the other, the last one for ever."""

    def __init__(self, ledger: MemoryLedger, outcomes: list[Any]) -> None:
        super().__init__(ledger)
        self.ledger, self.outcomes = ledger, outcomes
        self.claims: list[Claim] = []
        self.seen: str | Exception | None = None  # the transaction that pays
        self.looked: list[str] = []

    async def quote(
        self, amount_usd: Any, *, challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        amount = int(amount_usd * 1_000_000)
        uri, until = f"ethereum:0x1@8453/transfer?uint256={amount}", datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
        return PurchaseQuote(f"0x{'0' * 36}1234", f"svc_buy_{'9' * 32}", amount, amount // 20_000, until, "c", uri)

    async def find_payment(self, memo: str) -> str | None:
        self.looked.append(memo)
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        self.claims.append(claim)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        if not await self.ledger.knows(BOUGHT):
            self.ledger.fund(BOUGHT, outcome)
        return CreditedPurchase(BOUGHT, outcome)


@dataclass
class Browser:
    """A person's browser: cookies, and the page it is on."""

    http: httpx.AsyncClient
    page: httpx.Response | None = None

    async def visit(self, url: str) -> httpx.Response:
        """Open a URL and follow where it leads, but not away from the service."""
        self.page = await self._stay(await self.http.get(url))
        return self.page

    async def submit(self, do: str, **fields: str) -> httpx.Response:
        """Press a button of the page, with the fields of its form as they are but for those given."""
        assert self.page is not None
        sent = self.fields(do) | fields | {"do": do}
        headers = {"origin": str(self.http.base_url).rstrip("/")}
        self.page = await self._stay(await self.http.post(CONSENT, data=sent, headers=headers))
        return self.page

    async def reload(self) -> httpx.Response:
        """Wait until the page loads itself anew."""
        assert self.page is not None
        found = re.search(r'http-equiv="refresh" content="\d+; url=([^"]+)"', self.page.text)
        assert found is not None, self.page.text
        return await self.visit(html.unescape(found[1]))

    async def ask_for_hash(self) -> httpx.Response:
        """Follow the link of somebody whose payment is not seen."""
        assert self.page is not None
        found = re.search(r'href="([^"]+hash=1)"', self.page.text)
        assert found is not None, self.page.text
        return await self.visit(html.unescape(found[1]))

    def fields(self, do: str) -> dict[str, str]:
        """What the form with this button holds."""
        assert self.page is not None
        form = next(f for f in re.findall(r"<form.*?</form>", self.page.text, re.DOTALL) if f'value="{do}"' in f)
        inputs = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input[^>]*>", form)]
        return {i["name"]: html.unescape(i.get("value", "")) for i in inputs}

    async def _stay(self, answer: httpx.Response) -> httpx.Response:
        while answer.is_redirect and not urlsplit(answer.headers["location"]).netloc:
            answer = await self.http.get(answer.headers["location"])
        return answer


@dataclass
class Client:
    """A client program of a service: what it knows between the steps of the dance."""

    http: httpx.AsyncClient
    base_url: str
    id: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        return self.base_url + RESOURCE

    @property
    def asking(self) -> dict[str, str]:
        """The parameters of a good authorization request."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        good = {"response_type": "code", "client_id": self.id, "redirect_uri": BACK, "state": "st&ate"}
        return good | {"code_challenge": challenge, "code_challenge_method": "S256", "resource": self.resource}

    def url(self, **change: Any) -> str:
        """The URL of an authorization request; None leaves a parameter out."""
        given = {name: value for name, value in (self.asking | change).items() if value is not None}
        return f"{AUTHORIZE}?{httpx.QueryParams(given)}"

    async def register(self, **change: Any) -> httpx.Response:
        body = {"client_name": "Test host", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
        answer = await self.http.post(REGISTER, json=body | change)
        self.id = answer.json().get("client_id", "")
        return answer

    async def exchange(self, code: str, **change: Any) -> httpx.Response:
        given = {"grant_type": "authorization_code", "code": code, "client_id": self.id, "redirect_uri": BACK}
        given |= {"code_verifier": self.verifier, "resource": self.resource} | change
        return await self._tokens({name: value for name, value in given.items() if value is not None})

    async def refresh(self, **change: Any) -> httpx.Response:
        given = {"grant_type": "refresh_token", "refresh_token": self.tokens["refresh_token"], "client_id": self.id}
        return await self._tokens(given | change)

    async def revoke(self, token: str) -> httpx.Response:
        return await self.http.post(REVOKE, data={"token": token, "client_id": self.id})

    async def call(self, tool: str, path: str = RESOURCE, token: str | None = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {token or self.tokens['access_token']}"}
        return await self.http.post(path, json=asked("tools/call", {"name": tool, "arguments": {}}), headers=headers)

    async def _tokens(self, given: dict[str, str]) -> httpx.Response:
        answer = await self.http.post(TOKEN, data=given)
        if answer.status_code == 200:
            self.tokens = answer.json()
        return answer


@dataclass
class Served:
    """Everything of one test."""

    service: Service
    ledger: MemoryLedger
    sales: ArrangedSales
    clock: ManualClock
    client: Client
    browser: Browser
    face: Any
    facts: SiteFacts

    def new_browser(self, peer: str = "127.0.0.1") -> Browser:
        return Browser(client_of(self.face, _origin(self.facts), peer=peer))

    async def allow(self, **fields: str) -> dict[str, str]:
        """Register, and let the person allow it with a token; what the client gets by the redirect."""
        if not self.client.id:
            await self.client.register()
        await self.browser.visit(self.client.url())
        answer = await self.browser.submit("allow", **({"token": OWNER} | fields))
        return answered(answer)

    async def connect(self) -> dict[str, Any]:
        """The whole dance; the tokens."""
        answer = await self.client.exchange((await self.allow())["code"])
        assert answer.status_code == 200, answer.text
        return self.client.tokens

    async def allowances(self) -> list[Any]:
        return await self.ledger.list_allowances(OWNER)


def answered(answer: httpx.Response) -> dict[str, str]:
    """What a redirect to the client tells it."""
    assert answer.status_code == 303, answer.text
    url = answer.headers["location"]
    assert url.startswith(f"{BACK}?"), url
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@asynccontextmanager
async def serving(
    *,
    base_url: str = FACTS.base_url,
    limited: bool = False,
    names: tuple[str, ...] = NAMES + ALLOWANCES,
    sells: Sales = SALES,
    **settings: Any,
) -> AsyncIterator[Served]:
    """A service that sells, with a token of 1000 credits and two tools."""
    clock = ManualClock(START)
    ledger = MemoryLedger(clock)
    ledger.fund(OWNER, 1000)
    sales = ArrangedSales(ledger, [1000])
    facts = SiteFacts(base_url, FACTS.source, sales=sells)
    operations = [*(operation_of(function) for function in (word, oracle)), *(TOOLS[name] for name in names)]
    money = replace(memory_money(clock), own=ledger, payments=sales)
    given: dict[str, Any] = {"facts": facts, "reader": MemoryDesk(clock), "money": money, **settings}
    if limited:
        given["limits"] = LimitSettings()
    async with arrange_service(Registry(operations), clock, **given) as service:
        face = service.web_app()
        async with client_of(face, _origin(facts)) as program, client_of(face, _origin(facts)) as person:
            client, browser = Client(program, base_url), Browser(person)
            yield Served(service, ledger, sales, clock, client, browser, face, facts)


def _origin(facts: SiteFacts) -> str:
    parts = urlsplit(facts.base_url)
    return f"{parts.scheme}://{parts.netloc}"
