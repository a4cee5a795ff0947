"""`python -m tests.live.patient VERB …`: toolserver, which waits for PostgreSQL as long as a busy machine may take.

Without a verb it is a worker of such a service. PATIENCE_S says how many seconds it waits: 0.8 are usual, after which
a call is refused, however well the server is. CLOCK_OFF_S, if it is set, is by how many seconds the machine's clock is
ahead. OWN_CLOCK, if it is set, leaves it its own clock, which it then sets by the database's, as it does where no
world is simulated. MARKS, if it is set, is the file in which it notes what `tests.live.marking` does.
"""

import os
import sys
import time
from datetime import UTC, datetime, timedelta

from tests.live.marking import note_marks
from toolserver import app
from toolserver.cli import worker, workers
from toolserver.cli.main import main
from toolserver.clock import SteeredClock, SystemClock
from toolserver.sql.postgres import PostgresTerms

MODULE = "tests.live.patient"

if __name__ == "__main__":
    patience_s = float(os.environ["PATIENCE_S"])
    cached, readers, *_ = PostgresTerms.__init__.__defaults__ or ()
    PostgresTerms.__init__.__defaults__ = (cached, readers, patience_s, patience_s)
    if off_s := float(os.environ.get("CLOCK_OFF_S", "0")):
        SystemClock.now = lambda self: datetime.now(UTC) + timedelta(seconds=off_s)  # type: ignore[method-assign]
        SystemClock.time = lambda self: time.time() + off_s  # type: ignore[method-assign]
    if os.environ.get("OWN_CLOCK"):
        app.choose_clock = lambda via, skew: SteeredClock(SystemClock(), skew)
    if marks := os.environ.get("MARKS"):
        note_marks(marks)
    workers.MODULE = MODULE
    main() if sys.argv[1:] else worker.main()
