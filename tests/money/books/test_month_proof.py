"""An archive proves its month by itself, and whatever somebody changes in it is named."""

import gzip
import json
import sqlite3
import tracemalloc
from contextlib import closing

import pytest

from tests.money.books.months import FEBRUARY, JANUARY, MARCH, closer_of, sell_three_months
from tests.requirements import proves
from toolserver.money.books import sql_month_scratch
from toolserver.money.books.month_archive import ArchiveBroken, name_archive, open_draft
from toolserver.money.books.month_proof import prove_month, prove_months
from toolserver.money.books.sql_months import BALANCES, MonthRefused
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.keys import make_key
from toolserver.money.receipts.month_statement import (
    CLOSING,
    OPENING,
    LogRoot,
    MonthSpan,
    MonthStatement,
    RowDigest,
    parse_month,
    sign_month,
)

NOW = MARCH.until


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def closed(tmp_path_factory, anyio_backend):
    """The folder of a ledger with two closed months, and its keys."""
    folder = tmp_path_factory.mktemp("closed")
    await sell_three_months("sqlite", folder)
    closer = closer_of("sqlite", folder)
    await closer.close_until(None, NOW)
    return folder, closer.ring


@pytest.fixture
def archive(closed, tmp_path):
    """The lines of January's archive, and what writes them, changed, and proves them."""
    folder, ring = closed
    path = name_archive(folder / "archive", "2027-01")
    lines = [json.loads(line) for line in gzip.open(path)]

    def prove(changed, sign=False):
        if sign:
            changed = _sign_again(changed, ring.current())
        copy = tmp_path / path.name
        with gzip.open(copy, "wb") as file:
            file.writelines(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in changed)
        return prove_month(copy, ring.find).problems

    return lines, prove


def _sign_again(lines, key):
    """The lines with a statement over them as they are now, by somebody who has the key."""
    import hashlib

    tables, name = {}, ""
    for line in lines:
        if isinstance(line, list):
            tables[name].append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        elif "table" in line:
            tables[name := line["table"]] = []
    said = parse_month(lines[-1]["statement"]).statement
    digests = {name: RowDigest(len(rows), hashlib.sha256(b"".join(rows)).hexdigest()) for name, rows in tables.items()}
    fields = {name: getattr(said, name) for name in said.__struct_fields__} | {"tables": digests}
    return [*lines[:-1], {"statement": sign_month(type(said)(**fields), key)}]


def rows_of(lines, table):
    """The places of the rows of a table."""
    start = next(n for n, line in enumerate(lines) if isinstance(line, dict) and line.get("table") == table)
    end = next(n for n in range(start + 1, len(lines)) if isinstance(lines[n], dict))
    return list(range(start + 1, end))


@proves("books.month")
def test_an_archive_that_nobody_changed_proves_its_month(archive):
    lines, prove = archive
    assert prove(lines) == []
    assert prove(lines, sign=True) == []


@proves("books.month")
def test_any_change_of_a_row_is_not_what_was_signed(archive):
    lines, prove = archive
    place = rows_of(lines, "receipt")[0]
    lines[place][5] += 1
    assert prove(lines) == ["receipt: the rows differ from those that were signed"]


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "problem"),
    [
        ("transfer", 1, 4, 6, "does not match its reservation|owed|add up"),
        ("transfer", 1, 1, "void", "closing balance is"),
        ("reservation", 0, 3, "voided", "its transfers do not match its state, voided"),
        ("reservation", 0, 2, 1, "its transfers do not match its state"),
        ("receipt", 0, 2, "e30", "its signature is invalid"),
        ("receipt", 0, 0, "rcpt_" + "0" * 32, "names another receipt"),
        ("receipt", 0, 3, "other", "is not in the key set"),
        ("uncharged_call", 0, 5, 1, "not in the log as booked"),
        ("closing", 0, 3, 1, "closing balance is"),
    ],
)
def test_what_an_operator_with_the_key_makes_up_does_not_add_up(archive, table, row, column, value, problem):
    lines, prove = archive
    place = sorted(rows_of(lines, table))[row]
    lines[place][column] = value
    found = prove(lines, sign=True)
    assert any(part in text for part in problem.split("|") for text in found), found


def test_what_settles_a_call_moves_what_was_set_aside(archive):
    lines, prove = archive
    (void,) = [place for place in rows_of(lines, "transfer") if lines[place][1] == "void"]
    lines[void][4] += 1
    assert f"transfer {lines[void][0]} does not match its reservation" in prove(lines, sign=True)


def test_credits_that_nobody_gave_are_not_equal_to_debits(archive):
    lines, prove = archive
    (row,) = [lines[place] for place in rows_of(lines, "closing") if lines[place][0] == 1]
    lines.insert(rows_of(lines, "opening" if rows_of(lines, "opening") else "closing")[0], [9, None, 1, 0, 0])
    opening = lines.index({"table": "opening", "columns": lines[1]["columns"]})
    lines.insert(opening + 1, [9, None, 1, 0, 0])
    assert row[3] == 110
    assert "the accounts have 125 credits and 124 debits" in prove(lines, sign=True)


def test_what_is_left_out_or_put_in_does_not_add_up(archive):
    lines, prove = archive
    for table, problem in (
        ("transfer", "closing balance"),
        ("uncharged_call", "reports more than was booked"),
        ("no_charge", "not in the log"),
        ("closing", "closing balance"),
    ):
        place = rows_of(lines, table)[-1]
        assert any(problem in text for text in prove([*lines[:place], *lines[place + 1 :]], sign=True)), table


def test_figures_of_the_statement_are_those_of_the_rows(archive, closed):
    lines, prove = archive
    said = parse_month(lines[-1]["statement"]).statement
    fields = {name: getattr(said, name) for name in said.__struct_fields__}
    fields["credits"] = {**said.credits, "used": said.credits["used"] - 1}
    text = sign_month(type(said)(**fields), closed[1].current())
    assert prove([*lines[:-1], {"statement": text}]) == ["used: the rows add up to 14, but the statement says 13"]


def test_a_key_that_is_not_published_proves_nothing(archive, closed):
    lines, prove = archive
    text = sign_month(parse_month(lines[-1]["statement"]).statement, make_key())
    (problem,) = prove([*lines[:-1], {"statement": text}])
    assert "is not in the key set" in problem


def test_months_follow_each_other(closed):
    folder, ring = closed
    paths = [name_archive(folder / "archive", span.name) for span in (FEBRUARY, JANUARY)]
    assert [facts.problems for facts in prove_months(paths, ring.find)] == [[], []]
    assert [facts.problems for facts in prove_months([*paths, paths[0]], ring.find)] == [
        [], [], ["2027-02: it does not name the month before"],
    ]  # fmt: skip


def test_what_is_no_archive_or_a_part_of_one_is_refused(closed, tmp_path):
    folder, ring = closed
    whole = name_archive(folder / "archive", "2027-01").read_bytes()
    for content in (b"text", whole[:-20], gzip.compress(b'{"archive": 1}\n'), gzip.compress(b"[1]\n")):
        (tmp_path / "part").write_bytes(content)
        with pytest.raises(ArchiveBroken):
            prove_month(tmp_path / "part", ring.find)


def make_large_archive(path, ring, calls):
    """The archive of a month of one buyer, without receipts."""
    span = MonthSpan.named("2027-01")
    holds = [(f"call_{number:032x}", 4, 1, "posted", number + 1) for number in range(calls)]
    moves = [(number + 1, "posted", 4, 2, 1, None, span.since) for number in range(calls)]
    with open_draft(path) as writer:
        writer.begin(span, "data.example")
        writer.write_table(OPENING, BALANCES, [(1, None, 0, calls, 0), (4, "f", calls, 0, 0)])
        writer.write_table("transfer", ("seq", "kind", "debit", "credit", "amount", "resolves", "at"), moves)
        writer.write_table("reservation", ("call_id", "account", "credits", "state", "transfer"), holds)
        writer.write_table(
            CLOSING, BALANCES, [(1, None, 0, calls, 0), (2, None, calls, 0, 0), (4, "f", calls, calls, 0)]
        )
        figures = {"owed_before": calls, "owed": 0, "used": calls, "given_back": 0}
        about = {"v": 1, "service": "data.example", "month": "2027-01", "since": span.since, "until": span.until}
        more = {"closed_at": span.until, "previous": None, "log": LogRoot(0, "0" * 64)}
        writer.finish(MonthStatement(**about, **more, tables=writer.digests, credits=figures), ring.current())


def test_a_month_of_any_size_is_proved_in_the_same_memory(tmp_path, closed, monkeypatch):
    ring = closed[1]
    monkeypatch.setattr(sql_month_scratch, "AT_ONCE", 200)
    monkeypatch.setattr(gzip, "READ_BUFFER_SIZE", 8192, raising=False)  # from Python 3.12 on 128 KiB, which files fill
    peaks = []
    for calls in (4_000, 16_000):
        make_large_archive(tmp_path / "large", ring, calls)
        looks = []
        for _ in range(3):  # other threads of the process allocate too: the least is that of the proof
            tracemalloc.start()
            facts = prove_month(tmp_path / "large", ring.find)
            looks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert (facts.problems, facts.signed.statement.tables["reservation"].rows) == ([], calls)
        peaks.append(min(looks))
    assert peaks[1] < 1.1 * peaks[0]


async def test_rows_that_do_not_agree_are_not_closed(tmp_path, anyio_backend):
    await sell_three_months("sqlite", tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE packed_receipt SET signature=zeroblob(64) WHERE id=(SELECT min(id) FROM packed_receipt)")
        db.commit()
    with pytest.raises(MonthRefused, match="its signature is invalid"):
        await closer_of("sqlite", tmp_path).close_until(FEBRUARY, NOW)
