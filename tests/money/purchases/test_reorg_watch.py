"""What the chain undoes is taken back, and nothing else is."""

import anyio
import anyio.lowlevel
import pytest

from tests.money.purchases.parts import TX, Server, address_of, block_hash, desk, observed, paid, receipt, transfer_log
from tests.requirements import proves
from toolserver.errors import AlreadyCredited, PaymentPending, PaymentRequired
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S, LAGS_S, LOOK_S, AgreementWatch, sort_sightings
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.service import Rules
from toolserver.money.purchases.sql_doubts import read_review_cases

NEW = block_hash(100, "new")


async def bought(d, *servers, usd=5, **seen):
    """A purchase that was credited: its quote and token."""
    quote = await d.quote()
    for server in servers:
        server.sees(paid(address_of(quote), usd, **({"latest": 500, "safe": 200} | seen)))
    return quote, (await d.confirm(TX, quote.memo)).token


async def looks(d, times=1):
    for _ in range(times):
        await d.watch.look()
        d.clock.advance(LOOK_S)


async def watched(d):
    return (await d.rows("SELECT count(*) FROM tx_credit WHERE final_at IS NULL"))[0][0]


def lost_by(*servers):
    """A reorganisation: the block is another one, and the transaction in none."""
    for server in servers:
        server.seen.clear()
        server.blocks = {100: NEW}


async def test_a_payment_is_watched_until_its_block_is_final(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        await looks(d, 3)
        assert await watched(d) == 1
        server.sees(paid(address_of(quote), 5, latest=900, safe=800, finalized=100))
        await looks(d)
        assert await watched(d) == 0
        lost_by(server)
        await looks(d, 5)
        assert await d.ledger.balance(token) == 250


@proves("purchase.undone", "tokens.revoked")
async def test_a_payment_that_is_gone_is_taken_back_at_the_second_look(tmp_path, caplog):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        _, token = await bought(d, server)
        lost_by(server)
        await looks(d)
        assert (await d.ledger.balance(token), (await d.ledger.standing(token)).revoked) == (0, None)
        await looks(d)
        with pytest.raises(PaymentRequired) as refused:
            await d.ledger.balance(token)
        assert refused.value.code == "expired"
        standing = await d.ledger.standing(token)
        assert (standing.credits, standing.revoked) == (0, "payment undone on the chain")
        assert await d.rows("SELECT credits, taken_back, lost FROM tx_reversal") == [(250, 250, 0)]
        assert await d.rows("SELECT state FROM purchase") == [("reorged",)]
        assert await watched(d) == 0
        await looks(d, 3)
        assert len(await d.rows("SELECT * FROM tx_reversal")) == 1
    assert token not in caplog.text


async def test_two_looks_right_after_each_other_are_one(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        _, token = await bought(d, server)
        lost_by(server)
        for _ in range(3):
            await d.watch.look()
            d.clock.advance(1)
        assert (await d.ledger.standing(token)).revoked is None
        assert await d.rows("SELECT * FROM tx_reversal") == []


async def test_the_watch_goes_on_after_a_failure_of_our_own(tmp_path, caplog):
    server = Server()
    async with desk(tmp_path, [server]) as d, anyio.create_task_group() as tasks:
        _, token = await bought(d, server)
        server.seen[TX] = None.__class__  # what a fault of ours may look like
        tasks.start_soon(d.watch.run)
        with anyio.fail_after(10):
            while caplog.text.count("could not be watched") < 3:
                await anyio.lowlevel.checkpoint()
        lost_by(server)
        with anyio.fail_after(10):
            while not (await d.ledger.standing(token)).revoked:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


@proves("purchase.undone")
async def test_what_was_spent_is_recorded_as_lost_and_no_balance_goes_below_zero(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        _, token = await bought(d, server)
        await d.ledger.charge("call_1", token, 100, endpoint="/api/pro/x")
        await d.ledger.reserve("call_2", token, 30, endpoint="/api/pro/x", ttl_s=300)
        lost_by(server)
        await looks(d, 2)
        assert await d.rows("SELECT credits, taken_back, lost FROM tx_reversal") == [(250, 120, 130)]
        assert (await d.ledger.standing(token)).credits == 0
        settled = await d.ledger.settle("call_2", no_charge="5xx")
        assert settled.remaining == 30  # on a token that buys nothing any more
        with pytest.raises(PaymentRequired):
            await d.ledger.reserve("call_3", token, 1, endpoint="/api/pro/x", ttl_s=300)


async def test_a_payment_that_comes_back_can_be_claimed_again_less_what_was_spent(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        await d.ledger.charge("call_1", token, 100, endpoint="/api/pro/x")
        lost_by(server)
        await looks(d, 2)
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        back = receipt(transfer_log(address_of(quote), 5), block=120)
        server.sees(observed(back, latest=500))
        again = await d.confirm(TX, quote.memo)
        assert again.token != token
        assert again.credits == 150
        assert await d.ledger.balance(again.token) == 150
        assert await d.confirm(TX, quote.memo) == again
        with pytest.raises(PaymentRequired):
            await d.ledger.balance(token)


async def test_nothing_comes_back_of_what_was_all_spent(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        await d.ledger.charge("call_1", token, 250, endpoint="/api/pro/x")
        lost_by(server)
        await looks(d, 2)
        server.sees(observed(receipt(transfer_log(address_of(quote), 5), block=120), latest=500))
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_a_payment_that_is_missing_for_a_moment_is_left_alone(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        for _ in range(3):
            lost_by(server)
            await looks(d)
            server.sees(paid(address_of(quote), 5, latest=500))
            server.blocks = {}
            await looks(d)
        assert await d.ledger.balance(token) == 250


async def test_a_receipt_of_a_fork_makes_nothing_final_and_takes_nothing_back(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        server.sees(paid(address_of(quote), 5, canonical=NEW, latest=900, safe=800, finalized=700))
        server.blocks = {100: NEW}
        await looks(d, 3)
        assert await watched(d) == 1
        assert await d.ledger.balance(token) == 250


async def test_a_payment_that_moved_to_another_block_is_watched_there(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        moved = receipt(transfer_log(address_of(quote), 5), block=101, fork="new")
        server.sees(observed(moved, latest=500, finalized=100))
        await looks(d)
        assert await d.rows("SELECT block_number, block_hash, final_at FROM tx_credit") == [
            (101, moved.block_hash, None)
        ]
        server.sees(observed(moved, latest=900, finalized=101))
        await looks(d)
        assert await watched(d) == 0
        assert await d.ledger.balance(token) == 250


@pytest.mark.parametrize("pays", [0, 4.99, None], ids=["nothing", "less", "it failed"])
async def test_a_payment_that_pays_less_after_it_moved_is_taken_back(tmp_path, pays):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote, token = await bought(d, server)
        log = transfer_log(address_of(quote), pays or 0)
        server.sees(
            observed(receipt(log, block=101, fork="new", status=int(pays is not None)), latest=500, finalized=101)
        )
        await looks(d, 2)
        with pytest.raises(PaymentRequired):
            await d.ledger.balance(token)


@pytest.mark.parametrize("trouble", ["down", "behind", "the block is there"])
async def test_a_server_that_fails_or_is_behind_takes_nothing_back(tmp_path, trouble):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        _, token = await bought(d, server)
        server.seen.clear()
        server.down = trouble == "down"
        server.blocks = {100: block_hash(100)} if trouble == "the block is there" else {}
        await looks(d, 10)
        assert await d.ledger.balance(token) == 250
        assert await watched(d) == 1


@pytest.mark.parametrize("lie", ["gone", "failed"])
async def test_one_lying_server_of_two_takes_nothing_back(tmp_path, lie):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest]) as d:
        quote, token = await bought(d, liar, honest)
        lost_by(liar)
        if lie == "failed":
            liar.sees(observed(receipt(status=0, fork="new"), latest=500))
        await looks(d, 5)
        assert await d.ledger.balance(token) == 250
        honest.down = True
        await looks(d, 5)
        assert await d.ledger.balance(token) == 250
        assert quote


async def test_two_servers_that_agree_that_it_is_gone_are_believed(tmp_path):
    servers = Server(), Server()
    async with desk(tmp_path, servers) as d:
        _, token = await bought(d, *servers, usd=2000)
        lost_by(*servers)
        await looks(d, 2)
        with pytest.raises(PaymentRequired):
            await d.ledger.balance(token)


async def test_a_large_payment_is_final_when_two_servers_say_so(tmp_path):
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second], rules=Rules(Policy(), wait_s=0)) as d:
        quote, _ = await bought(d, first, second, usd=2000)
        first.sees(paid(address_of(quote), 2000, latest=900, safe=800, finalized=700))
        await looks(d, 2)
        assert await watched(d) == 1
        second.sees(paid(address_of(quote), 2000, latest=900, safe=800, finalized=700))
        await looks(d)
        assert await watched(d) == 0


async def test_one_payment_in_trouble_does_not_keep_the_others_from_being_looked_at(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        first, second = await d.quote(), await d.quote()
        server.sees(paid(address_of(first), 5), paid(address_of(second), 5, tx=bytes([9]) * 32))
        await d.confirm(TX, first.memo)
        await d.confirm(bytes([9]) * 32, second.memo)
        del server.seen[TX]  # and the server does not know the block either
        server.sees(paid(address_of(second), 5, tx=bytes([9]) * 32, latest=900, finalized=100))
        await looks(d)
        assert await d.rows("SELECT tx_hash FROM tx_credit WHERE final_at IS NULL") == [(TX,)]


async def watch_payment(d, *servers):
    quote = await d.quote()
    for server in servers:
        server.sees(paid(address_of(quote), 5))
    await d.confirm(TX, quote.memo)
    return AgreementWatch(d.store, d.chain, d.clock)


async def kinds(d):
    return [case.kind for case in read_review_cases(d.ledger.file.path)]


@proves("purchase.second-server")
async def test_a_transfer_that_two_servers_report_is_confirmed_and_asked_about_no_more(tmp_path):
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second]) as d:
        watch = await watch_payment(d, first, second)
        await watch.look()
        asked = second.asked
        await watch.look()
        assert (await d.store.list_unagreed(), second.asked) == ([], asked)
        assert await kinds(d) == []


@proves("purchase.second-server")
async def test_a_server_that_lies_is_found_within_a_minute_and_listed(tmp_path, caplog):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest]) as d:
        watch = await watch_payment(d, liar)
        begun = d.clock.monotonic()
        while not await kinds(d):
            await watch.look()
            d.clock.advance(COMPARE_S)
        assert d.clock.monotonic() - begun < 60
        assert await kinds(d) == ["disputed"]
        assert "disagree about a credited payment" in caplog.text


async def test_a_server_that_lags_contradicts_nobody(tmp_path):
    first, late = Server(), Server()
    async with desk(tmp_path, [first, late]) as d:
        watch = await watch_payment(d, first)
        d.clock.advance(LAGS_S - 1)
        await watch.look()
        late.seen = dict(first.seen)
        d.clock.advance(COMPARE_S)
        await watch.look()
        assert await kinds(d) == []
        assert await d.store.list_unagreed() == []


async def test_a_dispute_that_is_settled_is_no_case_any_more(tmp_path):
    first, late = Server(), Server()
    async with desk(tmp_path, [first, late]) as d:
        watch = await watch_payment(d, first)
        d.clock.advance(LAGS_S)
        await watch.look()
        assert await kinds(d) == ["disputed"]
        late.seen = dict(first.seen)
        await watch.look()
        assert await kinds(d) == []


def test_a_fork_shows_nothing():
    here, fork = (observed(receipt(transfer_log(b"x" * 20, 5))) for _ in range(2))
    fork = fork._replace(canonical=b"f" * 32)
    assert sort_sightings([here, fork, None], lambda seen: True) == ([here], 2)
