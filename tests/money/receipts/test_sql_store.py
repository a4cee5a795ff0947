"""Receipts in SQLite: kept across a restart, written with the caller's own tables, all or nothing."""

import hashlib
import sqlite3
from contextlib import closing

import anyio
import pytest

from tests.money.receipts.stores import append_hours, lease_at, open_store
from tests.money.receipts.test_merkle import consistent, mth, root_from_path, unbundled
from tests.money.receipts.test_store import HOUR, NOW, OVER, event, issuer, sale, signing
from tests.quick_files import migrate_copied
from toolserver.money.receipts.issue import IssueReceipt
from toolserver.money.receipts.merkle import Tile
from toolserver.money.receipts.sql_store import delete_receipts, find_receipts, issue_receipts
from toolserver.sql.errors import StorageFailed

__all__ = ["event", "issuer"]


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        yield db


async def test_receipts_log_and_checkpoint_outlive_the_process(tmp_path, issuer, event):
    async with open_store("sqlite", tmp_path) as store:
        receipt = await store.issue(IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW))
        await append_hours(store, OVER)
        signed = await store.sign_checkpoint(signing())
        await store.record(event(at=OVER))
    async with open_store("sqlite", tmp_path) as store:
        assert await store.receipt(receipt.id) == receipt
        assert await store.head() == (signed, 1, HOUR)
        await append_hours(store, OVER + 3600)
        assert (await store.sign_checkpoint(signing())).size == 2


async def test_a_store_that_is_closed_says_so(tmp_path, event):
    async with open_store("sqlite", tmp_path) as store:
        pass
    with pytest.raises(StorageFailed):
        await store.record(event())


def test_receipts_are_part_of_the_callers_transaction(db, issuer):
    db.execute("BEGIN")
    (receipt,) = issue_receipts(db, [IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW)])
    assert find_receipts(db, [receipt.id, "rcpt_other"]) == {receipt.id: receipt}
    db.execute("ROLLBACK")
    assert find_receipts(db, [receipt.id]) == {}
    assert db.execute("SELECT count(*) FROM uncharged_call").fetchone() == (0,)


def test_only_the_named_receipts_are_deleted(db, issuer):
    sales = [sale(f"call_{number:032x}") for number in range(3)]
    first, second, third = issue_receipts(db, [IssueReceipt(issuer, each, NOW) for each in sales])
    delete_receipts(db, [first.id, third.id])
    assert find_receipts(db, [first.id, second.id, third.id]) == {second.id: second}


async def test_a_receipt_that_cannot_be_signed_leaves_nothing_and_spoils_no_other(tmp_path, issuer, caplog):
    class Broken:
        buckets = issuer.buckets

        def sign(self, *given):
            raise OSError("no key")

    outcomes = []

    async def issue(operation):
        try:
            outcomes.append((await store.issue(operation)).id)
        except OSError as failure:
            outcomes.append(str(failure))

    async with open_store("sqlite", tmp_path) as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(issue, IssueReceipt(issuer, sale(), NOW))
            tasks.start_soon(issue, IssueReceipt(Broken(), sale("call_2", charged=0, reason="5xx"), NOW))
        assert sorted(outcomes) == sorted(["no key", "rcpt_" + "1" * 32])
        assert await store.days(5) == []


async def test_a_bucket_is_read_with_its_leaf_and_its_receipts(tmp_path, issuer, event):
    async with open_store("sqlite", tmp_path) as store:
        receipt = await store.issue(IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW))
        (booked,) = await store.list_booked(HOUR)
        digest = hashlib.sha256(receipt.core).digest()
        assert await store.find_bucket(HOUR, booked.key) == (None, [digest])
        assert await store.list_hours(HOUR + 1) == [HOUR]
        await append_hours(store, OVER)
        assert await store.find_bucket(HOUR, booked.key) == (0, [digest])
        assert await store.list_known([receipt.id, "rcpt_0"]) == {receipt.id}
        sums, shown, waiting = await store.day("2027-01-15", 5)
        assert ([row.calls for row in sums], [call.receipt for call in shown], waiting) == ([1], [digest], 0)
        assert await store.days(5) == [("2027-01-15", 1)]


async def test_leaves_tiles_and_proofs_reach_as_far_as_the_log(tmp_path, event):
    async with open_store("sqlite", tmp_path) as store:
        for number in range(3):
            await store.record(event(number))
        await append_hours(store, OVER)
        signed = await store.sign_checkpoint(signing())
        leaves = [await store.leaf(index) for index in range(3)]
        assert signed.root == mth(leaves)
        assert root_from_path(leaves[2], 2, 3, await store.inclusion(2, 3)) == signed.root
        assert consistent(2, 3, mth(leaves[:2]), signed.root, await store.consistency(2, 3))
        assert unbundled(await store.tile(Tile(None, 0, 3))) == leaves
        missing = [
            await store.leaf(3),
            await store.leaf(2**63),
            await store.inclusion(3, 3),
            await store.tile(Tile(0, 0, 4)),
        ]
        assert missing == [None] * 4


async def test_a_call_is_booked_in_the_next_hour_when_its_own_is_in_the_log(tmp_path, issuer, event):
    async with open_store("sqlite", tmp_path) as store:
        await store.record(event())
        await append_hours(store, OVER)
        await store.record(event())
        await store.issue(IssueReceipt(issuer, sale(charged=0, reason="5xx"), NOW))
        assert [len(await store.list_booked(hour)) for hour in (HOUR, HOUR + 1)] == [1, 2]


async def test_the_lease_is_held_by_one_until_it_is_over(tmp_path):
    async with open_store("sqlite", tmp_path) as store:
        assert await store.take_lease(lease_at(OVER, "a", lasts_s=9))
        assert not await store.take_lease(lease_at(OVER + 8, "b"))
        assert await store.take_lease(lease_at(OVER + 10, "b"))
