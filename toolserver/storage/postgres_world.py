"""Whether a database holds real credits or those of a simulation: never both."""

from collections.abc import Callable

from toolserver.storage.connection import SqlConnection
from toolserver.storage.errors import OtherWorld


def claim_database(*, simulated: bool) -> Callable[[SqlConnection], None]:
    """A job that marks a new database as one of the simulated world or of the real one, or compares it with its mark.

    The job raises OtherWorld.
    """

    def claim(db: SqlConnection) -> None:
        db.execute("INSERT INTO installation(one, simulated) VALUES(1, ?) ON CONFLICT DO NOTHING", (int(simulated),))
        found = bool(db.execute("SELECT simulated FROM installation").fetchone()[0])
        if found != simulated:
            held, wanted = ("simulated", "real") if found else ("real", "simulated")
            raise OtherWorld(f"the database holds {held} credits: give the {wanted} service one of its own")

    return claim
