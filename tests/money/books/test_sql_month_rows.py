"""Which rows a month has: each has its one month, and the balances of one are the opening of the next."""

import anyio
import pytest

from tests.money.books.months import FEBRUARY, JANUARY, MARCH, opened_seller, place_of, sell_three_months
from tests.postgres import POSTGRES
from toolserver.money.books.sql_months import (
    RECEIPT,
    TABLES,
    columns_of,
    read_figures,
    read_first_month,
    read_log_root,
    read_rows,
)
from toolserver.money.receipts.month_statement import CLOSING, OPENING
from toolserver.money.receipts.sql_store import read_receipts
from toolserver.sql.kept_tables import list_kept_tables, read_pages
from toolserver.sql.ledger_place import read_place

SPANS = (JANUARY, FEBRUARY, MARCH)
pytestmark = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])


@pytest.fixture
async def read(kind, tmp_path):
    await sell_three_months(kind, tmp_path)
    return lambda job: anyio.to_thread.run_sync(read_place, place_of(kind, tmp_path), job)


async def test_every_row_is_in_one_month(read):
    def look(db):
        kept = [table for table in list_kept_tables() if table.name in TABLES and table.name != RECEIPT]
        assert len(kept) == 4
        return [
            (sorted(row for span in SPANS for row in read_rows(db, table.name, span)),
             sorted(row for page in read_pages(db, table) for row in page))
            for table in kept
        ]  # fmt: skip

    for months, whole in await read(look):
        assert months == whole != []


async def test_every_receipt_is_in_one_month_as_it_was_issued(read):
    def look(db):
        months = [row for span in SPANS for row in read_rows(db, RECEIPT, span)]
        return sorted(months), sorted(map(tuple, read_receipts(db)))

    months, whole = await read(look)
    assert months == whole
    assert len(whole) == 8


async def test_a_month_opens_with_what_the_one_before_closed_with(read):
    def look(db):
        return [[list(read_rows(db, table, span)) for table in (OPENING, CLOSING)] for span in SPANS]

    january, february, march = await read(look)
    assert january[0] == []
    assert (january[1], february[1]) == (february[0], march[0])
    assert [row[2:] for row in january[1]] == [(0, 110, 0), (14, 0, 0), (100, 14, 4), (10, 0, 0)]
    assert len(january[1][2]) == len(columns_of(CLOSING))


async def test_figures_are_those_of_the_books(read):
    figures = [await read(lambda db, span=span: read_figures(db, span)) for span in SPANS]
    assert [(one["used"], one["given_back"], one["owed"]) for one in figures] == [(14, 0, 96), (4, 5, 97), (6, 0, 91)]
    assert "owed_now" not in figures[0]


async def test_the_first_month_is_that_of_the_first_row(read):
    assert await read(read_first_month) == JANUARY


async def test_the_log_of_a_month_is_there_when_all_its_hours_are(kind, tmp_path):
    async with opened_seller(kind, tmp_path, "2027-01-15T08:00:00") as seller:
        assert await seller.ledger.file.apart(read_first_month) is None
        await seller.ledger.mint("svc_live_" + "1" * 64, 10, cause="one")
        assert (await seller.ledger.file.apart(lambda db: read_log_root(db, JANUARY))).size == 0
