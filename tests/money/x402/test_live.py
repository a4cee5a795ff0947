"""The official clients pay on a local chain, through the official facilitator: what their users see."""

import json
from collections.abc import Iterator

import anyio
import anyio.to_thread
import httpx
import pytest
from eth_account import Account
from x402.http.clients import x402HttpxClient

from tests.cli.test_recover import recover_topup, sign
from tests.live.programs import CLIENTS, NODE, installed, told
from tests.money.x402.chain import PAYER_KEY, POOR_KEY, Pay, anvil, facilitating
from tests.money.x402.official import paid, running, signed, spent, wallet
from tests.money.x402.parts import PAYER, REPORT, TERMS, desk
from toolserver.clock import SystemClock
from toolserver.errors import ChainUnavailable, SettlementPending
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.units import USDC
from toolserver.money.x402 import wire
from toolserver.money.x402.chain_lookup import ChainLookup
from toolserver.money.x402.facilitator import Facilitator
from toolserver.money.x402.settlement import AuthorisationState, Handover

SINCE = Handover(0, 0.0)
pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pay]:
    """A chain and a facilitator, for all tests of this file."""
    with anvil() as chain, facilitating(chain.url, tmp_path_factory.mktemp("fees")) as url:
        yield Pay(chain, url)


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


async def test_a_top_up_that_a_restored_ledger_does_not_know_is_recovered_from_the_chain(tmp_path, pay):
    sold, restored = tmp_path / "sold", tmp_path / "restored"
    async with running(sold, pay) as s, x402HttpxClient(wallet(), base_url=s.url, timeout=30) as client:
        topup = await client.post("/api/payment/topup", json={"amount_usd": 1})
        call = await client.get("/api/pro/report")
    async with open_ledger(restored / FILE):
        pay.chain.mine(10)
    lost, spent_on_call = (bytes.fromhex(settled(answer)[2:]) for answer in (topup, call))

    asked = json.loads((await recover_topup(restored, pay.chain.url, lost, {})).stdout)
    proof = sign(Account.from_key(PAYER_KEY), asked["text"])
    done = json.loads((await recover_topup(restored, pay.chain.url, lost, {}, "--signature", proof)).stdout)
    refused = await recover_topup(restored, pay.chain.url, spent_on_call, {})

    assert (asked["credits"], asked["payers"]) == (50, checksum_address(PAYER))
    assert "payments for single calls do not count" in refused.stderr
    async with open_ledger(restored / FILE) as ledger:
        assert await ledger.balance(done["token"]) == 50


def settled(answer: httpx.Response) -> str:
    """The transaction of a payment."""
    assert answer.status_code == 200, answer.text
    return str(wire.unheader(answer.headers["payment-response"])["transaction"])


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
