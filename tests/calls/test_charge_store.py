"""One contract for the stores of charges with receipts: both are written or neither, and both can be withdrawn."""

import hashlib

import anyio
import pytest

from tests.calls.charging import RICH, open_stand
from tests.calls.parts import START
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.calls.charge_store import record_died
from toolserver.calls.idempotency import KeptResult
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.receipts.sign import receipt_id
from toolserver.money.receipts.sql_store import find_receipts


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
async def stand(request, tmp_path):
    async with open_stand(tmp_path, request.param) as stand:
        yield stand
        assert await stand.ledger.check() == []


async def test_without_a_receipt_there_is_no_charge_and_others_of_the_group_go_on(stand):
    failures, good = [], [new_call_id(), new_call_id()]

    def broken(settled):
        raise RuntimeError("no receipt")

    async def one():
        try:
            await stand.buy(good[0], sale=broken)
        except RuntimeError as failure:
            failures.append(str(failure))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(stand.buy, good[1])
    assert failures == ["no receipt"]
    assert await stand.ledger.balance(RICH) == 98
    assert [await stand.has_receipt(call_id) for call_id in good] == [False, True]


async def test_a_withdrawn_charge_is_released_and_its_receipt_is_gone(stand):
    call_id, other = new_call_id(), new_call_id()
    await stand.buy(call_id)
    await stand.buy(other)
    stand.store.withdraw(call_id, token_hash(RICH).hex())
    await stand.ledger.sweep()

    assert await stand.ledger.balance(RICH) == 98
    assert (await stand.has_receipt(call_id), await stand.has_receipt(other)) == (False, True)


async def _table(stand, sql):
    return await stand.ledger.file.read(lambda db: db.execute(sql).fetchall())


async def _crash_and_recover(folder, calls):
    """Buy, say which answers were sent, open the same file again, and return what was released."""
    async with open_stand(folder) as stand:
        for call_id, sent in calls.items():
            await stand.buy(call_id)
            if sent:
                stand.ledger.delivered(call_id)
    async with open_stand(folder) as stand:
        released = await stand.store.release_undelivered()
        assert await stand.ledger.check() == []
        return (
            released,
            dict(await _table(stand, "SELECT call_id, state || ' ' || coalesce(reason, '') FROM reservation")),
            await _table(stand, "SELECT reason, endpoint, credits, receipt FROM uncharged_call"),
            await stand.ledger.balance(RICH),
        )


@proves("charge.delivery")
async def test_a_charge_whose_answer_was_not_sent_is_released_at_the_start_and_stands_in_the_log(tmp_path):
    sent, lost = new_call_id(), new_call_id()

    released, states, log, balance = await _crash_and_recover(tmp_path, {sent: True, lost: False})

    assert released == 1
    assert states == {sent: "posted ", lost: "reversed delivery_failed"}
    assert balance == 98
    assert [call[:3] for call in log] == [("delivery_failed", "/api/pro/x", 2)]
    async with open_stand(tmp_path) as stand:
        (receipt,) = (await stand.ledger.file.read(lambda db: find_receipts(db, [receipt_id(lost)]))).values()
        assert log[0][3] == hashlib.sha256(receipt.core).digest()
        assert await stand.store.release_undelivered() == 0


async def test_the_kept_answer_of_a_released_call_goes_with_it(tmp_path):
    sent, lost = new_call_id(), new_call_id()
    clock = ManualClock(START)
    async with open_stand(tmp_path) as stand:
        kept = SqlIdempotencyStore(stand.ledger.file, clock)
        for key, call_id in (("a", sent), ("b", lost)):
            await kept.begin(("s", key), "r", call_id)
            await stand.buy(call_id)
            await kept.keep(("s", key), KeptResult(b"answer"))
        stand.ledger.delivered(sent)
    async with open_stand(tmp_path) as stand:
        await stand.store.release_undelivered()
        kept = SqlIdempotencyStore(stand.ledger.file, clock)
        assert (await kept.begin(("s", "a"), "r", "new")).result == b"answer"
        assert (await kept.begin(("s", "b"), "r", "new")).call_id == "new"


async def test_a_released_call_is_not_released_again_at_the_start(tmp_path):
    call_id = new_call_id()
    async with open_stand(tmp_path) as stand:
        await stand.buy(call_id)
        await stand.ledger.settle(call_id, no_charge="cancelled")
        assert await stand.store.release_undelivered() == 0


async def test_what_a_follower_lost_stands_in_its_log(tmp_path):
    call_id = new_call_id()
    async with open_stand(tmp_path) as stand:
        await stand.buy(call_id)
        died, at = [call_id, "call_unknown"], 1000 * int(stand.clock.time())
        for _ in range(2):  # the second time there is none
            await record_died(stand.ledger.file, stand.evidence.log.buckets, died, stand.clock)
            assert died == []
        assert await _table(stand, "SELECT reason, credits, at FROM uncharged_call") == [("delivery_failed", 2, at)]


async def test_a_charge_that_has_no_receipt_yet_is_booked_when_it_is_released(tmp_path):
    async with open_stand(tmp_path) as stand:
        await stand.ledger.charge("call_1", RICH, 2, endpoint="/x", undelivered=True)
    async with open_stand(tmp_path) as stand:
        assert await stand.store.release_undelivered() == 1
        assert await _table(stand, "SELECT reason, endpoint, receipt FROM uncharged_call") == [
            ("delivery_failed", "/x", None)
        ]


@proves("charge.shared-start")
@pytest.mark.live
async def test_where_instances_share_the_ledger_a_start_releases_only_what_nobody_can_be_sending_any_more(tmp_path):
    async with open_stand(tmp_path, "postgres") as one:
        sent, unsent = new_call_id(), new_call_id()
        await one.buy(sent)
        await one.buy(unsent)
        one.ledger.delivered(sent)
        async with open_stand(tmp_path, "postgres") as other:
            assert await other.store.release_undelivered() == 0
            other.clock.advance(21)
            assert await other.store.release_undelivered() == 1
            assert await other.store.release_undelivered() == 0
            assert await other.ledger.balance(RICH) == 98
            assert await other.ledger.check() == []


@proves("charge.lease")
async def test_a_lease_is_renewed_as_long_as_the_answer_is_on_its_way_and_ends_when_it_was_lost(stand):
    ledger, calls = stand.ledger, [new_call_id() for _ in range(4)]
    await stand.buy(calls[0])
    await stand.buy(calls[1])
    await ledger.reserve(calls[2], RICH, 2, endpoint="/x", ttl_s=300, undelivered=True)
    await ledger.reserve(calls[3], RICH, 2, endpoint="/x", ttl_s=300)  # goes on without its process
    for _ in range(10):
        stand.clock.advance(5)
        assert await stand.store.renew_and_release() == 0
    assert await ledger.balance(RICH) == 92
    ledger.delivered(calls[0])
    ledger.lost(calls[1])
    assert await stand.store.renew_and_release() == 1
    assert await ledger.balance(RICH) == 94
    stand.clock.advance(21)  # nobody renewed it meanwhile, as after a process that stood still
    assert await stand.store.renew_and_release() == 0  # it is still alive
    assert {hold.call_id for hold in await ledger.holds()} == {calls[2], calls[3]}


@proves("charge.lease")
@pytest.mark.live
async def test_what_another_instance_left_is_released_after_its_lease_whatever_state_it_was_in(tmp_path):
    async with open_stand(tmp_path, "postgres") as dead, open_stand(tmp_path, "postgres") as other:
        held, charged = new_call_id(), new_call_id()
        await dead.ledger.reserve(held, RICH, 2, endpoint="/x", ttl_s=300, undelivered=True)
        await dead.buy(charged)
        assert await other.store.renew_and_release() == 0
        other.clock.advance(19)
        assert await other.store.renew_and_release() == 0
        other.clock.advance(1)
        assert await other.store.renew_and_release() == 2
        assert await other.ledger.balance(RICH) == 100
        assert (await dead.ledger.settle(held, no_charge=None, undelivered=True)).charged == 0  # it only stood still
        dead.ledger.delivered(charged)
        assert await dead.store.renew_and_release() == 0
        assert await dead.ledger.balance(RICH) == 100
