"""Quotes: what an amount buys, an address of its own, and a memo that is nowhere else."""

import asyncio
import base64
import hashlib
import inspect
import logging
import selectors
import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from weakref import WeakSet

import anyio
import pytest

from tests.money.purchases.parts import KEY, NOW, TX, TX2, Server, desk
from tests.money.purchases.wallet import address
from tests.requirements import proves
from tests.work import counted
from toolserver.errors import ChainUnavailable, InvalidArguments, RateLimited
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.quotes import (
    BLOCK,
    DAY_S,
    MEMO,
    Ceilings,
    Quotes,
    QuoteTerms,
    SalesCeilings,
    challenge_of,
    new_memo,
    put_old_quotes_aside,
)
from toolserver.money.purchases.store import memo_hash
from toolserver.money.purchases.token_encryption import sealing_key
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import HighWater

SHARED = bytes([0xD0]) * 20
MOST_CALLS = 620  # of functions, for a quote; a third more than now


@proves("quote.additions", "purchase.rate")
async def test_a_quote_says_what_to_pay_where_and_until_when(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        quote = await d.quote("12.34")
        assert (quote.amount, quote.credits) == (12_340_000, 617)
        assert quote.wallet == checksum_address(address(0))
        assert MEMO.fullmatch(quote.memo)
        assert quote.expires_at - d.clock.now() == timedelta(minutes=30)
        assert quote.uri == (
            f"ethereum:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913@8453/transfer?address={quote.wallet}&uint256=12340000"
        )
        assert quote.commitment.startswith("0x")
        assert len(quote.commitment) == 66
        assert quote.memo[8:] not in quote.commitment


@proves("quote.own-address")
async def test_quotes_made_at_once_have_addresses_of_their_own_in_order(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        made = []

        async def one():
            made.append(await d.quote())

        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(one)
        assert sorted(q.wallet for q in made) == sorted(checksum_address(address(i)) for i in range(30))
        assert len({q.memo for q in made}) == 30


@proves("quote.numbers")
async def test_no_address_is_given_out_twice_after_a_backup_was_restored(tmp_path):
    def quotes(d):
        terms = QuoteTerms(KEY.address, 1800)
        return Quotes(d.store, d.clock, terms, marks=HighWater(tmp_path))

    async with desk(tmp_path / "before", [Server()]) as d:
        given = [(await quotes(d).make(Decimal(5))).wallet for _ in range(4)]
    async with desk(tmp_path / "backup", [Server()]) as d:  # from before the first of them
        again = [(await quotes(d).make(Decimal(5))).wallet for _ in range(2)]
    assert given == [checksum_address(address(number * BLOCK)) for number in range(4)]
    assert again == [checksum_address(address(number * BLOCK)) for number in (4, 5)]


async def test_addresses_go_on_after_a_restart_and_beside_another_process(tmp_path):
    async with desk(tmp_path, [Server()]) as first:
        await first.quote()
        async with desk(tmp_path, [Server()]) as second:
            assert (await second.quote()).wallet == checksum_address(address(1))
            assert (await first.quote()).wallet == checksum_address(address(2))
    async with desk(tmp_path, [Server()]) as again:
        assert (await again.quote()).wallet == checksum_address(address(3))


async def test_the_first_address_can_be_set_further_ahead_and_never_back(tmp_path):
    async with desk(tmp_path, [Server()], first_index=1000) as d:
        assert (await d.quote()).wallet == checksum_address(address(1000))
    async with desk(tmp_path, [Server()], first_index=5) as d:
        assert (await d.quote()).wallet == checksum_address(address(1001))


async def test_where_the_wallet_is_shared_every_quote_names_it(tmp_path):
    async with desk(tmp_path, [Server()], wallet=SHARED) as d:
        assert {(await d.quote()).wallet for _ in range(3)} == {checksum_address(SHARED)}


@pytest.mark.parametrize("usd", ["0.999999", "0", "-5", "NaN", "Infinity", "1e309", "1.0000001", "1000000.01"])
async def test_a_wrong_amount_is_refused_without_a_trace(tmp_path, usd):
    async with desk(tmp_path, [Server()]) as d:
        with pytest.raises(InvalidArguments) as refused:
            await d.quotes.make(Decimal(usd))
        assert refused.value.extra["errors"][0]["loc"] == "amount_usd"
        assert await d.rows("SELECT * FROM purchase") == []


@pytest.mark.parametrize("challenge", ["", "short", "a" * 44, "a" * 42 + "=", "a" * 42 + "\n"])
async def test_a_challenge_is_a_hash(tmp_path, challenge):
    async with desk(tmp_path, [Server()]) as d:
        with pytest.raises(InvalidArguments):
            await d.quote(challenge=challenge)


async def test_what_one_server_alone_cannot_check_is_not_offered(tmp_path):
    async with desk(tmp_path, [Server()], most=1000 * 10**6 - 1) as d:
        assert (await d.quote("999.999999")).credits == 49_999
        with pytest.raises(ChainUnavailable) as refused:
            await d.quote("1000")
        assert refused.value.headers["Retry-After"]


@pytest.mark.parametrize(("private", "offered"), [(False, True), (True, False)])
async def test_what_two_servers_that_count_as_one_cannot_check_is_not_offered(tmp_path, private, offered):
    two = [Server(is_privately_certified=private), Server(is_privately_certified=private)]
    async with desk(tmp_path, two, most=1000 * 10**6 - 1) as d:
        await d.quote("999")
        await d.chain.survey(bytes(32))  # shows their certificates
        if offered:
            await d.quote("1000")
        else:
            with pytest.raises(ChainUnavailable):
                await d.quote("1000")


@proves("quote.secret-memo")
async def test_the_memo_is_neither_stored_nor_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with desk(tmp_path, [Server()]) as d:
        quote = await d.quote(challenge="a" * 43)
        rows = await d.rows("SELECT memo_hash, address, hd_index, state, created_at, expires_at FROM purchase")
        assert rows == [(memo_hash(quote.memo), KEY.address(0), 0, "quoted", NOW * 1000, (NOW + 1800) * 1000)]
    assert quote.memo not in caplog.text
    assert quote.memo[8:].encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("*.sqlite3*"))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM purchase",
        "UPDATE purchase SET address=randomblob(20)",
        "UPDATE purchase SET memo_hash=randomblob(32)",
        "UPDATE purchase SET credits=credits+1",
        "UPDATE purchase SET hd_index=NULL",
    ],
)
async def test_an_address_that_was_given_out_is_kept_for_ever(tmp_path, sql):
    async with desk(tmp_path, [Server()]) as d:
        await d.quote()
        with pytest.raises(StorageFailed):
            await d.ledger.file.alone(lambda db: db.execute(sql))


async def test_only_so_many_quotes_are_made_in_a_minute_for_all_callers_together(tmp_path):
    async with desk(tmp_path, [Server()], per_minute=2) as d:
        await d.quote("1")
        await d.quote("1")
        with pytest.raises(RateLimited) as refused:
            await d.quote("1")
        assert (refused.value.extra["limit"], refused.value.headers["Retry-After"]) == ("quotes in all", "60")
        d.clock.advance(60)
        await d.quote("1")


@pytest.mark.slow("it makes many quotes")
async def test_a_quote_is_made_with_little_work_and_quotes_of_one_moment_share_a_commit(tmp_path):
    """All threads of the process count: address, sums of what was sold and seal of the rows: a millisecond of CPU.

    Eight are asked for at a time, as when there are many: the writer is busy until all of them wait for it.
    """
    # A loop turns more often beside other work, and anyio looks through all tasks each time, also those of other tests
    # that are not collected yet: asyncio has them in a WeakSet.
    folders = [str(Path(module.__file__).parent) for module in (asyncio, anyio)]
    turns = (*folders, selectors.__file__, inspect.getfile(WeakSet))
    with counted(left_out=turns) as work:  # before the threads of the desk start: theirs is counted too
        async with desk(tmp_path, [Server()]) as d:
            ceilings = SalesCeilings(Ceilings(10**4 * ATOMIC, 10**5 * ATOMIC, 10**6 * ATOMIC), d.store, d.clock)
            quotes = Quotes(d.store, d.clock, QuoteTerms(KEY.address, per_minute=10_000), ceilings, HighWater(tmp_path))
            statements: list[str] = []
            await d.ledger.file.alone(lambda db: db.set_trace_callback(statements.append))

            async def make() -> tuple[float, list[int]]:
                calls, commits = work.calls, list[int]()
                for _ in range(BLOCK // 8):  # of which one sets the next block aside
                    before = statements.count("COMMIT")
                    async with anyio.create_task_group() as tasks:
                        writer_is_free = threading.Event()
                        tasks.start_soon(d.ledger.file.alone, lambda db, free=writer_is_free: free.wait())
                        for _ in range(8):
                            tasks.start_soon(quotes.make, Decimal(5))
                        await anyio.wait_all_tasks_blocked()
                        writer_is_free.set()
                    commits.append(statements.count("COMMIT") - before - 1)  # one ends the writer's other work
                return (work.calls - calls) / BLOCK, commits

            await make()  # the table of the curve is made once
            blocks = [await make() for _ in range(3)]
    calls = min(calls for calls, _ in blocks)
    print(f"{calls:.0f} calls of functions a quote; commits for eight: {[commits for _, commits in blocks]}")
    assert calls < MOST_CALLS
    for _, commits in blocks:
        assert sorted(commits)[:-1] == [1] * (BLOCK // 8 - 1)
        assert max(commits) < 8, "those that wait for the next block of numbers share some"


async def test_old_unpaid_quotes_are_put_aside_and_new_ones_are_not(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        old = [await d.quote() for _ in range(3)]
        d.clock.advance(20 * DAY_S)
        await d.quote()
        await put_old_quotes_aside(d.store, d.clock, 30, at_once=2)
        assert len(await d.store.list_purchases("quoted", 99)) == 4
        d.clock.advance(11 * DAY_S)
        await put_old_quotes_aside(d.store, d.clock, 30, at_once=2)
        assert len(await d.store.list_purchases("quoted", 99)) == 1
        found = await d.store.find_purchase(memo_hash(old[0].memo))
    assert found is not None
    assert found.hd_index == 0


ONE = "svc_buy_" + "1" * 32


def test_memos_are_new_each_time_and_of_the_form_that_is_accepted():
    memos = {new_memo() for _ in range(100)}
    assert len(memos) == 100
    assert all(MEMO.fullmatch(memo) for memo in memos)


@pytest.mark.parametrize("memo", ["", ONE[:-1], ONE + "1", ONE.upper(), ONE.replace("1", "g"), f" {ONE}", f"{ONE}\n"])
def test_nothing_else_is_a_memo(memo):
    assert not MEMO.fullmatch(memo)


def test_what_is_stored_is_a_hash():
    assert memo_hash(ONE) == hashlib.sha256(ONE.encode()).digest()


def test_the_key_of_a_token_belongs_to_one_memo_and_one_transaction():
    keys = {sealing_key(memo, tx) for memo in (ONE, ONE.replace("1", "2")) for tx in (TX, TX2)}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}
    assert sealing_key(ONE, TX) == sealing_key(ONE, TX)


def test_a_challenge_is_that_of_rfc_7636():
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # the example of its appendix B
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert base64.urlsafe_b64decode(challenge_of("x") + "=") == hashlib.sha256(b"x").digest()


def test_memos_are_of_their_shape_and_never_the_same():
    made = {new_memo() for _ in range(100)}
    assert len(made) == 100
    assert all(MEMO.fullmatch(memo) for memo in made)
