"""Two instances that take one signed payment: it is begun once, credited once, and taken back once."""

from datetime import UTC, datetime

import anyio
import pytest

from tests.money.ledger.ledgers import opened
from tests.money.x402.test_store import BEGUN, CREDIT, HASH, MS, NOW, TOKEN
from toolserver.clock import ManualClock
from toolserver.money.x402.records import NonceUsed
from toolserver.money.x402.store import SqlPaymentStore

pytestmark = pytest.mark.live


@pytest.fixture
async def pair(tmp_path):
    clock = ManualClock(datetime.fromtimestamp(NOW, UTC))
    async with opened("postgres", tmp_path, clock) as one, opened("postgres", tmp_path, clock) as other:
        yield one, other
        assert await one.check() == []


async def count(ledgers, job):
    """How many of eight, half of them at each instance, did it."""
    done = []

    async def attempt(ledger):
        try:
            done.append(await job(SqlPaymentStore(ledger.file)) or (0, 0))
        except NonceUsed:
            pass

    async with anyio.create_task_group() as tasks:
        for turn in range(8):
            tasks.start_soon(attempt, ledgers[turn % 2])
    return done


async def test_a_payment_is_begun_credited_and_undone_once(pair):
    await pair[0].mint(TOKEN, 300, cause="bought otherwise")
    begun = BEGUN._replace(request=f"topup {HASH}")
    assert len(await count(pair, lambda store: store.begin_payment(begun))) == 1
    assert len(await count(pair, lambda store: store.credit_topup(CREDIT))) == 1
    assert [await ledger.balance(TOKEN) for ledger in pair] == [400, 400]
    assert sum(taken for taken, _ in await count(pair, lambda store: store.undo_payment(BEGUN.payload, MS))) == 100
    assert await pair[0].balance(TOKEN) == 300
    stored = await SqlPaymentStore(pair[1].file).find_payment(BEGUN.payload)
    assert (stored.token, stored.credits) == (HASH, 100)
