"""Claims, on scripted servers: what is credited, what is refused and how, and that nothing is credited twice."""

import logging

import anyio
import pytest

from tests.money.purchases.parts import (
    KEY,
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
from tests.requirements import proves
from toolserver.core.caller import well_formed
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    InsufficientCredits,
    NoMatchingTransfer,
    PaymentRequired,
)
from toolserver.money.purchases.service import ASK_AGAIN_S, WINDOW_S, Rules
from toolserver.sql.errors import StorageFailed

HEX = f"{int.from_bytes(TX, 'big'):064x}"


@pytest.fixture
def server() -> Server:
    return Server()


@proves("purchase.credited", "purchase.token")
async def test_a_confirmed_payment_becomes_a_token_with_credits(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        assert well_formed(bought.token)
        assert (bought.credits, bought.late) == (250, False)
        assert await d.ledger.balance(bought.token) == 250
        assert await d.minted() == 250
        stored = await d.rows("SELECT tx_hash, amount, credits, logs, finality, late, memo_public FROM tx_credit")
        assert stored == [(TX, 5_000_000, 250, "[0]", "blocks", 0, 0)]
        assert await d.rows("SELECT state FROM purchase") == [("credited",)]


@proves("purchase.cap")
async def test_the_cap_per_day_of_a_quote_is_set_on_its_token_before_it_can_spend(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote, plain = await d.quote("5", credits_per_day=7), await d.quote("5")
        server.sees(paid(address_of(quote), 5))
        server.sees(paid(address_of(plain), 5, tx=TX2))
        bought = await d.confirm(TX, quote.memo)
        with pytest.raises(InsufficientCredits) as refused:
            await d.ledger.charge("c1", bought.token, 8, endpoint="/x")
        assert refused.value.extra["cap"] == "credits_per_day"
        assert (await d.ledger.charge("c2", bought.token, 7, endpoint="/x")).remaining == 243
        other = await d.confirm(TX2, plain.memo)
        assert (await d.ledger.charge("c3", other.token, 250, endpoint="/x")).remaining == 0
        with pytest.raises(StorageFailed):
            await d.ledger.file.alone(lambda db: db.execute("UPDATE quote_limit SET credits_per_day=999"))


@pytest.mark.parametrize(("usd", "credits"), [(4.999999, 249), (5.000001, 250), (7.5, 375), (1, 50), (99, 4950)])
async def test_what_arrived_is_credited_whatever_was_quoted(tmp_path, server, usd, credits):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), usd))
        assert (await d.confirm(TX, quote.memo)).credits == credits


async def test_less_than_a_dollar_buys_nothing_and_is_remembered(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 0.999999))
        with pytest.raises(BelowMinimum):
            await d.confirm(TX, quote.memo)
        with pytest.raises(BelowMinimum):
            await d.confirm(TX, quote.memo)
        assert await d.rows("SELECT tx_hash, amount, reason FROM unapplied_payment") == [(TX, 999_999, "below_minimum")]
        assert await d.minted() == 0


# --- whose payment it is


async def test_a_payment_for_another_purchase_is_no_match(tmp_path, server):
    """An attacker who watches the chain opens a quote and races with the victim's hash."""
    async with desk(tmp_path, [server]) as d:
        victim, attacker = await d.quote("5"), await d.quote("5")
        server.sees(paid(address_of(victim), 5))
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, attacker.memo)
        assert (await d.confirm(TX, victim.memo)).credits == 250
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, attacker.memo)
        assert await d.minted() == 250


@pytest.mark.parametrize(
    "found",
    [
        receipt(),
        receipt(transfer_log(OTHER, 5)),
        receipt(transfer_log(KEY.address(0), 5, token=OTHER)),
        receipt(transfer_log(KEY.address(0), 5), status=0),
        receipt(transfer_log(KEY.address(0), 0)),
    ],
    ids=["no logs", "to another address", "another token", "it failed", "nothing was sent"],
)
async def test_a_transaction_that_pays_us_nothing_is_no_match(tmp_path, server, found):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(observed(found))
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)
        assert await d.minted() == 0


async def test_a_payment_that_is_older_than_the_quote_was_for_somebody_before(tmp_path, server):
    """Addresses given out anew after an old backup was restored must not claim old payments."""
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, at=NOW - 3600))
        with pytest.raises(NoMatchingTransfer, match="older"):
            await d.confirm(TX, quote.memo)


async def test_a_quote_made_while_our_clock_was_ahead_is_paid_after_it_was_set_back(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        d.clock.advance(86_400)
        quote = await d.quote()
        d.clock.advance(-86_400)
        server.sees(paid(address_of(quote), 5, at=NOW))
        assert (await d.confirm(TX, quote.memo)).credits == 250


@proves("purchase.once")
async def test_one_transaction_that_pays_two_purchases_credits_the_first_that_claims(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        first, second = await d.quote(), await d.quote()
        logs = transfer_log(address_of(first), 5, 0), transfer_log(address_of(second), 7, 1)
        server.sees(observed(receipt(*logs)))
        assert (await d.confirm(TX, first.memo)).credits == 250
        for _ in range(2):
            with pytest.raises(AlreadyCredited):
                await d.confirm(TX, second.memo)
        assert await d.rows("SELECT amount, reason FROM unapplied_payment") == [(7_000_000, "transaction_used")]


# --- the same thing twice


@pytest.mark.parametrize("spelling", [f"0x{HEX}", f"0X{HEX}", HEX, HEX.upper()])
async def test_in_whatever_spelling_a_hash_comes_it_is_credited_once(tmp_path, server, spelling):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        first = await d.confirm(TX, quote.memo)
        assert await d.confirm(spelling, quote.memo) == first
        assert await d.minted() == 250


@proves("purchase.once")
async def test_four_spellings_twenty_times_at_once_are_one_mint(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        got = []

        async def claim(text):
            got.append(await d.confirm(text, quote.memo))

        async with anyio.create_task_group() as tasks:
            for text in (f"0x{HEX}", f"0X{HEX}", HEX, f"0x{HEX.upper()}"):
                for _ in range(20):
                    tasks.start_soon(claim, text)
        assert len(got) == 80
        assert len(set(got)) == 1
        assert await d.minted() == 250
        assert await d.rows("SELECT count(*) FROM token") == [(1,)]


@proves("purchase.lost-answer")
async def test_a_lost_answer_is_given_again_until_its_time_is_over(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        server.down = True  # what was credited needs no chain any more
        d.clock.advance(ASK_AGAIN_S - 1)
        assert await d.confirm(TX, quote.memo) == bought
        d.clock.advance(2)
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


@proves("purchase.lost-answer")
async def test_a_token_that_was_spent_from_is_not_given_again(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        await d.ledger.charge("call_1", bought.token, 1, endpoint="/api/pro/x")
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)
        await d.watch.look()
        assert await d.rows("SELECT sealed FROM tx_credit") == [(None,)]


async def test_a_token_whose_balance_was_asked_for_is_not_given_again(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        await d.confirmations.has_token(bought.token)
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_another_token_has_nothing_to_do_with_the_one_that_waits(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        await d.confirmations.has_token("svc_live_" + "0" * 64)
        assert await d.confirm(TX, quote.memo) == bought


async def test_a_token_nobody_used_is_forgotten_after_its_time(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        await d.confirm(TX, quote.memo)
        await d.watch.look()
        assert (await d.rows("SELECT sealed IS NULL FROM tx_credit")) == [(0,)]
        d.clock.advance(ASK_AGAIN_S + 1)
        await d.watch.look()
        assert (await d.rows("SELECT sealed IS NULL FROM tx_credit")) == [(1,)]


async def test_a_second_payment_by_somebody_else_is_remembered_and_buys_nothing(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        another = observed(receipt(transfer_log(address_of(quote), 3, payer=OTHER), tx=TX2))
        server.sees(paid(address_of(quote), 5), another)
        await d.confirm(TX, quote.memo)
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX2, quote.memo)
        assert await d.rows("SELECT tx_hash, amount, reason FROM unapplied_payment") == [
            (TX2, 3_000_000, "second_transfer")
        ]
        server.down = True
        with pytest.raises(AlreadyCredited):
            await d.confirm(bytes([3]) * 32, quote.memo)
        assert await d.minted() == 250


async def test_two_payments_of_one_purchase_claimed_at_once_are_two_purchases_of_one_token(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5), paid(address_of(quote), 3, tx=TX2))
        got = []

        async def claim(tx):
            try:
                got.append((tx, (await d.confirm(tx, quote.memo)).credits))
            except AlreadyCredited:
                got.append((tx, None))

        async with anyio.create_task_group() as tasks:
            for tx in (TX, TX2) * 5:
                tasks.start_soon(claim, tx)
        ((credited, credits),) = {each for each in got if each[1]}
        assert got.count((credited, credits)) == 5
        assert await d.minted() == 400
        assert await d.rows("SELECT count(*) FROM tx_credit") == [(2,)]
        assert await d.rows("SELECT count(*) FROM token") == [(1,)]
        assert await d.rows("SELECT tx_hash, reason FROM unapplied_payment") == []


async def test_a_claim_that_fails_half_way_leaves_nothing(tmp_path, server):
    """The mint is refused by the database itself: neither a token nor a credited purchase must remain."""
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        sql = "CREATE TRIGGER broken BEFORE INSERT ON tx_credit BEGIN SELECT RAISE(ABORT, 'broken'); END"
        await d.ledger.file.alone(lambda db: db.execute(sql))
        with pytest.raises(StorageFailed, match="broken"):
            await d.confirm(TX, quote.memo)
        counts = "SELECT (SELECT count(*) FROM token), (SELECT count(*) FROM transfer), (SELECT state FROM purchase)"
        assert await d.rows(counts) == [(0, 0, "quoted")]
        await d.ledger.file.alone(lambda db: db.execute("DROP TRIGGER broken"))
        assert (await d.confirm(TX, quote.memo)).credits == 250


# --- when


@proves("purchase.expiry")
@pytest.mark.parametrize(("after_s", "late"), [(0, False), (1800, False), (2400, False), (2401, True), (86_400, True)])
async def test_the_time_of_the_block_decides_whether_a_payment_is_late_and_it_is_credited_anyway(
    tmp_path, server, after_s, late
):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, at=NOW + after_s))
        d.clock.advance(3 * 86_400)
        bought = await d.confirm(TX, quote.memo)
        assert (bought.credits, bought.late) == (250, late)
        assert await d.confirm(TX, quote.memo) == bought


async def test_where_late_payments_are_refused_one_in_time_may_be_claimed_late(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(wait_s=0, credit_late=False)) as d:
        late, timely = await d.quote(), await d.quote()
        server.sees(paid(address_of(late), 5, at=NOW + 2401), paid(address_of(timely), 5, tx=TX2, at=NOW + 2400))
        d.clock.advance(86_400)
        with pytest.raises(NoMatchingTransfer, match="after the quote expired"):
            await d.confirm(TX, late.memo)
        assert await d.rows("SELECT reason FROM unapplied_payment") == [("late",)]
        assert (await d.confirm(TX2, timely.memo)).late is False


async def test_after_thirty_days_a_claim_is_for_people(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        d.clock.advance(1800 + WINDOW_S + 1)
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)


# --- secrets


async def test_neither_memo_nor_token_is_logged_or_stored_in_the_clear(tmp_path, server, caplog):
    caplog.set_level(logging.DEBUG)
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        bought = await d.confirm(TX, quote.memo)
        await d.confirm(TX, quote.memo)
        with pytest.raises(PaymentRequired):
            await d.ledger.balance("svc_live_" + "0" * 64)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("*.sqlite3*"))
    for secret in (quote.memo, bought.token):
        assert secret not in caplog.text
        assert secret[8:].encode() not in stored
    assert bytes.fromhex(quote.memo[8:]) not in stored
    assert bytes.fromhex(bought.token[9:]) not in stored


async def test_a_claim_survives_a_restart_between_payment_and_confirmation(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
    server.down = False
    server.sees(paid(address_of(quote), 5))
    async with desk(tmp_path, [server]) as d:
        bought = await d.confirm(TX, quote.memo)
    server.down = False
    async with desk(tmp_path, [server]) as d:
        assert await d.confirm(TX, quote.memo) == bought
        assert await d.ledger.balance(bought.token) == 250
