"""Signed payments obey the finality of transfers: large ones wait, all are watched, what is undone is taken back."""

import hashlib

import pytest

from tests.money.purchases.parts import Server, block_hash, observed, receipt, word
from tests.money.x402.parts import PAY_TO, PAYER, desk, payload
from tests.requirements import proves
from toolserver.errors import AlreadyCredited, PaymentRequired, SalesCeilingReached, SettlementPending
from toolserver.money.ledger.protocol import AccountRef
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import AUTHORIZATION_USED, TRANSFER, Log, Policy
from toolserver.money.purchases.quotes import Ceilings
from toolserver.money.purchases.units import USDC
from toolserver.money.x402 import wire
from toolserver.money.x402.settlement import SettlementSweep
from toolserver.money.x402.store import read_confirmation_cases

KEY = "k" * 40


def made(said, usd, **more):
    """The transaction by which the facilitator makes a payment, as a server sees it."""
    nonce = bytes.fromhex(said["payload"]["authorization"]["nonce"][2:])
    tx = hashlib.sha256(f"0x{nonce.hex()}".encode()).digest()
    used = Log(USDC, (AUTHORIZATION_USED, word(PAYER), nonce), b"", 0)
    moved = Log(USDC, (TRANSFER, word(PAYER), word(PAY_TO)), (usd * ATOMIC).to_bytes(32, "big"), 1)
    return observed(receipt(used, moved, tx=tx), **more)


def signed(usd):
    said = payload(usd * ATOMIC)
    return said, wire.header(said)


async def looks(d, times=1):
    for _ in range(times):
        await d.settling.finality.look()
        d.clock.advance(COMPARE_S)


async def cases(d):
    return [(case.kind, case.lost) for case in read_confirmation_cases(d.ledger.file.path)]


async def test_a_small_top_up_is_credited_at_once_and_watched_until_two_servers_have_it_final(tmp_path):
    one, two = Server(), Server()
    async with desk(tmp_path, servers=[one, two]) as d:
        said, payment = signed(5)
        assert (await d.topup(payment, 5, key=KEY)).credits == 250
        for server in (one, two):
            server.sees(made(said, 5))
        await looks(d)
        assert await d.rows("SELECT agreed_at IS NULL, final_at FROM x402_confirmation") == [(0, None)]
        for server in (one, two):
            server.sees(made(said, 5, finalized=100))
        await looks(d)
        asked = one.asked
        await looks(d)
        assert one.asked == asked
        assert await cases(d) == []


@proves("x402.finality")
async def test_a_large_top_up_waits_for_its_finality_and_is_never_offered_anew(tmp_path):
    server = Server()
    async with desk(tmp_path, servers=[server, Server()], policy=Policy(agree_from=None)) as d:
        said, payment = signed(200)
        for seen in ((), (made(said, 200, safe=99),)):
            server.sees(*seen)
            with pytest.raises(SettlementPending):
                await d.topup(payment, 200, key=KEY)
            assert await d.minted() == 0
        server.sees(made(said, 200, safe=100))
        assert (await d.topup(payment, 200, key=KEY)).credits == 10_000
        assert d.script.settlements == 1


@proves("x402.finality")
async def test_from_the_amount_of_agreement_on_two_servers_are_needed(tmp_path):
    one, two = Server(), Server()
    async with desk(tmp_path, servers=[one, two], policy=Policy(agree_from=100 * ATOMIC)) as d:
        said, payment = signed(150)
        one.sees(made(said, 150, safe=100))
        with pytest.raises(SettlementPending):
            await d.topup(payment, 150, key=KEY)
        two.sees(made(said, 150, safe=100))
        assert (await d.topup(payment, 150, key=KEY)).credits == 7500


async def test_a_large_top_up_of_a_known_token_is_credited_when_it_is_final_enough_without_its_sender(tmp_path):
    server = Server()
    token = f"svc_live_{7:064x}"
    async with desk(tmp_path, servers=[server]) as d:
        await d.ledger.mint(token, 1, cause="x")
        said, payment = signed(200)
        with pytest.raises(SettlementPending):
            await d.topup(payment, 200, token=token)
        await SettlementSweep(d.settling, None).look()
        await looks(d)
        assert await d.ledger.balance(token) == 1
        server.sees(made(said, 200, safe=100))
        await looks(d)
        assert await d.ledger.balance(token) == 10_001
        assert (await d.topup(payment, 200, token=token)).credits == 10_000


@proves("x402.undone")
async def test_what_the_chain_undoes_is_taken_back_and_the_payment_buys_nothing_more(tmp_path, caplog):
    one, two = Server(), Server()
    async with desk(tmp_path, servers=[one, two]) as d:
        _, payment = signed(5)
        bought = await d.topup(payment, 5, key=KEY)
        await looks(d, 5)
        with pytest.raises(PaymentRequired):
            await d.ledger.balance(bought.token)
        assert await d.minted() == 0
        assert await cases(d) == [("undone", 0)]
        with pytest.raises(AlreadyCredited, match="the chain undid it"):
            await d.topup(payment, 5, key=KEY)
        assert "was undone" in caplog.text


@pytest.mark.parametrize(("spent", "lost", "valid"), [(0, 0, True), (10, 10, False)])
async def test_a_token_that_was_topped_up_keeps_what_it_had_unless_the_undone_credits_were_spent(
    tmp_path, spent, lost, valid
):
    token = f"svc_live_{7:064x}"
    async with desk(tmp_path, servers=[Server()]) as d:
        await d.ledger.mint(token, 20, cause="x")
        await d.topup(signed(5)[1], 5, token=token)
        await d.ledger.charge("c1", token, 20 + spent, endpoint="/x") if spent else None
        await looks(d, 5)
        standing = await d.ledger.standing(token)
        assert (standing.revoked is None, await cases(d)) == (valid, [("undone", lost)])
        assert standing.credits == (20 if valid else 0)
        assert isinstance(standing.ref, AccountRef)


async def test_a_payment_that_comes_back_in_another_block_is_not_taken_back(tmp_path):
    server = Server()
    async with desk(tmp_path, servers=[server]) as d:
        said, payment = signed(5)
        bought = await d.topup(payment, 5, key=KEY)
        server.sees(made(said, 5))
        await looks(d)
        server.seen.clear()
        await looks(d)
        moved = made(said, 5)
        moved = moved._replace(receipt=moved.receipt._replace(block_hash=block_hash(101), block_number=101))
        server.sees(moved._replace(canonical=block_hash(101)))
        await looks(d, 5)
        assert await d.ledger.balance(bought.token) == 250
        assert await d.rows("SELECT block_number, missing_since FROM x402_confirmation") == [(101, None)]


async def test_a_server_that_lies_is_found_within_a_minute(tmp_path, caplog):
    liar, honest = Server(), Server()
    async with desk(tmp_path, servers=[liar, honest]) as d:
        said, payment = signed(5)
        await d.topup(payment, 5, key=KEY)
        liar.sees(made(said, 5, finalized=100))
        await looks(d, 3)
        assert await cases(d) == [("disputed", None)]
        assert await d.rows("SELECT final_at FROM x402_confirmation") == [(None,)]
        honest.sees(made(said, 5, finalized=100))
        await looks(d)
        assert await cases(d) == []


@pytest.mark.parametrize(
    "change",
    [
        {"topics": (AUTHORIZATION_USED, word(PAYER), bytes(32))},
        {"address": bytes(20)},
    ],
)
async def test_a_transaction_without_the_authorisation_is_not_the_payment(tmp_path, change):
    server = Server()
    async with desk(tmp_path, servers=[server], policy=Policy(safe_from=1)) as d:
        said, payment = signed(5)
        seen = made(said, 5, safe=100)
        used, moved = seen.receipt.logs
        server.sees(seen._replace(receipt=seen.receipt._replace(logs=(used._replace(**change), moved))))
        with pytest.raises(SettlementPending):
            await d.topup(payment, 5, key=KEY)


@proves("x402.ceilings")
async def test_what_would_cross_a_ceiling_is_refused_before_it_is_made(tmp_path):
    async with desk(tmp_path, ceilings=Ceilings(hour=8 * ATOMIC)) as d:
        await d.topup(signed(5)[1], 5, key=KEY)
        with pytest.raises(SalesCeilingReached, match="more than 8 USD from all buyers within an hour"):
            await d.topup(signed(5)[1], 5, key=KEY)
        assert d.script.settlements == 1
        assert await d.states() == ["settled"]


async def test_a_top_up_in_doubt_can_not_be_spent_and_what_was_spent_is_named(tmp_path):
    liar, honest = Server(), Server()
    async with desk(tmp_path, servers=[liar, honest]) as d:
        said, payment = signed(5)
        bought = await d.topup(payment, 5, key=KEY)
        await d.ledger.charge("c1", bought.token, 10, endpoint="/x")
        liar.sees(made(said, 5))
        await looks(d, 3)
        assert (await d.ledger.balance(bought.token), await cases(d)) == (0, [("disputed", 10)])
        honest.sees(made(said, 5, finalized=100))
        liar.sees(made(said, 5, finalized=100))
        await looks(d)
        assert (await d.ledger.balance(bought.token), await cases(d)) == (240, [])


async def test_a_settlement_that_never_was_can_not_be_spent_after_the_first_look_and_ends_as_taken_back(tmp_path):
    async with desk(tmp_path, servers=[Server(), Server()]) as d:
        bought = await d.topup(signed(5)[1], 5, key=KEY)
        await looks(d)
        assert (await d.ledger.balance(bought.token), (await d.ledger.standing(bought.token)).revoked) == (0, None)
        await looks(d, 4)
        assert await d.rows("SELECT taken_back, lost FROM x402_confirmation") == [(250, 0)]
        assert await cases(d) == [("undone", 0)]
