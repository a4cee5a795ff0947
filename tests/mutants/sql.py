"""Faults of what several instances rely on in PostgreSQL: locks and their order, retries, fences, groups, clocks."""

from tests.mutants.faults import Mutant, fault

SQL: tuple[Mutant, ...] = (
    fault(
        "toolserver/storage/connection.py",
        "accounts are locked in no order",
        "{sql} ORDER BY id FOR NO KEY UPDATE",
        "{sql} ORDER BY id DESC FOR NO KEY UPDATE",
    ),
    fault(
        "toolserver/storage/connection.py",
        "accounts are read and not locked",
        "{sql} ORDER BY id FOR NO KEY UPDATE",
        "{sql} ORDER BY id",
    ),
    fault(
        "toolserver/ledger/postgres_locks.py",
        "a row that was waited for is left out of a join",
        "SELECT id FROM account WHERE id = ANY(ARRAY(",
        "SELECT id FROM account WHERE id IN ((",
    ),
    fault(
        "toolserver/ledger/postgres_locks.py",
        "the account of a call is not locked",
        "SELECT account FROM reservation WHERE call_id = ANY(:calls)",
        "SELECT account FROM reservation WHERE call_id = ANY(:calls) AND false",
    ),
    fault(
        "toolserver/storage/postgres.py",
        "a transaction that lost to another one is a failure",
        '_LOST = ("40001", "40P01",',
        "_LOST = (",
    ),
    fault(
        "toolserver/storage/postgres_group_commit.py",
        "a group that was lost is not run again",
        "if tried == TRIES or",
        "if True or",
    ),
    fault(
        "toolserver/storage/postgres_group_commit.py",
        "a commit whose answer was lost counts as done",
        "        _require_committed(db, number, until, lost)\n    return outcomes",
        "        lost.add_note(number)\n    return outcomes",
    ),
    fault(
        "toolserver/storage/postgres_group_commit.py",
        "a commit whose answer was lost is run again though it was done",
        "        _require_committed(db, number, until, lost)\n    return outcomes",
        "        raise\n    return outcomes",
    ),
    fault(
        "toolserver/storage/postgres_group_commit.py",
        "half of a transaction stays",
        "    except BaseException:\n        db.rollback()\n        raise\n    try:",
        "    except BaseException:\n        db.commit()\n        raise\n    try:",
    ),
    fault(
        "toolserver/storage/leases.py",
        "a lease that has not run out is taken over",
        "WHERE lease.holder=excluded.holder OR lease.expires_at<=?4",
        "WHERE lease.holder=excluded.holder OR lease.expires_at>=0",
    ),
    fault(
        "toolserver/storage/leases.py",
        "a change of hands does not raise the number",
        "THEN 0 ELSE 1 END",
        "THEN 0 ELSE 0 END",
    ),
    fault(
        "toolserver/storage/leases.py",
        "who writes under an older number is not refused",
        "if row is None or row[0] != fence:",
        "if row is None:",
    ),
    fault(
        "toolserver/storage/leases.py",
        "each instance counts the time of a lease by its own clock",
        "clock = read_clock(db, now)",
        "clock = now",
    ),
    fault(
        "toolserver/storage/postgres_rooms.py",
        "a room is not held",
        "    if group[0].room:\n",
        "    if not group:\n",
    ),
)
