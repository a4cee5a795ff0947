"""Run the migrations of PostgreSQL: separate numbered scripts, applied by the instance that starts first.

The scripts are in `migrations/postgres` with their own numbers, because one script created
the tables that SQLite got in many steps. A test compares the resulting tables of both
engines.
"""

import logging
import time
from collections.abc import Callable, Sequence

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ForeignDatabase, OtherWorld, TransactionLost
from toolserver.sql.migrate import FOLDER, Migration, check_applied, migrations
from toolserver.sql.postgres import PostgresConnection, ServerAway

log = logging.getLogger(__name__)

TURNS, AGAIN_S = 10, 0.2
_LOCK = 0x54534C47  # advisory lock of the server: one instance migrates at a time
_APPLIED = """CREATE TABLE IF NOT EXISTS migration(
  number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)"""
_TABLES = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"


def server_migrations() -> tuple[Migration, ...]:
    """Return the PostgreSQL scripts in order."""
    return migrations(FOLDER / "postgres")


def migrate_server(
    db: PostgresConnection, steps: Sequence[Migration] | None = None, *, again_s: float = AGAIN_S
) -> int:
    """Bring a database up to date and return the number of its steps. Instances that start at the same time wait here.

    All steps are in one transaction. If it deadlocks with a sale of a running instance, the
    server may end either of them. The migration is then run again, `again_s` later.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: nothing was changed.
        DatabaseError, TransactionLost: the server refuses us or is unreachable.
    """
    steps = server_migrations() if steps is None else steps
    for turn in range(1, TURNS):
        try:
            return _run_steps(db, steps)
        except ServerAway:
            raise
        except TransactionLost as lost:
            log.info("the migration of the database is run again", extra={"turn": turn, "reason": str(lost)})
            time.sleep(again_s)
    return _run_steps(db, steps)


def _run_steps(db: PostgresConnection, steps: Sequence[Migration]) -> int:
    db.begin()
    try:
        db.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        version = _verify(db, steps)
        for step in steps[version:]:
            db.execute(_APPLIED)
            db.run_script(step.sql)
            row = (step.number, step.name, step.checksum, time.time_ns() // 1_000_000)
            db.execute("INSERT INTO migration VALUES(?,?,?,?)", row)
        db.commit()
    except BaseException:
        db.rollback()
        raise
    if version < len(steps):
        log.info("database migrated", extra={"before": version, "version": len(steps)})
    return len(steps)


def _verify(db: PostgresConnection, steps: Sequence[Migration]) -> int:
    """Return the number of applied steps, after checking that each matches ours."""
    tables = {name for (name,) in db.execute(_TABLES)}
    if not tables:
        return 0
    if "migration" not in tables:
        raise ForeignDatabase("the database has tables, but not ours: give the service its own database or schema")
    applied = db.execute("SELECT number, name, checksum FROM migration ORDER BY number").fetchall()
    return check_applied(steps, applied)


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
