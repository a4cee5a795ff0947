"""Stores uncharged calls as they happen, in a table of the ledger's database that refuses every change."""

from collections.abc import Iterator, Sequence

import msgspec

from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.receipts.log import NOT_YET, BookedCall, DaySum, day_of, hours_of, sort_receipts
from toolserver.money.receipts.store import BucketRecord, DayCall, DayRecord
from toolserver.sql.connection import SqlConnection, hold_together, insert

HOUR_MS = 3_600_000
LOG = "log"  # the lock that instances share while they book calls, and hold alone while they append an hour
COLUMNS = "hour, key, reason, endpoint, credits, receipt, at"
_OPEN_SUMS = """SELECT reason, endpoint, count(*), sum(credits) FROM uncharged_call
  WHERE hour > ? AND hour BETWEEN ? AND ? GROUP BY reason, endpoint"""
_LAST = """SELECT n.seq, c.at, c.reason, c.endpoint, c.credits, c.receipt FROM uncharged_call c
  LEFT JOIN no_charge n ON n.hour = c.hour AND n.key = c.key WHERE c.hour = ? ORDER BY c.seq DESC LIMIT ?"""


def book_calls(db: SqlConnection, calls: Sequence[BookedCall]) -> None:
    """Book calls within the caller's transaction."""
    insert(db, f"INSERT INTO uncharged_call({COLUMNS}) VALUES", calls)


def open_hour(db: SqlConnection) -> int:
    """Return the last hour that was appended to the log, and keep others from being appended until the transaction
    ends, so that the calls that it books are counted.
    """
    hold_together(db, LOG)
    return last_hour(db)


def last_hour(db: SqlConnection) -> int:
    """Return the last hour that was appended to the log, or NOT_YET."""
    row = db.execute("SELECT max(hour) FROM no_charge WHERE hour IS NOT NULL").fetchone()
    return NOT_YET if row[0] is None else int(row[0])


def first_hour(db: SqlConnection) -> int:
    """Return the first hour whose booked calls are complete: earlier ones may have been archived and removed."""
    return read_horizon(db) // HOUR_MS


def list_hours(db: SqlConnection, until: int) -> list[int]:
    """Return the hours before `until` that have booked calls and are not in the log."""
    sql = "SELECT DISTINCT hour FROM uncharged_call WHERE hour > ? AND hour < ? ORDER BY hour"
    return [hour for (hour,) in db.execute(sql, (last_hour(db), until))]


def list_booked(db: SqlConnection, hour: int) -> list[BookedCall]:
    """Return the calls that are booked in an hour."""
    rows = db.execute(f"SELECT {COLUMNS} FROM uncharged_call WHERE hour=? ORDER BY seq", (hour,))
    return [BookedCall(*row) for row in rows]


def count_booked(db: SqlConnection, hour: int) -> int:
    """Return the number of calls that are booked in an hour."""
    return int(db.execute("SELECT count(*) FROM uncharged_call WHERE hour=?", (hour,)).fetchone()[0])


def find_bucket(db: SqlConnection, hour: int, key: bytes) -> BucketRecord:
    """Return a bucket, in the log or not; its `receipts` are None if they may have been archived and removed."""
    row = db.execute("SELECT seq FROM no_charge WHERE hour=? AND key=?", (hour, key)).fetchone()
    if hour < first_hour(db):
        return BucketRecord(row[0] if row else None, None)
    digests = db.execute("SELECT receipt FROM uncharged_call WHERE hour=? AND key=?", (hour, key))
    return BucketRecord(row[0] if row else None, sort_receipts(receipt for (receipt,) in digests))


def read_day(db: SqlConnection, day: str, most: int) -> DayRecord:
    """Return the sums and the last calls of a day, including those of its open hours."""
    closed, hours = last_hour(db), hours_of(day)
    sums = {
        (reason, endpoint): (calls, credits)
        for reason, endpoint, calls, credits in db.execute(
            "SELECT reason, endpoint, calls, credits FROM no_charge_day WHERE day=?", (day,)
        )
    }
    for reason, endpoint, calls, credits in db.execute(_OPEN_SUMS, (closed, hours[0], hours[-1])):
        before = sums.get((reason, endpoint), (0, 0))
        sums[reason, endpoint] = (before[0] + calls, before[1] + credits)
    waiting = db.execute("SELECT count(*) FROM uncharged_call WHERE hour > ?", (closed,)).fetchone()[0]
    rows = [DaySum(day, *key, *total) for key, total in sums.items()]
    return DayRecord(rows, _list_last(db, day, hours, most), int(waiting))


def _list_last(db: SqlConnection, day: str, hours: Sequence[int], most: int) -> list[DayCall]:
    newest: list[DayCall] = []
    for hour in reversed(hours):
        if len(newest) < most:
            newest += [DayCall(*row) for row in db.execute(_LAST, (hour, most - len(newest)))]
    return [*newest, *_list_old(db, day, most - len(newest))]


def _list_old(db: SqlConnection, day: str, most: int) -> Iterator[DayCall]:
    """Yield the last calls of a day that have leaves of their own, as all calls had before there were buckets."""
    sql = "SELECT seq, entry, at FROM no_charge WHERE day=? AND hour IS NULL ORDER BY seq DESC LIMIT ?"
    for seq, entry, at in db.execute(sql, (day, most)):
        leaf = msgspec.json.decode(bytes(entry))
        digest = leaf["receipt_sha256"]
        receipt = None if digest is None else bytes.fromhex(digest)
        yield DayCall(seq, at, leaf["reason"], leaf["endpoint"], leaf["credits"], receipt)


def list_days(db: SqlConnection, limit: int) -> list[tuple[str, int]]:
    """Return the last days and the number of uncharged calls on each."""
    sql = "SELECT day, sum(calls) FROM no_charge_day GROUP BY day ORDER BY day DESC LIMIT ?"
    days: dict[str, int] = dict(db.execute(sql, (limit,)))
    waiting = "SELECT hour, count(*) FROM uncharged_call WHERE hour > ? GROUP BY hour"
    for hour, calls in db.execute(waiting, (last_hour(db),)):
        days[day_of(hour)] = days.get(day_of(hour), 0) + calls
    return sorted(days.items(), reverse=True)[:limit]
