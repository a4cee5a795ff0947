"""`python -m tests.live.killing_shared worker|instance KILLS [SEED]`: kills one of two under load.

`worker` kills one of the two workers of a service, `instance` one of two services, which is then
started again. All are on one PostgreSQL and one Redis. What the dead one held or charged without
having sent the answer must be given back once the leases of its calls have ended, by those that
live. Every call that is charged in the end must be one whose answer arrived whole.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.hostile.instances_scene import Instance
from tests.live.buying import bought
from tests.live.killing import CALLERS, CREDITS, LAST_S, TOKENS, USD, Caller, Tally, selling
from tests.live.marking import read_marks
from tests.live.patient import MODULE as PATIENT
from tests.live.processes import UNLIMITED, Program, started
from tests.live.test_shared_database import Shop
from tests.postgres import url_of
from tests.redis_server import start_redis
from toolserver.money.ledger.sql_tables import LEASE_MS
from toolserver.serving.money import RENEW_S

MODES = ("worker", "instance")
MARKS = "marks"
PATIENCE_S = "8"  # with PostgreSQL: what is refused is no call, and nothing is learned from it
BACK_S = 240.0  # a machine that others use may start a worker this late: counts are judged, not seconds
_OVERDUE = f"""SELECT call_id FROM journal
  WHERE next_at + {int(3000 * RENEW_S)} < extract(epoch FROM clock_timestamp()) * 1000"""
_WITHOUT_LEASE = """SELECT r.call_id FROM reservation r LEFT JOIN journal j ON j.call_id = r.call_id
  WHERE r.state = 'open' AND j.call_id IS NULL"""


class Team(ABC):
    """What is killed: one of several that share a database, which is started again."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    @property
    @abstractmethod
    def programs(self) -> list[Program]:
        """Where callers call."""

    @abstractmethod
    def kill_one(self, rng: random.Random) -> None:
        """Kill one at once."""

    @abstractmethod
    def wait_until_whole(self) -> None:
        """Wait until the one that was killed is back."""


class Workers(Team):
    """One service with two workers, whose supervisor starts a new one for each that ended."""

    def __init__(self, shop: Shop, stack: ExitStack) -> None:
        super().__init__(shop)
        begun = started("serve", "--workers", "2", folder=shop.place("a"), module=PATIENT, **shop.settings)
        self._program = stack.enter_context(begun)

    @property
    def programs(self) -> list[Program]:
        return [self._program]

    def _list(self) -> list[int]:
        tasks = Path(f"/proc/{self._program.process.pid}/task")
        return sorted(int(word) for path in tasks.glob("*/children") for word in path.read_text().split())

    def kill_one(self, rng: random.Random) -> None:
        self._dead = rng.choice(self._list())
        os.kill(self._dead, signal.SIGKILL)

    def wait_until_whole(self) -> None:
        until = time.monotonic() + BACK_S
        while len(living := self._list()) < 2 or self._dead in living:
            assert time.monotonic() < until, "no new worker"
            time.sleep(0.05)


class Instances(Team):
    """Two services, of both kinds of servers."""

    def __init__(self, shop: Shop, stack: ExitStack) -> None:
        super().__init__(shop)
        self._instances: list[Instance] = []
        for name, server in (("a", "hypercorn"), ("b", "uvicorn")):  # the first makes the keys that both have
            self._instances.append(instance := Instance(shop.place(name), shop.settings, server, PATIENT))
            stack.callback(instance.stop)
            instance.start()

    @property
    def programs(self) -> list[Program]:
        return [each.program for each in self._instances]

    def kill_one(self, rng: random.Random) -> None:
        self._dead = rng.choice(self._instances)
        self._dead.kill()

    def wait_until_whole(self) -> None:
        self._dead.start()


@contextmanager
def _opened(mode: str, folder: Path) -> Iterator[Team]:
    with ExitStack() as stack:
        world = stack.enter_context(started("world", folder=folder))
        redis = stack.enter_context(start_redis())
        settings = {
            **UNLIMITED,
            **selling(world.url),
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_DATABASE_URL": url_of(folder),
            "TOOLSERVER_REDIS_URL": redis.url,
            "PATIENCE_S": PATIENCE_S,
            "MARKS": str(folder / MARKS),
        }
        shop = Shop(folder, world, settings)
        yield Workers(shop, stack) if mode == "worker" else Instances(shop, stack)


def _check(shop: Shop, tally: Tally) -> list[str]:
    """What is wrong once the leases have ended: a charge without its answer, or sums that differ."""
    states = dict(shop.rows("SELECT call_id, state FROM reservation"))
    posted = {call for call, state in states.items() if state == "posted"}
    wrong = [f"charged, and never answered: {call}" for call in sorted(posted - tally.whole.keys())]
    wrong += [f"reserved by a process that is dead: {call}" for call, state in states.items() if state == "open"]
    given_back = tally.whole.keys() - posted
    tally.released_whole = len(given_back)
    tally.released_late = sum(tally.ages[call] > LAST_S for call in given_back)
    marks = read_marks(shop.folder / MARKS)
    tally.released_missed = sum(map(marks.has_missed, given_back))
    tally.longest_commit_s = marks.measure_longest()
    tally.reversed = sum(state in ("reversed", "voided") for state in states.values())
    ((charged,),) = shop.rows("SELECT coalesce(sum(credits), 0) FROM reservation WHERE state = 'posted'")
    ((left,),) = shop.rows("SELECT sum(credits - debits) FROM account WHERE kind = 'token'")
    if charged + left != TOKENS * CREDITS:
        wrong.append(f"{charged} charged and {left} left of {TOKENS * CREDITS}")
    return wrong


def kill_shared(mode: str, kills: int, folder: Path, *, seed: int = 1) -> tuple[Tally, list[str]]:
    """Run it. Returns what was counted and everything that is wrong."""
    tally, rng, wrong = Tally(), random.Random(seed), list[str]()
    with _opened(mode, folder) as team:
        shop = team.shop
        tally.tokens = [bought(team.programs[0], shop.world.url, USD) for _ in range(TOKENS)]
        while tally.kills < kills and not wrong:
            asyncio.run(_load_and_kill(team, tally, rng))
            team.wait_until_whole()
            wrong += [f"not released although its lease has ended: {call}" for (call,) in shop.rows(_OVERDUE)]
            wrong += [f"reserved without a lease: {call}" for (call,) in shop.rows(_WITHOUT_LEASE)]
        until = time.monotonic() + LEASE_MS / 1000 + 4 * RENEW_S
        while (left := shop.rows("SELECT call_id FROM journal")) and time.monotonic() < until:
            time.sleep(0.5)
        wrong += [f"not released after the last kill: {call}" for (call,) in left]
        wrong += _check(shop, tally)
        shop.require_right_books()
    return tally, wrong


async def _load_and_kill(team: Team, tally: Tally, rng: random.Random) -> None:
    """Call all the time, kill one, and let every caller of the others end its call."""
    ends, programs = asyncio.Event(), team.programs
    callers = [
        asyncio.create_task(Caller(programs[n % len(programs)], tally, random.Random(rng.getrandbits(64)), ends).run())
        for n in range(CALLERS)
    ]
    enough, until = len(tally.whole) + rng.choice((0, 1, 40, 120)), time.monotonic() + 15
    while len(tally.whole) < enough and time.monotonic() < until:
        await asyncio.wait(callers, timeout=0.005)
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    killed_at = time.monotonic()
    team.kill_one(rng)
    tally.kills += 1
    await asyncio.sleep(0.1)
    ends.set()
    await asyncio.gather(*callers)
    tally.ages |= {call: killed_at - at for call, at in tally.whole.items() if call not in tally.ages}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        many, by_seed = map(int, [*sys.argv[2:], "1"][:2])
        counted, faults = kill_shared(sys.argv[1], many, Path(place), seed=by_seed)
    print(
        f"{sys.argv[1]}: {counted.kills} kills, {counted.made} calls, {len(counted.whole)} whole answers,"
        f" {counted.cut} cut off, {counted.reversed} given back; delivered and given back all the same:"
        f" {counted.released_whole},"
        f" {counted.released_late} of them longer than {LAST_S * 1000:.0f} ms before the kill,"
        f" {counted.released_missed} although a commit could have marked them;"
        f" the longest commit took {counted.longest_commit_s * 1000:.0f} ms"
    )
    print("\n".join(faults) or "nothing is charged that was not answered, and no hold outlived its lease")
    sys.exit(bool(faults))
