"""Buying credits over REST and over MCP: the same purchase, the specification's bodies, the statuses of the table."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.arranged import FACTS, client_of
from tests.money.purchases.parts import TX, TX2, Desk, Server, paid
from tests.requirements import proves
from tests.tools.payment.test_tools import shop
from toolserver.money.purchases.quotes import challenge_of

HEX = f"0x{TX.hex()}"


@dataclass
class Doors:
    """Both faces of one shop."""

    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    desk: Desk
    server: Server
    transport: httpx.AsyncBaseTransport

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
    async with shop(folder) as s:
        app = s.engine.service.web_app()
        async with client_of(app) as client:
            yield Doors(client, client, s.desk, s.server, httpx.ASGITransport(app, client=("127.0.0.1", 1)))


def wallet(quote: Any) -> bytes:
    return bytes.fromhex(quote["wallet"][2:])


async def test_over_rest(tmp_path):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        pending = await d.confirm(quote["memo"])
        assert (pending.status_code, pending.headers["retry-after"]) == (409, "3")
        assert pending.headers["content-type"] == "application/problem+json"
        body = pending.json()
        assert (body["error"], body["type"]) == ("payment_pending", f"{FACTS.base_url}/problems/payment_pending")
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
        assert balance["structuredContent"]["_meta"] == {"credits_remaining": 250, "credits_charged": 0}
        assert balance["_meta"] == {"credits_remaining": 250, "credits_charged": 0}
        assert json.loads(balance["content"][0]["text"]) == balance["structuredContent"]


@proves("payment.faces")
async def test_a_purchase_begun_at_one_door_may_be_finished_at_the_other(tmp_path):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        d.server.sees(paid(wallet(quote), 5))
        first = (await d.tell("payment_confirm", {"tx_hash": HEX, "nonce": quote["memo"]}))["structuredContent"]
        assert (await d.confirm(quote["memo"], HEX.upper().replace("0X", ""))).json() == first
        assert await d.desk.minted() == 250


MEMO = "svc_buy_" + "0" * 32
NO_HASHES = ["", "0x", "0x12", HEX[:-1], HEX + "0", "0x" + HEX, HEX.replace("1", "g"), "0x" + "٠" * 64, " " * 66]
NO_MEMOS = ["", "hello", MEMO[:-1], MEMO + "0", MEMO.upper(), MEMO.replace("buy", "live"), f"{MEMO}\n"]
NO_TEXTS = [5, None, {}, [HEX]]


@pytest.mark.parametrize(
    ("tx_hash", "nonce", "wrong"),
    [(each, MEMO, "tx_hash") for each in NO_HASHES + NO_TEXTS] + [(HEX, each, "nonce") for each in NO_MEMOS + NO_TEXTS],
)
async def test_hashes_and_memos_that_are_none_over_rest(tmp_path, tx_hash, nonce, wrong):
    async with doors(tmp_path) as d:
        answer = await d.rest.post("/api/payment/confirm", json={"tx_hash": tx_hash, "nonce": nonce})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_arguments")
        assert answer.json()["errors"][0]["loc"] == wrong
        assert MEMO not in answer.text
        assert d.server.asked == 0


async def test_a_claim_without_its_arguments_names_them(tmp_path):
    async with doors(tmp_path) as d:
        answer = await d.rest.post("/api/payment/confirm", json={})
        assert answer.status_code == 400
        assert {each["loc"] for each in answer.json()["errors"]} == {"tx_hash", "nonce"}


async def no_match(d: Doors, quote: Any) -> dict[str, Any]:
    """Somebody else's payment, as an attacker sees it on the chain."""
    victim = await d.buy()
    d.server.sees(paid(wallet(victim), 5))
    return {}


async def their_memo(d: Doors, quote: Any) -> dict[str, Any]:
    """Somebody else's memo with a payment of one's own."""
    victim = await d.buy()
    d.server.sees(paid(wallet(quote), 5))
    return {"nonce": victim["memo"]}


async def their_memo_after_it_was_credited(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.sees(paid(wallet(quote), 5), paid(wallet(await d.buy()), 5, tx=TX2))
    await d.confirm(quote["memo"])
    return {"tx_hash": f"0x{TX2.hex()}"}


async def too_little(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.sees(paid(wallet(quote), 0.999999))
    return {}


async def on_a_fork(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.sees(paid(wallet(quote), 5, canonical=bytes(32)))
    return {}


async def young(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.sees(paid(wallet(quote), 5, latest=101))
    return {}


async def spent(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.sees(paid(wallet(quote), 5))
    token = (await d.confirm(quote["memo"])).json()["token"]
    await d.rest.get("/api/payment/balance", headers={"Authorization": f"Bearer {token}"})
    return {}


async def locked(d: Doors, quote: Any) -> dict[str, Any]:
    body = {"amount_usd": 5, "claim_challenge": challenge_of("v" * 43)}
    other = (await d.rest.post("/api/payment/buy-credits", json=body)).json()
    d.server.sees(paid(wallet(other), 5))
    return {"nonce": other["memo"], "claim_verifier": "w" * 43}


async def down(d: Doors, quote: Any) -> dict[str, Any]:
    d.server.down = True
    return {}


async def another_hash(d: Doors, quote: Any) -> dict[str, Any]:
    return {"tx_hash": "0x" + "zz" * 32}


async def another_memo(d: Doors, quote: Any) -> dict[str, Any]:
    return {"nonce": "svc_buy_" + "0" * 32}


PENDING = {"confirmations": 0, "required": 3, "retry_after_seconds": 3}
REFUSALS: dict[Any, tuple[int, str, dict[str, Any], str | None]] = {
    another_hash: (400, "invalid_arguments", {}, None),
    another_memo: (404, "not_found", {}, None),
    no_match: (409, "no_matching_transfer", {}, None),
    their_memo: (409, "no_matching_transfer", {}, None),
    their_memo_after_it_was_credited: (409, "already_credited", {}, None),
    too_little: (409, "below_minimum", {}, None),
    on_a_fork: (409, "payment_pending", PENDING, "3"),
    young: (409, "payment_pending", PENDING | {"confirmations": 1}, "3"),
    spent: (409, "already_credited", {}, None),
    locked: (409, "payer_proof_required", {}, None),
    down: (503, "chain_unavailable", {"retry_after_seconds": 10}, "10"),
}


@proves("purchase.refusals")
@pytest.mark.parametrize(
    ("arranged", "status", "code", "members", "retry_after"),
    [(arranged, *expected) for arranged, expected in REFUSALS.items()],
    ids=[arranged.__name__ for arranged in REFUSALS],
)
async def test_each_refusal_is_the_same_at_both_doors(tmp_path, arranged, status, code, members, retry_after):
    async with doors(tmp_path) as d:
        quote = await d.buy()
        claim = {"tx_hash": HEX, "nonce": quote["memo"]} | await arranged(d, quote)
        before = await d.desk.minted()
        answer = await d.rest.post("/api/payment/confirm", json=claim)
        told = json.loads((result := await d.tell("payment_confirm", claim))["content"][0]["text"])
        assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)
        assert answer.headers["content-type"] == "application/problem+json"
        for body in (answer.json(), told):
            assert (body["error"], body["status"]) == (code, status)
            assert body["type"] == f"{FACTS.base_url}/problems/{code}"
            assert {name: body.get(name) for name in members} == members
            assert body["detail"]
            assert claim["nonce"] not in json.dumps(body)
        assert result["isError"] is True
        assert await d.desk.minted() == before


async def test_text_that_cannot_be_encoded_is_an_argument_that_is_wrong(tmp_path):
    """Half of a surrogate pair: JSON can write it, UTF-8 cannot."""
    async with doors(tmp_path) as d:
        body = {"amount_usd": 5, "claim_challenge": challenge_of("v" * 43)}
        memo = (await d.rest.post("/api/payment/buy-credits", json=body)).json()["memo"]
        good = {"tx_hash": HEX, "nonce": memo, "claim_verifier": "v" * 43}
        for name in good:
            text = json.dumps(good | {name: "\ud800" * 43})
            headers = {"content-type": "application/json"}
            answer = await d.rest.post("/api/payment/confirm", content=text, headers=headers)
            assert (answer.status_code, name) == (400, name)


@pytest.mark.parametrize(
    "amount",
    ["1e309", "-1e309", "NaN", "Infinity", "-0", "0", "-5", "0.999999", "1.0000001", '"1e309"', "null", "true"],
)
async def test_amounts_that_are_none_over_rest(tmp_path, amount):
    async with doors(tmp_path) as d:
        headers = {"content-type": "application/json"}
        content = f'{{"amount_usd": {amount}}}'
        answer = await d.rest.post("/api/payment/buy-credits", content=content, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"] in ("invalid_arguments", "invalid_json")
        assert await d.desk.rows("SELECT * FROM purchase") == []


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer svc_live_0", "Basic x", f"Bearer svc_live_{'0' * 64}"])
async def test_a_balance_without_a_good_token_is_402(tmp_path, header):
    async with doors(tmp_path) as d:
        answer = await d.rest.get("/api/payment/balance", headers={"Authorization": header} if header else {})
        assert answer.status_code == 402
        assert set(answer.json()) == {"error", "signup", "pricing", "detail", "request_id"}
        assert answer.headers["x-service-pricing"] == answer.json()["signup"]


@proves("errors.chain_unavailable")
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
