"""Receipts of a follower against its owner's calls: what counts as a difference, and what does not."""

import pytest

from tests.calls.charging import RICH, open_stand
from toolserver.core.caller import new_call_id
from toolserver.money.books.sql_reconciliation import DAY_MS, KEPT_MS, find_follower_differences, list_calls_of
from toolserver.money.ledger.store import FILE
from toolserver.sql.sqlite import snapshot


@pytest.fixture
async def stand(tmp_path):
    """Three calls with receipts. The ledger of the same file stands for the owner's, too: it has them as b:call_…"""
    async with open_stand(tmp_path) as stand:
        stand.calls = [new_call_id() for _ in range(3)]
        for call_id in stand.calls:
            await stand.buy(call_id)
            await stand.ledger.charge(f"b:{call_id}", RICH, 2, endpoint="/x", service="b")
        stand.path = tmp_path / FILE
        yield stand


def differences(stand, after=0, **changed):
    calls = snapshot(stand.path, lambda db: list_calls_of("b", db)) | changed
    kept = {call_id: call for call_id, call in calls.items() if call is not None}
    return snapshot(stand.path, lambda db: list(find_follower_differences(kept, stand.ledger.now() + after, db)))


async def test_receipts_that_the_owners_ledger_bears_out_agree(stand):
    assert differences(stand) == []
    assert snapshot(stand.path, lambda db: list_calls_of("c", db)) == {}


async def test_a_receipt_of_a_call_that_the_owner_has_not_or_of_another_price_is_found(stand):
    first, second, _ = stand.calls
    known = snapshot(stand.path, lambda db: list_calls_of("b", db))
    found = differences(stand, **{first: None, second: known[second]._replace(credits=3)})
    assert {line.partition("; ")[2] for line in found} == {
        "the ledger has no such call",
        "the ledger has it as posted, for 3 credits",
    }
    assert len(found) == 2


async def test_what_was_given_back_after_its_receipt_is_no_difference(stand):
    await stand.ledger.settle(f"b:{stand.calls[0]}", no_charge="delivery_failed")
    assert differences(stand) == []


async def test_a_charge_without_a_receipt_is_found_unless_it_is_old_or_being_given_back(stand):
    await stand.ledger.charge("b:call_9", RICH, 2, endpoint="/x", service="b")
    assert differences(stand) == ["call_9 was charged 2 credits and has no receipt that says so"]
    assert differences(stand, KEPT_MS + 1) == []
    sql = "INSERT INTO journal(call_id, state, reason, next_at) VALUES('call_9', 'releasing', 'x', 0)"
    await stand.ledger.file.alone(lambda db: db.execute(sql) and None)
    assert differences(stand) == []


async def test_a_call_that_the_owner_may_have_removed_is_no_difference(stand):
    now = stand.ledger.now()
    for horizon, found in ((now, 0), (now + DAY_MS, 0), (now - 2 * DAY_MS, 3), (0, 3)):
        assert len(snapshot(stand.path, lambda db: list(find_follower_differences({}, now, db, horizon)))) == found  # noqa: B023
