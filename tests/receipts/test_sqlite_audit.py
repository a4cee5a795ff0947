"""Receipts and log against the ledger: what counts as a difference, and what does not."""

import pytest

from tests.calls.charging import RICH, open_stand
from toolserver import ids
from toolserver.ledger.sqlite import FILE
from toolserver.receipts.sqlite_audit import (
    KEPT_MS,
    count_receipts,
    find_log_differences,
    find_receipt_differences,
    find_unlogged,
)
from toolserver.storage.group_commit import snapshot


@pytest.fixture
async def stand(tmp_path):
    async with open_stand(tmp_path) as stand:
        stand.path = tmp_path / FILE
        yield stand


def differences(stand, after=0):
    now = stand.ledger.now() + after
    return snapshot(stand.path, lambda db: list(find_receipt_differences(db, now)))


async def test_charged_calls_have_their_receipts(stand):
    for _ in range(3):
        await stand.buy(ids.call_id())
    assert differences(stand) == []
    assert snapshot(stand.path, count_receipts) == 3


async def test_a_charge_without_a_receipt_is_found_while_receipts_are_kept(stand):
    await stand.ledger.charge("call_1", RICH, 2, endpoint="/x")
    assert differences(stand) == ["call_1 was charged 2 credits and has no receipt that says so"]
    assert differences(stand, KEPT_MS + 1) == []


async def test_a_receipt_of_a_call_that_is_not_settled_is_found(stand):
    call_id = ids.call_id()
    await stand.buy(call_id)
    await stand.ledger.reserve("call_2", RICH, 2, endpoint="/x", ttl_s=60)
    assert differences(stand) == []
    await stand.ledger.settle(call_id, no_charge="delivery_failed")
    assert differences(stand) == []  # it was given back after its receipt was signed


async def test_the_tree_is_that_of_its_leaves(stand):
    assert snapshot(stand.path, lambda db: list(find_log_differences(db, None))) == []
    assert snapshot(stand.path, lambda db: list(find_unlogged(db))) == []
