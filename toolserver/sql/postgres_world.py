"""Ensure that a database has either real or simulated credits, never both."""

from collections.abc import Callable

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import OtherWorld


def claim_database(*, simulated: bool) -> Callable[[SqlConnection], None]:
    """Return a job that marks a new database as simulated or real, or checks the mark of an existing one.

    The job raises OtherWorld.
    """

    def claim(db: SqlConnection) -> None:
        db.execute("INSERT INTO installation(one, simulated) VALUES(1, ?) ON CONFLICT DO NOTHING", (int(simulated),))
        found = bool(db.execute("SELECT simulated FROM installation").fetchone()[0])
        if found != simulated:
            held, wanted = ("simulated", "real") if found else ("real", "simulated")
            raise OtherWorld(f"the database holds {held} credits: give the {wanted} service its own database")

    return claim
