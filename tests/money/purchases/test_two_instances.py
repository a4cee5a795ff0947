"""Two instances that sell on one database: an address is given out once, a payment is credited once, and what watches
the chain runs on one of them.
"""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import pytest

from tests.money.purchases.parts import KEY, NOW, TX, Desk, Server, address_of, block_hash, desk, paid
from tests.size import sized
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.purchases.chain.reorg_watch import ReorgWatch
from toolserver.money.purchases.quotes import BLOCK, AddressNumbers
from toolserver.money.purchases.service import AlreadyCredited
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.sql.high_water import HighWater
from toolserver.sql.leases import LeasedTask, LeaseLost

pytestmark = pytest.mark.live


@dataclass
class Pair:
    """Two desks over one database and one chain."""

    one: Desk
    other: Desk
    server: Server
    clock: ManualClock


@pytest.fixture
async def pair(tmp_path):
    clock, server = ManualClock(datetime.fromtimestamp(NOW, UTC)), Server()
    async with AsyncExitStack() as stack:
        made = (desk(tmp_path, [server], clock=clock, kind="postgres") for _ in range(2))
        yield Pair(*[await stack.enter_async_context(each) for each in made], server, clock)


async def test_no_address_is_given_out_twice(pair):
    wallets, each = [], sized(2 * BLOCK, fast=9)

    async def sell(at: Desk) -> None:
        wallets.extend([(await at.quote()).wallet for _ in range(each)])

    async with anyio.create_task_group() as tasks:
        for at in (pair.one, pair.other, pair.one, pair.other):
            tasks.start_soon(sell, at)
    assert len(wallets) == len(set(wallets)) == 4 * each
    kept = dict(await pair.one.store.list_deposits())
    assert {KEY.address(index) for index in kept} == set(kept.values())
    assert len(kept) == 4 * each


async def test_a_database_from_a_backup_gives_no_number_out_again(pair, tmp_path):
    numbers = AddressNumbers(pair.one.store, marks=HighWater(tmp_path / "one"))
    first = await numbers.take()
    await pair.one.ledger.file.alone(lambda db: db.execute("DELETE FROM deposit_number").rowcount)
    again = await AddressNumbers(pair.one.store, marks=HighWater(tmp_path / "one")).take()
    assert again >= first + BLOCK
    assert await AddressNumbers(pair.other.store).take() >= again + BLOCK


async def test_a_payment_that_is_confirmed_at_both_is_credited_once(pair):
    quotes = [await pair.one.quote() for _ in range(6)]
    given = []

    async def claim(at: Desk, tx: bytes, memo: str) -> None:
        try:
            given.append((await at.confirm(tx, memo)).token)
        except AlreadyCredited:
            given.append(None)

    async with anyio.create_task_group() as tasks:
        for number, quote in enumerate(quotes, 1):
            tx = bytes([number]) * 32
            pair.server.sees(paid(address_of(quote), 5, tx=tx))
            for at in (pair.one, pair.other):
                tasks.start_soon(claim, at, tx, quote.memo)
    assert len(given) == 12
    assert len({token for token in given if token}) == 6, "both give the same token, or one gives it"
    assert await pair.other.minted() == 6 * 250


async def test_a_quote_of_one_is_paid_at_the_other_and_spent_at_both(pair):
    quote = await pair.one.quote()
    pair.server.sees(paid(address_of(quote), 5))
    bought = (await pair.other.confirm(TX, quote.memo)).token
    for number, at in enumerate((pair.one, pair.other)):
        await at.ledger.charge(f"call_{number}", bought, 100, endpoint="/api/pro/x")
    assert await pair.one.ledger.balance(bought) == 50


def watch_of(ledger: SqlLedger, pair: Pair, *, lease_s: float = 60) -> tuple[ReorgWatch, LeasedTask]:
    task = LeasedTask(ledger.file, "reorg watch", pair.clock, lease_s=lease_s)
    store = SqlPurchaseStore(ledger.file, task)
    return ReorgWatch(store, pair.one.chain, pair.clock, pair.one.rules.policy, task), task


async def test_one_watches_and_who_was_held_up_undoes_nothing(pair):
    """The first saw the payment missing and slept; meanwhile it came back, as the second one noted."""
    quote = await pair.one.quote()
    seen = paid(address_of(quote), 5)
    pair.server.sees(seen)
    bought = (await pair.one.confirm(TX, quote.memo)).token
    first, turn = watch_of(pair.one.ledger, pair, lease_s=0)
    second, other = watch_of(pair.other.ledger, pair)
    assert await turn.take()
    pair.server.seen.clear()
    pair.server.blocks[100] = block_hash(100, "fork")
    await first.look()
    pair.clock.advance(60)

    assert await other.take()
    assert not await turn.take()
    turn._fence = 1  # as if it had slept since it took its turn
    with pytest.raises(LeaseLost):
        await first.look()
    assert (await pair.one.ledger.standing(bought)).revoked is None

    pair.server.sees(seen)
    pair.server.blocks.clear()
    await second.look()
    (watched,) = await pair.other.store.list_watched()
    assert watched.missing_since is None
    assert await pair.one.ledger.balance(bought) == 250  # it was withheld while it was missing
    pair.server.seen.clear()
    pair.server.blocks[100] = block_hash(100, "fork")
    for _ in range(2):
        await second.look()
        pair.clock.advance(60)
    with pytest.raises(PaymentRequired):
        await pair.one.ledger.balance(bought)
