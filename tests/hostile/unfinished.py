"""Strangers who begin requests and never finish them, and honest callers beside them.

`python -m tests.hostile.unfinished --server uvicorn --proxy caddy --seconds 60` runs until the time is over, prints the
figures and ends with 1 if an honest call was not answered. Without `--server` or `--proxy` it runs each.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import socket
import ssl
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.proxies import TRUSTED, Proxy, proxied
from tests.hostile.fronts import DIRECT, add_front_flags, list_fronts
from tests.live.processes import Program, started

AGAIN_S = 0.5  # a stranger whose connection was closed comes again after this time
UNREAD_S = 15.0  # one who reads nothing does not see the end of a connection, and begins another one
HALF_S = 1.0  # an honest caller on a slow line needs this long between the halves of a body
PATIENCE_S = 30.0
LATE_S = 45.0
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
POST = b"POST /api/mcp HTTP/1.1\r\n" + HEAD
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
HEALTH = b"GET /api/health HTTP/1.1\r\n" + HEAD
UNREAD = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
BODIES = (POST + b"Content-Length: 400\r\n\r\n{", POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
KINDS = {"bodies": BODIES, "mixed": (*BODIES, UNREAD, HEALTH + b"\r\n", b"GET /api/he", b"")}
"""What a stranger says on each connection: requests with half a body, or these among other ways to take a place."""

HONEST = (
    (HEALTH + b"Connection: close\r\n\r\n",),
    (POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(PING) + PING,),
    (POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(PING) + PING[:9], PING[9:]),
)


@dataclass(frozen=True, slots=True)
class Attack:
    """How many addresses there are, how many connections each holds, and how many descriptors the service has.

    A careless proxy passes on bodies as they come, which ours do not. On a busy machine an attack of a few seconds goes
    on for at most `LATE_S`, until so many connections have been opened as it `opens`.
    """

    clients: int = 5
    each: int = 250
    descriptors: int = 1024
    kind: str = "bodies"
    is_careless: bool = False
    opens: int = 0


@dataclass(slots=True)
class Figures:
    """What came of an attack: honest calls by what they got, and the connections of the strangers."""

    calls: Counter[str] = field(default_factory=Counter)
    opened: int = 0
    held: int = 0
    most_held: int = 0

    @property
    def unanswered(self) -> dict[str, int]:
        return {word: count for word, count in self.calls.items() if word != "200"}

    def __str__(self) -> str:
        answered = f"{self.calls['200']} of {self.calls.total()} honest calls answered"
        others = f"; the others: {self.unanswered}" if self.unanswered else ""
        return f"{answered}{others}; strangers held up to {self.most_held} of {self.opened} connections"


class Target:
    """Where both come in: the service itself, or the proxy in front of it."""

    def __init__(self, program: Program, proxy: Proxy | None) -> None:
        self._address = ("127.0.0.1", proxy.port if proxy else program.address[1])
        self._tls: ssl.SSLContext | None = proxy.authority if proxy else None

    async def connect(self, client: str, *, reads: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect from an address of this machine. Who does not read has no room for an answer."""
        sock = socket.socket()
        sock.setblocking(False)
        try:
            if not reads:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            sock.bind((client, 0))
            await asyncio.get_running_loop().sock_connect(sock, self._address)
        except BaseException:
            sock.close()
            raise
        name = "localhost" if self._tls else None
        return await asyncio.open_connection(sock=sock, ssl=self._tls, server_hostname=name, limit=65_536)


async def attack(target: Target, plan: Attack, seconds: float) -> Figures:
    """Hold as many unfinished requests as planned, call honestly from other addresses, and return the figures."""
    figures, said = Figures(), KINDS[plan.kind]
    over, enough = asyncio.Event(), asyncio.Event()

    def count_opened() -> None:
        figures.opened += 1
        if figures.opened >= plan.opens:
            enough.set()

    strangers = [
        asyncio.create_task(
            _hold(
                target,
                f"127.1.{client // 250}.{client % 250 + 1}",
                said[number % len(said)],
                number / 100,
                figures,
                count_opened,
            )
        )
        for number in range(plan.each)
        for client in range(plan.clients)
    ]
    callers = [
        asyncio.create_task(_call(target, f"127.0.2.{number + 1}", number, figures, over)) for number in range(6)
    ]
    await asyncio.sleep(seconds)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(enough.wait(), LATE_S)
    over.set()
    await asyncio.gather(*callers)
    for stranger in strangers:
        stranger.cancel()
    await asyncio.gather(*strangers, return_exceptions=True)
    return figures


async def _hold(
    target: Target, client: str, said: bytes, after_s: float, figures: Figures, count_opened: Callable[[], None]
) -> None:
    """Begin a request, again and again, and never finish it."""
    await asyncio.sleep(after_s)  # a stranger's machine needs time for connections as well
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await target.connect(client, reads=said is not UNREAD)
            count_opened()
            figures.held += 1
            figures.most_held = max(figures.most_held, figures.held)
            try:
                writer.write(said)
                if said is UNREAD:
                    await asyncio.sleep(UNREAD_S)
                while said is not UNREAD and await reader.read(65_536):
                    pass
            finally:
                figures.held -= 1
                writer.transport.abort()
        await asyncio.sleep(AGAIN_S)


async def _call(target: Target, client: str, number: int, figures: Figures, over: asyncio.Event) -> None:
    """Call about once a second, each time on a new connection, until it is over."""
    pieces = HONEST[number % len(HONEST)]
    while not over.is_set():
        figures.calls[await _answer_to(target, client, pieces)] += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 1.0)


async def _answer_to(target: Target, client: str, pieces: tuple[bytes, ...]) -> str:
    """Return the status of an honest call, or why it has none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await target.connect(client)
            try:
                for n, piece in enumerate(pieces):
                    await asyncio.sleep(HALF_S if n else 0)
                    writer.write(piece)
                    await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.read()
            finally:
                writer.transport.abort()
        status = head.split(b" ", 2)[1].decode()
        return status if body else f"{status} without a body"
    except (OSError, asyncio.IncompleteReadError) as error:
        return type(error).__name__
    except TimeoutError:
        return f"nothing in {PATIENCE_S:.0f} s"


@contextlib.contextmanager
def attacked(server: str, proxy: str, plan: Attack, folder: Path) -> Iterator[Target]:
    """Run the service with so many descriptors, behind a proxy or not, until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (plan.descriptors, hard))
    try:
        trusted = TRUSTED if proxy != DIRECT else {}
        running = started("demo", "--server", server, folder=folder, forked=False, **trusted)
        program = running.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with contextlib.ExitStack() as stack:
        stack.push(running)
        front = None
        if proxy != DIRECT:
            behind = program.url.removeprefix("http://")
            front = stack.enter_context(proxied(proxy, behind, folder, is_careless=plan.is_careless))
        yield Target(program, front)


def run(server: str, proxy: str, plan: Attack, seconds: float, folder: Path) -> Figures:
    """Attack one server behind one proxy."""
    with attacked(server, proxy, plan, folder) as target:
        return asyncio.run(attack(target, plan, seconds))


def main() -> int:
    """Run what the command line says. Return 1 if an honest call was not answered."""
    parser, usual = argparse.ArgumentParser(prog="tests.hostile.unfinished"), Attack()
    add_front_flags(parser)
    parser.add_argument("--kind", choices=KINDS, default=usual.kind)
    parser.add_argument("--careless", action="store_true", help="the proxy passes on bodies as they come")
    parser.add_argument("--clients", type=int, default=usual.clients)
    parser.add_argument("--each", type=int, default=usual.each)
    parser.add_argument("--descriptors", type=int, default=usual.descriptors)
    chosen = parser.parse_args()
    plan = Attack(chosen.clients, chosen.each, chosen.descriptors, chosen.kind, is_careless=chosen.careless)
    is_wrong = False
    for server, proxy in list_fronts(chosen):
        with tempfile.TemporaryDirectory() as folder:
            figures = run(server, proxy, plan, chosen.seconds, Path(folder))
        print(f"{server} behind {proxy}: {figures}", flush=True)
        is_wrong = is_wrong or bool(figures.unanswered)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
