"""Credits of a payment in doubt cannot be spent, by no token and no allowance, and come back when the doubt ends."""

import random
from collections import Counter
from decimal import Decimal

import pytest

from tests.money.chain.parts import HEADS, book_of, logged
from tests.money.purchases.parts import (
    TX,
    TX2,
    Server,
    address_of,
    block_hash,
    desk,
    observed,
    paid,
    receipt,
    transfer_log,
)
from tests.postgres import POSTGRES
from toolserver.core.caller import token_hash
from toolserver.errors import InsufficientCredits, PaymentPending, PaymentRequired
from toolserver.money.chain.transfer_states import name_transfers
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.sql_books import EVER, read_credit_books, read_token_books
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S, LOOK_S, AgreementWatch
from toolserver.money.purchases.credit_sales import Claim
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.records import BlockUpdate
from toolserver.money.purchases.service import Rules
from toolserver.money.purchases.sql_doubts import list_review_cases, read_review_cases
from toolserver.money.purchases.store import approve_transfer

CHILD = f"svc_live_{77:064x}"
BOTH = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])


async def buy(d, *servers, tx=TX, usd=5, rules=None):
    quote = await d.quote()
    for server in servers:
        server.sees(paid(address_of(quote), usd, tx=tx))
    return quote, (await d.confirm(tx, quote.memo)).token


async def entries(d, token):
    page = await d.ledger.statement(token, StatementQuery())
    assert sum(entry.credits for entry in page.entries) == page.credits
    return [(entry.kind, entry.credits) for entry in reversed(page.entries)]


@BOTH
async def test_what_only_a_lying_server_reports_can_not_be_spent_for_a_moment(tmp_path, kind):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest], kind=kind) as d:
        begun = d.clock.monotonic()
        _, token = await buy(d, liar)
        assert d.clock.monotonic() == begun
        with pytest.raises(InsufficientCredits):
            await d.ledger.charge("call_1", token, 1, endpoint="/api/pro/x")
        assert await entries(d, token) == [("purchase", 250), ("withheld", -250)]
        watch = AgreementWatch(d.store, d.chain, d.clock)
        honest.seen = dict(liar.seen)
        await watch.look()
        assert await entries(d, token) == [("purchase", 250), ("withheld", -250), ("released", 250)]
        assert await d.ledger.balance(token) == 250


async def test_a_second_server_that_is_behind_is_waited_for(tmp_path):
    first, late = Server(), Server()
    async with desk(tmp_path, [first, late], rules=Rules(wait_s=10)) as d:
        sleep = d.clock.sleep

        async def arrive(seconds):
            late.seen = dict(first.seen)
            await sleep(seconds)

        d.clock.sleep = arrive
        _, token = await buy(d, first)
        assert await entries(d, token) == [("purchase", 250)]
        assert await d.store.list_unagreed() == []


async def test_a_second_server_that_is_down_does_not_stop_a_small_sale(tmp_path):
    first, down = Server(), Server(down=True)
    async with desk(tmp_path, [first, down]) as d:
        _, token = await buy(d, first)
        assert await d.ledger.balance(token) == 250
        down.down = False
        d.clock.advance(60)
        await AgreementWatch(d.store, d.chain, d.clock).look()
        assert await d.ledger.balance(token) == 0


@BOTH
async def test_an_allowance_spends_nothing_of_a_payment_in_doubt_and_what_was_spent_is_named(tmp_path, kind):
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second], kind=kind) as d:
        _, token = await buy(d, first, second)
        await d.ledger.create_allowance(token, token_hash(CHILD).hex(), AllowanceTerms("child", 200))
        await d.ledger.charge("call_1", CHILD, 40, endpoint="/api/pro/x")
        await d.ledger.reserve("call_2", token, 30, endpoint="/api/pro/x", ttl_s=300)
        await d.ledger.file.alone(lambda db: db.execute("UPDATE tx_credit SET agreed_at=NULL"), room="purchases")
        second.seen.clear()
        watch = AgreementWatch(d.store, d.chain, d.clock)
        await watch.look()
        for spender in (token, CHILD):
            with pytest.raises(InsufficientCredits):
                await d.ledger.charge("call_3", spender, 1, endpoint="/api/pro/x")
        case = (await d.ledger.file.read(list_review_cases))[0]
        assert (case.kind, case.lost) == ("disputed", 70)
        await d.ledger.settle("call_2", no_charge="5xx")
        d.clock.advance(COMPARE_S)
        await watch.look()
        assert await d.ledger.balance(token) == 0  # what the call gave back is withheld too
        case = (await d.ledger.file.read(list_review_cases))[0]
        assert case.lost == 40
        second.seen = dict(first.seen)
        await watch.look()
        assert await d.ledger.balance(token) == 210
        assert await d.ledger.balance(CHILD) == 160


@BOTH
async def test_the_books_name_what_is_withheld_and_what_came_back(tmp_path, kind):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest], kind=kind) as d:
        _, token = await buy(d, liar)

        async def read():
            return await d.ledger.file.read(lambda db: read_credit_books(db, 0, EVER))

        books = await read()
        assert (books.sold_by_transfer, books.withheld, books.released, books.owed) == (250, 250, 0, 0)
        honest.seen = dict(liar.seen)
        await AgreementWatch(d.store, d.chain, d.clock).look()
        books = await read()
        assert (books.sold_by_transfer, books.withheld, books.released, books.owed) == (250, 250, 250, 250)
        (row,) = await d.ledger.file.read(lambda db: read_token_books(db, 0, EVER))
        assert (row.fingerprint, row.bought, row.taken_back) == (token_hash(token).hex()[:16], 250, 0)


@BOTH
async def test_a_reorganisation_withholds_at_once_and_a_block_that_comes_back_gives_back(tmp_path, kind):
    server = Server()
    async with desk(tmp_path, [server], kind=kind) as d:
        quote, token = await buy(d, server)
        book = book_of(d)
        placed = name_transfers([logged(TX, address_of(quote), 5)])
        await book.record(placed, HEADS, 1)
        assert await d.ledger.balance(token) == 250
        await book.record_gone([placed[0].id], HEADS, 2)
        assert await d.ledger.balance(token) == 0
        moved = name_transfers([logged(TX, address_of(quote), 5, block=120)])
        await book.record(moved, HEADS, 3)
        assert await d.ledger.balance(token) == 250
        await book.record_gone([placed[0].id], HEADS, 4)
        server.seen.clear()
        server.blocks = {100: block_hash(100, "new")}
        for _ in range(2):
            await d.watch.look()
            d.clock.advance(LOOK_S)
        assert await d.rows("SELECT credits, taken_back, lost FROM tx_reversal") == [(250, 250, 0)]
        assert (await d.ledger.standing(token)).credits == 0
        books = await d.ledger.file.read(lambda db: read_credit_books(db, 0, EVER))
        assert (books.withheld, books.released, books.taken_back, books.owed) == (500, 500, 250, 0)


@pytest.mark.parametrize("settled", ["approved", "second server"])
async def test_too_much_for_one_server_is_held_for_a_second_source_and_is_a_case(tmp_path, settled):
    server, rules = Server(), Rules(Policy(), wait_s=0, answer_s=30)
    async with desk(tmp_path, [server], rules=rules) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 1500, latest=500, safe=200))
        for _ in range(2):
            with pytest.raises(PaymentPending, match="held for a second source"):
                await d.confirm(TX, quote.memo)
        path = d.ledger.file.path
        assert [(case.kind, case.amount) for case in read_review_cases(path)] == [("held", 1_500_000_000)]
        if settled == "approved":
            assert await approve_transfer(d.ledger.file, TX, 1)
            assert (await d.confirm(TX, quote.memo)).credits == 75_000
            assert read_review_cases(path) == []
    if settled == "second server":
        server.down = False
        async with desk(tmp_path, [server, server], rules=rules) as d:
            assert (await d.confirm(TX, quote.memo)).credits == 75_000
            assert read_review_cases(path) == []


@BOTH
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_in_whatever_order_no_credit_is_spent_twice_or_lost(tmp_path, seed, kind):
    """A model of its own: a deposit in doubt lets nothing be spent; what was spent stays spent; the rest comes back."""
    rng = random.Random(seed)
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second], kind=kind) as d:
        _, token = await buy(d, first, second)
        quote = await d.quotes.make(Decimal(5), tops_up=token_hash(token).hex())
        for server in (first, second):
            server.sees(paid(address_of(quote), 5, tx=TX2))
        await d.confirmations.confirm(Claim(f"0x{TX2.hex()}", quote.memo), token)
        await d.ledger.create_allowance(token, token_hash(CHILD).hex(), AllowanceTerms("child", 10_000))
        doubts, spent, open_calls, done = {TX: False, TX2: False}, 0, {}, Counter()
        for number in range(60):
            step = rng.choice(["doubt", "end", "charge", "charge", "reserve", "settle", "look"])
            tx, now = rng.choice([TX, TX2]), int(d.clock.time() * 1000)
            if step == "doubt":
                await d.store.record_missing(tx, now)
                doubts[tx] = True
            elif step == "end":
                credit = (await d.rows("SELECT block_number, block_hash FROM tx_credit WHERE tx_hash=?", tx))[0]
                await d.store.record_block(BlockUpdate(tx, int(credit[0]), bytes(credit[1]), now, None), now)
                doubts[tx] = False
            elif step in ("charge", "reserve"):
                credits, who = rng.randint(1, 90), rng.choice([token, CHILD])
                try:
                    if step == "charge":
                        await d.ledger.charge(f"call_{number}", who, credits, endpoint="/api/pro/x")
                        spent += credits
                    else:
                        await d.ledger.reserve(f"call_{number}", who, credits, endpoint="/api/pro/x", ttl_s=1e6)
                        open_calls[f"call_{number}"] = credits
                    done[step] += 1
                except PaymentRequired:
                    done["refused"] += 1
            elif step == "settle" and open_calls:
                call, credits = open_calls.popitem()
                free = rng.random() < 0.5
                await d.ledger.settle(call, no_charge="5xx" if free else None)
                spent += 0 if free else credits
            for each, is_doubtful in doubts.items():
                if is_doubtful:
                    await d.store.record_missing(each, now)
            free = 500 - spent - sum(open_calls.values())
            doubtful = 250 * sum(doubts.values())
            assert await d.ledger.balance(token) == max(0, free - doubtful), (number, step, doubts)
            d.clock.advance(1)
        assert min(done["charge"], done["refused"]) > 0
        assert await entries(d, token)


async def test_the_shortfall_is_named_until_it_is_settled_and_never_taken_twice(tmp_path):
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second]) as d:
        quote, token = await buy(d, first, second)
        await d.ledger.charge("call_1", token, 100, endpoint="/api/pro/x")
        await d.store.record_missing(TX, 1)
        await d.store.record_missing(TX, 2)
        await d.store.record_missing(TX, 3)
        causes = [cause for (cause,) in await d.rows("SELECT cause FROM transfer WHERE cause LIKE 'held:%'")]
        assert causes == [f"held:eip155:8453:0x{TX.hex()}:1"]
        assert await d.store.reverse_credit(TX, 4) == (150, 100)
        first.sees(observed(receipt(transfer_log(address_of(quote), 5), block=120), latest=500))
        second.sees(observed(receipt(transfer_log(address_of(quote), 5), block=120), latest=500))
        again = await d.confirm(TX, quote.memo)
        assert await d.ledger.balance(again.token) == 150
