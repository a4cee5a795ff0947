"""Whether the client is still there: a call that costs credits ends when nobody waits for it any more."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def unless_gone(receive: Receive, work: Callable[[], Awaitable[T]]) -> T | None:
    """The result of some work, or None when the client hung up before: the work is cancelled then.

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
