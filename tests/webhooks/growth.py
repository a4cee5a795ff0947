"""How much dead endpoints leave behind in a day: rows, bytes and log lines. `python -m tests.webhooks.growth [dead]`.

Every endpoint refuses connections, from its first slot on. The day goes by on a manual clock, and
everything else is real: the ledger's file, reservations, releases, the public log of what was not charged.
"""

import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.calls.parts import RICH
from tests.webhooks.room import LOCAL, SLOT_S, Room, open_room
from toolserver.webhooks.subscription_operations import AddSubscription

HOURS = 26
STEPS_S = (0.0, 7.0, 37.0, 150.0)  # of a slot: its fires and the attempts after each


class LineCounter(logging.Handler):
    """Counts log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1


@contextmanager
def counting_lines() -> Iterator[LineCounter]:
    """Count the lines that the product logs meanwhile."""
    counter, logger = LineCounter(), logging.getLogger("toolserver")
    logger.addHandler(counter)
    try:
        yield counter
    finally:
        logger.removeHandler(counter)


async def populate(room: Room, dead: int) -> None:
    """So many subscriptions, each of another owner, spread over a slot."""
    first = await room.subscribe("http://127.0.0.1:1/")
    await room.hooks.subscriptions.cancel(RICH, first.id)
    for number in range(dead):
        late = number * SLOT_S * 1000 // dead
        one = first._replace(
            id=f"wh_{number:016x}",
            owner=f"{number:064x}",
            payer=f"{number:064x}",
            url=f"http://dead{number}.localhost:1/",
            host=f"dead{number}.localhost",
            created_at=first.created_at - late,
            due_at=first.due_at - late,
        )
        await room.hooks.store.apply(AddSubscription(one))


async def measure(folder: Path, dead: int, hours: int = HOURS) -> dict[str, Any]:
    """What is there after so many hours with so many dead endpoints."""
    async with open_room(folder, network=LOCAL) as room:
        await room.shop.ledger.mint(RICH, 10**9, cause="growth")
        await populate(room, dead)
        at_first = size(folder)
        with counting_lines() as logged:  # from now on: the start has lines of its own
            for _ in range(hours * 3600 // SLOT_S):
                for step, before in zip((*STEPS_S[1:], SLOT_S), STEPS_S, strict=True):
                    await room.hooks.queue.work_due()
                    room.clock.advance(step - before)
        subscriptions = await room.hooks.store.all(dead + 1)
        rows = await room.shop.ledger.file.read(
            lambda db: {
                table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("webhook_fire", "webhook_payload", "reservation", "transfer")
            }
        )
    return {
        "states": dict(Counter((each.state, each.pause_reason) for each in subscriptions)),
        "rows": rows,
        "bytes_each": (size(folder) - at_first) // dead,
        "log_lines": logged.lines,
    }


def size(folder: Path) -> int:
    """Bytes of the ledger's file and its side files."""
    return sum(path.stat().st_size for path in folder.glob("ledger.sqlite3*"))


def main(dead: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(measure(Path(folder), dead)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
