"""The desk as settings make it: open, closed, wrongly set up, and what is collected and what is left for people."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import (
    NOW,
    OTHER,
    TX,
    TX2,
    Server,
    address_of,
    desk,
    observed,
    paid,
    receipt,
    transfer_log,
)
from tests.money.purchases.wallet import XPUB, extended
from toolserver.clock import ManualClock
from toolserver.errors import (
    AlreadyCredited,
    ChainUnavailable,
    InvalidArguments,
    NoMatchingTransfer,
    NotFound,
    PaymentRequired,
)
from toolserver.money.ledger.operations import CauseReused
from toolserver.money.ledger.store import SqlLedger, open_ledger
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.credit_sales import Claim, CreditSales, NoCreditSales
from toolserver.money.purchases.deposit import NotAnAccountKey
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.quotes import DepositSearch
from toolserver.money.purchases.service import Rules, open_purchases, rules_of, terms_of
from toolserver.serving.money import open_money
from toolserver.settings import PaymentSettings as Settings
from toolserver.settings import Settings as Configuration

TWO = ["https://one.example/KEY1", "https://two.example/KEY2"]
SHARED = "0x" + "D0" * 20


def settings(**given: Any) -> Settings:
    return Settings(**({"enabled": True, "rpc_urls": TWO, "xpub": XPUB, "wait_s": 0} | given))


def test_the_settings_say_what_is_required():
    rules = rules_of(settings(confirmations=5, safe_from_usd=50, finalized_from_usd=500, agree_from_usd=None), "h")
    assert rules.policy == Policy(5, 50_000_000, 500_000_000, None)
    assert (rules.host, rules.shared, rules.credit_late, rules.grace_s) == ("h", False, True, 600)
    assert rules_of(settings(late="reject", grace_minutes=0), "h").credit_late is False


def test_large_sums_are_offered_where_two_servers_can_check_them():
    assert terms_of(settings()).most == 1000 * 10**6 - 1
    assert terms_of(settings(agree_from_usd=None)).most is None


def test_a_shared_wallet_is_the_address_of_every_quote():
    terms = terms_of(settings(binding="shared_wallet", shared_wallet=SHARED, xpub=None))
    assert terms.wallet == bytes([0xD0]) * 20


def selling(given: Settings, ledger: SqlLedger, clock: ManualClock) -> AbstractAsyncContextManager[CreditSales]:
    return open_purchases(
        given,
        ledger.file,
        ledger=ledger,
        clock=clock,
        host="h",
    )


async def opened(folder: Path, given: Settings) -> CreditSales:
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    async with (
        open_ledger(folder / "ledger.sqlite3", clock) as ledger,
        open_purchases(
            given,
            ledger.file,
            ledger=ledger,
            clock=clock,
            host="h",
        ) as made,
    ):
        return made


async def test_a_wrong_key_keeps_the_service_from_starting(tmp_path):
    private = extended(version="0488ade4")
    with pytest.raises(NotAnAccountKey, match="private key") as refused:
        await opened(tmp_path, settings(xpub=private))
    assert private not in str(refused.value)


async def opened_closed(folder: Path) -> CreditSales:
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    given = Configuration(data_dir=folder, payments=Settings())
    async with open_money(given, clock=clock, base_url="http://h", service="h") as money:
        return money.payments


async def test_where_nothing_is_sold_nothing_of_the_chain_is_needed(tmp_path):
    made = await opened_closed(tmp_path)
    with pytest.raises(NotFound, match="sells no credits"):
        await made.quote(Decimal(5))
    with pytest.raises(NotFound, match="sells no credits"):
        await made.confirm(Claim("", ""))


async def test_before_anything_is_set_up_not_even_balances_are_told():
    with pytest.raises(NotFound):
        await NoCreditSales().balance("svc_live_" + "0" * 64)


async def test_nothing_is_sold_while_no_server_of_the_right_chain_answers(tmp_path, caplog):
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    async with fake_rpc(wrong=lambda call, said: said | {"result": "0x1"}) as fake:
        given = settings(rpc_urls=[fake.url])
        async with (
            open_ledger(tmp_path / "ledger.sqlite3", clock) as ledger,
            open_purchases(
                given,
                ledger.file,
                ledger=ledger,
                clock=clock,
                host="h",
            ) as made,
        ):
            with pytest.raises(ChainUnavailable, match="no credits are sold"):
                await made.quote(Decimal(5))
            assert await ledger.file.read(lambda db: db.execute("SELECT * FROM purchase").fetchall()) == []
            with anyio.fail_after(10):
                while "credits cannot be sold" not in caplog.text:
                    await anyio.lowlevel.checkpoint()
            fake.wrong = None
            clock.advance(60)
            assert (await made.quote(Decimal(5))).credits == 250
    assert "SECRETKEY" not in caplog.text


async def test_a_revoked_token_has_no_balance_even_if_asked_directly(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        await d.ledger.mint("svc_live_" + "a" * 64, 5, cause="test")
        standing = await d.ledger.standing("svc_live_" + "a" * 64)
        await d.ledger.revoke(standing.fingerprint, "lost")
        with pytest.raises(PaymentRequired) as refused:
            await ClosedPurchases(d.ledger).balance("svc_live_" + "a" * 64)
        assert refused.value.code == "expired"


# --- what needs a person


async def test_what_needs_a_person_is_listed(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        another = observed(receipt(transfer_log(address_of(quote), 3, payer=OTHER), tx=TX2))
        server.sees(paid(address_of(quote), 5), another)
        token = (await d.confirm(TX, quote.memo)).token
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX2, quote.memo)
        await d.ledger.charge("call_1", token, 10, endpoint="/api/pro/x")
        await d.store.reverse_credit(TX, NOW * 1000 + 5)
        assert await d.store.reverse_credit(TX, NOW * 1000 + 6) == (0, 0)
        wallet = address_of(quote)
        first, second = await d.store.list_cases()
        assert first == ("unapplied", TX2, wallet, 3_000_000, "second_transfer", None, NOW * 1000)
        assert (second.kind, second.lost, second.amount) == ("undone", 10, 5_000_000)


async def test_a_payment_that_was_refused_and_then_credited_needs_nobody(tmp_path):
    server = Server()
    async with desk(tmp_path, [server], rules=Rules(wait_s=0, credit_late=False)) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, at=NOW + 86_400))
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)
        assert [case.reason for case in await d.store.list_cases()] == ["late"]
    async with desk(tmp_path, [server]) as d:  # the operator has changed the setting
        server.down = False
        await d.confirm(TX, quote.memo)
        assert await d.store.list_cases() == []


async def test_credits_that_were_minted_for_the_same_cause_by_hand_are_not_minted_again(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        await d.ledger.mint("svc_live_" + "a" * 64, 250, cause=f"eip155:8453:0x{TX.hex()}:0")
        with pytest.raises(CauseReused):
            await d.confirm(TX, quote.memo)
        assert await d.minted() == 250
        assert await d.rows("SELECT state FROM purchase") == [("quoted",)]


@pytest.fixture
def server() -> Server:
    return Server()


async def test_a_payment_is_found_once_a_server_sees_it_and_after_it_was_credited(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        search, quote = DepositSearch(d.store, d.chain), await d.quote()
        assert await search.find(quote.memo) is None
        server.sees(paid(bytes(20), 5, tx=TX2), paid(address_of(quote), 5))
        assert await search.find(quote.memo) == f"0x{TX.hex()}"
        await d.confirm(TX, quote.memo)
        server.down = True
        assert await search.find(quote.memo) == f"0x{TX.hex()}"


async def test_what_came_before_the_quote_is_not_its_payment(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, at=NOW - 1))
        assert await DepositSearch(d.store, d.chain).find(quote.memo) is None


async def test_at_a_shared_address_nothing_is_found(tmp_path, server):
    async with desk(tmp_path, [server], wallet=bytes(20)) as d:
        quote = await d.quote()
        server.sees(paid(bytes(20), 5))
        assert await DepositSearch(d.store, d.chain).find(quote.memo) is None


@pytest.mark.parametrize(("memo", "refusal"), [("mine", InvalidArguments), (f"svc_buy_{'0' * 32}", NotFound)])
async def test_who_has_no_memo_of_ours_is_refused(tmp_path, server, memo, refusal):
    async with desk(tmp_path, [server]) as d:
        with pytest.raises(refusal):
            await DepositSearch(d.store, d.chain).find(memo)


async def test_a_chain_that_cannot_be_read_is_said_to_be_so(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote, server.down = await d.quote(), True
        with pytest.raises(ChainUnavailable):
            await DepositSearch(d.store, d.chain).find(quote.memo)
