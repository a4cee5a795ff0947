"""Run the migrations of PostgreSQL: separate numbered scripts, applied by the instance that starts first.

The scripts are in `migrations/postgres` with their own numbers, because one script created
the tables that SQLite got in many steps. A test compares the resulting tables of both
engines.

A new database gets all steps in one transaction. On a database that is in use, instances of
the version before sell on, so each step runs by itself, in the way that its first line names:

| first line | how it runs | after a kill |
|---|---|---|
| `-- concurrently` | each `CREATE INDEX CONCURRENTLY IF NOT EXISTS` alone | an unfinished index is made anew |
| `-- in batches` | each statement again and again, in a transaction each, until it changes no row | it continues |
| any other | in one transaction with its number; its locks wait for `LOCK_MS` | it is run again |

A statement that waits for a lock makes all later ones wait behind it. So it gives up after
`LOCK_MS`, and the step is run again after a pause.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ForeignDatabase, OtherWorld, TransactionLost
from toolserver.sql.migrate import FOLDER, Migration, check_applied, migrations, statements
from toolserver.sql.postgres import PostgresConnection, PostgresTerms, ServerAway

log = logging.getLogger(__name__)

R = TypeVar("R")

TURNS, AGAIN_S = 60, 0.5  # attempts at a step that conflicts with sales or long reads, and the pause between them
LOCK_MS = 300
ANSWER_S = 30.0  # time for an answer of the server where no long step runs
TURN_S = 0.1  # how often a waiting instance looks whether the other one has finished
_LOCK = 0x54534C47  # advisory lock of the server: one instance migrates at a time
_APPLIED = """CREATE TABLE IF NOT EXISTS migration(
  number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)"""
_TABLES = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
_IN_TRANSACTION = f"SET LOCAL lock_timeout = '{LOCK_MS}ms'; SET LOCAL statement_timeout = 0"
_HOLDING = "SET LOCAL idle_in_transaction_session_timeout = 0"
# The build of an index waits for older transactions without making any writer wait. A server that checks its
# connections ends the build if we are killed, so that the next start need not wait for it.
_BUILDING = """SELECT set_config(name, CASE name WHEN 'client_connection_check_interval' THEN '2s' ELSE '0' END, false)
  FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'client_connection_check_interval')"""
_BUILT = "RESET statement_timeout; RESET lock_timeout"
_INDEX = re.compile(r"\s*(?:--[^\n]*\s*)*CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+) ")
_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(CAST(? AS text))"


def server_migrations() -> tuple[Migration, ...]:
    """Return the PostgreSQL scripts in order."""
    return migrations(FOLDER / "postgres")


def migrate_server(
    db: PostgresConnection, steps: Sequence[Migration] | None = None, *, again_s: float = AGAIN_S
) -> int:
    """Bring a database up to date and return the number of its steps. Instances that start at the same time wait here.

    A step that deadlocks with a sale of a running instance, or waits too long for a lock, is
    run again `again_s` later.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: nothing was changed.
        DatabaseError, TransactionLost: the server refuses us, is unreachable, or has no moment without long
            transactions. The steps before are applied; a later call continues.
    """
    steps = server_migrations() if steps is None else steps
    try:
        db.limit(time.monotonic() + ANSWER_S)
        if verify_server(db, steps) < len(steps):
            with _hold_turn(db.terms):
                _run_steps(db, steps, again_s)
    finally:
        db.limit(float("inf"))
    return len(steps)


def verify_server(db: PostgresConnection, steps: Sequence[Migration] | None = None) -> int:
    """Return the number of applied steps, after checking that each matches ours. Raises as `migrate_server`."""
    steps = server_migrations() if steps is None else steps
    tables = {name for (name,) in db.execute(_TABLES)}
    if not tables:
        return 0
    if "migration" not in tables:
        raise ForeignDatabase("the database has tables, but not ours: give the service its own database or schema")
    applied = db.execute("SELECT number, name, checksum FROM migration ORDER BY number").fetchall()
    return check_applied(steps, applied)


@contextmanager
def _hold_turn(terms: PostgresTerms) -> Iterator[None]:
    """Hold the right to migrate, on a connection of its own, after waiting for an instance that has it.

    The build of an index waits for every transaction with a snapshot. So we wait without one,
    and hold the right in a transaction that is between two statements.
    """
    holder, waited = PostgresConnection(terms), False
    try:
        while not _take_turn(holder):
            if not waited:
                log.info("another instance migrates the database")
            waited = True
            time.sleep(TURN_S)
        yield
    finally:
        holder.close()


def _take_turn(holder: PostgresConnection) -> bool:
    holder.limit(time.monotonic() + ANSWER_S)
    holder.begin()
    is_ours = bool(holder.execute("SELECT pg_try_advisory_xact_lock(?)", (_LOCK,)).fetchone()[0])
    if is_ours:
        holder.run_script(_HOLDING)  # a script, because the cursor of the statement before would keep its snapshot
    else:
        holder.rollback()
    return is_ours


def _run_steps(db: PostgresConnection, steps: Sequence[Migration], again_s: float) -> None:
    db.limit(time.monotonic() + ANSWER_S)
    version = verify_server(db, steps)  # again, as the instance that we waited for may have applied them
    if version == 0:
        _transact(db, lambda: _create(db, steps), again_s)
        return
    for step in steps[version:]:
        db.limit(float("inf"))
        if step.kind == "concurrently":
            for statement in statements(step.sql):
                _build_index(db, statement, again_s)
        elif step.kind == "in batches":
            for statement in statements(step.sql):
                _change_in_batches(db, statement, again_s)
        _transact(db, lambda step=step: _apply(db, step), again_s)  # type: ignore[misc]
        log.info("database migrated", extra={"step": step.name, "version": step.number, "known": len(steps)})


def _create(db: PostgresConnection, steps: Sequence[Migration]) -> None:
    """Make the tables of a new database, for which nobody waits."""
    for step in steps:
        db.execute(_APPLIED)
        db.run_script(step.sql.replace("CONCURRENTLY ", ""))
        _note_applied(db, step)


def _apply(db: PostgresConnection, step: Migration) -> None:
    if step.kind == "transaction":
        db.run_script(step.sql)
    _note_applied(db, step)


def _note_applied(db: PostgresConnection, step: Migration) -> None:
    row = (step.number, step.name, step.checksum, time.time_ns() // 1_000_000)
    db.execute("INSERT INTO migration VALUES(?,?,?,?)", row)


def _build_index(db: PostgresConnection, statement: str, again_s: float) -> None:
    """Make an index while others write. An index that a killed build has left is not valid, and is dropped first."""
    match = _INDEX.match(statement)
    if match is None:
        raise ValueError(f"a concurrent step has only CREATE INDEX CONCURRENTLY IF NOT EXISTS: {statement.strip()!r}")
    name = match[1]

    def build() -> None:
        is_valid = db.execute(_IS_VALID, (name,)).fetchone()
        if is_valid == (True,):
            return
        try:
            if db.terms.cached:  # behind a pooler, settings of a session would stay on a connection of others
                db.execute(_BUILDING)
            if is_valid is not None:
                log.warning("an unfinished index is made anew", extra={"index": name})
                db.run_script(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            db.run_script(statement)
        finally:
            if db.terms.cached:
                db.execute(_BUILT)

    _repeat(build, again_s)


def _change_in_batches(db: PostgresConnection, statement: str, again_s: float) -> None:
    """Run a statement that changes a limited number of rows until it finds none. Others have half of the time."""
    changed = 1
    while changed > 0:
        began = time.monotonic()
        changed = _transact(db, lambda: db.execute(statement).rowcount, again_s)
        time.sleep(time.monotonic() - began)


def _transact(db: PostgresConnection, job: Callable[[], R], again_s: float) -> R:
    def limited() -> R:
        db.execute(_IN_TRANSACTION)
        return job()

    return _repeat(lambda: db.transact(limited), again_s)


def _repeat(attempt: Callable[[], R], again_s: float) -> R:
    """Return the result of an attempt, which is made again if it conflicts with others. Raises TransactionLost."""
    for turn in range(1, TURNS):
        try:
            return attempt()
        except ServerAway:
            raise
        except TransactionLost as lost:
            log.info("the migration of the database is run again", extra={"turn": turn, "reason": str(lost)})
            time.sleep(again_s)
    return attempt()


def claim_database(*, simulated: bool) -> Callable[[SqlConnection], None]:
    """Return a job that marks a new database as simulated or real, or checks the mark of an existing one.

    The job raises OtherWorld.
    """

    def claim(db: SqlConnection) -> None:
        db.execute("INSERT INTO installation(one, simulated) VALUES(1, ?) ON CONFLICT DO NOTHING", (int(simulated),))
        is_simulated = bool(db.execute("SELECT simulated FROM installation").fetchone()[0])
        if is_simulated != simulated:
            held, wanted = ("simulated", "real") if is_simulated else ("real", "simulated")
            raise OtherWorld(f"the database holds {held} credits: give the {wanted} service its own database")

    return claim
