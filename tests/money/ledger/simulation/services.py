"""The owner of the ledger and the services that follow it: real classes, in processes that die."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio

from tests.calls.toy import REGISTRY
from tests.money.ledger.simulation.machines import Crashed, File, Process, new_disk
from tests.money.ledger.simulation.network import Message, Network, served
from tests.money.ledger.simulation.time import SimulatedClock
from toolserver.calls.arguments import Call as PipelineCall
from toolserver.calls.arguments import build_cache_key
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import MemoryIdempotencyStore
from toolserver.calls.paid_call import CallMoney, PaidCall, PaidCallRunner
from toolserver.calls.rate_limit import UnchargedLimit
from toolserver.calls.response import RenderedResponse, find_no_charge_reason, sending
from toolserver.calls.response_cache import SchemaFailure
from toolserver.core.caller import Caller
from toolserver.core.metrics import Metrics
from toolserver.errors import CallRejected, NotFound
from toolserver.money.ledger.client.ledger import HttpLedger, run_ledger_client
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.receipts.sign import Sale
from toolserver.settings import LedgerSettings as Settings

REPORT = REGISTRY["premium_report"]
ARGUMENTS = REPORT.arguments()
NAMES = ("b", "c")
SECRETS = {name: name * 32 for name in NAMES}
FOLLOWED = Settings(port=0, keys=SECRETS, services={name: [name] for name in NAMES})
SWEEP_S = 30.0
METRICS = Metrics()


def follows(name: str) -> Settings:
    return Settings(url="http://owner.test", service=name, key_id=name, secret=SECRETS[name])


@dataclass
class Call:
    """What a customer asked for, and what came of it as the customer sees it."""

    call_id: str
    service: str
    token: str
    charged: int | None = None  # by the receipt of the answer that arrived
    at: float = 0.0
    refused: str | None = None
    broke: str | None = None


class Stepping:
    """The ledger in memory, in a process: every operation takes a moment before and after."""

    def __init__(self, ledger: MemoryLedger, process: Process) -> None:
        self._ledger, self._process = ledger, process

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)

        async def stepped(*given: Any, **named: Any) -> Any:
            await self._process.step()
            result = await method(*given, **named)
            await self._process.step()
            return result

        return stepped


class Machine:
    """A computer with one process at a time; its disk stays."""

    def __init__(self, rng: Random, clock: SimulatedClock) -> None:
        self.rng, self.clock = rng, clock
        self.process: Process | None = None
        self.crashes: list[float] = []
        self.disk = new_disk()

    async def live(self, process: Process) -> None:
        raise NotImplementedError

    async def run(self, *, dies_after: int | None = None) -> None:
        """One life, to its death or its orderly end."""
        process = self.process = Process(self.rng, dies_after=dies_after)
        try:
            with process.scope:
                await self.live(process)
        except BaseException as end:
            if not crashed(end):
                raise
        finally:
            if not process.alive:
                self.crashes.append(process.died_at)
            self.process = None


def crashed(end: BaseException) -> bool:
    """Whether there is nothing in it but that the process died."""
    if isinstance(end, BaseExceptionGroup):
        return all(map(crashed, end.exceptions))
    return isinstance(end, Crashed)


class Owner(Machine):
    """The service that has the books, in a file or in memory."""

    def __init__(self, rng: Random, clock: SimulatedClock, network: Network, *, memory: bool, sweeps: bool) -> None:
        super().__init__(rng, clock)
        self._network, self._sweeps = network, sweeps
        self.memory = MemoryLedger(clock) if memory else None

    @asynccontextmanager
    async def books(self, process: Process) -> AsyncIterator[Any]:
        if self.memory is not None:
            yield Stepping(self.memory, process)
            return
        file = File(self.disk, process)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(file.work)
            yield SqlLedger(file, self.clock)
            tasks.cancel_scope.cancel()

    async def live(self, process: Process) -> None:
        async with self.books(process) as ledger, anyio.create_task_group() as tasks:
            app = internal_app(ledger, FOLLOWED, self.clock)

            async def serve(message: Message) -> Any:
                await process.step()
                return await in_process(tasks, process, served(app, message))

            self._network.serve = serve
            try:
                while True:
                    await anyio.sleep(SWEEP_S)
                    if self._sweeps:
                        await ledger.sweep()
            finally:
                self._network.serve = None


async def in_process(tasks: Any, process: Process, work: Any) -> Any:
    """The result of work done by a process; Crashed if it dies over it."""
    done, results = anyio.Event(), []

    async def one() -> None:
        try:
            results.append(await work)
        finally:
            done.set()

    tasks.start_soon(one)
    await done.wait()
    if not results:
        raise Crashed
    return results[0]


class Kitchen:
    """Answers of all sorts, good and bad, cached and not."""

    def __init__(self, rng: Random, clock: SimulatedClock) -> None:
        self._rng, self.clock = rng, clock

    def peek(self, operation: Any, key: Any, now: float) -> RenderedResponse | None:
        rendered = self._rendered() if self._rng.random() < 0.3 else None
        return None if rendered is None or find_no_charge_reason(rendered) else rendered

    async def get(self, operation: Any, arguments: Any, key: Any) -> RenderedResponse:
        await anyio.sleep(self._rng.random() ** 2 * 3)
        chance = self._rng.random()
        if chance < 0.06:
            raise (RuntimeError, SchemaFailure, NotFound)[int(chance * 50)]("as it happens")
        return self._rendered(stale=chance < 0.12, nothing=0.12 <= chance < 0.16)

    def _rendered(self, **more: Any) -> RenderedResponse:
        now = self.clock.time()
        return RenderedResponse(b'{"value":1}', now, now + 60, now, **more)


@dataclass
class Drawer:
    """Receipts, signed and kept at once; now and then the disk is full."""

    process: Process
    rng: Random
    signed: dict[str, Sale] = field(default_factory=dict)

    async def sign(self, sale: Sale) -> tuple[str, str]:
        await self.process.step()
        if self.rng.random() < 0.02:
            raise OSError("no space left")
        self.signed[sale.call_id] = sale
        await self.process.step()
        return "rcpt", "jws"

    async def unheard(self, *given: Any) -> None:
        await self.process.step()


class Follower(Machine):
    """A service that sells answers on the owner's books."""

    def __init__(self, name: str, rng: Random, clock: SimulatedClock, network: Network) -> None:
        super().__init__(rng, clock)
        self.name, self._network = name, network
        self._open: tuple[Any, Process, HttpLedger, PaidCallRunner, Drawer] | None = None

    async def live(self, process: Process) -> None:
        file = File(self.disk, process)
        async with anyio.create_task_group() as writer:
            writer.start_soon(file.work)
            drawer = Drawer(process, self.rng)
            cable = self._network.transport(process)
            async with (
                run_ledger_client(
                    follows(self.name),
                    file,
                    self.clock,
                    transport=cable,
                    chance=self.rng.random,
                ) as ledger,
                anyio.create_task_group() as tasks,
            ):
                kitchen: Any = Kitchen(self.rng, self.clock)
                till = PaidCallRunner(
                    kitchen,
                    CallMoney(ledger, Idempotency(MemoryIdempotencyStore(self.clock)), drawer),
                    METRICS,
                    UnchargedLimit(monotonic=self.clock.monotonic),
                )
                self._open = tasks, process, ledger, till, drawer
                try:
                    await anyio.sleep_forever()
                finally:
                    self._open = None

    def called(self, call: Call, *, patience_s: float) -> None:
        """A customer calls; if nobody is there, so be it."""
        if self._open is None:
            call.refused = "nobody there"
        else:
            tasks, process, ledger, till, _ = self._open
            tasks.start_soon(self._sell, call, process, ledger, till, patience_s)

    async def _sell(
        self, call: Call, process: Process, ledger: HttpLedger, till: PaidCallRunner, patience_s: float
    ) -> None:
        asked = PipelineCall(REPORT, ARGUMENTS, build_cache_key(REPORT, ARGUMENTS), Caller("192.0.2.1"))
        order = PaidCall(asked, call.token, call.call_id)
        try:
            if self.rng.random() < 0.2:
                await ledger.knows(call.token)
            with sending():
                with anyio.move_on_after(patience_s) as patience:
                    sold = await till.run(order)
                if not patience.cancelled_caught:
                    await process.step()  # the bytes are on their way: what dies here has not left
                    call.charged, call.at = sold.charged, anyio.current_time()
        except CallRejected as rejected:
            call.refused = rejected.code
        except Exception as failure:
            call.broke = repr(failure)
