"""Manage leases: which instance does what only one may do at a time, and until when. Anyone may take an expired lease.

Every change of holder raises the number of the lease (its fence). A task that runs under a lease checks the number in
the transaction of each write. So a task that was delayed beyond the end of its lease, and continues with old data, is
refused. Times are in milliseconds, by the clock of the database if instances share one.
"""

from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection, is_shared, read_clock

_TAKE = """INSERT INTO lease(name, holder, expires_at, fence) VALUES(?1,?2,?3,1) ON CONFLICT(name) DO UPDATE
  SET holder=excluded.holder, expires_at=excluded.expires_at,
    fence=lease.fence + CASE WHEN lease.holder=excluded.holder THEN 0 ELSE 1 END
  WHERE lease.holder=excluded.holder OR lease.expires_at<=?4 RETURNING fence"""


class LeaseLost(ToolserverError):
    """Another instance has taken over this task."""


def take_lease(db: SqlConnection, name: str, holder: str, *, now: int, until: int) -> int | None:
    """Take or extend a lease within the caller's transaction. Returns its number, or None if another holds it.

    The lease lasts for `until` minus `now`. If instances share a database, its clock counts.
    """
    clock = read_clock(db, now)
    row = db.execute(_TAKE, (name, holder, clock + until - now, clock)).fetchone()
    return None if row is None else int(row[0])


def require_fence(db: SqlConnection, name: str, fence: int) -> None:
    """Raise LeaseLost unless a lease still has this number. Nobody can take it until the transaction ends."""
    stays = " FOR SHARE" if is_shared(db) else ""
    row = db.execute(f"SELECT fence FROM lease WHERE name=?{stays}", (name,)).fetchone()
    if row is None or row[0] != fence:
        raise LeaseLost(f"another instance does this now: {name}")
