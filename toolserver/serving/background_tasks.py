"""Run the background tasks of a service: warm sources, recompose tools while they are used, store and share counts."""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec.msgpack import encode

from toolserver.calls.live_values import LiveValues
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import Clock
from toolserver.core.metrics import KEEP_H, Usage
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost
from toolserver.registry.registry import Registry
from toolserver.sql.persistent_cache import PersistentCache
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.source import SourceError

log = logging.getLogger(__name__)

WARM_EVERY_S = 600.0


@asynccontextmanager
async def open_tasks() -> AsyncIterator[TaskGroup]:
    """Open a task group whose tasks are cancelled when the block is left."""
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()


async def repeat(what: str, job: Callable[[], Awaitable[Any]], every_s: float) -> None:
    """Run a job, wait `every_s` seconds and begin again, until cancelled. A failure is logged; the job runs again."""
    while True:
        try:
            await job()
        except Exception:
            log.exception("a background job failed", extra={"job": what})
        await anyio.sleep(every_s)


async def keep_warm(registry: Registry, cache: SourceCache) -> None:
    """Read the sources that tools want kept warm: first all of them, a second apart, then one every ten minutes."""
    reads = [read for operation in registry for read in operation.warm]
    pause = 1.0
    while reads:
        for source, query in reads:
            await anyio.sleep(pause)
            try:
                await cache.fresh(source, query, sla_s=0)
            except SourceError as error:
                log.debug("a source could not be kept warm", extra={"source": source.name, "reason": error.reason})
        pause = WARM_EVERY_S


FOLLOWED_S, LOOK_S = 600.0, 2.0


async def follow_asked(registry: Registry, pipeline: Pipeline, clock: Clock) -> None:
    """Recompose each followed tool every `follow_s` seconds for ten minutes after it was last called."""
    followed = [operation for operation in registry if operation.follow_s is not None]
    done: dict[str, float] = {}
    while followed:
        await anyio.sleep(LOOK_S)
        now = clock.monotonic()
        for operation in followed:
            last_call = pipeline.asked_at.get(operation.name)
            if last_call is None or now - last_call > FOLLOWED_S:
                continue
            if now - done.get(operation.name, last_call) < (operation.follow_s or 0):
                continue
            done[operation.name] = now
            pipeline.answers.refresh(operation)


async def prepare_expected(answers: ResponseCache) -> None:
    """Compose slow answers shortly before calls for them are expected, one every two seconds."""
    while True:
        await anyio.sleep(LOOK_S)
        answers.prepare_expected()


async def keep_live(live: LiveValues) -> None:
    """Recompose the answers on the home page's cards while someone is viewing them."""
    while True:
        await anyio.sleep(LOOK_S)
        live.refresh_due()


def start_composing(
    tasks: TaskGroup,
    registry: Registry,
    cache: SourceCache,
    pipeline: Pipeline,
    live: LiveValues,
    memory: SharedMemory | None = None,
) -> None:
    """Start all reading and composing that happens without a call. With `memory`, also exchange counts of calls."""
    answers = pipeline.answers
    tasks.start_soon(keep_warm, registry, cache)
    tasks.start_soon(follow_asked, registry, pipeline, answers.clock)
    tasks.start_soon(prepare_expected, answers)
    tasks.start_soon(keep_live, live)
    if memory is not None:
        tasks.start_soon(repeat, "exchange of counts", SharedUsage(pipeline.usage, memory).exchange, EVERY_S)


async def keep_usage(usage: Usage, store: PersistentCache) -> None:
    """Store the counts every minute, so that a killed process loses at most one minute."""
    while True:
        await anyio.sleep(60)
        store.save_usage(usage.rows())


EXCHANGE = Script(
    """
-- Keys: the word of the memory, and one for each hour. Asked: the word that is known, a new one, what to add to which
-- hour, ms to keep. Returns {word, whether it is new}, and the sums of all hours if the word was known.
local asked = cmsgpack.unpack(ARGV[1])
local word = redis.call('GET', KEYS[1])
local is_new = not word
if is_new then word = asked.new end
redis.call('SET', KEYS[1], word, 'PX', asked.keep)
if word ~= asked.known then return {word, is_new and 1 or 0} end
for _, each in ipairs(asked.add) do
  redis.call('HINCRBY', KEYS[each[1]], each[2], each[3])
  redis.call('PEXPIRE', KEYS[each[1]], asked.keep)
end
local sums = {}
for i = 2, #KEYS do sums[i - 1] = redis.call('HGETALL', KEYS[i]) end
return {word, 0, sums}
"""
)
EVERY_S = 10.0
KEEP_MS = KEEP_H * 3_600_000
TRIES = 3  # the memory may be emptied again in the meantime

Counts = dict[tuple[int, str], int]


class SharedUsage:
    """Sums the counts of calls over all instances: each adds its new counts and reads the sums of all.

    The shared memory has a word as its identity, which it loses together with its data. An
    instance that finds a different word adds all its counts, so that the sums are complete
    again after the memory was emptied. Counts that an instance restored from its disk were
    already added.
    """

    def __init__(self, usage: Usage, memory: SharedMemory) -> None:
        self._usage, self._memory = usage, memory
        self._word = b""
        self._added: Counts = _collect(usage)

    async def exchange(self) -> None:
        """Add the counts since the last exchange, and pass the counts of the other instances to `usage`."""
        try:
            for _ in range(TRIES):
                if await self._exchange():
                    return
        except SharedMemoryLost:
            return  # try again next time

    async def _exchange(self) -> bool:
        """Return True if the memory is the known one. Otherwise it is adopted, and nothing was added."""
        own, hours = _collect(self._usage), self._usage.list_hours()
        places = {hour: number for number, hour in enumerate(hours, 2)}
        new = [
            (places[hour], family, hits - self._added.get((hour, family), 0))
            for (hour, family), hits in own.items()
            if hour in places and hits > self._added.get((hour, family), 0)
        ]
        request = {"known": self._word.decode(), "new": secrets.token_hex(8), "add": new, "keep": KEEP_MS}
        keys = [b"usage", *(b"usage:%d" % hour for hour in hours)]
        word, is_new, *sums = await self._memory.run(EXCHANGE, keys, [encode(request)], bulk=True)
        if not sums:
            if self._word or is_new:
                self._added = {}
            self._word = word
            return False
        self._added = own
        hits_by_family = {hour: _read_sums(pairs) for hour, pairs in zip(hours, sums[0], strict=True)}
        self._usage.take_others(
            {
                (hour, family): hits - own.get((hour, family), 0)
                for hour, families in hits_by_family.items()
                for family, hits in families.items()
            }
        )
        return True


def _collect(usage: Usage) -> Counts:
    return {(hour, family): hits for hour, family, hits in usage.rows()}


def _read_sums(pairs: list[Any]) -> dict[str, int]:
    """Return the hits by family of one hour, without values that are not numbers."""
    family_hits = zip(pairs[::2], pairs[1::2], strict=True)
    return {family.decode(errors="replace"): int(hits) for family, hits in family_hits if hits.isdigit()}
