"""From nothing to an answer that was paid for, over REST: quote, payment, token, calls until nothing is left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.arranged import client_of
from tests.calls.toy import FIRST, SECOND, premium_report
from tests.money.purchases.parts import TX, Server, paid
from tests.requirements import proves
from tests.tools.payment.test_tools import REGISTRY, shop
from toolserver.registry.registry import Registry, operation_of

TOOLS = Registry([*REGISTRY, operation_of(premium_report)])
REPORT, PRICE = "/api/pro/report", 2


@dataclass
class Counter:
    """A service that sells credits and spends them."""

    http: httpx.AsyncClient
    server: Server

    async def bought(self, usd: float) -> Any:
        """The answer to a confirmation of a purchase that was paid."""
        quote = (await self.http.post("/api/payment/buy-credits", json={"amount_usd": usd})).json()
        self.server.sees(paid(bytes.fromhex(quote["wallet"][2:]), usd))
        claim = {"tx_hash": TX.hex(), "nonce": quote["memo"]}
        return (await self.http.post("/api/payment/confirm", json=claim)).json()

    async def call(self, path: str, token: str | None = None) -> httpx.Response:
        return await self.http.get(path, headers={"authorization": f"Bearer {token}"} if token else {})


@asynccontextmanager
async def counter(folder: Path) -> AsyncIterator[Counter]:
    async with shop(folder, registry=TOOLS) as s, client_of(s.engine.service.web_app()) as client:
        for url in (FIRST, SECOND):
            s.engine.internet.serves(url, {"value": 1})
        yield Counter(client, s.server)


@proves("purchase.flow", "purchase.rate", "purchase.token", "balance.answer")
async def test_what_is_bought_can_be_spent_to_the_last_credit(tmp_path):
    async with counter(tmp_path) as c:
        assert (await c.call(REPORT)).json()["error"] == "missing_token"
        token = (await c.bought(1))["token"]
        for left in range(50 - PRICE, -1, -PRICE):
            answer = await c.call(REPORT, token)
            assert (answer.status_code, answer.headers["x-credits-remaining"]) == (200, str(left))
        assert (await c.call("/api/payment/balance", token)).json()["credits"] == 0


@proves("token.stays-valid", "payment-error.insufficient_credits")
async def test_a_token_that_cannot_pay_a_call_stays_valid(tmp_path):
    async with counter(tmp_path) as c:
        token = (await c.bought(1.02))["token"]  # 51 credits: the last one buys nothing
        for _ in range(25):
            assert (await c.call(REPORT, token)).status_code == 200
        for _ in range(2):
            refused = await c.call(REPORT, token)
            assert (refused.status_code, refused.json()["error"]) == (402, "insufficient_credits")
            assert (refused.json()["required"], refused.json()["credits_remaining"]) == (PRICE, 1)
            assert (await c.call("/api/payment/balance", token)).json()["credits"] == 1
