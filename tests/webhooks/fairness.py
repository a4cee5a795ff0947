"""Good receivers among dead ones: how long do they wait?

`python -m tests.webhooks.fairness [deliveries] [dead] [names]`. The good receivers take a request in 5 ms. A tenth of
all hang, and twelve names (or as many as the third number says) are never answered for. With a second number, so many
more subscriptions with hanging receivers are added, which have failed before.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.calls.parts import RICH
from tests.webhooks import receivers
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import SLOT_S, open_room
from toolserver.core.caller import token_hash
from toolserver.webhooks.delivery import DeliveryNetwork
from toolserver.webhooks.subscription_operations import AddSubscription

HUNG = 12


async def populate(room, targets):
    """One subscription for each (host, port, changes), each of an owner with an account of its own."""
    first = await room.subscribe("http://127.0.0.1:1/")
    await room.hooks.subscriptions.test(RICH, first.id, None, None)  # loads what sends, which is done once
    await room.hooks.subscriptions.cancel(RICH, first.id)
    subscriptions = [
        first._replace(
            id=f"wh_{number:016x}",
            owner=f"{number:064x}",
            payer=f"{number:064x}",
            url=f"http://{host}:{port}/",
            host=host,
            **changes,
        )
        for number, (host, port, changes) in enumerate(targets)
    ]
    for at in range(0, len(subscriptions), 1000):
        await asyncio.gather(*(room.hooks.store.apply(AddSubscription(one)) for one in subscriptions[at : at + 1000]))


async def measure(folder: Path, deliveries: int, more_dead: int = 0, hung: int = HUNG) -> dict[str, float]:
    """Seconds that good deliveries took from the beginning of their slot: p50, p99 and the longest."""
    release, arrived = threading.Event(), []

    def lookup(host):
        if host.startswith("hung"):
            release.wait(30)
        return ["127.0.0.1"]

    async def answer(writer):
        arrived.append(time.perf_counter())
        await asyncio.sleep(0.005)
        await status(204)(writer)

    dead_share = deliveries // 10
    good_share = deliveries - dead_share - hung
    async with (
        open_room(folder, network=DeliveryNetwork(lookup=lookup)) as room,
        receiving(answer) as good,
        receiving(receivers.hang) as dead,
    ):
        await room.shop.ledger.mint(RICH, 10**6, cause="fairness")
        failing = {"consecutive_failures": 3, "failing_since": 0}
        targets = [(f"good{n}.localhost", good.port, {}) for n in range(good_share)]
        targets += [(f"dead{n}.localhost", dead.port, {}) for n in range(dead_share)]
        targets += [(f"hung{n}.localhost", good.port, {}) for n in range(hung)]
        targets += [(f"lost{n}.localhost", dead.port, failing) for n in range(more_dead)]
        targets.sort(key=lambda target: hash_of(target[0]))
        await populate(room, targets)
        room.clock.advance(SLOT_S)
        started = time.perf_counter()
        running = asyncio.create_task(room.hooks.queue.run())
        while len(arrived) < good_share and time.perf_counter() - started < 120:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        release.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    waits = sorted(at - started for at in arrived)
    counts = {"good": good_share, "arrived": len(waits), "p50": statistics.median(waits)}
    return counts | {"p99": waits[int(0.99 * len(waits))], "longest": waits[-1]}


def hash_of(text: str) -> bytes:
    """An order in which good and bad are mixed, the same in every run."""
    return token_hash(text)


def main(deliveries: int = 300, more_dead: int = 0, hung: int = HUNG) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(measure(Path(folder), deliveries, more_dead, hung)))
        print("database bytes", sum(path.stat().st_size for path in Path(folder).glob("ledger.sqlite3*")))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:4]))
