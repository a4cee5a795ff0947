"""What a running service does by itself: keeps wanted reads at hand, recomposes what is followed, stores its counts."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from toolserver.clock import Clock
from toolserver.errors import SourceError
from toolserver.pipeline import Pipeline
from toolserver.registry import Registry
from toolserver.storage.answers import AnswerFile
from toolserver.upstream.cache import SourceCache
from toolserver.usage import Usage

log = logging.getLogger(__name__)

WARM_EVERY_S = 600.0


async def repeat(what: str, job: Callable[[], Awaitable[Any]], every_s: float) -> None:
    """Do a chore now and then, until cancelled. One that fails is told of and tried again; the service goes on."""
    while True:
        try:
            await job()
        except Exception:
            log.exception("a chore failed", extra={"chore": what})
        await anyio.sleep(every_s)


async def keep_warm(registry: Registry, cache: SourceCache) -> None:
    """Read what tools want at hand: everything once after the start, then one by one, for ever."""
    reads = [read for operation in registry for read in operation.warm]
    pause = 1.0
    while reads:
        for source, query in reads:
            await anyio.sleep(pause)
            try:
                await cache.fresh(source, query, sla_s=0)
            except SourceError as error:
                log.debug("could not be kept warm", extra={"source": source.name, "reason": error.reason})
        pause = WARM_EVERY_S


FOLLOWED_S, LOOK_S = 600.0, 2.0


async def follow_asked(registry: Registry, pipeline: Pipeline, clock: Clock) -> None:
    """Compose followed tools again and again while somebody has asked for them lately."""
    followed = [operation for operation in registry if operation.follow_s is not None]
    done: dict[str, float] = {}
    while followed:
        await anyio.sleep(LOOK_S)
        now = clock.monotonic()
        for operation in followed:
            asked = pipeline.asked_at.get(operation.name)
            if (
                asked is None
                or now - asked > FOLLOWED_S
                or now - done.get(operation.name, asked) < (operation.follow_s or 0)
            ):
                continue
            done[operation.name] = now
            pipeline.answers.refresh(operation)


async def keep_usage(usage: Usage, store: AnswerFile) -> None:
    """Store the counts every minute, so that a killed process loses no more than that."""
    while True:
        await anyio.sleep(60)
        store.save_usage(usage.rows())
