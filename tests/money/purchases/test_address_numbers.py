"""Numbers of deposit addresses: one for each quote, however many ask at once, and whatever goes wrong."""

import anyio
import pytest

from tests.money.purchases.parts import NOW
from tests.requirements import proves
from toolserver.money.ledger.store import open_ledger
from toolserver.money.purchases.quotes import ADDRESS_MARK, BLOCK, AddressNumbers
from toolserver.money.purchases.records import PurchaseDraft
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import FILE, HighWater, MarksBroken


@pytest.fixture
async def store(tmp_path):
    async with open_ledger(tmp_path / "database" / "ledger.sqlite3") as ledger:
        yield SqlPurchaseStore(ledger.file)


def quote(index: int) -> PurchaseDraft:
    return PurchaseDraft(bytes([index + 1]) * 32, bytes([index + 1]) * 20, index, 10**6, 50, None, NOW, NOW)


@proves("quote.numbers")
async def test_the_block_is_on_the_disk_before_its_first_number_is_used(tmp_path, store):
    marks = HighWater(tmp_path)
    numbers = AddressNumbers(store, marks=marks)
    assert await numbers.take() == 0
    assert marks.read(ADDRESS_MARK) == BLOCK
    assert [await numbers.take() for _ in range(BLOCK)] == list(range(1, BLOCK + 1))
    assert marks.read(ADDRESS_MARK) == 2 * BLOCK


async def test_those_who_ask_at_once_get_numbers_of_their_own(tmp_path, store):
    numbers, taken = AddressNumbers(store, marks=HighWater(tmp_path)), []

    async def take() -> None:
        taken.append(await numbers.take())

    async with anyio.create_task_group() as tasks:
        for _ in range(3 * BLOCK):
            tasks.start_soon(take)
    assert sorted(taken) == list(range(3 * BLOCK))


async def test_a_restart_skips_what_is_left_and_repeats_nothing(tmp_path, store):
    assert await AddressNumbers(store, marks=HighWater(tmp_path)).take() == 0
    await store.add_quote(quote(0))
    assert await AddressNumbers(store, marks=HighWater(tmp_path)).take() == BLOCK


async def test_two_processes_set_different_blocks_aside(tmp_path, store):
    one, other = [AddressNumbers(store, marks=HighWater(tmp_path)) for _ in range(2)]
    assert [await one.take(), await other.take(), await one.take(), await other.take()] == [0, BLOCK, 1, BLOCK + 1]


@proves("quote.numbers")
@pytest.mark.parametrize(
    ("first", "used", "mark", "next"), [(0, 7, 3, 8), (9, 7, 3, 9), (0, 7, 20, 20), (0, 7, None, 8)]
)
async def test_the_greatest_of_setting_database_and_mark_counts(tmp_path, store, first, used, mark, next):
    marks = HighWater(tmp_path)
    if mark is not None:
        marks.raise_to(ADDRESS_MARK, mark)
    await store.add_quote(quote(used))
    assert await AddressNumbers(store, first, marks).take() == next


async def test_a_dropped_block_is_not_used_any_more(store):
    numbers = AddressNumbers(store)
    assert await numbers.take() == 0
    await store.add_quote(quote(5))
    numbers.drop_block()
    assert await numbers.take() == 6


@proves("quote.numbers")
async def test_nothing_is_given_out_while_the_mark_cannot_be_written(tmp_path, store):
    (tmp_path / "keys").write_text("a file where the folder should be")
    numbers = AddressNumbers(store, marks=HighWater(tmp_path))
    with pytest.raises(StorageFailed, match="no deposit address"):
        await numbers.take()
    (tmp_path / "keys").unlink()
    assert await numbers.take() == 0


async def test_nothing_is_given_out_while_the_mark_cannot_be_read(tmp_path, store):
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text("{")
    with pytest.raises(MarksBroken):
        await AddressNumbers(store, marks=HighWater(tmp_path)).take()
