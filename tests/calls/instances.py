"""Instances of one service in this process, which share a Redis, a clock and a network."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.calls.parts import START, Engine, engine
from tests.internet import Internet
from tests.redis_server import RedisServer
from toolserver.clock import ManualClock
from toolserver.core.shared_memory import Script
from toolserver.registry.registry import Registry
from toolserver.settings import ScalingSettings

_PREFIXES = (f"instances{number}:" for number in itertools.count())
_NOTHING = Script("return 1")


class Instances:
    """They are started one after the other, and end with the block of `instances_on`."""

    def __init__(self, server: RedisServer, stack: AsyncExitStack) -> None:
        self.server, self.prefix = server, next(_PREFIXES)
        self.clock, self.internet = ManualClock(START), Internet()
        self._stack = stack

    async def start(self, registry: Registry | None = None, **settings: Any) -> Engine:
        """Start one more."""
        scaling = ScalingSettings(instances=3, redis_prefix=self.prefix, redis_deadline_s=5)
        shared = {"internet": self.internet, "clock": self.clock, "redis_url": self.server.url, "scaling": scaling}
        return await self._stack.enter_async_context(engine(registry, **(shared | settings)))

    def keys(self, beginning: str) -> list[str]:
        """The keys of these instances in Redis."""
        found = self.server.command("keys", f"{self.prefix}{beginning}*").splitlines()
        return sorted(each for each in found if each)


@asynccontextmanager
async def instances_on(server: RedisServer) -> AsyncIterator[Instances]:
    """No instance yet."""
    async with AsyncExitStack() as stack:
        yield Instances(server, stack)


async def until_shared(instance: Engine) -> None:
    """Wait until all that an instance has sent so far has arrived."""
    assert instance.service.memory is not None
    await instance.service.memory.run(_NOTHING, [], [], bulk=True)
