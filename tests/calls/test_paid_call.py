"""Paid calls through the real pipeline on the ledger in SQLite, across restarts and hang-ups."""

from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from tests.arranged import FACTS
from tests.calls.parts import RICH, START, engine
from tests.calls.toy import FIRST, REGISTRY, SECOND
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import IdempotencyConflict, InternalError, StorageUnavailable, UpstreamUnavailable
from toolserver.money.receipts.service import ReceiptService
from toolserver.serving.money import open_money
from toolserver.settings import Settings
from toolserver.sql.errors import StorageFailed


@pytest.fixture
def clock():
    return ManualClock(START)


@asynccontextmanager
async def service(folder, clock):
    """A service on the folder's ledger, with everything else new: as after a restart."""
    settings = Settings(data_dir=folder)
    async with (
        open_money(settings, clock=clock, base_url=FACTS.base_url, service=FACTS.source) as money,
        engine(REGISTRY, clock=clock, money=money) as e,
    ):
        await money.own.mint(RICH, 10, cause="rich")
        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, {"value": 2})
        yield e
        assert await money.own.check() == []


async def buy(e, **more):
    return await e.call("premium_report", token=RICH, **more)


async def test_the_first_call_sets_credits_aside_and_a_hit_is_charged_in_one_step(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        outcomes = [await buy(e) for _ in range(3)]
        kinds = await e.ledger.file.read(lambda db: db.execute("SELECT kind FROM transfer ORDER BY seq").fetchall())
    assert [(o.charged, o.credits_remaining) for o in outcomes] == [(2, 8), (2, 6), (2, 4)]
    assert [kind for (kind,) in kinds] == ["posted", "pending", "post", "posted", "posted"]


async def test_after_a_restart_the_same_key_brings_the_same_bytes_and_no_second_charge(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        first = await buy(e, idempotency_key="k")
    async with service(tmp_path, clock) as e:
        e.internet.serves(FIRST, {"value": 99})
        again = await buy(e, idempotency_key="k")
        assert await e.ledger.balance(RICH) == 8
        assert e.internet.asked == []
        with pytest.raises(IdempotencyConflict):
            await e.call("premium_report", {"history": "30d"}, token=RICH, idempotency_key="k")
    assert again.rendered.payload == first.rendered.payload
    assert again.rendered.etag == first.rendered.etag
    assert (again.charged, again.credits_remaining) == (first.charged, first.credits_remaining) == (2, 8)


async def test_a_call_that_was_charged_but_never_answered_is_not_charged_again(tmp_path, clock, caplog):
    async with service(tmp_path, clock) as e:
        await e.ledger.file.alone(
            lambda db: (
                db.execute(
                    "CREATE TEMP TRIGGER crash BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'crash'); END"
                )
                and None
            )
        )
        await buy(e, idempotency_key="k")
        assert await e.ledger.balance(RICH) == 8
    async with service(tmp_path, clock) as e:
        again = await buy(e, idempotency_key="k")
        assert (again.charged, again.credits_remaining) == (2, 8)
        assert await e.ledger.balance(RICH) == 8
        assert (await buy(e, idempotency_key="k")).rendered.payload == again.rendered.payload


async def test_who_hangs_up_pays_nothing_and_may_try_again_with_the_same_key(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        started = anyio.Event()

        async def never(request):
            started.set()
            await anyio.sleep_forever()

        e.internet.serves(FIRST, never)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: buy(e, idempotency_key="k"))
            await started.wait()
            tasks.cancel_scope.cancel()
        assert await e.ledger.balance(RICH) == 10
        assert await e.ledger.holds() == []
        e.internet.serves(FIRST, {"value": 1})
        assert (await buy(e, idempotency_key="k")).charged == 2


async def test_a_failure_is_released_and_not_kept(tmp_path, clock):
    async with service(tmp_path, clock) as e:
        for source in (FIRST, SECOND):
            e.internet.serves(source, httpx.Response(500))
        with pytest.raises(UpstreamUnavailable):
            await buy(e, idempotency_key="k")
        assert await e.ledger.balance(RICH) == 10
        for source in (FIRST, SECOND):
            e.internet.serves(source, {"value": 1})
        clock.advance(400)
        assert (await buy(e, idempotency_key="k")).charged == 2


@pytest.mark.parametrize(
    ("failure", "refused"),
    [
        (StorageFailed("the server is away"), StorageUnavailable),
        (TimeoutError(), StorageUnavailable),
        (ValueError("a bug"), InternalError),
    ],
    ids=str,
)
async def test_without_a_receipt_nothing_is_sold_and_a_store_that_is_away_is_no_fault_of_the_call(
    tmp_path, clock, monkeypatch, failure, refused
):
    async def fail(self, sale):
        raise failure

    async with service(tmp_path, clock) as e:
        monkeypatch.setattr(ReceiptService, "sign", fail)
        with pytest.raises(refused):
            await buy(e)
        assert await e.ledger.balance(RICH) == 10
        assert await e.ledger.holds() == []


async def test_a_sale_that_was_made_when_the_caller_is_given_up_is_released(tmp_path, clock):
    async with service(tmp_path, clock) as e:

        async def receive():
            try:
                await anyio.sleep_forever()
            finally:  # the answer is made, and the connection is watched no longer
                scope.cancel()

        with anyio.CancelScope() as scope:
            await e.pipeline.call(
                REGISTRY["premium_report"], {}, Caller("192.0.2.1", RICH, limited=False), receive=receive
            )
            pytest.fail("the call was to be cancelled")
        assert e.internet.asked
        assert await e.ledger.balance(RICH) == 10
        assert await e.ledger.holds() == []


async def test_a_caller_who_is_given_up_while_the_charge_is_booked_is_not_charged(tmp_path, clock, monkeypatch):
    async with service(tmp_path, clock) as e:
        settle = e.ledger.settle

        async def settle_and_leave(*given, **how):
            settled = await settle(*given, **how)
            scope.cancel()
            return settled

        monkeypatch.setattr(e.ledger, "settle", settle_and_leave)
        with anyio.CancelScope() as scope:
            await buy(e)
            pytest.fail("the call was to be cancelled")
        assert await e.ledger.balance(RICH) == 10
        assert await e.ledger.holds() == []
