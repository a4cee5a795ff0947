"""Ends work when its client disconnects: a call that costs credits is not made for nobody."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def run_unless_disconnected(receive: Receive, work: Callable[[], Awaitable[T]]) -> T | None:
    """Do some work and return its result. When the client disconnects first, cancel the work and return None.

    Raises what the work raises.
    """
    result: T | None = None
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            result = await work()
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result
