"""A host whose connections can go wrong in every layer: TCP, TLS, HTTP/1.1 and HTTP/2, each without waiting for chance.

It answers JSON to a GET and 204 to a POST, over the protocol that it speaks, until it has a fault.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

from tests.webhooks.receivers import read_request

READ = 65_536
NOW = struct.pack("ii", 1, 0)  # linger for no time: closing resets the connection
HTTP1, HTTP2 = "http/1.1", "h2"


@dataclass(frozen=True)
class WireFault:
    """What goes wrong: at the start of a connection, with its certificate, or with a request of one protocol.

    `certificate` names the one that is shown. `answer` and `answer_http2` treat a request in place of the usual answer.
    `early` is sent before the usual answer of HTTP/1.1. With `of_kept`, only connections that had a request before have
    the fault.
    """

    begin: Callable[[socket.socket], Awaitable[None]] | None = None
    certificate: str = "good"
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None
    answer_http2: Callable[["Http2Exchange"], Awaitable[None]] | None = None
    early: bytes = b""
    of_kept: bool = False

    def strikes(self, served: int) -> bool:
        """Return True if it has the request of a connection that has had so many before."""
        return served > 0 or not self.of_kept


NO_FAULT = WireFault()


@dataclass
class WireHost:
    """The host: what it speaks and says, which fault it has, and what it saw. `values` are those of GETs, by path."""

    certificates: Mapping[str, ssl.SSLContext]
    values: Mapping[str, float] = field(default_factory=dict)
    fault: WireFault = NO_FAULT
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def speak(self, protocol: str) -> None:
        """Choose the protocol of connections that begin from now on."""
        for context in self.certificates.values():
            context.set_alpn_protocols([protocol])

    async def serve(self, accepted: socket.socket) -> None:
        """Serve one connection until it ends."""
        self.connections += 1
        fault, loop = self.fault, asyncio.get_running_loop()
        try:
            if fault.begin is not None:
                await fault.begin(accepted)
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=self.certificates[fault.certificate]
            )
        except (OSError, ConnectionError):
            accepted.close()
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        is_http2 = writer.get_extra_info("ssl_object").selected_alpn_protocol() == HTTP2
        serve = self._serve_http2 if is_http2 else self._serve_http1
        try:
            await serve(reader, writer)
        except (OSError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            transport.abort()

    async def end_connections(self) -> None:
        """End every connection, as after a long time without a request."""
        tasks = [*self.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = 0
        while True:
            request = await read_request(reader)
            self.requests.append(request.path)
            strikes, served = self.fault.strikes(served), served + 1
            writer.write(self.fault.early)
            if self.fault.answer is not None and strikes:
                await self.fault.answer(writer)
            elif request.path in self.values:
                body = self.body_of(request.path)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            else:
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()

    async def _serve_http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        served, paths = 0, dict[int, str]()
        while True:
            writer.write(connection.data_to_send())
            await writer.drain()
            if not (received := await reader.read(READ)):
                return
            for event in connection.receive_data(received):
                if isinstance(event, RequestReceived):
                    paths[event.stream_id] = dict(event.headers)[":path"]
                elif isinstance(event, DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, StreamEnded):
                    path = paths.pop(event.stream_id)
                    self.requests.append(path)
                    strikes, served = self.fault.strikes(served), served + 1
                    exchange = Http2Exchange(connection, writer, event.stream_id)
                    if self.fault.answer_http2 is not None and strikes:
                        await self.fault.answer_http2(exchange)
                    else:
                        exchange.answer_json(self.body_of(path))

    def body_of(self, path: str) -> bytes:
        return json.dumps({"value": self.values[path]}).encode()


@dataclass
class Http2Exchange:
    """One request over HTTP/2, which is to be answered."""

    connection: H2Connection
    writer: asyncio.StreamWriter
    stream: int

    def answer_json(self, body: bytes) -> None:
        self.send_head()
        self.connection.send_data(self.stream, body, end_stream=True)

    def send_head(self, *fields: tuple[str, str]) -> None:
        self.connection.send_headers(self.stream, [(":status", "200"), ("content-type", "application/json"), *fields])

    async def end(self) -> None:
        """Send what is to be sent, and end the connection."""
        self.writer.write(self.connection.data_to_send())
        await self.writer.drain()
        raise ConnectionResetError


@asynccontextmanager
async def open_host(address: str, port: int, certificates: Mapping[str, ssl.SSLContext]) -> AsyncIterator[WireHost]:
    """Run the host on an address of this machine until the block ends, with its connections."""
    host, loop = WireHost(certificates), asyncio.get_running_loop()
    with socket.create_server((address, port)) as listener:
        listener.setblocking(False)

        async def accept() -> None:
            while True:
                accepted, _ = await loop.sock_accept(listener)
                task = loop.create_task(host.serve(accepted))
                host.tasks.add(task)
                task.add_done_callback(host.tasks.discard)

        accepting = loop.create_task(accept())
        try:
            yield host
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            await host.end_connections()


def reset(accepted: socket.socket) -> None:
    """End a connection so that the other side is told at once that it is broken."""
    with contextlib.suppress(OSError):
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
    accepted.close()


async def reset_at_once(accepted: socket.socket) -> None:
    reset(accepted)
    raise ConnectionResetError


async def never_shake_hands(accepted: socket.socket) -> None:
    """Read what comes and say nothing, until the other side gives up."""
    loop = asyncio.get_running_loop()
    while await loop.sock_recv(accepted, READ):
        pass
    raise ConnectionResetError


def send(*pieces: bytes, then: str = "end") -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """Return what sends these bytes to each request, and then ends the connection, or resets or keeps it."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then == "reset":
            writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
        if then != "keep":
            raise ConnectionResetError

    return answer
