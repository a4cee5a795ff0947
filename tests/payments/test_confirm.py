"""Claims, on scripted servers: what is credited, what is refused and how, and that nothing is credited twice."""

import logging
import sqlite3

import anyio
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.payments.parts import (
    KEY,
    NOW,
    OTHER,
    PAYER,
    TX,
    TX2,
    Server,
    address_of,
    block_hash,
    desk,
    paid,
    receipt,
    sighting,
    transfer_log,
)
from tests.payments.wallet import private_key
from toolserver.access import well_formed
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    ChainUnavailable,
    InvalidArguments,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
    PaymentRequired,
)
from toolserver.payments.confirm import ASK_AGAIN_S, WINDOW_S, Rules
from toolserver.payments.matching import TRANSFER_SELECTOR, Transaction, commitment
from toolserver.payments.memos import challenge_of
from toolserver.payments.policy import Policy
from toolserver.payments.proof import text_to_sign
from toolserver.payments.units import USDC

HEX = f"{int.from_bytes(TX, 'big'):064x}"


@pytest.fixture
def server() -> Server:
    return Server()


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
        server.sees(sighting(found))
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


async def test_one_transaction_that_pays_two_purchases_credits_the_first_that_claims(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        first, second = await d.quote(), await d.quote()
        logs = transfer_log(address_of(first), 5, 0), transfer_log(address_of(second), 7, 1)
        server.sees(sighting(receipt(*logs)))
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


async def test_a_second_payment_to_the_same_address_is_remembered_and_buys_nothing(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5), paid(address_of(quote), 3, tx=TX2))
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


async def test_a_claim_that_fails_half_way_leaves_nothing(tmp_path, server):
    """The mint is refused by the database itself: neither a token nor a credited purchase must remain."""
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        sql = "CREATE TRIGGER broken BEFORE INSERT ON tx_credit BEGIN SELECT RAISE(ABORT, 'broken'); END"
        await d.ledger.file.alone(lambda db: db.execute(sql))
        with pytest.raises(sqlite3.IntegrityError, match="broken"):
            await d.confirm(TX, quote.memo)
        counts = "SELECT (SELECT count(*) FROM token), (SELECT count(*) FROM transfer), (SELECT state FROM purchase)"
        assert await d.rows(counts) == [(0, 0, "quoted")]
        await d.ledger.file.alone(lambda db: db.execute("DROP TRIGGER broken"))
        assert (await d.confirm(TX, quote.memo)).credits == 250


# --- when


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
        with pytest.raises(NoMatchingTransfer, match="after the end"):
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


# --- waiting for the chain


async def test_a_transaction_nobody_sees_is_pending_and_not_invalid(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        with pytest.raises(PaymentPending) as pending:
            await d.confirm(TX, quote.memo)
        assert pending.value.headers["Retry-After"] == "3"
        assert pending.value.extra["confirmations"] == 0
        assert pending.value.extra["required"] == 3


async def test_a_claim_waits_some_seconds_for_its_blocks(tmp_path, server):
    class Growing(Server):
        async def sight(self, tx_hash):
            seen = await super().sight(tx_hash)
            return seen and seen._replace(latest=98 + self.asked)

    growing = Growing()
    async with desk(tmp_path, [growing], rules=Rules(wait_s=10, poll_s=1.5)) as d:
        quote = await d.quote()
        growing.sees(paid(address_of(quote), 5))
        before = d.clock.monotonic()
        assert (await d.confirm(TX, quote.memo)).credits == 250
        assert 0 < d.clock.monotonic() - before <= 10


async def test_a_claim_does_not_wait_for_ever(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(wait_s=10, poll_s=1.5)) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, latest=101))
        before = d.clock.monotonic()
        with pytest.raises(PaymentPending) as pending:
            await d.confirm(TX, quote.memo)
        assert d.clock.monotonic() - before <= 10
        assert pending.value.extra | {"retry_after_seconds": 3} == {
            "confirmations": 1,
            "required": 3,
            "retry_after_seconds": 3,
        }


async def test_what_waiting_does_not_mend_is_said_at_once(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(wait_s=10, poll_s=1.5)) as d:
        quote = await d.quote()
        server.sees(sighting(receipt()))
        before = d.clock.monotonic()
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)
        assert d.clock.monotonic() == before


async def test_a_receipt_of_a_fork_is_pending(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, canonical=block_hash(100, "fork"), latest=1000))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)


async def test_when_no_server_answers_the_chain_is_unavailable(tmp_path, caplog):
    async with desk(tmp_path, [Server(down=True), Server(down=True)], rules=Rules(wait_s=3)) as d:
        quote = await d.quote()
        with pytest.raises(ChainUnavailable) as refused:
            await d.confirm(TX, quote.memo)
        assert refused.value.headers["Retry-After"]
        assert quote.memo not in caplog.text


async def test_a_server_that_never_answers_does_not_keep_a_claim_for_ever(tmp_path):
    class Silent(Server):
        async def sight(self, tx_hash):
            await anyio.sleep_forever()

    async with desk(tmp_path, [Silent()], rules=Rules(wait_s=0, answer_s=0.05)) as d:
        quote = await d.quote()
        with pytest.raises(ChainUnavailable):
            await d.confirm(TX, quote.memo)


@pytest.mark.parametrize(
    ("usd", "heights", "enough"),
    [
        (100, {"latest": 500, "safe": 99}, False),
        (100, {"latest": 500, "safe": 100}, True),
        (10_000, {"latest": 900, "safe": 800, "finalized": 99}, False),
        (10_000, {"latest": 900, "safe": 800, "finalized": 100}, True),
    ],
)
async def test_larger_payments_wait_for_safe_and_final_blocks(tmp_path, usd, heights, enough):
    servers = [Server(), Server()]
    async with desk(tmp_path, servers) as d:
        quote = await d.quote("5")
        for server in servers:
            server.sees(paid(address_of(quote), usd, **heights))
        if enough:
            assert (await d.confirm(TX, quote.memo)).credits == usd * 50
        else:
            with pytest.raises(PaymentPending):
                await d.confirm(TX, quote.memo)


# --- servers that lie


async def test_a_large_payment_that_one_server_alone_sees_is_never_credited(tmp_path):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest]) as d:
        quote = await d.quote("5")
        liar.sees(paid(address_of(quote), 5000, latest=500, safe=200))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        honest.sees(sighting(receipt(), latest=500, safe=200))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        honest.sees(paid(address_of(quote), 5000, latest=500, safe=200))
        assert (await d.confirm(TX, quote.memo)).credits == 250_000


async def test_a_large_payment_needs_a_second_server_to_answer(tmp_path):
    first, second = Server(), Server(down=True)
    async with desk(tmp_path, [first, second]) as d:
        quote = await d.quote("5")
        first.sees(paid(address_of(quote), 1000, latest=500, safe=200))
        with pytest.raises(ChainUnavailable):
            await d.confirm(TX, quote.memo)


async def test_whoever_runs_the_server_needs_no_second_one(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(Policy(agree_from=None), wait_s=0)) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 1000, latest=500, safe=200))
        assert (await d.confirm(TX, quote.memo)).credits == 50_000


# --- claims that are none


@pytest.mark.parametrize("tx", ["", "0x", "hello", HEX[:-1], f"{HEX}00", "0x" + "zz" * 32])
async def test_a_hash_of_the_wrong_form_is_an_argument_that_is_wrong(tmp_path, server, tx):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        with pytest.raises(InvalidArguments) as refused:
            await d.confirm(tx, quote.memo)
        assert refused.value.extra["errors"][0]["loc"] == "tx_hash"


@pytest.mark.parametrize("memo", ["", "svc_buy_", "svc_buy_" + "G" * 32, "svc_buy_" + "0" * 31, "svc_buy_" + "A" * 32])
async def test_a_memo_of_the_wrong_form_is_too(tmp_path, server, memo):
    async with desk(tmp_path, [server]) as d:
        with pytest.raises(InvalidArguments) as refused:
            await d.confirm(TX, memo)
        assert refused.value.extra["errors"][0]["loc"] == "nonce"
        assert len(memo) < 9 or memo not in str(refused.value)


async def test_a_memo_that_was_never_given_out_is_not_found_and_nobody_is_asked(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        said = []
        for digit in "ab":
            with pytest.raises(NotFound) as refused:
                await d.confirm(TX, "svc_buy_" + digit * 32)
            said.append((str(refused.value), refused.value.extra))
        assert said[0] == said[1]
        assert server.asked == 0


async def test_a_quote_with_a_challenge_is_claimed_with_its_verifier_only(tmp_path, server):
    verifier = "v" * 43
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote(challenge=challenge_of(verifier))
        server.sees(paid(address_of(quote), 5))
        for wrong in (None, "", "w" * 43, "é" * 20):
            with pytest.raises(PayerProofRequired):
                await d.confirm(TX, quote.memo, verifier=wrong)
        assert (await d.confirm(TX, quote.memo, verifier=verifier)).credits == 250
        with pytest.raises(PayerProofRequired):
            await d.confirm(TX, quote.memo)


# --- a memo on the chain


def call_with(tail: bytes) -> Transaction:
    return Transaction(USDC, TRANSFER_SELECTOR + bytes(64) + tail)


async def test_a_memo_written_on_the_chain_is_credited_once_and_its_token_never_given_again(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, sent=call_with(quote.memo.encode())))
        await d.confirm(TX, quote.memo)
        assert await d.rows("SELECT memo_public, sealed FROM tx_credit") == [(1, None)]
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_where_a_signature_cannot_be_checked_a_public_memo_is_taken_for_public(tmp_path):
    class Deaf(Server):
        async def accepts(self, account, digest, signature):
            self.down = True
            return await super().accepts(account, digest, signature)

    deaf = Deaf()
    async with desk(tmp_path, [deaf]) as d:
        quote = await d.quote()
        deaf.sees(paid(address_of(quote), 5, sent=call_with(quote.memo.encode())))
        assert (await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)).credits == 250
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, quote.memo)


async def test_the_commitment_written_on_the_chain_reveals_nothing(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, sent=call_with(commitment(quote.memo))))
        bought = await d.confirm(TX, quote.memo)
        assert await d.confirm(TX, quote.memo) == bought


async def test_a_verifier_or_a_signature_makes_a_public_memo_harmless(tmp_path, server):
    verifier, payer = "v" * 43, Account.from_key(private_key(7))
    async with desk(tmp_path, [server]) as d:
        locked = await d.quote(challenge=challenge_of(verifier))
        server.sees(paid(address_of(locked), 5, sent=call_with(locked.memo.encode())))
        bought = await d.confirm(TX, locked.memo, verifier=verifier)
        assert await d.confirm(TX, locked.memo, verifier=verifier) == bought
        signed = await d.quote()
        log = transfer_log(address_of(signed), 5, payer=bytes.fromhex(payer.address[2:]))
        server.sees(sighting(receipt(log, tx=TX2), sent=call_with(signed.memo.encode())))
        text = text_to_sign("localhost", signed.memo, TX2)
        signature = f"0x{payer.sign_message(encode_defunct(text=text)).signature.hex().removeprefix('0x')}"
        bought = await d.confirm(TX2, signed.memo, signature=signature)
        assert await d.confirm(TX2, signed.memo, signature=signature) == bought


# --- one address for all


SHARED = bytes([0xD0]) * 20
SHARING = Rules(wait_s=0, shared=True, host="data.example")


async def test_where_the_address_is_shared_a_payment_without_proof_is_nobodys(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(SHARED, 5))
        with pytest.raises(PayerProofRequired) as refused:
            await d.confirm(TX, quote.memo)
        assert f"data.example confirm <nonce> 0x{TX.hex()} chain 8453" in str(refused.value)
        assert quote.memo not in str(refused.value)
        assert await d.minted() == 0


async def test_the_payers_signature_is_proof_and_nobody_elses(tmp_path, server):
    payer, thief = Account.from_key(private_key(7)), Account.from_key(private_key(8))
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote, other = await d.quote(), await d.quote()
        server.sees(sighting(receipt(transfer_log(SHARED, 5, payer=bytes.fromhex(payer.address[2:])))))

        def sign(account, memo):
            text = f"data.example confirm {memo} 0x{TX.hex()} chain 8453"
            return f"0x{account.sign_message(encode_defunct(text=text)).signature.hex().removeprefix('0x')}"

        for signature in (sign(thief, quote.memo), sign(payer, other.memo), "0x" + "00" * 65, "0x" + "ff" * 70):
            with pytest.raises(PayerProofRequired):
                await d.confirm(TX, quote.memo, signature=signature)
        assert (await d.confirm(TX, quote.memo, signature=sign(payer, quote.memo))).credits == 250
        with pytest.raises(AlreadyCredited):
            await d.confirm(TX, other.memo, signature=sign(payer, other.memo))
        assert await d.minted() == 250


async def test_a_contract_account_vouches_for_its_own_signatures(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(SHARED, 5))
        with pytest.raises(PayerProofRequired):
            await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)
        server.signed = {PAYER}
        assert (await d.confirm(TX, quote.memo, signature="0x" + "11" * 65)).credits == 250


async def test_a_transaction_that_pays_nothing_to_the_shared_address_is_no_match(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        server.sees(paid(OTHER, 5))
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)


async def test_two_buyers_of_one_shared_transaction_cannot_both_be_credited(tmp_path, server):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        first, second = await d.quote(), await d.quote()
        server.sees(paid(SHARED, 5))
        server.signed = {PAYER}
        got = []

        async def claim(memo):
            try:
                got.append(await d.confirm(TX, memo, signature="0x" + "11" * 65))
            except AlreadyCredited:
                got.append(None)

        async with anyio.create_task_group() as tasks:
            for memo in (first.memo, second.memo) * 5:
                tasks.start_soon(claim, memo)
        assert len([each for each in got if each]) == 5
        assert len({each.token for each in got if each}) == 1
        assert await d.minted() == 250


@pytest.mark.parametrize("signature", ["", "0x", "11" * 65, "0x" + "11" * 64, "0x" + "zz" * 65, "0x" + "11" * 3000])
async def test_a_signature_of_the_wrong_form_is_an_argument_that_is_wrong(tmp_path, server, signature):
    async with desk(tmp_path, [server], wallet=SHARED, rules=SHARING) as d:
        quote = await d.quote()
        with pytest.raises(InvalidArguments):
            await d.confirm(TX, quote.memo, signature=signature)


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
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
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
