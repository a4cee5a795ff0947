"""One group of rows that leaves: whole calls, what they came to, and nothing that is younger than the horizon."""

import sqlite3
from contextlib import closing

import pytest

from tests.postgres import terms_of
from tests.quick_files import migrate_copied
from toolserver.money.books.months import Removal, RemovalPace, RowRemoval
from toolserver.money.books.sql_months import (
    DAY_MS,
    remove_calls,
    remove_receipts,
    remove_uncharged,
    remove_whole_receipts,
)
from toolserver.money.ledger.operations import CallReused, Charge, Reserve
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.receipts.sign import StoredReceipt
from toolserver.money.receipts.sql_store import find_month, read_receipts, store_receipts
from toolserver.sql.migrate import write_transaction
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_migrate import migrate_server

END = 100 * DAY_MS


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        prepare(db)
        yield db


def prepare(db):
    """A ledger with 100 credits of one buyer, whose calls until the horizon may be removed."""
    migrate_copied(db)
    db.execute("INSERT INTO account(id, kind, credits) VALUES (4, 'token', 100)")
    db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 100, NULL, 'bought', 0)")
    db.execute("INSERT INTO closed_month VALUES ('1970-04', ?, 0, '', 0, 1)", (END,))


def call(db, name, state, *moves):
    """A call of 3 credits with its transfers, each a kind and its time."""
    first = db.execute("SELECT max(seq) + 1 FROM transfer").fetchone()[0]
    for number, (kind, at) in enumerate(moves):
        debit, credit = (2, 4) if kind == "reverse" else (4, 2)
        row = (first + number, kind, debit, credit, 3, first if number else None, None, at)
        db.execute("INSERT INTO transfer VALUES (?,?,?,?,?,?,?,?)", row)
    reason, settled = (None if state in ("open", "posted") else "5xx"), (None if state == "open" else moves[-1][1])
    values = (name, state, reason, first, settled)
    db.execute("INSERT INTO reservation VALUES (?, 4, 3, ?, ?, '/x', '', ?, 0, ?, NULL, NULL)", values)


def left(db):
    return [name for (name,) in db.execute("SELECT call_id FROM reservation ORDER BY transfer")]


def test_calls_leave_whole_with_what_they_came_to(db):
    call(db, "charged", "posted", ("posted", 1))
    call(db, "settled", "posted", ("pending", 1), ("post", 2))
    call(db, "released", "voided", ("pending", 1), ("void", 2))
    call(db, "back", "reversed", ("pending", 1), ("post", 2), ("reverse", 3))
    call(db, "at once back", "reversed", ("posted", 1), ("reverse", END - 1))
    call(db, "last", "posted", ("posted", END - 1))

    step = remove_calls(db, 0, END, 10)

    assert left(db) == ["last"]
    assert db.execute("SELECT seq FROM transfer ORDER BY seq").fetchall() == [(1,), (12,)]
    assert db.execute("SELECT * FROM removed_calls").fetchall() == [(4, "", 12, 6, 10)]
    assert step == (12, 5 + 10)
    assert remove_calls(db, 12, END, 10) == (None, 0)


@pytest.mark.parametrize(
    ("state", "moves"),
    [
        ("open", [("pending", 1)]),
        ("posted", [("pending", 1), ("post", END)]),
        ("reversed", [("posted", 1), ("reverse", END)]),
        ("posted", [("posted", END)]),
        ("posted", [("pending", END), ("post", 2)]),
    ],
)
def test_a_call_that_went_on_behind_the_horizon_stays(db, state, moves):
    call(db, "it", state, *moves)
    call(db, "last", "posted", ("posted", END + 1))
    assert remove_calls(db, 0, END, 10).removed == 0
    assert left(db) == ["it", "last"]


def test_groups_go_on_behind_each_other_and_end_a_day_behind_the_horizon(db):
    for number in range(5):
        call(db, f"c{number}", "posted", ("posted", number))
    call(db, "young", "posted", ("posted", END + DAY_MS))
    steps, after = [], 0
    while after is not None:
        after, removed = remove_calls(db, after, END, 2)
        steps.append((after, removed))
    assert steps == [(3, 4), (5, 4), (7, 2), (None, 0)]
    assert left(db) == ["young"]


def test_receipts_of_earlier_versions_leave_by_their_time_and_their_ids_stay(db):
    for number, at in enumerate((1, END - 1, END, END + DAY_MS)):
        row = (f"rcpt_{number}", "a" * 64, b"{}", "key", b"", at)
        db.execute("INSERT INTO receipt(id, owner, core, key, signature, at) VALUES (?,?,?,?,?,?)", row)
    assert remove_whole_receipts(db, 0, END, 2) == (2, 2)
    assert remove_whole_receipts(db, 2, END, 2) == (4, 0)
    assert remove_whole_receipts(db, 3, END, 2) == (None, 0)
    assert [find_month(db, f"rcpt_{number}") for number in range(4)] == ["1970-01", "1970-04", None, None]


def name_at(at, number):
    """The id of a receipt whose call was made at a time."""
    return f"rcpt_{at:012x}{number:020x}"


def store(db, *receipts):
    store_receipts(db, [StoredReceipt(id, "a" * 64, b"{}", "key", bytes(64), at) for id, at in receipts])


def test_receipts_leave_by_their_time_and_their_ids_stay(db):
    young = [(name_at(END + DAY_MS, number), END + DAY_MS) for number in range(3)]
    old, late, foreign = (name_at(1, 1), 1), (name_at(2, 1), END), ("rcpt_of another shape", 1)
    store(db, old, late, *young, foreign)
    steps, after = [], 0
    while after is not None:
        after, removed = remove_receipts(db, after, END, 2)
        steps.append(removed)
    assert steps == [1, 0, 1, 0]  # the old one, none of the young, and behind them the one without a time
    assert [receipt.id for receipt in read_receipts(db)] == [late[0], *(id for id, _ in young)]
    assert [find_month(db, id) for id, _ in (old, foreign, late)] == ["1970-01", "1970-01", None]


def test_a_receipt_that_was_signed_a_month_after_its_call_is_in_the_later_archive(db):
    call(db, "call_1", "posted", ("posted", 1))
    call(db, "last", "posted", ("posted", END + 1))
    store(db, ("rcpt_1", 40 * DAY_MS))
    remove_calls(db, 0, END, 10)
    assert find_month(db, "rcpt_1") == "1970-01"
    remove_receipts(db, 0, END, 10)
    assert find_month(db, "rcpt_1") == "1970-02"


def test_what_was_removed_is_never_forgotten(db):
    store(db, ("rcpt_1", 1))
    remove_receipts(db, 0, END, 10)
    for statement in ("DELETE FROM removed_name", "UPDATE removed_name SET name=x'00'"):
        with pytest.raises(sqlite3.IntegrityError, match="never forgotten"):
            db.execute(statement)


def test_a_call_that_is_in_an_archive_is_not_charged_again(db):
    db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES(?, 4, 'acct', 0)", ("b" * 64,))
    call_id = f"call_{1:012x}{7:020x}"
    call(db, call_id, "posted", ("posted", 1))
    call(db, "last", "posted", ("posted", END + 1))
    remove_calls(db, 0, END, 10)
    now = 200 * DAY_MS
    for charge in (Charge(call_id, "b" * 64, 3, "/x"), Reserve(call_id, "b" * 64, 3, "/x")):
        with pytest.raises(CallReused, match="is in an archive"):
            apply_operation(db, charge, now)
    assert apply_operation(db, Charge(f"call_{1:012x}{8:020x}", "b" * 64, 3, "/x"), now).charged == 3


def test_uncharged_calls_leave_by_their_hour(db):
    for hour in (1, 2, END // 3_600_000):
        row = (hour, bytes(32), "5xx", "/x", 1, None, 0)
        columns = "hour, key, reason, endpoint, credits, receipt, at"
        db.execute(f"INSERT INTO uncharged_call({columns}) VALUES (?,?,?,?,?,?,?)", row)
    assert remove_uncharged(db, 0, END, 1) == (0, 1)
    assert remove_uncharged(db, 0, END, 10) == (0, 1)
    assert remove_uncharged(db, 0, END, 10) == (None, 0)
    assert db.execute("SELECT count(*) FROM uncharged_call").fetchone() == (1,)


class StoppedTime:
    """Time that only passes where a test lets it, with the pauses that were made."""

    def __init__(self):
        self.seconds, self.pauses = 0.0, []

    def sleep(self, seconds):
        self.pauses.append(seconds)


def remove_paced(time, transact, *, is_file):
    """Remove all rows. Returns how many of each kind, and how many each group removed, if any."""
    groups = []

    def noting(job):
        group = transact(job)
        groups.append(group.step.removed)
        return group

    removal = RowRemoval(noting, END, is_file, monotonic=lambda: time.seconds, sleep=time.sleep)
    removed = removal.remove_all()
    return removed, [removed for removed in groups if removed]


def fill(db, calls):
    for number in range(calls):
        call(db, f"c{number}", "posted", ("posted", number))
    call(db, "last", "posted", ("posted", END + DAY_MS))


def test_a_disk_that_syncs_slowly_gets_fewer_commits_not_more(db):
    fill(db, 300)
    time = StoppedTime()

    def transact(job):
        group = job(db)
        time.seconds += 0.05  # the sync
        return group

    removed, groups = remove_paced(time, transact, is_file=True)
    assert removed == {"receipts": 0, "calls": 600, "uncharged": 0}
    assert groups == [2 * 64, 2 * 128, 2 * 108]


def test_groups_get_smaller_while_sales_wait_longer_for_them(db):
    fill(db, 300)
    time = StoppedTime()

    def transact(job):
        class Slow:
            in_transaction = True

            def execute(self, sql, parameters=()):
                time.seconds += 0.011 if "DELETE FROM reservation" in sql else 0
                return db.execute(sql, parameters)

        return job(Slow())

    _, groups = remove_paced(time, transact, is_file=True)
    assert groups == [2 * 64] * 4 + [2 * 44]


def test_where_no_sale_waits_all_groups_are_large():
    largest = RemovalPace.of(Removal(remove_receipts), is_file=False)
    largest.follow(worked=1.0, took=1.0, version=None)
    assert largest.size == 32 * 64
    assert RemovalPace.of(Removal(remove_receipts), is_file=True).size == 64
    assert RemovalPace.of(Removal(remove_calls, delays_sales=True), is_file=False).size == 64


def test_pauses_get_short_once_nobody_else_has_written_to_the_file_for_long():
    pace = RemovalPace(delays_sales=True, size=64)
    assert [pace.follow(0.005, 0.01, 7) for _ in range(35)] == [0.04] * 32 + [0.01] * 3
    assert [pace.follow(0.005, 0.01, 8) for _ in range(34)] == [0.04] * 32 + [0.01] * 2
    assert RemovalPace(delays_sales=True, size=64).follow(0.005, 0.01, None) == 0.01


def test_a_write_of_another_process_is_noticed(tmp_path):
    time, path, deleted = StoppedTime(), tmp_path / "file", []
    with closing(sqlite3.connect(path, isolation_level=None)) as db, closing(sqlite3.connect(path)) as other:
        prepare(db)
        db.execute("BEGIN")
        fill(db, 40 * 64)
        db.execute("COMMIT")

        class Slow:
            in_transaction = True

            def execute(self, sql, parameters=()):
                if "DELETE FROM reservation" in sql:
                    time.seconds += 0.02
                    deleted.append(sql)
                return db.execute(sql, parameters)

        def transact(job):
            with write_transaction(db):
                group = job(Slow())
            if len(deleted) == 35:
                other.execute("UPDATE account SET credits=credits+1 WHERE id=4")
                other.commit()
            return group

        remove_paced(time, transact, is_file=True)
    assert [round(pause / 0.02) for pause in time.pauses if pause] == [4] * 32 + [1] * 3 + [4] * 5


@pytest.mark.live
def test_a_group_of_calls_is_read_by_the_connection_alone_among_many_rows(tmp_path):
    """With workers, a server takes 45 ms for what takes it one, and groups stay as small as they can be."""
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        migrate_server(db)
        db.run_script("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0")
        db.run_script("SET min_parallel_index_scan_size = 0")
        db.begin()
        db.execute("INSERT INTO account(id, kind, credits) VALUES (4, 'token', 100000)")
        db.execute("INSERT INTO closed_month VALUES ('1970-04', ?, 0, '', 0, 1)", (END,))
        rows = "FROM generate_series(1, 5000) AS each(n)"
        db.execute(f"INSERT INTO transfer SELECT n, 'posted', 4, 2, 1, NULL, NULL, n {rows}")
        db.execute(
            f"INSERT INTO reservation SELECT 'c' || n, 4, 1, 'posted', NULL, '/x', '', n, 0, n, NULL, NULL {rows}"
        )
        db.run_script("ANALYZE transfer; ANALYZE reservation")
        plans = []

        class Explained:
            shared = in_transaction = True

            def execute(self, sql, parameters=()):
                if sql.startswith("SELECT t.seq"):
                    plans.extend(str(row[-1]) for row in db.execute(f"EXPLAIN {sql}", parameters))
                return db.execute(sql, parameters)

        remove_calls(Explained(), 0, END, 64)
        db.rollback()
    assert plans
    assert not [step for step in plans if "Gather" in step or "Sort" in step]
