"""The stored book of the chain, on both engines: rows, history, dust and sums, decided by the tables beside it."""

from functools import partial

import pytest

from tests.money.chain.million import add_quotes
from tests.money.chain.parts import HEADS, WALLET, book_of, logged
from tests.money.purchases.parts import NOW, OTHER, PAYER, TX, TX2, Server, address_of, block_hash, desk, paid
from tests.postgres import POSTGRES
from toolserver.money.chain import sql_chain_book
from toolserver.money.chain.sql_chain_book import DAY_MS, ROUND_DAYS, BalanceDifference, ScanMark
from toolserver.money.chain.transfer_states import Dust, name_transfers
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.sql.errors import StorageFailed

MS = NOW * 1000
TX3 = bytes([3]) * 32


@pytest.fixture
def server():
    return Server()


@pytest.fixture(params=["sqlite", POSTGRES])
async def d(request, tmp_path, server):
    async with desk(tmp_path, [server], kind=request.param) as d:
        yield d


async def read_states(d):
    rows = await d.rows("SELECT tx_hash, amount, state FROM chain_transfer ORDER BY block_number, log_index")
    return [(bytes(tx)[0], amount / ATOMIC, state) for tx, amount, state in rows]


async def read_history(d, tx=TX):
    sql = """SELECT h.number, h.state, h.block_number FROM chain_change h JOIN chain_transfer t ON t.id = h.transfer
      WHERE t.tx_hash=? ORDER BY h.number"""
    return [tuple(row) for row in await d.rows(sql, tx)]


async def test_a_transfer_is_quoted_until_it_is_claimed_and_the_next_one_to_its_address_is_second(d, server):
    book, quote = book_of(d), await d.quote()
    both = [logged(TX, address_of(quote), 5), logged(TX2, address_of(quote), 3, block=101, log_index=1)]
    assert await book.record(name_transfers(both), HEADS, MS) == 2
    assert await read_states(d) == [(1, 5, "quoted"), (2, 3, "quoted")]
    server.sees(paid(address_of(quote), 5))
    await d.confirm(TX, quote.memo)
    assert await book.decide_recent(HEADS, MS) == 2
    assert await read_states(d) == [(1, 5, "credited"), (2, 3, "second")]
    assert await read_history(d) == [(1, "quoted", 100), (2, "credited", 100)]
    assert await book.decide_recent(HEADS, MS) == await book.decide_all(HEADS, MS) == 0


async def test_a_dispute_that_begins_and_ends_hours_after_the_credit_changes_the_state_both_times(d, server):
    book, quote, hour = book_of(d), await d.quote(), 3_600_000
    server.sees(paid(address_of(quote), 5))
    await d.confirm(TX, quote.memo)
    await book.record(name_transfers([logged(TX, address_of(quote), 5)]), HEADS, MS)
    found = []
    for column, at in (("disputed_since", MS + 5 * hour), ("agreed_at", MS + 10 * hour)):
        await d.ledger.file.alone(
            lambda db, column=column, at=at: db.execute(f"UPDATE tx_credit SET {column}=?", (at,))
        )
        await book.decide_recent(HEADS, at + 1)
        found += [state for _, _, state in await read_states(d)]
    assert found == ["held", "credited"]


async def test_a_dispute_that_left_no_document_is_over_once_held_transfers_are_decided_too(d, server):
    book, quote, hour = book_of(d), await d.quote(), 3_600_000
    server.sees(paid(address_of(quote), 5))
    await d.confirm(TX, quote.memo)
    await book.record(name_transfers([logged(TX, address_of(quote), 5)]), HEADS, MS)

    async def dispute(since):
        await d.ledger.file.alone(lambda db: db.execute("UPDATE tx_credit SET disputed_since=?", (since,)))

    await dispute(MS + 5 * hour)
    await book.decide_recent(HEADS, MS + 5 * hour)
    await dispute(None)
    assert await book.decide_recent(HEADS, MS + 10 * hour) == 0
    assert await read_states(d) == [(1, 5, "held")]
    assert await book.decide_recent(HEADS, MS + 10 * hour, with_held=True) == 1
    assert await read_states(d) == [(1, 5, "credited")]


async def test_what_the_chain_undoes_and_mines_again_keeps_its_row_and_its_whole_history(d):
    book, quote = book_of(d), await d.quote()
    (first,) = name_transfers([logged(TX, address_of(quote), 5)])
    (again,) = name_transfers([logged(TX, address_of(quote), 5, block=104, fork="b", log_index=9)])
    assert again.id == first.id
    await book.record([first], HEADS, MS)
    assert await book.record_gone([first.id], HEADS, MS + 1) == 1
    assert await book.record_gone([first.id], HEADS, MS + 2) == 0
    assert await book.sum_booked([address_of(quote)], 190) == [0]
    assert await book.record([again], HEADS, MS + 3) == 1
    assert await read_states(d) == [(1, 5, "quoted")]
    assert await read_history(d) == [(1, "quoted", 100), (2, "undone", 100), (3, "quoted", 104)]
    assert await book.sum_booked([address_of(quote)], 190) == [5 * ATOMIC]


async def test_late_short_new_and_foreign_transfers_are_told_apart(d):
    book, one, other = book_of(d), await d.quote(), await d.quote()
    ends_s = NOW + 30 * 60 + 600
    seen = [
        logged(TX, address_of(one), 5, block_time=ends_s + 1),
        logged(TX2, address_of(other), 0.5, block=101),
        logged(TX3, address_of(other), 2, block=198),
        logged(bytes([4]) * 32, WALLET, 8, block=102),
        logged(bytes([5]) * 32, OTHER, 1, payer=address_of(one), block=103),
    ]
    await book.record(name_transfers(seen), HEADS, MS)
    assert await read_states(d) == [
        *[(1, 5, "late"), (2, 0.5, "short"), (4, 8, "foreign"), (5, 1, "foreign")],
        (3, 2, "pending"),
    ]
    assert await book.sum_booked([address_of(one), address_of(other), WALLET, OTHER], 200) == [
        *[4 * ATOMIC, 2_500_000, 8 * ATOMIC, 0]
    ]
    later = HEADS._replace(latest=HEADS.latest._replace(number=201))
    assert await book.decide_recent(later, MS) == 1
    assert (3, 2, "quoted") in await read_states(d)


async def test_two_parts_in_one_transaction_that_make_up_the_minimum_are_not_short(d):
    book, quote = book_of(d), await d.quote()
    parts = [logged(TX, address_of(quote), 0.6), logged(TX, address_of(quote), 0.6, log_index=1)]
    await book.record(name_transfers(parts), HEADS, MS)
    assert await read_states(d) == [(1, 0.6, "quoted"), (1, 0.6, "quoted")]


async def test_dust_of_a_range_is_added_to_what_was_counted_before(d):
    book, quote = book_of(d), await d.quote()
    address = address_of(quote)
    await book.add_dust({address: Dust(1, 1000, 0, 0, 1, 101)})
    await book.add_dust({address: Dust(1, 2000, 1, 500, 0, 102), WALLET: Dust(zeros=4, through=9)})
    assert await book.list_dust_counted() == {address: 102, WALLET: 9}
    assert await book.sum_booked([address, WALLET, PAYER], 190) == [2500, 0, 0]
    await book.forget_dust([address])
    assert await book.list_dust_counted() == {WALLET: 9}


async def test_history_and_transfers_are_never_rewritten(d):
    book, quote = book_of(d), await d.quote()
    await book.record(name_transfers([logged(TX, address_of(quote), 5)]), HEADS, MS)
    await book.open_wallet(WALLET, 7, ScanMark(1, MS))
    await book.open_wallet(WALLET, 8, ScanMark(2, MS))
    assert await book.sum_booked([WALLET], 190) == [7]
    assert await book.list_unopened() == []
    for sql in (
        "DELETE FROM chain_transfer",
        "UPDATE chain_transfer SET amount = amount + 1",
        "UPDATE chain_change SET state='credited'",
        "DELETE FROM chain_change",
        "UPDATE chain_opening SET amount=9",
    ):
        with pytest.raises(StorageFailed):
            await d.ledger.file.alone(lambda db, sql=sql: db.execute(sql))
    assert await read_states(d) == [(1, 5, "quoted")]


async def test_addresses_are_hot_while_a_quote_is_open_or_money_has_moved(d):
    book, quote = book_of(d), await d.quote()
    address = address_of(quote)
    assert await book.list_watched(200, MS) == ([address, WALLET] if address < WALLET else [WALLET, address], [WALLET])
    after = MS + 3 * 86_400_000
    assert (await book.list_watched(200, after)).receiving == [WALLET]
    await book.record(name_transfers([logged(TX, address, 5)]), HEADS, MS)
    assert address in (await book.list_watched(200, after)).sending
    assert address not in (await book.list_watched(200_000, after)).sending
    assert address in (await book.list_hot(200_000, after, 90)).sending
    assert await book.list_issued() == sorted([address, WALLET])
    assert await book.list_issued(max(address, WALLET)) == []


async def test_of_many_unpaid_quotes_the_newest_are_compared_each_day_and_all_others_within_a_month(d, monkeypatch):
    monkeypatch.setattr(sql_chain_book, "COMPARED_UNPAID", 3)
    book, old, first_day = book_of(d), [bytes([n, 7]) + bytes(18) for n in range(256)], MS // DAY_MS * DAY_MS
    await d.ledger.file.alone(partial(add_quotes, addresses=old, first=100, at=1, ends_at=2))
    new, paid_once, differs = [address_of(await d.quote()) for _ in range(3)], old[9], old[77]
    await book.record(name_transfers([logged(TX, paid_once, 5)]), HEADS, MS)
    await book.set_differences([BalanceDifference(differs, 0, 9)], ScanMark(1, MS))
    daily = {WALLET, paid_once, differs, *new}
    parts = [await book.list_compared(first_day, first_day + n * DAY_MS) for n in range(ROUND_DAYS)]
    assert all(part == sorted(part) and daily <= set(part) for part in parts)
    others = [address for part in parts for address in set(part) - daily]
    assert sorted(others) == sorted(set(old) - daily)
    assert max(map(len, parts)) <= len(daily) + 256 // ROUND_DAYS
    for days, is_due in ((0, True), (1, True), (2, False)):  # twice after its end: by then its last transfer is final
        compared = set(await book.list_compared(days * DAY_MS, MS))
        assert (set(old) <= compared) == is_due


async def test_marks_and_differences_are_replaced(d):
    book = book_of(d)
    assert await book.find_mark("final") is None
    for block in (1, 2):
        await book.set_mark("final", ScanMark(block, MS))
        await book.set_differences([BalanceDifference(WALLET, block, 9)], ScanMark(block, MS))
    assert await book.find_mark("final") == ScanMark(2, MS)
    assert [(bytes(a), *rest) for a, *rest in await d.rows("SELECT * FROM chain_difference")] == [(WALLET, 2, 9, 2, MS)]
    assert block_hash(1) != block_hash(2)


async def test_of_very_many_quotes_the_newest_are_watched_and_of_very_many_payments_too(d, monkeypatch):
    monkeypatch.setattr(sql_chain_book, "WATCHED", sql_chain_book.Most(paid=1, quoted=2))
    book, addresses = book_of(d), []
    for _ in range(4):
        addresses.append(address_of(await d.quote()))
        d.clock.advance(1)
    assert set((await book.list_watched(200, MS)).receiving) == {*addresses[2:], WALLET}
    paid_for = [logged(bytes([9, n]) * 16, addresses[n], 5, block=100 + n) for n in (0, 1)]
    await book.record(name_transfers(paid_for), HEADS, MS)
    assert (await book.list_watched(200, MS)).sending == sorted([addresses[1], WALLET])
    assert set((await book.list_hot(200, MS, 90)).sending) == {*addresses[:2], WALLET}
