"""The official clients pay on a local chain, through the official facilitator: what their users see."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import PaymentRequired

from tests.live.programs import CLIENTS, NODE, installed, told
from tests.purchases.anvil import called
from tests.x402.chain import PAYER_KEY, POOR_KEY, Pay, anvil, facilitating
from tests.x402.parts import PAY_TO, PAYER, REPORT, TERMS, desk
from tests.x402.service import Doors, doors
from toolserver.clock import SystemClock
from toolserver.errors import ChainUnavailable, SettlementPending
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.units import USDC
from toolserver.server.listen import address_of, bind_socket, serve
from toolserver.settings import Settings
from toolserver.x402 import wire
from toolserver.x402.chain_lookup import ChainLookup
from toolserver.x402.facilitator import Facilitator
from toolserver.x402.settlement import AuthorisationState, Handover

SINCE = Handover(0, 0.0)
pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pay]:
    """A chain and a facilitator, for all tests of this file."""
    with anvil() as chain, facilitating(chain.url, tmp_path_factory.mktemp("fees")) as url:
        yield Pay(chain, url)


def wallet(key: str = PAYER_KEY) -> x402Client:
    """The official client's wallet."""
    client = x402Client()
    register_exact_evm_client(client, Account.from_key(key), networks="eip155:8453")
    return client


async def signed(offer: dict[str, Any], key: str = PAYER_KEY) -> dict[str, Any]:
    """What the official client signs for an offer."""
    found = await wallet(key).create_payment_payload(PaymentRequired.model_validate(offer))
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def paid(pay: Pay) -> int:
    return pay.chain.balance(PAY_TO)


class Deaf(httpx.AsyncHTTPTransport):
    """The way to a facilitator on which every settlement is made and no answer to it comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.deaf = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if self.deaf and request.url.path.endswith("/settle"):
            await answer.aread()
            await answer.aclose()
            raise httpx.ReadTimeout("arranged")
        return answer


@dataclass
class Running:
    """A service on a port."""

    url: str
    doors: Doors


def with_lifespan(face: Any) -> Any:
    """The face as a whole application, which starts and stops with its server."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await face(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return app


@asynccontextmanager
async def running(folder: Path, pay: Pay, **parts: Any) -> AsyncIterator[Running]:
    """A service that takes payments, on a port of its own."""
    sock, stop = bind_socket("127.0.0.1", 0), anyio.Event()
    url = address_of(sock, "127.0.0.1")
    facilitator, terms = Facilitator(pay.url), replace(TERMS, base_url=url)
    async with (
        doors(folder, facilitator=facilitator, terms=terms, **({"clock": SystemClock()} | parts)) as d,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(lambda: serve(with_lifespan(d.face), sock, Settings(), stop=stop))
        yield Running(url, d)
        stop.set()


# --- official clients ---


async def test_the_official_python_client_pays_for_a_call_and_a_top_up(tmp_path, pay):
    async with running(tmp_path, pay) as s, x402HttpxClient(wallet(), base_url=s.url, timeout=30) as client:
        before = paid(pay)
        call = await client.get("/api/pro/report")

        assert call.status_code == 200, call.text
        settlement = wire.unheader(call.headers["payment-response"])
        assert pay.chain.receipt(settlement["transaction"])["status"] == "0x1"
        assert settlement["payer"] == checksum_address(PAYER)
        assert paid(pay) - before == REPORT
        verdict = await s.doors.desk.evidence.verify(call.headers["x-service-receipt"])
        assert (verdict["valid"], verdict["core"]["credits_charged"]) == (True, 2)

        bought = await client.post("/api/payment/topup", json={"amount_usd": 1})
        assert bought.status_code == 200, bought.text
        assert bought.json()["credits"] == 50
        assert paid(pay) - before == REPORT + 1_000_000
        bearer = {"authorization": f"Bearer {bought.json()['token']}"}
        again = await client.get("/api/pro/report", headers=bearer)
        assert (again.status_code, again.headers["x-credits-remaining"]) == (200, "48")
        more = await client.post("/api/payment/topup", json={"amount_usd": 1}, headers=bearer)
        assert more.json()["token"] == bought.json()["token"]
        balance = await client.get("/api/payment/balance", headers=bearer)
        assert balance.json()["credits"] == 98


async def test_the_official_typescript_client_pays_for_a_call_and_a_top_up(tmp_path, pay):
    installed(NODE, CLIENTS / "node_modules" / "@x402" / "fetch")
    before = paid(pay)
    async with running(tmp_path, pay) as s:
        found = await anyio.to_thread.run_sync(lambda: told(NODE, "x402.mjs", s.url, PAYER_KEY, timeout=30))

        assert (found["call"]["status"], found["topup"]["status"]) == (200, 200), found
        assert found["call"]["body"]["notes"] == {"history": "30d"}
        assert found["call"]["response"]["success"] is True
        assert (await s.doors.desk.evidence.verify(found["call"]["receipt"]))["valid"]
        assert found["topup"]["response"]["transaction"] == found["topup"]["body"]["transaction"]
        assert await s.doors.desk.ledger.balance(found["topup"]["body"]["token"]) == 50
        assert paid(pay) - before == REPORT + 1_000_000


class LaterClock(SystemClock):
    """The clock of this machine, set forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


async def paid_by_python(s: "Running", pay: Pay) -> dict[str, Any]:
    """A call and a top-up by the official Python client; the bodies, and the payments that were sent."""
    sent: list[str] = []

    class Noting(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if "payment-signature" in request.headers:
                sent.append(request.headers["payment-signature"])
            return await super().handle_async_request(request)

    paying = x402AsyncTransport(wallet(), transport=Noting())
    async with httpx.AsyncClient(transport=paying, base_url=s.url, timeout=30) as client:
        call = await client.get("/api/pro/report?history=30d")
        topup = await client.post("/api/payment/topup", json={"amount_usd": 1})
    assert len(sent) == 2
    return {
        "call": {"body": call.json(), "payment": sent[0], "receipt": call.headers["x-service-receipt"]},
        "topup": {"body": topup.json(), "payment": sent[1]},
    }


async def paid_by_typescript(s: "Running", pay: Pay) -> dict[str, Any]:
    """The same by the official TypeScript client."""
    installed(NODE, CLIENTS / "node_modules" / "@x402" / "fetch")
    return await anyio.to_thread.run_sync(lambda: told(NODE, "x402.mjs", s.url, PAYER_KEY, timeout=30))


@pytest.mark.parametrize("client", [paid_by_python, paid_by_typescript])
async def test_what_an_official_client_paid_for_is_known_when_it_is_sent_again(tmp_path, pay, client):
    """After 1 s, 3 minutes, an hour, each time after a restart: one payment, one credit, no second offer."""
    clock = LaterClock()
    before = paid(pay)
    async with running(tmp_path, pay, clock=clock) as s:
        found = await client(s, pay)
    assert paid(pay) - before == REPORT + 1_000_000
    call, topup = found["call"], found["topup"]
    path, body = "/api/pro/report?history=30d", {"amount_usd": 1}
    for ahead_s, is_answered in ((1, True), (180, True), (3600, False), (100_000, False)):
        clock.ahead_s = ahead_s
        async with running(tmp_path, pay, clock=clock) as s, httpx.AsyncClient(base_url=s.url, timeout=30) as again:
            answer = await again.get(path, headers={"payment-signature": call["payment"]})
            assert "payment-required" not in answer.headers
            if is_answered:
                assert (answer.status_code, answer.json()) == (200, call["body"])
                assert answer.headers["x-service-receipt"] == call["receipt"]
            else:
                assert (answer.status_code, answer.json()["error"]) == (409, "payment_used")
            stranger = await again.post(
                "/api/payment/topup", json=body, headers={"payment-signature": topup["payment"]}
            )
            assert (stranger.status_code, stranger.json()["error"]) == (409, "payer_proof_required")
            assert "was used for 50 credits" in stranger.json()["detail"]
            assert "payment-required" not in stranger.headers
            assert topup["body"]["token"] not in stranger.text
            assert await s.doors.desk.minted() == 50
    assert paid(pay) - before == REPORT + 1_000_000


async def test_a_payment_by_the_official_client_over_mcp(tmp_path, pay):
    async with running(tmp_path, pay) as s:
        unpaid = await s.doors.tell("premium_report")
        before = paid(pay)
        result = await s.doors.tell("premium_report", **{wire.META_PAYMENT: await signed(unpaid["structuredContent"])})

        assert result.get("isError") is False, result
        settlement = result["_meta"][wire.META_RESPONSE]
        assert (settlement["success"], paid(pay) - before) == (True, REPORT)
        assert result["_meta"]["receipt"]


async def test_a_wallet_without_money_is_refused_and_nothing_runs(tmp_path, pay):
    async with running(tmp_path, pay) as s, x402HttpxClient(wallet(POOR_KEY), base_url=s.url, timeout=30) as client:
        answer = await client.get("/api/pro/report")

        assert answer.status_code == 402
        assert answer.json()["error"] == "payment_required"
        assert wire.unheader(answer.headers["payment-response"])["success"] is False
        assert s.doors.desk.engine.internet.asked == []


# --- what the chain says ---


async def test_a_settlement_nobody_heard_of_is_found_on_the_chain(tmp_path, pay):
    transport, lookup = Deaf(), ChainLookup([pay.chain.url])
    facilitator = Facilitator(pay.url, transport=transport)
    async with desk(tmp_path, clock=SystemClock(), facilitator=facilitator) as d:
        offer = d.topups.offer(1_000_000).required("x")
        payment, before = wire.header(await signed(offer)), paid(pay)
        with pytest.raises(SettlementPending):
            await d.topup(payment, 1, key="a-long-idempotency-key")
        d.settling._lookup = lookup
        bought = await d.topup(payment, 1, key="a-long-idempotency-key")

        assert (await d.ledger.balance(bought.token), await d.minted()) == (50, 50)
        assert paid(pay) - before == 1_000_000
        assert pay.chain.receipt(f"0x{bought.tx.hex()}")["status"] == "0x1"
    await lookup.aclose()


async def test_the_chain_says_paid_void_or_unused(pay):
    lookup = ChainLookup(["http://127.0.0.1:1", pay.chain.url])
    offer = {"x402Version": 2, "accepts": [TERMS.requirement(REPORT)], "resource": TERMS.resource("/x", "x")}
    payment = wire.read_payment(wire.header(await signed(offer)))
    unused = await lookup(payment, SINCE)
    assert unused is not None
    assert (unused.state, unused.tx) == ("unused", None)
    assert unused.at > 1_700_000_000
    pay.chain.send(PAYER, USDC, spent(payment))
    seen = await lookup(payment, SINCE)
    assert seen is not None
    assert seen.state == "paid"
    assert await lookup(payment._replace(amount=REPORT + 1), SINCE) == AuthorisationState("void")
    assert await lookup(payment._replace(payee=PAYER), SINCE) == AuthorisationState("void")
    await lookup.aclose()


def spent(payment: wire.Payment) -> bytes:
    """The call that uses an authorisation, which anybody may send."""
    name = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
    signature = payment.signature
    times = (payment.valid_after, payment.valid_before)
    parts = (signature[64], signature[:32], signature[32:64])
    return called(name, payment.payer, payment.payee, payment.amount, *times, payment.nonce, *parts)


async def test_the_local_facilitator_refuses_what_is_no_payment(pay):
    async with httpx.AsyncClient(base_url=pay.url, timeout=10) as client:
        for path, body in [("/verify", b"{}"), ("/settle", b"nonsense"), ("/verify", b"[" * 60_000), ("/settle", b"1")]:
            assert (await client.post(path, content=body)).status_code == 400
        assert (await client.post("/settle", content=b" " * 70_000)).status_code == 400
        assert (await client.get("/verify")).status_code == 404
        kinds = (await client.get("/supported")).json()["kinds"]
        assert [(kind["scheme"], kind["network"]) for kind in kinds] == [("exact", "eip155:8453")]
    with anyio.fail_after(5):
        facilitator = Facilitator(pay.url)
        assert await facilitator.supported()
        await facilitator.aclose()


async def test_a_facilitator_that_is_gone_takes_nothing(tmp_path):
    async with desk(tmp_path, clock=SystemClock(), facilitator=Facilitator("http://127.0.0.1:1")) as d:
        payment = wire.header(await signed(d.topups.offer(1_000_000).required("x")))
        with pytest.raises(ChainUnavailable):
            await d.topup(payment, 1)
        assert await d.states() == []
