"""A call that is given up at its n-th await: the driver, and the three ways in which a call ends before its time.

An await that does not suspend is no place where a call can be cut: only those count at which the event loop runs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import anyio

ENDED = (asyncio.CancelledError,)


@dataclass
class Exchange:
    """One request: what was sent of its answer, and how many times the work for it was suspended."""

    body: bytes = b""
    start: dict[str, Any] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    awaits: int = 0
    is_gone: asyncio.Event = field(default_factory=asyncio.Event)
    given: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the answer was handed to the server to its last byte."""
        return any(e["type"] == "http.response.body" and not e.get("more_body") for e in self.sent)

    @property
    def answer(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent)

    async def receive(self) -> dict[str, Any]:
        """The body, and later that the client is gone."""
        if not self.given:
            self.given = True
            return {"type": "http.request", "body": self.body}
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: dict[str, Any]) -> None:
        await asyncio.sleep(0)  # where a server waits for a slow reader
        self.sent.append(event)


class Counted:
    """An awaitable that does what another one does, and calls `at` when that is suspended for the n-th time."""

    def __init__(self, inner: Awaitable[None], exchange: Exchange, n: int, at: Callable[[], None]) -> None:
        self._inner, self._exchange, self._n, self._at = inner, exchange, n, at

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._inner.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited_for = steps.throw(error) if error is not None else steps.send(value)  # type: ignore[attr-defined]
            except StopIteration:
                return
            self._exchange.awaits += 1
            if self._exchange.awaits == self._n:
                self._at()
            value, error = None, None
            try:
                value = yield waited_for
            except BaseException as raised:
                error = raised


async def drive(app: Any, scope: dict[str, Any], exchange: Exchange, n: int, way: str | Callable[[], None]) -> None:
    """Ask the app, and give the call up at its n-th suspension.

    Ways: `task`, its task is cancelled, as at a stop; `scope`, a cancel scope around it ends, as where others wait for
    it; `client`, the client disconnects, which the call notices where it looks. A function is called, and the call
    goes on.
    """

    async def work() -> None:
        asked = app(scope, exchange.receive, exchange.send)
        if way == "scope":
            with anyio.CancelScope() as cut:
                await Counted(asked, exchange, n, cut.cancel)
        elif way == "task":
            task = asyncio.current_task()
            assert task is not None
            await Counted(asked, exchange, n, task.cancel)  # type: ignore[arg-type]
        else:
            await Counted(asked, exchange, n, way if callable(way) else exchange.is_gone.set)

    (ended,) = await asyncio.gather(asyncio.create_task(work()), return_exceptions=True)
    if isinstance(ended, BaseException) and not isinstance(ended, ENDED):
        raise ended
