"""One history: services, customers and misfortunes as a seed has it; and what is wrong with it in the end."""

import logging
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup

from tests.money.ledger.ledgers import token
from tests.money.ledger.simulation.machines import File, Process, new_disk
from tests.money.ledger.simulation.network import FAIR, LATEST_S, Network, Weather
from tests.money.ledger.simulation.services import NAMES, Call, Follower, Machine, Owner
from tests.money.ledger.simulation.time import SimulatedClock, run
from toolserver.money.ledger.sql_invariants import find_breaches
from toolserver.money.ledger.sql_tables import HOLD, store_state
from toolserver.money.ledger.state import Hold
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.group_commit import RIDE_S

TROUBLE_S = 70.0
REST_S = LATEST_S + 400.0  # the last message has come, every reservation expired, every release was sent
LIVES = 6  # a machine crashes at most so often
TOKENS = (token(1), token(2))
MOST_LINGER_S = 2 * RIDE_S + 1.0


class Wrong(NamedTuple):
    """Something that must not be. `what` is one of a few words."""

    what: str
    detail: str


@dataclass
class History:
    """What came of a seed."""

    seed: int
    calls: int = 0
    answered: int = 0
    charged: int = 0
    crashes: int = 0
    messages: int = 0
    given_back: int = 0  # answers that arrived and were not charged in the end, as the process died at that moment
    wrong: list[Wrong] = field(default_factory=list)


@dataclass
class Options:
    """What a mutant needs: books in memory where a file would refuse, an owner that never sweeps."""

    memory: bool | None = None
    sweeps: bool = True


def history(seed: int, options: Options | None = None) -> History:
    """Live through a seed."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        world = World(seed, options or Options())
        with world.disks:
            run(world.live)
    finally:
        logging.disable(before)
    return world.history


class World:
    """The owner, its followers, their customers, and the weather."""

    def __init__(self, seed: int, options: Options) -> None:
        self.rng = Random(seed)
        self.options = options
        self.history = History(seed)
        self.calls: list[Call] = []
        self.disks = ExitStack()  # they outlive every process, and end with the history
        rng = self.rng
        self.weather = Weather(
            loss=rng.choice([0, 0, 0.05, 0.2]),
            twice=rng.choice([0, 0, 0.1, 0.5]),
            slow=rng.choice([0, 0.1, 0.5]),
            late=rng.choice([0, 0, 0.1]),
        )
        self.deadly = rng.choice([0, 0, 30, 120])  # steps a life lasts, roughly; 0: for ever
        self.memory = seed % 2 == 1 if options.memory is None else options.memory

    async def live(self) -> None:
        async with anyio.create_task_group() as tasks:
            network = self.network = Network(self.rng, tasks)
            clock = self._clock()
            self.owner = Owner(self.rng, clock, network, memory=self.memory, sweeps=self.options.sweeps)
            await self._fund(clock)
            self.followers = {name: Follower(name, self.rng, self._clock(), network) for name in NAMES}
            self.calm = anyio.Event()
            for machine in (self.owner, *self.followers.values()):
                self.disks.callback(machine.disk.close)
                tasks.start_soon(self._kept_running, machine)
            await self._trouble(tasks)
            self.calm.set()
            network.weather, network.cut = FAIR, False
            await anyio.sleep(REST_S)
            self._judge()
            tasks.cancel_scope.cancel()

    def _clock(self) -> SimulatedClock:
        return SimulatedClock(self.rng.uniform(-20, 20))

    async def _fund(self, clock: SimulatedClock) -> None:
        """Some tokens are rich, some have enough for two calls."""
        self.minted = {each: self.rng.choice([5, 100]) for each in TOKENS}
        for number, (each, credits) in enumerate(self.minted.items()):
            if self.owner.memory is not None:
                await self.owner.memory.mint(each, credits, cause=f"m{number}")
                continue
            process = Process(self.rng)
            file = File(self.owner.disk, process)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(file.work)
                await SqlLedger(file, clock).mint(each, credits, cause=f"m{number}")
                tasks.cancel_scope.cancel()

    async def _kept_running(self, machine: Machine) -> None:
        """Life after life."""
        while True:
            deadly = self.deadly and not self.calm.is_set() and len(machine.crashes) < LIVES
            await machine.run(dies_after=1 + int(self.rng.expovariate(1 / self.deadly)) if deadly else None)
            with anyio.move_on_after(self.rng.random() ** 3 * 20):
                await self.calm.wait()

    async def _trouble(self, tasks: TaskGroup) -> None:
        rng, network = self.rng, self.network
        network.weather = self.weather
        if rng.random() < 0.3:
            tasks.start_soon(self._outage, rng.random() * 40, rng.random() * 60)
        count = rng.randint(4, 12)
        times = sorted(rng.random() ** rng.choice([1, 3]) * (TROUBLE_S - 15) for _ in range(count))
        for number, at in enumerate(times):
            await anyio.sleep(max(0.0, at - anyio.current_time()))
            service = rng.choice(NAMES)
            call = Call(f"call_{number:032x}", service, rng.choice(TOKENS))
            self.calls.append(call)
            patience = rng.random() * 3 if rng.random() < 0.15 else 1000.0
            self.followers[service].called(call, patience_s=patience)
        await anyio.sleep(max(0.0, TROUBLE_S - anyio.current_time()))

    async def _outage(self, begin: float, length: float) -> None:
        await anyio.sleep(begin)
        self.network.cut = True
        with anyio.move_on_after(length):
            await self.calm.wait()
        self.network.cut = False

    # --- the judgement ---

    def _judge(self) -> None:
        machines = (self.owner, *self.followers.values())
        self.history.calls = len(self.calls)
        self.history.crashes = sum(len(machine.crashes) for machine in machines)
        self.history.messages = self.network.sent
        holds = self._holds()
        for call in self.calls:
            self._judge_call(call, holds.pop(f"{call.service}:{call.call_id}", None))
        for stray in holds:
            self._wrong("stray", f"{stray} was never called")
        for follower in self.followers.values():
            for row in follower.disk.execute("SELECT call_id, state FROM journal"):
                self._wrong("queue", f"{follower.name} still has {row}")
        self._judge_books()

    def _judge_call(self, call: Call, hold: Hold | None) -> None:
        state = hold.state if hold else None
        if call.broke:
            self._wrong("broke", f"{call}")
        if state == "open":
            self._wrong("open", f"{call} is set aside for ever")
        self.history.answered += call.charged is not None
        self.history.charged += state == "posted"
        if call.charged is None and state == "posted":
            self._wrong("charged for nothing", f"{call}")
        if call.charged == 0 and state == "posted":
            self._wrong("receipt", f"{call} was charged all the same")
        if call.charged and (state != "posted" or (hold and hold.credits != call.charged)):
            crashes = self.followers[call.service].crashes
            if any(0 <= at - call.at <= MOST_LINGER_S for at in crashes) and state == "reversed":
                self.history.given_back += 1
            else:
                self._wrong("receipt", f"{call} was not charged: {state}, crashes at {crashes}")

    def _judge_books(self) -> None:
        if self.owner.memory is None:
            found = self._breaches(self.owner.disk)
        else:
            with closing(new_disk()) as db:
                try:
                    store_state(db, self.owner.memory.books)
                    found = self._breaches(db)
                except sqlite3.IntegrityError as refusal:
                    found = [f"no file would take these books: {refusal}"]
        for breach in found:
            self._wrong("books", breach)

    def _breaches(self, db: sqlite3.Connection) -> list[str]:
        now = int(self.owner.clock.time() * 1000)
        taken = "SELECT coalesce(sum(credits), 0) FROM reservation WHERE state='posted'"
        left = "SELECT sum(credits - debits - pending) FROM account WHERE kind='token'"
        there, gone = (db.execute(sql).fetchone()[0] for sql in (left, taken))
        unequal = [f"{there} left and {gone} taken"] if there + gone != sum(self.minted.values()) else []
        return [str(breach) for breach in find_breaches(db, now)] + unequal

    def _holds(self) -> dict[str, Hold]:
        if self.owner.memory is not None:
            return dict(self.owner.memory.held)
        return {row[0]: Hold(*row) for row in self.owner.disk.execute(f"SELECT {HOLD} FROM reservation r")}

    def _wrong(self, what: str, detail: str) -> None:
        self.history.wrong.append(Wrong(what, detail))
