"""Compare the machine's clock with the database's, which all instances share."""

from toolserver.clock import Clock, ClockSkew
from toolserver.sql.connection import read_server_clock
from toolserver.sql.errors import StorageFailed
from toolserver.sql.group_commit import GroupCommit

COMPARE_EVERY_S = 10.0
UNSURE_S = 1.0  # an answer that took longer says too little


async def compare_clocks(file: GroupCommit, machine: Clock, skew: ClockSkew) -> None:
    """Measure how far the machine's clock is off, by half the time that the answer took. A file has no clock.

    While the database is away, or slow, the last measurement counts.
    """
    if not file.shared:
        return
    asked, started = machine.time(), machine.monotonic()
    try:
        theirs = await file.read(read_server_clock)
    except StorageFailed:
        return
    took_s = machine.monotonic() - started
    if took_s <= UNSURE_S:
        skew.seconds = theirs / 1000 - (asked + took_s / 2)
