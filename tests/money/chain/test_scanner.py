"""The scanner on a chain of our own, whose node serves logs within the limits of real providers and is reorganised."""

import random
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest

from tests.money.chain.log_node import BLOCK_S, LogNode, served
from tests.money.chain.month import START, Month, scanner_of
from tests.money.chain.parts import WALLET
from tests.money.chain.read_balances import read_balance
from tests.money.purchases.parts import Server, desk
from tests.postgres import POSTGRES
from toolserver.money.chain.scanner import COLD_S


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


async def settle(m):
    """Let everything become final, and read it."""
    m.pass_blocks(int(COLD_S / BLOCK_S))
    await m.scanner.look()


async def find_differences(m, url):
    """Addresses whose balance, read by the other program, is not what the book says, after the last final block."""
    block = (await m.scanner._book.find_mark("final")).block
    addresses = [*m.wallets, f"0x{WALLET.hex()}"]
    booked = await m.scanner._book.sum_booked([bytes.fromhex(one[2:]) for one in addresses], block)
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
