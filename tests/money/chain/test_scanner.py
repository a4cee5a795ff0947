"""The scanner on a chain of our own, whose node serves logs within the limits of real providers and is reorganised."""

import random
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest

from tests.money.chain.log_node import BLOCK_S, LogNode, served
from tests.money.chain.month import COLLECTOR, START, STRANGER, Month, scanner_of
from tests.money.chain.parts import WALLET
from tests.money.purchases.parts import Server, desk
from tests.month.balances import read_balance
from tests.postgres import POSTGRES
from toolserver.money.books.sql_chain_differences import find_chain_differences
from toolserver.money.chain import sql_chain_book
from toolserver.money.chain.scanner import COLD_S, FINAL_S, ScanTerms
from toolserver.money.purchases.chain.rpc_pool import ChainDown


@asynccontextmanager
async def a_month(folder, *, seed=0, kind="sqlite", node=None, terms=None):
    server, node = Server(), node or LogNode()
    node.height = START
    async with served(node) as url, desk(folder, [server], kind=kind) as d:
        scanner, pool = scanner_of(d, url, terms)
        try:
            yield Month(node, d, server, scanner, random.Random(seed)), url
        finally:
            await pool.aclose()


async def settle(m, blocks=int(COLD_S / BLOCK_S)):
    """Let a day pass, in which everything becomes final, and read it. The chain may stand still for most of the day."""
    m.pass_blocks(blocks)
    m.desk.clock.advance(COLD_S - blocks * BLOCK_S)
    await m.scanner.look()


async def find_differences(m, url):
    """Addresses whose balance, read by the other program, is not what the book says, after the last final block."""
    block = (await m.scanner._book.find_mark("final")).block
    addresses = [*m.wallets, f"0x{WALLET.hex()}"]
    booked = await m.scanner._book.sum_booked([bytes.fromhex(one[2:]) for one in addresses], block)
    assert await m.desk.ledger.file.read(lambda db: list(find_chain_differences(db))) == []
    held = [await anyio.to_thread.run_sync(read_balance, url, one, block) for one in addresses]
    return [(one, here, there) for one, here, there in zip(addresses, booked, held, strict=True) if here != there]


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
@pytest.mark.parametrize("seed", range(4))
async def test_a_month_of_every_kind_of_payment_and_reorganisations_adds_up_to_the_atomic_unit(tmp_path, seed, kind):
    async with a_month(tmp_path, seed=seed, kind=kind) as (m, url):
        for number in range(40):
            await m.step()
            if m.rng.random() < 0.5:
                await m.scanner.look()
            if m.rng.random() < 0.2:
                m.reorganise()
            if number % 10 == 9:
                await settle(m)
                assert await find_differences(m, url) == []
        await settle(m)
        assert await find_differences(m, url) == []
        assert await m.desk.rows("SELECT * FROM chain_difference") == []
        found = await m.read_states()
        assert {tx: set(found[tx]) for tx in m.expected.keys() & found} == {
            tx: {state} for tx, state in m.expected.items() if tx in found
        }
        missing = {tx for tx, state in m.expected.items() if tx not in found and state != "undone"}
        assert missing == set()
        before = await m.desk.rows("SELECT count(*) FROM chain_change")
        await m.scanner.look()
        assert await m.desk.rows("SELECT count(*) FROM chain_change") == before


async def test_a_server_within_its_limits_is_read_whole_and_what_it_refuses_in_halves(tmp_path):
    node = LogNode(topics=3, blocks=64, results=4)
    async with a_month(tmp_path, node=node, terms=ScanTerms(addresses=8, blocks=500)) as (m, url):
        wallets = [await m.quote() for _ in range(20)]
        for wallet in wallets:
            m.pay(wallet, 2)
        m.node.mine(*((m.tx(), STRANGER, wallet, 3_000_000) for wallet in wallets[:4]))
        await m.scanner.look()
        await settle(m, blocks=40)
        assert node.refused > 0
        assert await m.desk.rows("SELECT count(*), sum(amount) FROM chain_transfer") == [(24, 52_000_000)]
        assert await find_differences(m, url) == []


async def test_a_server_that_refuses_a_single_block_of_a_single_address_is_a_failure_and_nothing_is_skipped(tmp_path):
    node = LogNode(results=0)
    async with a_month(tmp_path, node=node, terms=ScanTerms(addresses=2)) as (m, _):
        m.pay(await m.quote(), 5)
        with pytest.raises(ChainDown, match="one block and one address"):
            await m.scanner.look()
        node.results = 100
        await settle(m, blocks=40)
        assert await m.desk.rows("SELECT state FROM chain_transfer") == [("quoted",)]


async def test_within_the_settings_no_request_is_refused(tmp_path):
    node = LogNode(topics=5, blocks=300)
    async with a_month(tmp_path, node=node, terms=ScanTerms(addresses=5, blocks=300)) as (m, _):
        for wallet in [await m.quote() for _ in range(12)]:
            m.pay(wallet, 2)
        m.pass_blocks(1000)
        await settle(m, blocks=40)
        assert node.refused == 0
        assert await m.desk.rows("SELECT count(*) FROM chain_transfer") == [(12,)]


async def test_what_was_claimed_just_before_a_long_pause_is_credited_after_it(tmp_path):
    async with a_month(tmp_path, node=LogNode()) as (m, _):
        address = await m.quote()
        tx = m.pay(address, 5)
        m.pass_blocks(12)
        await m.scanner.look()
        await m.confirm(address, tx, 5)
        m.desk.clock.advance(5 * 3600)
        await m.scanner.look()
        assert (await m.read_states())[tx] == {"credited": 1}


async def test_a_server_that_lags_or_leaves_out_a_log_undoes_nothing(tmp_path):
    async with a_month(tmp_path) as (m, _):
        tx = m.pay(await m.quote(), 5)
        m.pass_blocks(5)
        await m.scanner.look()
        m.node.lag = 8
        await m.scanner.look()
        m.node.lag, m.node.leaves_out = 0, {tx}
        await m.scanner.look()
        assert (await m.read_states())[tx] == {"quoted": 1}


async def test_the_times_of_blocks_are_read_where_a_server_does_not_say_them(tmp_path):
    async with a_month(tmp_path, node=LogNode(says_time=False)) as (m, _):
        wallet = await m.quote()
        m.pass_blocks(1300)
        tx = m.pay(wallet, 5)
        await settle(m)
        assert (await m.read_states())[tx] == {"late": 1}


async def test_a_quote_that_nobody_pays_costs_no_logs_once_it_has_ended(tmp_path):
    terms = ScanTerms(addresses=10)
    async with a_month(tmp_path, terms=terms) as (m, _):
        tx = m.pay(await m.quote(), 5)
        await settle(m)
        alone = m.node.asked.count("eth_getLogs")
        await settle(m)
        alone = m.node.asked.count("eth_getLogs") - alone
        for _ in range(60):
            await m.quote()
        m.pass_blocks(int(2 * COLD_S / BLOCK_S))
        await m.scanner.look()
        before = m.node.asked.count("eth_getLogs")
        await settle(m)
        assert m.node.asked.count("eth_getLogs") - before <= alone
        assert (await m.read_states())[tx] == {"quoted": 1}


async def test_money_at_an_address_that_is_no_longer_read_is_found_by_its_balance(tmp_path):
    async with a_month(tmp_path, terms=ScanTerms(hot_days=1)) as (m, url):
        wallet = await m.quote()
        await settle(m)
        m.pass_blocks(int(4 * COLD_S / BLOCK_S))
        await m.scanner.look()
        tx = m.pay(wallet, 5)
        m.pay(wallet, 0.004)
        m.pass_blocks(int(FINAL_S / BLOCK_S))
        await m.scanner.look()
        assert tx not in await m.read_states()
        await settle(m)
        assert (await m.read_states())[tx] == {"late": 1}
        assert await m.desk.rows("SELECT received_amount FROM chain_dust") == [(4000,)]
        assert await find_differences(m, url) == []


async def test_what_a_wallet_held_before_our_first_document_is_named_and_what_comes_later_is_counted(tmp_path):
    async with a_month(tmp_path) as (m, url):
        m.node.height -= 5000
        m.pay(f"0x{WALLET.hex()}", 100)
        m.node.height += 5000
        await m.quote()
        m.pay(f"0x{WALLET.hex()}", 3)
        await settle(m)
        assert await m.desk.rows("SELECT amount FROM chain_opening") == [(100_000_000,)]
        assert await m.desk.rows("SELECT amount FROM chain_transfer") == [(3_000_000,)]
        m.pay(COLLECTOR, 50, payer=f"0x{WALLET.hex()}")
        await settle(m)
        assert await find_differences(m, url) == []
        assert await m.desk.rows("SELECT * FROM chain_difference") == []


async def test_a_transfer_that_no_log_shows_is_a_difference_with_both_sums(tmp_path):
    async with a_month(tmp_path) as (m, _):
        wallet = await m.quote()
        m.node.leaves_out = {m.pay(wallet, 5)}
        await settle(m)
        rows = await m.desk.rows("SELECT address, booked, held FROM chain_difference")
        assert [(bytes(address).hex(), *sums) for address, *sums in rows] == [(wallet[2:], 0, 5_000_000)]
        assert m.scanner.health.differences == 1
        m.node.leaves_out = set()
        await settle(m)
        assert await m.desk.rows("SELECT * FROM chain_difference") == []
        assert m.scanner.health.differences == 0


async def test_reading_that_was_interrupted_continues_and_counts_nothing_twice(tmp_path):
    node = LogNode()
    async with a_month(tmp_path, node=node, terms=ScanTerms(addresses=2, blocks=20)) as (m, url):
        for wallet in [await m.quote() for _ in range(6)]:
            m.pay(wallet, 5)
            m.pay(wallet, 0.001)
            m.pass_blocks(15)
        m.pass_blocks(50)
        right = node.answer

        def fail_later(method, params):
            if node.asked.count("eth_getLogs") % 7 == 6:
                node.asked.append("eth_getLogs")
                raise ConnectionError
            return right(method, params)

        node.answer = fail_later
        failures = 0
        for _ in range(40):
            try:
                await m.scanner.look()
            except ChainDown:
                failures += 1
                m.desk.clock.advance(31)
        node.answer = right
        assert failures > 1
        await settle(m, blocks=40)
        assert await m.desk.rows("SELECT count(*), sum(received_amount) FROM chain_dust") == [(6, 6000)]
        assert await m.desk.rows("SELECT count(*) FROM chain_transfer") == [(6,)]
        assert await find_differences(m, url) == []


async def test_the_first_reading_finds_money_at_every_address_however_many_quotes_came_after(tmp_path, monkeypatch):
    monkeypatch.setattr(sql_chain_book, "HOT", sql_chain_book.Most(paid=2, quoted=2))
    monkeypatch.setattr(sql_chain_book, "COMPARED_UNPAID", 2)
    async with a_month(tmp_path) as (m, url):
        wallets = [await m.quote() for _ in range(12)]
        paid = [m.pay(wallet, 5) for wallet in wallets[:6]]
        m.pass_blocks(int(FINAL_S / BLOCK_S))
        await m.scanner.look()
        assert (await m.read_states()).keys() == set(paid)
        assert await find_differences(m, url) == []
