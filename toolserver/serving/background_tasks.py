"""Run the background tasks of a service: warm sources, recompose tools while they are used, store counts."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolserver.calls.live_values import LiveValues
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import Clock
from toolserver.core.shared_memory import SharedMemory
from toolserver.core.shared_usage import EVERY_S, SharedUsage
from toolserver.core.usage_stats import Usage
from toolserver.registry.registry import Registry
from toolserver.sql.persistent_cache import PersistentCache
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.source_errors import SourceError

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
