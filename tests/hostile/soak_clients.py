"""All hostile clients at once, in one process that takes half a core at most: tests/hostile/soak.py starts it.

Each kind has an address of its own (127.0.0.2 and on), so that the limits per client count. It says
`started` on stdout, and at the end in one JSON line how often each kind acted, the answers by status, what was asked
where a status was 500 or more, and the seconds of processor time.
"""

import asyncio
import contextlib
import json
import random
import secrets
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.hostile.arguments import CHOSEN, arguments_of
from tests.hostile.fuzz_inputs import changed_bytes
from toolserver.registry.registry import Operation

SHARE = 0.5  # of a core, for all clients together
ANSWER_S, SHOWN = 20.0, 10
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


class Crowd:
    """What all clients share: the target, the budget of processor time, and what came of them."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._target, self._began, self._used = (host, port), time.monotonic(), time.process_time()
        self.ends = self._began + seconds
        self.acted: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.bad: list[str] = []
        self.rng = random.Random(9)

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

    async def connect(self, kind: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection from the address of a kind of client. Raises OSError."""
        return await asyncio.open_connection(*self._target, local_addr=(f"127.0.0.{kind + 2}", 0))

    async def say(self, kind: int, words: bytes) -> None:
        """Send some bytes on a connection of their own and count the status of each answer."""
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await self.connect(kind)
            try:
                writer.write(words)
                came = await asyncio.wait_for(reader.read(4096), ANSWER_S)
            finally:
                writer.close()
            if came.startswith(b"HTTP/1.1 "):
                self._count(int(came[9:12]), words, came)

    def _count(self, status: int, words: bytes, came: bytes) -> None:
        self.statuses[status] += 1
        if status >= 500 and len(self.bad) < SHOWN:
            self.bad.append(f"{words[:600]!r} -> {came[-400:]!r}")


Client = Callable[[Crowd, int], Awaitable[None]]


async def speak_http2(crowd: Crowd, kind: int) -> None:
    """HTTP/2 without being asked, with a flood of pings and resets."""
    await crowd.say(kind, H2 + (PING + RESET) * 200)


async def send_broken_framing(crowd: Crowd, kind: int) -> None:
    """Requests that proxies and servers read in different ways."""
    await crowd.say(kind, crowd.rng.choice(BROKEN))


async def send_junk(crowd: Crowd, kind: int) -> None:
    """A good request with some bytes changed."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather","arguments":{"place":"Paris"}}}'
    await crowd.say(kind, changed_bytes(crowd.rng, post("/api/mcp", body)))


async def reset(crowd: Crowd, kind: int) -> None:
    """Connect, ask, and reset the connection."""
    with contextlib.suppress(OSError):
        _, writer = await crowd.connect(kind)
        writer.write(b"GET /api/briefing HTTP/1.1\r\n" + HOST + b"\r\n")
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()


async def ask_for_arguments(crowd: Crowd, kind: int) -> None:
    """A question that nobody asked before."""
    operation: Operation = crowd.rng.choice(CHOSEN)
    query = arguments_of(operation.name, crowd.rng.randrange(10_000))
    line = "&".join(f"{name}={value}".replace(" ", "%20") for name, value in query.items())
    await crowd.say(kind, f"GET {operation.path}?{line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def ask_for_quotes(crowd: Crowd, kind: int) -> None:
    """A quote that nobody will pay."""
    await crowd.say(kind, post("/api/payment/buy-credits", b'{"amount_usd": 5}'))


async def invent_tokens(crowd: Crowd, kind: int) -> None:
    """A premium call with a token that was never given out."""
    token = f"Authorization: Bearer svc_live_{secrets.token_hex(32)}\r\n".encode()
    await crowd.say(kind, b"GET /api/pro/macro HTTP/1.1\r\n" + HOST + token + b"\r\n")


async def call_uncommon_methods(crowd: Crowd, kind: int) -> None:
    """A message that only the slow path of MCP can read, with a large body."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"no/such/%d","params":{"a":"%s"}}' % (
        crowd.rng.randrange(99),
        b"x" * 60_000,
    )
    await crowd.say(kind, post("/api/mcp", body))


async def list_everything(crowd: Crowd, kind: int) -> None:
    """The largest documents there are."""
    path = crowd.rng.choice(("/openapi.json", "/llms-full.txt", "/api/llm-tools?format=raw", "/docs"))
    await crowd.say(kind, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


async def hold_silent(crowd: Crowd, kind: int) -> None:
    """A connection on which nothing is said."""
    await _hold(crowd, kind, b"")


async def hold_half_a_head(crowd: Crowd, kind: int) -> None:
    """A request line that grows by a byte every two seconds."""
    await _hold(crowd, kind, b"GET /api/he", more=b"a")


async def hold_half_a_body(crowd: Crowd, kind: int) -> None:
    """One byte of a body, and silence."""
    await _hold(crowd, kind, post("/api/payment/buy-credits", b'{"amount_usd": 5}')[:-16])


async def read_slowly(crowd: Crowd, kind: int) -> None:
    """Ask for large documents again and again and never read them."""
    await _hold(crowd, kind, b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n", times=20)


async def _hold(crowd: Crowd, kind: int, words: bytes, *, more: bytes = b"", times: int = 1) -> None:
    """Say some words and hold the connection until the other side ends it."""
    with contextlib.suppress(OSError):
        reader, writer = await crowd.connect(kind)
        try:
            writer.write(words * times)
            if times > 1:
                writer.transport.pause_reading()  # type: ignore[attr-defined]
            while not writer.is_closing() and not reader.at_eof() and not crowd.is_over():
                await asyncio.sleep(2)
                if more:
                    writer.write(more)
        finally:
            writer.transport.abort()


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
    hold_silent: 300,
    hold_half_a_head: 100,
    hold_half_a_body: 100,
    read_slowly: 20,
}
"""The kinds of clients, and how many of each there are."""


async def _repeat(crowd: Crowd, kind: int, client: Client) -> None:
    while not crowd.is_over():
        await crowd.wait_for_turn()
        await client(crowd, kind)
        crowd.acted[client.__name__] += 1


async def attack(crowd: Crowd) -> None:
    """Let all clients act until the time is over."""
    everyone = [(kind, client) for kind, (client, count) in enumerate(CLIENTS.items()) for _ in range(count)]
    async with asyncio.timeout(crowd.ends - time.monotonic() + ANSWER_S + 10):
        await asyncio.gather(*(_repeat(crowd, kind, client) for kind, client in everyone))


def main(host: str, port: str, seconds: str) -> None:
    """Attack, and print what came of it."""
    print("started", flush=True)
    crowd = Crowd(host, int(port), float(seconds))
    asyncio.run(attack(crowd))
    print(json.dumps({"acted": crowd.acted, "statuses": crowd.statuses, "cpu_s": crowd.cpu_s, "bad": crowd.bad}))


if __name__ == "__main__":
    main(*sys.argv[1:])
