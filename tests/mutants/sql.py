"""Faults of what several instances rely on in PostgreSQL: locks and their order, retries, fences, groups, clocks."""

from tests.mutants.faults import Mutant, fault

LOCKS = "tests/money/ledger/test_postgres_locks.py"

SQL: tuple[Mutant, ...] = (
    fault(
        "toolserver/sql/connection.py",
        "accounts are locked in no order",
        "{sql} ORDER BY id FOR NO KEY UPDATE",
        "{sql} FOR NO KEY UPDATE",
    ),
    fault(
        "toolserver/sql/connection.py",
        "accounts are read and not locked",
        "{sql} ORDER BY id FOR NO KEY UPDATE",
        "{sql} ORDER BY id",
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "a row that was waited for is left out of a join",
        "SELECT id FROM account WHERE id = ANY(ARRAY(",
        "SELECT id FROM account WHERE id IN ((",
        LOCKS,
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "the account of a call is not locked",
        "SELECT account FROM reservation WHERE call_id = ANY(:calls)",
        "SELECT account FROM reservation WHERE call_id = ANY(:calls) AND false",
        LOCKS,
    ),
    fault(
        "toolserver/sql/postgres.py",
        "a transaction that could not be serialized is a failure",
        '_LOST = ("40001", ',
        "_LOST = (",
    ),
    fault(
        "toolserver/sql/postgres.py",
        "a transaction that ended a deadlock is a failure",
        '"40001", "40P01",',
        '"40001",',
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "a group that was lost is not run again",
        "if tried == TRIES or",
        "if True or",
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "a commit whose answer was lost counts as done",
        "        _require_committed(db, number, until, lost)\n    return outcomes",
        "        lost.add_note(number)\n    return outcomes",
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "a commit whose answer was lost is run again though it was done",
        "        _require_committed(db, number, until, lost)\n    return outcomes",
        "        raise\n    return outcomes",
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "half of a transaction stays",
        "    except BaseException:\n        db.rollback()\n        raise\n    try:",
        "    except BaseException:\n        db.commit()\n        raise\n    try:",
    ),
    fault(
        "toolserver/sql/leases.py",
        "a lease that has not run out is taken over",
        "WHERE lease.holder=excluded.holder OR lease.expires_at<=?4",
        "WHERE lease.holder=excluded.holder OR lease.expires_at>=0",
    ),
    fault(
        "toolserver/sql/leases.py",
        "a change of hands does not raise the number",
        "THEN 0 ELSE 1 END",
        "THEN 0 ELSE 0 END",
    ),
    fault(
        "toolserver/sql/leases.py",
        "who writes under an older number is not refused",
        "if row is None or row[0] != fence:",
        "if row is None:",
    ),
    fault(
        "toolserver/sql/leases.py",
        "each instance counts the time of a lease by its own clock",
        "clock = read_clock(db, now)",
        "clock = now",
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "a room is not held",
        "    room = group[0].room\n",
        '    room = ""\n',
        "tests/sql/test_postgres_rooms.py",
    ),
    fault(
        "toolserver/sql/postgres_group_commit.py",
        "each statement of a group is committed by itself",
        "    db.begin()\n    try:\n        enter_room(",
        "    db.connect()\n    try:\n        enter_room(",
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "a group is stored without its reservations",
        "    _HOLD_ROWS.put(db, list(map(_hold_row, books.changed_holds.values())))\n",
        "",
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "a row that another instance wrote first counts as written",
        "types=self.types) != len(rows):",
        "types=self.types) > len(rows):",
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "a call of another account takes the place of one",
        '"WHERE reservation.transfer=excluded.transfer"',
        '""',
    ),
    fault(
        "toolserver/money/ledger/sql_tables.py",
        "a call that came between lock and load is decided without its lock",
        "if locked is not None and not books.accounts.keys() <= locked:",
        "if locked is not None and not books.accounts:",
    ),
    fault(
        "toolserver/calls/idempotency_store.py",
        "a key belongs to whoever used it last",
        "ON CONFLICT DO NOTHING",
        "ON CONFLICT(scope, key) DO UPDATE SET call_id=excluded.call_id, request=excluded.request",
    ),
    fault(
        "toolserver/sql/leases.py",
        "a lease that ran out is nobody's for ever",
        "OR lease.expires_at<=?4",
        "OR lease.expires_at<=?4 - 9000000000000",
    ),
    fault(
        "toolserver/sql/leases.py",
        "a lease changes hands before what was written under it is committed",
        '" FOR SHARE" if is_shared(db)',
        '"" if is_shared(db)',
    ),
    fault(
        "toolserver/sql/high_water.py",
        "a mark is read and not locked",
        "WHERE name=? FOR UPDATE",
        "WHERE name=?",
        "tests/sql/test_postgres_marks.py",
    ),
    fault(
        "toolserver/sql/connection.py",
        "two may hold a name alone",
        '"SELECT pg_advisory_xact_lock(?, ?)"',
        '"SELECT pg_advisory_xact_lock_shared(?, ?)"',
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "a balance falls below zero",
        "if hold is None and account.spendable < self.credits:",
        "if hold is None and account.spendable < 0:",
    ),
    fault(
        "toolserver/money/ledger/store.py",
        "an instance remembers for as long as one that shares nothing that a token is valid",
        "KNOWN_SHARED_S if file.shared else KNOWN_S",
        "KNOWN_S",
    ),
    fault(
        "toolserver/money/ledger/store.py",
        "a token that was valid once is never forgotten",
        "KNOWN, KNOWN_SHARED_S if file.shared else KNOWN_S",
        "KNOWN, 1e9",
    ),
)
