"""The three tools as callers meet them: arguments, answers, errors, limits, and no secret in the wrong place."""

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.calls.parts import Engine, engine
from tests.json_schemas import prepare
from tests.money.purchases.parts import TX, Desk, Server, desk, paid
from tests.requirements import proves
from tools.account.reissue_cancel import reissue_cancel
from tools.payment.balance import payment_balance
from tools.payment.buy_credits import payment_buy_credits
from tools.payment.confirm import payment_confirm
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.calls.pipeline import Outcome, Pipeline
from toolserver.core.caller import Caller, token_hash
from toolserver.errors import CallRejected, InvalidArguments, NotFound, PaymentRequired, RateLimited
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.credit_sales import ChainServers
from toolserver.money.purchases.reissues import ReissueDraft
from toolserver.money.purchases.service import PurchaseService
from toolserver.money.purchases.sql_refunds import SqlReissues
from toolserver.money.receipts.service import AccountStatements
from toolserver.registry.registry import Registry, operation_of
from toolserver.registry.response_schema import answer_schema
from toolserver.serving.money import MoneyParts

SOLD = (payment_buy_credits, payment_confirm, payment_balance, reissue_cancel)
REGISTRY = Registry([operation_of(f) for f in SOLD])
ARGUMENTS = {"tx_hash": f"0x{TX.hex()}"}


@dataclass
class Shop:
    """A service that sells credits."""

    engine: Engine
    desk: Desk
    server: Server

    @property
    def pipeline(self) -> Pipeline:
        return self.engine.pipeline

    async def call(self, name: str, arguments: Any = None, **caller: Any) -> Any:
        found: Outcome = await self.pipeline.call(
            self.engine.registry[name], arguments or {}, Caller(**({"client": "192.0.2.1"} | caller))
        )
        answer = json.loads(found.rendered.payload)
        prepare(answer_schema(self.engine.registry[name], full=True)).validate(answer)
        return answer


async def nothing() -> None:
    """The chain is ready."""


@asynccontextmanager
async def shop(
    folder: Path, *, limits: bool = False, closed: bool = False, registry: Registry = REGISTRY
) -> AsyncIterator[Shop]:
    server = Server()
    async with desk(folder, [server]) as d:
        money = money_of(d, closed=closed)
        async with engine(registry, clock=d.clock, money=money, limits=limits, data_dir=folder) as e:
            yield Shop(e, d, server)


def money_of(d: Desk, *, closed: bool = False) -> MoneyParts:
    """The money parts of a service that sells credits at a desk, or none where it is closed."""
    reissues = SqlReissues(d.ledger.file, d.clock)
    parts: dict[str, Any] = {"quotes": d.quotes, "confirmations": d.confirmations, "ready": nothing, "search": None}
    parts["count_servers"] = lambda: ChainServers(1, 1)
    cashier = PurchaseService(d.ledger, **parts, open_reissues=lambda: reissues)
    idempotency = Idempotency(SqlIdempotencyStore(d.ledger.file, d.clock))
    return MoneyParts(
        own=d.ledger,
        idempotency=idempotency,
        payments=ClosedPurchases(d.ledger) if closed else cashier,
        statements=AccountStatements(d.ledger, None),
    )


async def bought(s: Shop, usd: float = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    quote = await s.call("payment_buy_credits", {"amount_usd": usd})
    s.server.sees(paid(bytes.fromhex(quote["wallet"][2:]), usd))
    return quote, await s.call("payment_confirm", {**ARGUMENTS, "nonce": quote["memo"]})


@proves("purchase.quote", "balance.answer", "quote.additions")
async def test_credits_are_bought_in_three_calls(tmp_path):
    async with shop(tmp_path) as s:
        quote, token = await bought(s)
        assert list(quote)[:4] == ["wallet", "memo", "quote", "expires_at"]
        assert quote["quote"] == {"amount_usd": 5.0, "credits": 250, "chain": "base"}
        assert quote["expires_at"] == "2027-01-15T08:30:00Z"
        assert (quote["network"], quote["amount_atomic"]) == ("eip155:8453", 5_000_000)
        assert quote["token_contract"] == "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
        assert {name: token[name] for name in token if name != "next"} == {
            "token": token["token"],
            "credits": 250,
            "late": False,
        }
        balance = await s.call("payment_balance", token=token["token"])
        assert balance == {"credits": 250, "issued_at": "2027-01-15T08:00:00Z", "reissue_at": None}


@proves("tokens.reissue-objection")
async def test_the_holder_of_a_token_sees_that_it_will_be_replaced_and_keeps_it(tmp_path):
    async with shop(tmp_path) as s:
        _, token = await bought(s)
        reissues = SqlReissues(s.desk.ledger.file, s.desk.clock)
        lost = token_hash(token["token"]).hex()
        await reissues.add(ReissueDraft("ri_1", lost, bytes(20), s.desk.ledger.now()))
        assert (await s.call("reissue_cancel", token=token["token"]))["cancelled"] is False
        await reissues.prove("ri_1")
        balance = await s.call("payment_balance", token=token["token"])
        assert balance["reissue_at"] == "2027-01-17T08:00:00Z"
        assert (await s.call("reissue_cancel", token=token["token"]))["cancelled"] is True
        assert (await s.call("payment_balance", token=token["token"]))["reissue_at"] is None
        assert (await reissues.find("ri_1")).state == "cancelled"


async def test_a_balance_is_what_is_left_to_spend(tmp_path):
    async with shop(tmp_path) as s:
        _, token = await bought(s)
        await s.desk.ledger.charge("call_1", token["token"], 2, endpoint="/api/pro/x")
        await s.desk.ledger.reserve("call_2", token["token"], 3, endpoint="/api/pro/x", ttl_s=60)
        assert (await s.call("payment_balance", token=token["token"]))["credits"] == 245


@pytest.mark.parametrize(("left", "low"), [(10, False), (9, True), (0, True)])
async def test_a_balance_warns_when_it_covers_fewer_than_five_calls(tmp_path, left, low):
    async with shop(tmp_path) as s:
        _, token = await bought(s)
        await s.desk.ledger.charge("call_1", token["token"], 250 - left, endpoint="/api/pro/x")
        balance = await s.call("payment_balance", token=token["token"])
    assert balance["credits"] == left
    assert [(w["section"], w["code"]) for w in balance.get("warning", [])] == [("credits", "low_balance")] * low
    assert all("payment_topup with this token" in w["message"] for w in balance.get("warning", []))


async def test_a_low_balance_sends_an_allowance_to_the_owner_of_its_token(tmp_path):
    child = f"svc_live_{77:064x}"
    async with shop(tmp_path) as s:
        _, token = await bought(s)
        terms = AllowanceTerms("child", 9)
        await s.desk.ledger.create_allowance(token["token"], token_hash(child).hex(), terms)
        (warning,) = (await s.call("payment_balance", token=child))["warning"]
    assert "the owner of its token" in warning["message"]
    assert "payment_topup" not in warning["message"]


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "missing_token"),
        ("svc_live_", "invalid_token"),
        ("svc_live_" + "G" * 64, "invalid_token"),
        ("svc_live_" + "0" * 64, "invalid_token"),
    ],
)
async def test_a_balance_needs_a_token_that_is_known(tmp_path, token, code):
    async with shop(tmp_path) as s:
        with pytest.raises(PaymentRequired) as refused:
            await s.call("payment_balance", token=token)
        assert refused.value.code == code


async def test_a_revoked_token_has_no_balance(tmp_path):
    async with shop(tmp_path) as s:
        _, token = await bought(s)
        standing = await s.desk.ledger.standing(token["token"])
        await s.desk.ledger.revoke(standing.fingerprint, "stolen")
        with pytest.raises(PaymentRequired) as refused:
            await s.call("payment_balance", token=token["token"])
        assert refused.value.code == "expired"


WRONG = [
    0,
    0.99,
    -1,
    1.0000001,
    1_000_001,
    float("inf"),
    float("nan"),
    10**400,
    "5 USD",
    "1e309",
    "NaN",
    True,
    None,
    [5],
]


@proves("purchase.request")
@pytest.mark.parametrize("amount", WRONG, ids=[str(each)[:12] for each in WRONG])
async def test_an_amount_that_is_none_is_refused_before_anything_happens(tmp_path, amount):
    async with shop(tmp_path) as s:
        with pytest.raises(InvalidArguments) as refused:
            await s.call("payment_buy_credits", {"amount_usd": amount})
        assert refused.value.extra["errors"][0]["loc"] == "amount_usd"
        assert await s.desk.rows("SELECT * FROM purchase") == []


@pytest.mark.parametrize(
    ("amount", "atomic"), [(1, 10**6), (1.1 + 2.2, None), ("12.5", 12_500_000), (19.99, 19_990_000)]
)
async def test_an_amount_is_taken_to_the_last_decimal(tmp_path, amount, atomic):
    async with shop(tmp_path) as s:
        if atomic is None:  # 3.3000000000000003
            with pytest.raises(InvalidArguments):
                await s.call("payment_buy_credits", {"amount_usd": amount})
        else:
            quote = await s.call("payment_buy_credits", {"amount_usd": amount})
            assert quote["amount_atomic"] == atomic
            assert f"uint256={atomic}" in quote["payment_uri"]


@proves("purchase.claim")
async def test_confirm_needs_both_arguments(tmp_path):
    async with shop(tmp_path) as s:
        for given in ({}, ARGUMENTS, {"nonce": "svc_buy_" + "0" * 32}, {"tx_hash": 5, "nonce": 6}):
            with pytest.raises(InvalidArguments):
                await s.call("payment_confirm", given)


@pytest.mark.parametrize("name", ["payment_buy_credits", "payment_confirm"])
async def test_where_nothing_is_sold_that_is_what_is_said(tmp_path, name):
    arguments = {"amount_usd": 5} if name == "payment_buy_credits" else {**ARGUMENTS, "nonce": "svc_buy_" + "0" * 32}
    async with shop(tmp_path, closed=True) as s:
        with pytest.raises(NotFound, match="sells no credits"):
            await s.call(name, arguments)


async def test_where_nothing_is_sold_balances_are_told(tmp_path):
    async with shop(tmp_path) as s:
        _, token = await bought(s)
    async with shop(tmp_path, closed=True) as s:
        assert (await s.call("payment_balance", token=token["token"]))["credits"] == 250


# --- limits


async def refusal(s: Shop, name: str, arguments: Any = None, **caller: Any) -> RateLimited | None:
    try:
        await s.call(name, arguments, **caller)
    except RateLimited as limited:
        return limited
    except CallRejected:
        pass
    return None


async def test_ten_quotes_a_minute_for_each_client(tmp_path):
    async with shop(tmp_path, limits=True) as s:
        assert [await refusal(s, "payment_buy_credits", {"amount_usd": 5}) for _ in range(10)] == [None] * 10
        limited = await refusal(s, "payment_buy_credits", {"amount_usd": 5})
        assert limited.extra["limit"] == "payment_buy_credits"
        assert 1 <= limited.extra["retry_after_seconds"] <= 6
        assert limited.headers["Retry-After"] == str(limited.extra["retry_after_seconds"])
        assert await refusal(s, "payment_buy_credits", {"amount_usd": 5}, client="192.0.2.2") is None
        s.desk.clock.advance(7)
        assert await refusal(s, "payment_buy_credits", {"amount_usd": 5}) is None


@proves("limits.payments")
async def test_sixty_calls_a_minute_over_all_payment_tools(tmp_path):
    async with shop(tmp_path, limits=True) as s:
        nonce = {**ARGUMENTS, "nonce": "svc_buy_" + "0" * 32}
        assert [await refusal(s, "payment_confirm", nonce) for _ in range(60)] == [None] * 60
        assert (await refusal(s, "payment_confirm", nonce)).extra["limit"] == "personal"
        assert (await refusal(s, "payment_buy_credits", {"amount_usd": 5})).extra["limit"] == "personal"


async def test_two_hundred_quotes_may_be_open_for_each_client(tmp_path):
    async with shop(tmp_path, limits=True) as s:
        open_ = 0
        for _ in range(300):
            if await refusal(s, "payment_buy_credits", {"amount_usd": 5}) is None:
                open_ += 1
            s.desk.clock.advance(6)
        assert 200 < open_ < 300 * 200 / 300 + 205  # as they end, new ones may be opened
        rows = await s.desk.rows("SELECT created_at FROM purchase ORDER BY created_at")
        times = [row[0] for row in rows]
        most = max(sum(at <= t < at + 1800_000 for t in times) for at in times)
        assert most <= 400


async def test_answers_are_kept_nowhere(tmp_path):
    async with shop(tmp_path) as s:
        first = await s.call("payment_buy_credits", {"amount_usd": 5})
        second = await s.call("payment_buy_credits", {"amount_usd": 5})
        assert first["memo"] != second["memo"]
        assert len(s.pipeline.answers.table) == 0


async def test_no_secret_is_in_a_log_or_an_error(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    errors = []
    async with shop(tmp_path) as s:
        quote, token = await bought(s)
        attempts = [
            ("payment_confirm", {**ARGUMENTS, "nonce": quote["memo"] + "0"}, {}),
            ("payment_confirm", {"tx_hash": quote["memo"], "nonce": quote["memo"]}, {}),
            ("payment_confirm", {"tx_hash": f"0x{'2' * 64}", "nonce": quote["memo"]}, {}),
            ("payment_confirm", {**ARGUMENTS, "nonce": quote["memo"], "payer_signature": token["token"]}, {}),
            ("payment_balance", {}, {"token": token["token"] + "0"}),
        ]
        for name, arguments, caller in attempts:
            with pytest.raises(CallRejected) as refused:
                await s.call(name, arguments, **caller)
            errors.append(json.dumps([refused.value.detail, refused.value.extra, refused.value.headers]))
    for secret in (quote["memo"], token["token"]):
        assert secret[8:] not in caplog.text
        assert not any(secret[8:] in error for error in errors)
    assert not re.search("svc_(live|buy)_[0-9a-f]{9}", caplog.text)
