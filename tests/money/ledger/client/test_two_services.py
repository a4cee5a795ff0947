"""Two services and one ledger in this process: bought at A, spent at B; B while A is away; nobody is charged twice."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest
from pydantic import SecretStr

from tests.arranged import client_of
from tests.calls.parts import engine
from tests.calls.toy import FIRST, SECOND, number, premium_report
from tests.money.ledger.client.test_ledger import DOWN, Line, forget
from tests.money.ledger.ledgers import FOLLOWED, FOLLOWS, token
from tests.money.purchases.parts import TX, paid
from tests.money.purchases.test_faces import Doors, doors
from tests.requirements import proves
from tools.payment.balance import payment_balance
from tools.payment.buy_credits import payment_buy_credits
from tools.payment.confirm import payment_confirm
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.core.metrics import Metrics
from toolserver.errors import NotFound, PaymentRequired
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.client.ledger import HttpLedger, open_ledger_client
from toolserver.money.ledger.client.messages import COMMIT
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.purchases.credit_sales import Balance
from toolserver.money.purchases.remote import open_remote_sales
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.registry.registry import Registry, operation_of
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import MoneyParts

B_URL = "https://b.example"
REGISTRY = Registry(
    [operation_of(f) for f in (number, premium_report, payment_buy_credits, payment_confirm, payment_balance)]
)


def sold_at(url):
    return FOLLOWS.model_copy(update={"public_url": url})


@dataclass
class Two:
    """A, which has the books, and B, which follows."""

    a: Doors
    line: Line
    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    ledger: HttpLedger
    evidence: ReceiptService
    internet: Any
    metrics: Metrics

    @property
    def clock(self):
        return self.a.desk.clock

    async def buy(self, token, **headers):
        return await self.rest.get("/api/pro/report", headers={"authorization": f"Bearer {token}", **headers})

    async def token(self, door):
        """A token bought through a door of A or B."""
        quote = (await door.post("/api/payment/buy-credits", json={"amount_usd": 5})).json()
        self.a.server.sees(paid(bytes.fromhex(quote["wallet"][2:]), 5))
        claim = {"tx_hash": f"0x{TX.hex()}", "nonce": quote["memo"]}
        answer = await door.post("/api/payment/confirm", json=claim)
        assert answer.status_code == 200, answer.text
        return answer.json()["token"]

    async def receipt(self, answer, token):
        found = await self.evidence.receipt(answer.headers["x-service-receipt-id"], token)
        return found["receipt"]

    async def quiet(self):
        """Everything that is owed to the owner was sent."""
        with anyio.fail_after(10):
            while (await self.ledger.journal.waiting()).size:
                self.ledger.outbox.wake()
                await anyio.sleep(0.01)


@asynccontextmanager
async def two(folder, *, follows=FOLLOWS, late_s=0):
    """B's sales desk is A's own REST face. B's clock is late by `late_s`."""
    async with doors(folder) as a:
        clock = ManualClock(a.desk.clock.now() - timedelta(seconds=late_s)) if late_s else a.desk.clock
        line = Line(internal_app(a.desk.ledger, FOLLOWED, a.desk.clock))
        async with (
            open_ledger_client(follows, folder / "b" / "ledger.sqlite3", clock, transport=line) as ledger,
            open_remote_sales(sold_at("https://a.example"), ledger, transport=a.transport) as sales,
        ):
            evidence = ReceiptService(
                SqlReceiptStore(ledger.file), folder / "b", clock=clock, issuer=Issuer(B_URL, "b.example")
            )
            idempotency = Idempotency(SqlIdempotencyStore(ledger.file, clock))
            money = MoneyParts(
                followed=ledger,
                idempotency=idempotency,
                payments=sales,
                statements=sales.statements,
                evidence=evidence,
            )
            facts = SiteFacts(B_URL, "b.example")
            async with (
                engine(REGISTRY, clock=clock, money=money, facts=facts, data_dir=folder / "b") as e,
                client_of(e.service.web_app(), B_URL) as client,
            ):
                for source in (FIRST, SECOND):
                    e.internet.serves(source, {"value": 1})
                yield Two(a, line, client, client, ledger, evidence, e.internet, e.service.metrics)


@proves("auth.shared")
async def test_a_token_bought_at_the_owner_works_at_the_follower(tmp_path):
    async with two(tmp_path) as s:
        token = await s.token(s.a.rest)
        for left in (248, 246):  # composed for the call, then at hand
            answer = await s.buy(token)
            assert (answer.status_code, answer.headers["x-credits-remaining"]) == (200, str(left))
            receipt = await s.receipt(answer, token)
            assert (receipt["credits_charged"], receipt["balance_after"]) == (2, left)
        assert await s.a.desk.ledger.balance(token) == 246


async def test_credits_are_sold_at_the_follower_too_over_rest_and_mcp(tmp_path):
    async with two(tmp_path) as s:
        token = await s.token(s.rest)
        told = await s.rest.get("/api/payment/balance", headers={"authorization": f"Bearer {token}"})
        assert (told.status_code, told.json()["credits"]) == (200, 250)
        assert (await s.buy(token)).status_code == 200
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "payment_balance"}}
        over_mcp = await s.mcp.post("/api/mcp?toolset=all", json=message, headers={"authorization": f"Bearer {token}"})
        assert over_mcp.json()["result"]["structuredContent"]["credits"] == 248
        pending = await s.rest.post("/api/payment/confirm", json={"tx_hash": f"0x{TX.hex()}", "nonce": "memo"})
        there = await s.a.rest.post("/api/payment/confirm", json={"tx_hash": f"0x{TX.hex()}", "nonce": "memo"})
        same = ("error", "status", "detail", "errors")
        assert pending.status_code == there.status_code
        assert [pending.json().get(name) for name in same] == [there.json().get(name) for name in same]


@proves("payment-error.billing_unavailable", "errors.billing-retry")
async def test_while_the_ledger_is_away_calls_are_refused_and_then_served_again(tmp_path):
    async with two(tmp_path) as s:
        token = await s.token(s.a.rest)
        s.line.down = DOWN
        for _ in range(6):
            answer = await s.buy(token)
            assert (answer.status_code, answer.json()["error"]) == (402, "billing_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        assert s.ledger.health.state == "open"
        assert (await s.rest.get("/api/number")).status_code == 200
        s.line.down = None
        s.clock.advance(int(answer.headers["retry-after"]) + 1)
        with anyio.fail_after(10):
            while s.ledger.health.state != "closed":  # noqa: ASYNC110
                await anyio.sleep(0.02)
        assert (await s.buy(token)).status_code == 200
        await s.quiet()
        assert await s.a.desk.ledger.balance(token) == 248


async def test_an_answer_whose_charge_is_not_acknowledged_is_free_and_its_receipt_says_so(tmp_path):
    async with two(tmp_path) as s:
        token = await s.token(s.a.rest)
        s.line.lost = [COMMIT, COMMIT]
        answer = await s.buy(token)
        assert answer.status_code == 200
        receipt = await s.receipt(answer, token)
        assert (receipt["credits_charged"], receipt["settlement"]) == (0, "pending")
        s.clock.advance(1)
        await s.quiet()
        assert await s.a.desk.ledger.balance(token) == 250


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_call_repeated_with_its_key_is_charged_once_at_most(tmp_path, lost):
    async with two(tmp_path) as s:
        token = await s.token(s.a.rest)
        s.line.lost = [COMMIT] * lost
        answers = [await s.buy(token, **{"idempotency-key": "k"}) for _ in range(3)]
        assert len({answer.content for answer in answers}) == 1
        s.clock.advance(1)
        await s.quiet()
        receipt = await s.receipt(answers[0], token)
        assert await s.a.desk.ledger.balance(token) == 250 - receipt["credits_charged"]
        assert receipt["credits_charged"] == (2 if lost == 1 else 0)


async def test_a_revoked_token_is_refused_by_both(tmp_path):
    async with two(tmp_path) as s:
        token = await s.token(s.a.rest)
        await s.a.desk.ledger.revoke((await s.a.desk.ledger.standing(token)).fingerprint, "leaked")
        answer = await s.buy(token)
        assert (answer.status_code, answer.json()["error"]) == (402, "expired")


async def test_the_warning_of_a_low_balance_knows_the_allowances_of_the_owner(tmp_path):
    async with two(tmp_path) as s, open_remote_sales(FOLLOWS, s.ledger) as unsold:
        parent, child = await s.token(s.a.rest), token(9)
        await s.a.desk.ledger.create_allowance(parent, token_hash(child).hex(), AllowanceTerms("helper", 5))
        bearer = {"authorization": f"Bearer {child}"}
        for door in (s.a.rest, s.rest):
            told = (await door.get("/api/payment/balance", headers=bearer)).json()
            assert told["credits"] == 5
            assert "this is an allowance: the owner of its token can top that up" in json.dumps(told)
        assert (await unsold.balance(child)).is_allowance


async def test_where_nothing_is_sold_balances_are_told_all_the_same(tmp_path):
    async with two(tmp_path) as s, open_remote_sales(FOLLOWS, s.ledger) as sales:
        token = await s.token(s.a.rest)
        assert await sales.balance(token) == Balance(250, s.clock.now())
        with pytest.raises(NotFound):
            await sales.quote(5)
        with pytest.raises(PaymentRequired):
            await sales.balance("svc_live_" + "0" * 64)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"follows": FOLLOWS.model_copy(update={"secret": SecretStr("x" * 32)})}, 401),
        ({"follows": FOLLOWS.model_copy(update={"service": "other"})}, 403),
        ({"late_s": 600}, 401),
        ({"late_s": -600}, 401),
    ],
)
async def test_a_follower_whose_requests_are_rejected_says_everywhere_that_it_sells_nothing(tmp_path, fault, status):
    async with two(tmp_path, **fault) as s:
        await s.ledger.owner.check()  # nobody has called yet
        assert (await s.buy(token(1))).json()["error"] == "billing_unavailable"
        ready = (await s.rest.get("/readyz")).json()
        assert (ready["ready"], ready["degraded"]) == (True, ["ledger"])
        said = (await s.rest.get("/status.json")).json()
        assert said["status"] == "degraded"
        assert (said["ledger"]["up"], said["ledger"]["rejected"]) == (False, status)
        page = (await s.rest.get("/status")).text
        assert "a sister service keeps it and rejects our requests: nothing is sold" in page
        assert "toolserver_ledger_rejected 1.0" in s.metrics.text().decode()


async def test_a_follower_that_sells_again_says_so_by_itself(tmp_path):
    async with two(tmp_path) as s:
        s.line.planned = [httpx.Response(401)]
        await s.ledger.owner.check()
        assert (await s.rest.get("/readyz")).json()["degraded"] == ["ledger"]
        await s.ledger.owner.check()
        assert (await s.rest.get("/readyz")).json()["degraded"] == []
        said = (await s.rest.get("/status.json")).json()
        assert (said["status"], said["ledger"]["up"], said["ledger"]["rejected"]) == ("ok", True, None)
        assert "toolserver_ledger_rejected 0.0" in s.metrics.text().decode()


async def test_a_reservation_that_the_owner_has_forgotten_is_billing_unavailable_without_a_traceback(tmp_path, caplog):
    async with two(tmp_path) as s:
        token = await s.token(s.rest)

        async def forget_at_commit(request):
            is_commit = request.url.path == COMMIT
            return await forget(request) if is_commit else await s.line.inner.handle_async_request(request)

        s.line.planned = [forget_at_commit] * 9
        answer = await s.buy(token)
        assert answer.json()["error"] == "billing_unavailable"
        assert s.line.asked.count(COMMIT) == 1
    assert [record for record in caplog.records if record.exc_info] == []
