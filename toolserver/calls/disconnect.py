"""Ends work when its client disconnects, so that no paid call runs without a caller.

Watching costs as much as the rest of a paid call that is answered from memory. Therefore only slow steps are watched:
making an answer and settling a payment.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Disconnected(Exception):
    """The client disconnected before its call was answered. Nothing was charged, and no response can be sent."""


async def run_unless_disconnected(receive: Receive | None, work: Callable[[], Awaitable[T]]) -> T:
    """Do some work and return its result. If `receive` is None there is no connection to watch.

    Raises:
        Disconnected: the client disconnected first, and the work was cancelled.
        Exception: any exception that the work raises.
    """
    if receive is None:
        return await work()
    done: list[T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            done.append(await work())
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise Disconnected
    return done[0]
