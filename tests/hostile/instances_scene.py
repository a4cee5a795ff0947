"""Three servers on one PostgreSQL and one Redis, which they reach through proxies, so that all of it may go wrong."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.hostile.instances_load import Call
from tests.live.buying import bought
from tests.live.inbox import Inbox
from tests.live.killing import selling
from tests.live.patient import MODULE as PATIENT
from tests.live.processes import UNLIMITED, Program, begin_program, command, control, read_ready_line, started
from tests.live.test_shared_database import Shop, subscribe
from tests.postgres import Server, program
from tests.redis_server import RedisServer, start_redis
from tests.tcp_proxy import TcpProxy, proxy_before

SERVERS = ("hypercorn", "uvicorn", "hypercorn")
BUYERS, USD = 4, 3000  # enough for the calls of half an hour
CREDITS = 50 * USD
SPEED = 5  # of the world's clock, so that answers expire now and then


class Instance:
    """A server that is killed and started again, in one folder."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str],
        server: str,
        module: str = "toolserver",
        flags: Sequence[str] = (),
    ) -> None:
        self.folder, self.settings, self._server, self._module, self._flags = folder, settings, server, module, flags
        self._program: Program | None = None
        self.url = ""
        self.killed_at: list[float] = []
        self.started_at: list[float] = []

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        assert self._program is None
        words = command("serve", ("--server", self._server, *self._flags), self.folder, self._module)
        process, log = begin_program(words, folder=self.folder, **self.settings)
        try:
            self._program = Program(process, read_ready_line(process, log), log)
        except BaseException:
            process.kill()
            process.wait()
            raise
        self.url = self._program.url
        self.started_at.append(time.monotonic())

    def kill(self) -> None:
        """End it at once."""
        program = self.program
        self.killed_at.append(time.monotonic())
        program.process.kill()
        program.process.wait()
        self._forget()

    def stop(self) -> None:
        """Let it end in order. Raises AssertionError when it does not."""
        if self._program is None:
            return
        program = self.program
        code = program.stop() if program.process.poll() is None else program.process.wait()
        self._forget()
        assert code == 0, f"ended with {code}:\n{program.said[-3000:]}"

    @property
    def program(self) -> Program:
        """The process that runs."""
        assert self._program is not None, "it does not run"
        return self._program

    @property
    def said(self) -> list[str]:
        """The lines that it has logged, in every life."""
        logs = sorted(self.folder.glob("serve.*.log"))
        return [line for log in logs for line in log.read_text().splitlines()]

    def is_well(self) -> bool:
        """Whether it is ready, and there is nothing that it goes on without."""
        try:
            answer = httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200 and not answer.json()["degraded"]

    def list_degraded(self) -> list[str]:
        """The parts that it goes on without, while it is ready; none where it does not answer that it is."""
        try:
            answer = httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False)
        except httpx.HTTPError:
            return []
        return list(answer.json()["degraded"]) if answer.status_code == 200 else []

    def was_gone(self, call: Call) -> bool:
        """Whether it was dead at some moment of a request to it."""
        back = [*self.started_at[1:], float("inf")]
        deaths = zip(self.killed_at, back, strict=False)
        return any(call.began <= alive and call.began + call.took_s >= dead for dead, alive in deaths)

    def _forget(self) -> None:
        stdout = self.program.process.stdout
        self._program = None
        assert stdout is not None
        stdout.close()


@dataclass
class Scene:
    """What faults are put into. `shop` looks into the database past the proxy."""

    shop: Shop
    instances: list[Instance]
    postgres: Server
    redis: RedisServer
    to_postgres: TcpProxy
    to_redis: TcpProxy
    inbox: Inbox
    buyers: list[str]
    hooked: str  # the token that pays for webhooks
    hooks: list[str]

    def fire(self) -> None:
        """Let each subscription come due."""
        self.shop.fire(self.hooks)

    def is_well(self) -> bool:
        """Whether every instance is ready, and misses nothing."""
        return all(each.is_well() for each in self.instances)


@contextmanager
def set_scene(folder: Path, servers: Sequence[str] = SERVERS, *, patience_s: float | None = None) -> Iterator[Scene]:
    """Start everything, sell tokens and subscribe to webhooks; in the end every server ends in order.

    With `patience_s` they wait so long for PostgreSQL, and not for less than a second.
    """
    with ExitStack() as stack:
        world = stack.enter_context(started("world", folder=folder))
        postgres = Server(program("initdb"), program("postgres"))
        stack.callback(postgres.remove)
        postgres.start()
        redis = stack.enter_context(start_redis())
        (to_postgres, database_url), (to_redis, redis_url) = proxy_before(postgres.url), proxy_before(redis.url)
        stack.callback(to_postgres.close)
        stack.callback(to_redis.close)
        shared = {
            **UNLIMITED,
            **selling(world.url),
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true",
            "TOOLSERVER_SCALING__INSTANCES": str(len(servers)),
        }
        shop = Shop(
            folder, world, shared | {"TOOLSERVER_DATABASE_URL": postgres.url, "TOOLSERVER_REDIS_URL": redis.url}
        )
        through = shared | {"TOOLSERVER_DATABASE_URL": database_url, "TOOLSERVER_REDIS_URL": redis_url}
        module = "toolserver" if patience_s is None else PATIENT
        through |= {} if patience_s is None else {"PATIENCE_S": str(patience_s)}
        instances = []
        for name, server in zip("abc", servers, strict=True):
            instances.append(Instance(shop.place(name), through, server, module))
            stack.callback(instances[-1].stop)
            instances[-1].start()
        inbox = Inbox()
        stack.callback(inbox.close)
        at = instances[0].program
        *buyers, hooked = [bought(at, world.url, USD) for _ in range(BUYERS + 1)]
        hooks = [subscribe(each.program, hooked, inbox) for each in instances]
        with control(world.url) as sim:
            sim.put("clock", {"speed": SPEED})
        yield Scene(shop, instances, postgres, redis, to_postgres, to_redis, inbox, buyers, hooked, hooks)
