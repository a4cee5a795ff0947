"""Receivers on loopback, well-behaved and faulty ones, that keep what they got and count who connected."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trustme

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What a receiver saw. `port` is where it listens; `answer` is how it treats every request."""

    answer: Answer
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)

    def url(self, scheme="http", host="127.0.0.1", path="/hook"):
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                self.requests.append(await read_request(reader))
                await self.answer(writer)
        writer.close()


async def read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:] if line)}
    return Request(head[0].split()[1], headers, await reader.readexactly(int(headers.get("content-length", 0))))


def status(code, *headers, body=b""):
    """A receiver that answers a status at once."""
    lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}", *headers]

    async def answer(writer):
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return answer


async def hang(writer):
    """A receiver that never answers."""
    await asyncio.Event().wait()


async def drip_head(writer):
    """A receiver that sends its status line one byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def drip_body(writer):
    """A receiver that says 200 and then sends a body without end, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def flood_body(writer):
    """A receiver that says 200 and sends as much as it can."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"8000\r\n" + bytes(0x8000) + b"\r\n")
        await writer.drain()


async def close(writer):
    """A receiver that closes without a word."""
    writer.close()
    raise ConnectionResetError


async def close_in_body(writer):
    """A receiver that says 200 and closes in the middle of its body."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.close()
    raise ConnectionResetError


async def close_in_head(writer):
    """A receiver that closes in the middle of its headers."""
    writer.write(b"HTTP/1.1 200 OK\r\nConte")
    await writer.drain()
    writer.close()
    raise ConnectionResetError


@asynccontextmanager
async def receiving(answer: Answer | None = None, tls=None, host="127.0.0.1") -> AsyncIterator[Receiver]:
    """A receiver while the block runs."""
    receiver = Receiver(answer or status(204))
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await receiver.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()

    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def receiving_events(answer: Answer | None = None) -> AsyncIterator[Receiver]:
    """A receiver of MCP Events, which repeats challenges and answers events as `answer` does."""

    async def reply(writer):
        body = json.loads(receiver.requests[-1].body)
        if body.get("type") == "verification":
            repeated = json.dumps({"challenge": body["challenge"]}).encode()
            await status(200, "Content-Type: application/json", body=repeated)(writer)
        else:
            await (answer or status(204))(writer)

    async with receiving(reply) as receiver:
        yield receiver


def certificates(*names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for the names, and a client's that trusts nothing but the authority behind it."""
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)
    return server, client
