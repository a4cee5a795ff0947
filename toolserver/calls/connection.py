"""Follows a call's connection: whether its answer has been sent, and whether the client is still there.

Only a call whose answer has been sent is delivered, and only then does its charge become final. Watching for a
disconnect costs as much as the rest of a paid call that is answered from memory. Therefore only slow steps are watched:
making an answer and settling a payment.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar, Token
from typing import Any, TypeVar

import anyio

_when_sent: ContextVar[list[Callable[[], None]] | None] = ContextVar("when_sent", default=None)


def when_sent(note: Callable[[], None]) -> None:
    """Call `note` when the current answer has been sent, or at once outside a `sending()` block."""
    notes = _when_sent.get()
    if notes is None:
        note()
    else:
        notes.append(note)


class sending:  # written like contextlib.suppress, and used like it
    """A block in which one answer is made and sent. When it ends without an exception, it calls what `when_sent` got.

    It is a class because every request enters it, and a generator takes longer to create and to leave.
    """

    __slots__ = ("_before", "_notes")

    _before: Token[list[Callable[[], None]] | None]

    def __init__(self) -> None:
        self._notes: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._before = _when_sent.set(self._notes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _when_sent.reset(self._before)
        if kind is None:
            for note in self._notes:
                note()


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
