"""Buying credits over REST and over MCP: the same purchase, the specification's bodies, the statuses of the table."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from rest_bridge.face import Face
from tests.payments.parts import TX, Desk, Server, paid
from tests.payments.test_tools import REGISTRY, shop
from toolserver.access import Addresses
from toolserver.documents import Facts
from toolserver.protocol.endpoint import McpEndpoint

BASE_URL = "https://data.example"
FACTS = Facts(BASE_URL, "data.example")
HEX = f"0x{TX.hex()}"


@dataclass
class Doors:
    """Both faces of one shop."""

    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    desk: Desk
    server: Server

    async def buy(self, usd: Any = 5) -> Any:
        answer = await self.rest.post("/api/payment/buy-credits", json={"amount_usd": usd})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def confirm(self, memo: str, tx: str = HEX) -> httpx.Response:
        return await self.rest.post("/api/payment/confirm", json={"tx_hash": tx, "nonce": memo})

    async def tell(self, name: str, arguments: Any = None, token: str | None = None) -> Any:
        """The result of a call over MCP."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        message |= {"params": {"name": name, "arguments": arguments or {}}}
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = await self.mcp.post("/api/mcp?toolset=all", json=message, headers=headers)
        assert answer.status_code == 200
        return answer.json()["result"]


@asynccontextmanager
async def doors(folder: Path) -> AsyncIterator[Doors]:
    addresses = Addresses([])
    async with shop(folder) as s, anyio.create_task_group() as tasks:
        face = Face(REGISTRY, s.pipeline, facts=FACTS, clock=s.desk.clock, addresses=addresses)
        mcp = McpEndpoint(
            REGISTRY, s.pipeline, tasks=tasks, addresses=addresses, base_url=BASE_URL, source_name="data.example"
        )
        async with (
            httpx.AsyncClient(transport=httpx.ASGITransport(app=face), base_url=BASE_URL) as rest_client,
            httpx.AsyncClient(transport=httpx.ASGITransport(app=mcp), base_url=BASE_URL) as mcp_client,
        ):
            yield Doors(rest_client, mcp_client, s.desk, s.server)
        tasks.cancel_scope.cancel()


def wallet(quote: Any) -> bytes:
    return bytes.fromhex(quote["wallet"][2:])


async def test_over_rest(tmp_path):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        pending = await d.confirm(quote["memo"])
        assert (pending.status_code, pending.headers["retry-after"]) == (409, "3")
        assert pending.headers["content-type"] == "application/problem+json"
        body = pending.json()
        assert (body["error"], body["type"]) == ("payment_pending", f"{BASE_URL}/problems/payment_pending")
        assert (body["confirmations"], body["required"]) == (0, 3)
        d.server.sees(paid(wallet(quote), 5))
        done = await d.confirm(quote["memo"])
        assert done.status_code == 200
        assert "no-store" in done.headers["cache-control"]
        token = done.json()["token"]
        balance = await d.rest.get("/api/payment/balance", headers={"Authorization": f"Bearer {token}"})
        assert (balance.status_code, balance.json()["credits"]) == (200, 250)
        assert balance.headers["x-credits-remaining"] == "250"
        assert "no-store" in balance.headers["cache-control"]
        assert "etag" not in balance.headers


async def test_over_mcp(tmp_path):
    async with doors(tmp_path) as d:
        quote = (await d.tell("payment_buy_credits", {"amount_usd": 5}))["structuredContent"]
        assert "_meta" not in quote
        claim = {"tx_hash": HEX, "nonce": quote["memo"]}
        pending = await d.tell("payment_confirm", claim)
        assert pending["isError"] is True
        assert "structuredContent" not in pending
        told = json.loads(pending["content"][0]["text"])
        assert (told["error"], told["required"], told["retry_after_seconds"]) == ("payment_pending", 3, 3)
        d.server.sees(paid(wallet(quote), 5))
        token = (await d.tell("payment_confirm", claim))["structuredContent"]["token"]
        balance = await d.tell("payment_balance", token=token)
        assert balance["structuredContent"]["credits"] == 250
        assert balance["structuredContent"]["_meta"] == {"credits_remaining": 250}
        assert balance["_meta"] == {"credits_remaining": 250}
        assert json.loads(balance["content"][0]["text"]) == balance["structuredContent"]


async def test_a_purchase_begun_at_one_door_may_be_finished_at_the_other(tmp_path):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        d.server.sees(paid(wallet(quote), 5))
        first = (await d.tell("payment_confirm", {"tx_hash": HEX, "nonce": quote["memo"]}))["structuredContent"]
        assert (await d.confirm(quote["memo"], HEX.upper().replace("0X", ""))).json() == first
        assert await d.desk.minted() == 250


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"tx_hash": "0x12", "nonce": "svc_buy_" + "0" * 32}, 400, "invalid_arguments"),
        ({"tx_hash": HEX, "nonce": "hello"}, 400, "invalid_arguments"),
        ({"tx_hash": HEX}, 400, "invalid_arguments"),
        ({"tx_hash": HEX, "nonce": "svc_buy_" + "0" * 32}, 404, "not_found"),
    ],
)
async def test_claims_that_are_none_over_rest(tmp_path, body, status, code):
    async with doors(tmp_path) as d:
        answer = await d.rest.post("/api/payment/confirm", json=body)
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert body.get("nonce", "") == "" or body["nonce"] not in answer.text


@pytest.mark.parametrize(
    "text", ['{"amount_usd": 1e309}', '{"amount_usd": NaN}', '{"amount_usd": -0}', '{"amount_usd": 1.0000001}', "{}"]
)
async def test_amounts_that_are_none_over_rest(tmp_path, text):
    async with doors(tmp_path) as d:
        headers = {"content-type": "application/json"}
        answer = await d.rest.post("/api/payment/buy-credits", content=text, headers=headers)
        assert answer.status_code == 400
        assert await d.desk.rows("SELECT * FROM purchase") == []


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer svc_live_0", "Basic x", f"Bearer svc_live_{'0' * 64}"])
async def test_a_balance_without_a_good_token_is_402(tmp_path, header):
    async with doors(tmp_path) as d:
        answer = await d.rest.get("/api/payment/balance", headers={"Authorization": header} if header else {})
        assert answer.status_code == 402
        assert set(answer.json()) == {"error", "signup", "pricing", "detail", "request_id"}
        assert answer.headers["x-service-pricing"] == answer.json()["signup"]


async def test_when_the_chain_cannot_be_read_rest_says_503(tmp_path):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        d.server.down = True
        answer = await d.confirm(quote["memo"])
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json()["error"] == "chain_unavailable"


async def test_the_desk_is_not_there_for_get(tmp_path):
    async with doors(tmp_path) as d:
        assert (await d.rest.get("/api/payment/buy-credits?amount_usd=5")).status_code == 405
        assert (await d.rest.get("/api/payment/confirm")).status_code == 405
