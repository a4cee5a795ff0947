"""All hostile clients at once, in one process that takes half a core at most: tests/hostile/soak.py starts it.

A third of them are at one address, a third at any of 500, and where the network has IPv6 a third in the networks of one
/48. It says `started` on stdout, and at the end in one JSON line how often each kind acted, the answers by status, what
was asked where the service failed, and the seconds of processor time. With `--authority` it speaks TLS, to a proxy.
"""

import argparse
import asyncio
import contextlib
import json
import random
import secrets
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.hostile.arguments import CHOSEN, arguments_of
from tests.hostile.fuzz_inputs import changed_bytes
from toolserver.registry.registry import Operation

SHARE = 0.5  # of a core, for all clients together
ANSWER_S, SHOWN = 20.0, 10
REFUSED = (502, 503, 504)  # by a full service, or by a proxy whose client it has just refused
NETWORK = "fd00:48::/48"  # one owner, with 65,536 networks
SEVERAL = 500
PAUSE_S = 0.002
H2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
PING, RESET = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8), b"\0\0\x04\x03\0\0\0\0\x01" + bytes(4)
HOST = b"Host: localhost\r\n"
BROKEN = (
    b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\n" + HOST + b"X-A: b\r\n c\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 70_000 + b"\r\n\r\n",
    b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /api/health HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n",
)


def choose_address(number: int, rng: random.Random, *, has_network: bool) -> str:
    """Return where a client connects from this time: one address, one of several, or a network of one /48."""
    crowd = number % (3 if has_network else 2)
    if crowd == 0:
        return "127.1.0.1"
    if crowd == 1:
        at = rng.randrange(SEVERAL)
        return f"127.2.{at // 250}.{at % 250 + 1}"
    return f"{NETWORK.removesuffix('::/48')}:0:{rng.randrange(65_536):x}::1"


class Crowd:
    """What all clients share: the target, the budget of processor time, and what came of them."""

    def __init__(self, port: int, seconds: float, *, tls: ssl.SSLContext | None, has_network: bool) -> None:
        self._port, self._tls, self._has_network = port, tls, has_network
        self._began, self._used = time.monotonic(), time.process_time()
        self.ends = self._began + seconds
        self.acted: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.bad: list[str] = []
        self.rng = random.Random(9)
        self.open = self.most_open = 0

    def is_over(self) -> bool:
        return time.monotonic() >= self.ends

    @property
    def cpu_s(self) -> float:
        """Processor seconds since the start."""
        return time.process_time() - self._used

    async def wait_for_turn(self) -> None:
        """Let the others act, and wait while the process has taken more than its share of a core."""
        too_much_s = self.cpu_s / SHARE - (time.monotonic() - self._began)
        await asyncio.sleep(min(max(PAUSE_S, too_much_s), max(0.0, self.ends - time.monotonic())))

    @contextlib.asynccontextmanager
    async def connect(self, number: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Have a connection from an address of a client. Raises OSError, TimeoutError."""
        address = choose_address(number, self.rng, has_network=self._has_network)
        host, name = "::1" if ":" in address else "127.0.0.1", "localhost" if self._tls else None
        opening = asyncio.open_connection(
            host, self._port, local_addr=(address, 0), ssl=self._tls, server_hostname=name
        )
        reader, writer = await asyncio.wait_for(opening, ANSWER_S)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield reader, writer
        finally:
            self.open -= 1
            writer.transport.abort()

    async def say(self, number: int, words: bytes) -> None:
        """Send some bytes on a connection of their own and count the status of each answer."""
        with contextlib.suppress(OSError, TimeoutError):
            async with self.connect(number) as (reader, writer):
                writer.write(words)
                came = await asyncio.wait_for(reader.read(4096), ANSWER_S)
            if came.startswith(b"HTTP/1.1 "):
                self._count(int(came[9:12]), words, came)

    def _count(self, status: int, words: bytes, came: bytes) -> None:
        self.statuses[status] += 1
        if status >= 500 and status not in REFUSED and len(self.bad) < SHOWN:
            self.bad.append(f"{words[:600]!r} -> {came[-400:]!r}")


Client = Callable[[Crowd, int], Awaitable[None]]


async def speak_http2(crowd: Crowd, number: int) -> None:
    """HTTP/2 without being asked, with a flood of pings and resets."""
    await crowd.say(number, H2 + (PING + RESET) * 200)


async def send_broken_framing(crowd: Crowd, number: int) -> None:
    """Requests that proxies and servers read in different ways."""
    await crowd.say(number, crowd.rng.choice(BROKEN))


async def send_junk(crowd: Crowd, number: int) -> None:
    """A good request with some bytes changed."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather","arguments":{"place":"Paris"}}}'
    await crowd.say(number, changed_bytes(crowd.rng, post("/api/mcp", body)))


async def reset(crowd: Crowd, number: int) -> None:
    """Connect, ask, and reset the connection."""
    with contextlib.suppress(OSError, TimeoutError):
        async with crowd.connect(number) as (_, writer):
            writer.write(b"GET /api/briefing HTTP/1.1\r\n" + HOST + b"\r\n")
            sock: socket.socket | None = writer.get_extra_info("socket")
            if sock is not None:  # else a proxy has closed the connection already
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def ask_for_arguments(crowd: Crowd, number: int) -> None:
    """A question that nobody asked before."""
    operation: Operation = crowd.rng.choice(CHOSEN)
    query = arguments_of(operation.name, crowd.rng.randrange(10_000))
    line = "&".join(f"{name}={value}".replace(" ", "%20") for name, value in query.items())
    await crowd.say(number, f"GET {operation.path}?{line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def ask_for_quotes(crowd: Crowd, number: int) -> None:
    """A quote that nobody will pay."""
    await crowd.say(number, post("/api/payment/buy-credits", b'{"amount_usd": 5}'))


async def invent_tokens(crowd: Crowd, number: int) -> None:
    """A premium call with a token that was never given out."""
    token = f"Authorization: Bearer svc_live_{secrets.token_hex(32)}\r\n".encode()
    await crowd.say(number, b"GET /api/pro/macro HTTP/1.1\r\n" + HOST + token + b"\r\n")


async def call_uncommon_methods(crowd: Crowd, number: int) -> None:
    """A message that only the slow path of MCP can read, with a large body."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"no/such/%d","params":{"a":"%s"}}' % (
        crowd.rng.randrange(99),
        b"x" * 60_000,
    )
    await crowd.say(number, post("/api/mcp", body))


async def list_everything(crowd: Crowd, number: int) -> None:
    """The largest documents there are."""
    path = crowd.rng.choice(("/openapi.json", "/llms-full.txt", "/api/llm-tools?format=raw", "/docs"))
    await crowd.say(number, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def hold_silent(crowd: Crowd, number: int) -> None:
    """A connection on which nothing is said."""
    await _hold(crowd, number, b"")


async def hold_half_a_head(crowd: Crowd, number: int) -> None:
    """A request line that grows by a byte every two seconds."""
    await _hold(crowd, number, b"GET /api/he", more=b"a")


async def hold_half_a_body(crowd: Crowd, number: int) -> None:
    """One byte of a body, and silence."""
    await _hold(crowd, number, post("/api/payment/buy-credits", b'{"amount_usd": 5}')[:-16])


async def read_slowly(crowd: Crowd, number: int) -> None:
    """Ask for large documents again and again and never read them."""
    await _hold(crowd, number, b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n", times=20)


async def _hold(crowd: Crowd, number: int, words: bytes, *, more: bytes = b"", times: int = 1) -> None:
    """Say some words and hold the connection until the other side ends it."""
    with contextlib.suppress(OSError, TimeoutError):
        async with crowd.connect(number) as (reader, writer):
            writer.write(words * times)
            if times > 1:
                writer.transport.pause_reading()  # type: ignore[attr-defined]
            while not writer.is_closing() and not reader.at_eof() and not crowd.is_over():
                await asyncio.sleep(2)
                if more:
                    writer.write(more)


def post(path: str, body: bytes) -> bytes:
    """A POST request with a JSON body."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return f"POST {path} HTTP/1.1\r\n".encode() + HOST + kind.encode() + body


CLIENTS: dict[Client, int] = {
    speak_http2: 10,
    send_broken_framing: 5,
    send_junk: 5,
    reset: 5,
    ask_for_arguments: 10,
    ask_for_quotes: 3,
    invent_tokens: 5,
    call_uncommon_methods: 3,
    list_everything: 3,
    hold_silent: 600,
    hold_half_a_head: 250,
    hold_half_a_body: 250,
    read_slowly: 40,
}
"""The kinds of clients, and how many of each there are: together more than a service with 1,024 descriptors has places.
"""

KINDS = tuple(client.__name__ for client in CLIENTS)
LEAST_ALONE = 300  # more than a service with 256 descriptors has places


async def _repeat(crowd: Crowd, number: int, client: Client) -> None:
    while not crowd.is_over():
        await crowd.wait_for_turn()
        await client(crowd, number)
        crowd.acted[client.__name__] += 1


def choose_clients(alone: str | None) -> list[Client]:
    """Return the clients of all kinds, or of one kind alone, which then are twice as many, and LEAST_ALONE at least."""
    if alone is None:
        return [client for client, count in CLIENTS.items() for _ in range(count)]
    return [c for c, count in CLIENTS.items() if c.__name__ == alone for _ in range(max(LEAST_ALONE, 2 * count))]


async def attack(crowd: Crowd, alone: str | None = None) -> None:
    """Let all clients act until the time is over."""
    everyone = choose_clients(alone)
    async with asyncio.timeout(crowd.ends - time.monotonic() + ANSWER_S + 10):
        await asyncio.gather(*(_repeat(crowd, number, client) for number, client in enumerate(everyone)))


def main() -> None:
    """Attack, and print what came of it."""
    parser = argparse.ArgumentParser(prog="tests.hostile.soak_clients")
    parser.add_argument("port", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--authority", help="a file of who signed the certificate")
    parser.add_argument("--network", action="store_true", help=f"this machine has the addresses of {NETWORK}")
    parser.add_argument("--alone", choices=KINDS, help="only clients of this kind")
    chosen = parser.parse_args()
    tls = None if chosen.authority is None else ssl.create_default_context(cafile=chosen.authority)
    print("started", flush=True)
    crowd = Crowd(chosen.port, chosen.seconds, tls=tls, has_network=chosen.network)
    asyncio.run(attack(crowd, chosen.alone))
    figures = {"acted": crowd.acted, "statuses": crowd.statuses, "cpu_s": crowd.cpu_s, "bad": crowd.bad}
    print(json.dumps(figures | {"most_open": crowd.most_open}))


if __name__ == "__main__":
    main()
