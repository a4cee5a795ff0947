"""A network that loses, repeats, delays and reorders."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import anyio
import httpx
from anyio.abc import TaskGroup

from tests.money.ledger.simulation.machines import Crashed, Process


class Weather(NamedTuple):
    """How bad it is: shares of messages that are lost, repeated, slow and very late."""

    loss: float = 0.0
    twice: float = 0.0
    slow: float = 0.0
    late: float = 0.0


FAIR = Weather()
LATEST_S = 400.0  # longer than any reservation


class Message(NamedTuple):
    """A request on its way."""

    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


Serve = Callable[[Message], Any]


class Network:
    """Between the services and the owner of the ledger. `serve` is the owner while it lives."""

    def __init__(self, rng: Random, tasks: TaskGroup) -> None:
        self._rng, self._tasks = rng, tasks
        self.weather, self.cut = FAIR, False
        self.serve: Serve | None = None
        self.sent = 0

    def transport(self, process: Process) -> "Cable":
        return Cable(self, process)

    async def exchange(self, message: Message) -> httpx.Response:
        """The answer, if one comes; else this waits for ever."""
        self.sent += 1
        answer: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        if self.cut and self._rng.random() < 0.5:
            raise httpx.ConnectError("no route")
        copies = 2 if self._rng.random() < self.weather.twice else 1
        for number in range(copies):
            if not self.cut and self._rng.random() >= self.weather.loss:
                self._tasks.start_soon(self._carry, message, answer, self._delay(late=number > 0))
        return await answer

    def _delay(self, *, late: bool = False) -> float:
        rng, chance = self._rng, self._rng.random()
        if chance < self.weather.late or (late and chance < 0.5):
            return rng.random() * LATEST_S
        if chance < self.weather.late + self.weather.slow:
            return rng.random() * 8
        return 0.001 + rng.random() * 0.02

    async def _carry(self, message: Message, answer: asyncio.Future[httpx.Response], delay: float) -> None:
        await anyio.sleep(delay)
        try:
            if self.serve is None:
                raise httpx.ConnectError("refused")
            response = await self.serve(message)
        except (Crashed, httpx.HTTPError):
            if not answer.done():
                answer.set_exception(httpx.ReadError("gone"))
            return
        if self._rng.random() < self.weather.loss:
            return
        await anyio.sleep(self._delay())
        if not answer.done():
            answer.set_result(response)


class Cable(httpx.AsyncBaseTransport):
    """The network as one process has it."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network, self._process = network, process

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await self._process.step()
        message = Message(request.url.path, [(k.lower(), v) for k, v in request.headers.raw], await request.aread())
        response = await self._network.exchange(message)
        await self._process.step()
        return response


async def served(app: Any, message: Message) -> httpx.Response:
    """An ASGI application's answer."""
    sent: list[Any] = []
    scope = {"type": "http", "method": "POST", "path": message.path, "headers": message.headers}

    async def receive() -> Any:
        return {"type": "http.request", "body": message.body, "more_body": False}

    async def send(part: Any) -> None:
        sent.append(part)

    await app(scope, receive, send)
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=sent[1]["body"])
