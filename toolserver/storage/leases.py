"""Leases: who does what only one instance may do at a time, and until when. A lease that ran out is anybody's.

Every change of hands raises the number of the lease (its fence). A task that runs under a lease gives its number with
each write, in the same transaction: one that was held up for longer than the lease lasts, and goes on with what it saw
then, is refused. Times are in milliseconds, by the clock of the database where instances share one.
"""

from toolserver.errors import ToolserverError
from toolserver.storage.connection import SqlConnection, is_shared, read_clock

_TAKE = """INSERT INTO lease(name, holder, expires_at, fence) VALUES(?1,?2,?3,1) ON CONFLICT(name) DO UPDATE
  SET holder=excluded.holder, expires_at=excluded.expires_at,
    fence=lease.fence + CASE WHEN lease.holder=excluded.holder THEN 0 ELSE 1 END
  WHERE lease.holder=excluded.holder OR lease.expires_at<=?4 RETURNING fence"""


class LeaseLost(ToolserverError):
    """Another instance has taken over what this one was doing."""


def take_lease(db: SqlConnection, name: str, holder: str, *, now: int, until: int) -> int | None:
    """Take a lease or go on holding it, within the caller's transaction: its number. None: another one holds it.

    `until` less `now` is how long it lasts; the time itself is that of the database where instances share it.
    """
    clock = read_clock(db, now)
    row = db.execute(_TAKE, (name, holder, clock + until - now, clock)).fetchone()
    return None if row is None else int(row[0])


def require_fence(db: SqlConnection, name: str, fence: int) -> None:
    """Raises LeaseLost unless a lease has still this number. Nobody takes it until the transaction ends."""
    stays = " FOR SHARE" if is_shared(db) else ""
    row = db.execute(f"SELECT fence FROM lease WHERE name=?{stays}", (name,)).fetchone()
    if row is None or row[0] != fence:
        raise LeaseLost(f"another instance does this now: {name}")
