"""Months are closed in their order, once, with a statement that their rows bear out, on either engine."""

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import anyio
import pytest

from tests.money.books.months import DAY, JANUARY, MARCH, closer_of, opened_seller, place_of, sell_three_months
from tests.money.chain.parts import HEADS, RULES, WALLET, logged
from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from toolserver.money.books import months
from toolserver.money.books.month_archive import name_archive
from toolserver.money.books.month_proof import prove_month
from toolserver.money.books.sql_months import MonthRefused, list_closed
from toolserver.money.chain.sql_chain_book import ScanMark, SqlChainBook
from toolserver.money.chain.transfer_states import name_transfers
from toolserver.money.ledger.sql_invariants import find_breaches
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.month_statement import CLOSING, ON_CHAIN, OPENING, parse_month
from toolserver.sql.ledger_place import read_place
from toolserver.sql.row_seal import read_heads

pytestmark = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
NOW = MARCH.until


@pytest.fixture
async def sold(kind, tmp_path):
    await sell_three_months(kind, tmp_path)
    return tmp_path


async def test_all_months_that_are_over_are_closed_in_their_order(kind, sold):
    found = await closer_of(kind, sold).close_until(None, NOW)

    statements = [facts.signed.statement for facts in found]
    assert [(one.month, one.credits["used"], one.credits["given_back"], one.credits["owed"]) for one in statements] == [
        ("2027-01", 14, 0, 96),
        ("2027-02", 4, 5, 97),
    ]
    january, february = statements
    assert (january.previous, february.previous) == (None, found[0].signed.sha256)
    assert february.tables[OPENING] == january.tables[CLOSING]
    rows = {name: table.rows for name, table in january.tables.items()}
    assert rows == {"opening": 0, "transfer": 10, "reservation": 5, "receipt": 6, "uncharged_call": 1, "no_charge": 1,
                    "on_chain": 0, "closing": 4}  # fmt: skip
    assert [one.log.size for one in statements] == [1, 2]


async def test_a_month_states_the_money_on_the_chain_by_way_and_state_and_its_archive_bears_that_out(kind, sold):
    async with opened_file(kind, sold) as file:
        book, at = SqlChainBook(file, RULES), JANUARY.since // 1000
        await book.set_mark("final", ScanMark(190, JANUARY.until))
        ours, topup = bytes([1]) * 32, bytes([2]) * 32
        moved = [logged(ours, WALLET, 3, block_time=at), logged(topup, WALLET, 2, block_time=at, block=199)]
        later = logged(bytes([3]) * 32, WALLET, 7, block_time=JANUARY.until // 1000, log_index=1)
        await book.record(name_transfers([*moved, later]), HEADS, JANUARY.until)
    closer = closer_of(kind, sold)
    (facts,) = await closer.close_until(JANUARY, NOW)
    assert facts.describe()["on_chain"] == {
        "other": {
            "pending": {"transfers": 1, "received": 2_000_000, "sent": 0},
            "foreign": {"transfers": 1, "received": 3_000_000, "sent": 0},
        }
    }
    assert facts.signed.statement.tables[ON_CHAIN].rows == 2
    path = name_archive(sold / "archive", "2027-01")
    lines = [json.loads(line) for line in gzip.open(path)]
    for line in lines:
        if isinstance(line, list) and "foreign" in line:
            line[line.index("foreign")] = "swept"
    with gzip.open(path, "wb") as archive:
        archive.writelines(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    problems = prove_month(path, closer.ring.find).problems
    assert f"{ON_CHAIN}: the rows differ from those that were signed" in problems
    sums = "the rows do not add up to what the statement says"
    assert {f"on the chain, other, {state}: {sums}" for state in ("foreign", "swept")} <= set(problems)
    assert any("which is not the end of its history" in problem for problem in problems)


async def test_a_closed_month_is_stored_once_with_the_statement_of_its_archive(kind, sold):
    closer = closer_of(kind, sold)
    (facts,) = await closer.close_until(JANUARY, NOW)
    assert await closer.close_until(JANUARY, NOW) == []

    place = place_of(kind, sold)
    (closed,) = await anyio.to_thread.run_sync(read_place, place, list_closed)
    assert (closed.month, closed.until, closed.transfers, closed.released_at) == ("2027-01", JANUARY.until, 10, None)
    assert parse_month(closed.statement) == facts.signed
    proved = prove_month(name_archive(sold / "archive", "2027-01"), closer.ring.find)
    assert proved == facts
    assert await anyio.to_thread.run_sync(read_place, place, lambda db: find_breaches(db, 0)) == []


async def test_the_heads_of_the_seals_of_rows_are_signed_with_the_month(kind, sold):
    (facts,) = await closer_of(kind, sold).close_until(JANUARY, JANUARY.until + DAY)
    signed = facts.signed.statement.seals
    if kind != "sqlite":
        assert signed is None, "rows of this test's database are not sealed"
        return
    with closing(sqlite3.connect(sold / FILE)) as db:
        (seal,) = read_heads(db)
    assert signed.commits == seal.commits - 1  # the month itself was stored after that
    assert signed.head == hashlib.sha256(f"0 {signed.commits} {seal.before.hex()}".encode()).hexdigest()
    assert facts.describe()["seals"] == {"commits": signed.commits, "head": signed.head}


async def test_a_month_is_closed_a_day_after_its_end_and_with_all_its_hours_in_the_log(kind, sold):
    closer = closer_of(kind, sold)
    with pytest.raises(MonthRefused, match="a day after its end"):
        await closer.close_until(MARCH, MARCH.until + DAY - 1)
    async with opened_seller(kind, sold, "2027-04-01T10:00:00") as seller:
        await seller.fail()  # in April: it is not waited for
        assert [one.signed.statement.month for one in await closer.close_until(None, MARCH.until + DAY)] == [
            "2027-01", "2027-02", "2027-03",
        ]  # fmt: skip
        await seller.fail()
        with pytest.raises(MonthRefused, match="lacks hours of 2027-04"):
            await closer.close_until(None, MARCH.until + 40 * DAY)


async def test_a_ledger_without_rows_has_no_month_to_close(kind, tmp_path):
    async with opened_seller(kind, tmp_path, "2027-01-15T08:00:00"):
        pass
    assert await closer_of(kind, tmp_path).close_until(None, NOW) == []


@pytest.mark.parametrize("step", ["prove_month", "sync_folder", "store_month"])
async def test_what_dies_at_any_step_is_begun_anew(kind, sold, step, monkeypatch):
    def die(*given, **named):
        raise SystemError("killed")

    closer = closer_of(kind, sold)
    with monkeypatch.context() as patch:
        patch.setattr(months, step, die)
        with pytest.raises(SystemError):
            await closer.close_until(JANUARY, NOW)
    assert await anyio.to_thread.run_sync(read_place, place_of(kind, sold), list_closed) == []

    found = await closer.close_until(None, NOW)
    assert [facts.problems for facts in found] == [[], []]
    assert sorted(path.name for path in (sold / "archive").iterdir()) == [
        "ledger-2027-01.jsonl.gz", "ledger-2027-02.jsonl.gz",
    ]  # fmt: skip


async def test_two_that_close_into_two_folders_at_the_same_time_close_once(kind, sold):
    one, other = closer_of(kind, sold), replace(closer_of(kind, sold), folder=sold / "other")
    await one.close_until(JANUARY, NOW)
    (sold / "other").mkdir()
    with pytest.raises(MonthRefused, match="does not follow"):
        await other.close_month(JANUARY, None, NOW)
