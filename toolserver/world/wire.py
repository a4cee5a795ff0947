"""Speak HTTP/1.1 over one connection, written by hand so that it can also break the protocol on purpose."""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

from toolserver.world.answers import Delivery, RenderedReply, reason_of

BODY_MOST = 1024 * 1024
HEAD_MOST = 64 * 1024
IDLE_S = 75
DRAIN_S = 5
SILENCE_S = 3600
AS_USUAL = Delivery()


@dataclass(frozen=True, slots=True)
class Received:
    """A request. Header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    peer: str = ""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path if self.target.startswith("http") else self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Response:
    """A response. `body` is already encoded."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class RequestTooLarge(Exception):
    """The request body exceeds BODY_MOST bytes."""

    def __str__(self) -> str:
        return f"the request body is larger than {BODY_MOST} bytes"


def respond(page: RenderedReply, request: Received, now: float, *, unchanged: bool = False) -> Response:
    """Return a page as this request may receive it: whole, compressed, or 304. `unchanged` forces 304."""
    reply = page.reply
    headers = {"Date": formatdate(now, usegmt=True), "Content-Type": reply.content_type}
    if reply.status == 200 and request.method == "GET":
        headers |= {"ETag": page.etag, "Vary": "Accept-Encoding"}
        if reply.last_modified is not None:
            headers["Last-Modified"] = formatdate(reply.last_modified, usegmt=True)
        if unchanged or _not_modified(page, request.headers):
            del headers["Content-Type"]
            return Response(304, headers)
    own = {name.lower() for name in reply.headers}
    headers = {k: v for k, v in headers.items() if k.lower() not in own} | dict(reply.headers)
    if page.packed is not None and _accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(reply.status, headers | {"Content-Encoding": "gzip"}, page.packed)
    return Response(reply.status, headers, reply.body)


def _accepts_gzip(accepted: str) -> bool:
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0")
    return False


def _not_modified(page: RenderedReply, headers: Mapping[str, str]) -> bool:
    """Decide by If-None-Match if it is present, by If-Modified-Since otherwise."""
    if (validators := headers.get("if-none-match")) is not None:
        tags = {tag.strip().removeprefix("W/") for tag in validators.split(",")}
        return page.etag in tags or "*" in tags
    modified, since = page.reply.last_modified, headers.get("if-modified-since")
    if modified is None or since is None:
        return False
    try:
        return int(modified) <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


class Wire:
    """One connection: reads requests, and sends answers in whatever broken way is requested."""

    def __init__(self, stream: SocketStream, *, idle_s: float = IDLE_S) -> None:
        self._stream, self._idle_s = stream, idle_s
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MOST)
        self.peer = str(stream.extra(SocketAttribute.remote_address, ("", 0))[0])

    async def request(self) -> Received | None:
        """Read the next request, or return None if the connection ends.

        Raises:
            h11.RemoteProtocolError: the received bytes are not HTTP.
            RequestTooLarge: the body is longer than allowed.
            TimeoutError: nothing arrived for too long.
        """
        event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        body = b""
        while isinstance(part := await self._event(), h11.Data):
            body += part.data
            if len(body) > BODY_MOST:
                raise RequestTooLarge
        if not isinstance(part, h11.EndOfMessage):
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        return Received(event.method.decode(), event.target.decode("latin-1"), headers, body, self.peer)

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            with anyio.fail_after(self._idle_s):
                try:
                    data = await self._stream.receive(65_536)
                except anyio.EndOfStream:
                    data = b""
            self._http.receive_data(data)
        return event

    async def answer(self, response: Response, delivery: Delivery = AS_USUAL) -> bool:
        """Send a response. Return False if the connection is no longer usable."""
        head, body = self._head(response), response.body
        if delivery.fraction < 1:
            await self._stream.send(head + body[: int(len(body) * delivery.fraction)])
            return False
        if delivery.bytes_per_s is None:
            await self._stream.send(head + (self._http.send(h11.Data(data=body)) or b""))
        else:
            await self._drip(head, body, delivery.bytes_per_s)
        await self._send(h11.EndOfMessage())
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def _head(self, response: Response) -> bytes:
        headers = dict(response.headers)
        if response.status not in (204, 304):
            headers["Content-Length"] = str(len(response.body))
        reason = reason_of(response.status).encode()
        event = h11.Response(status_code=response.status, headers=list(headers.items()), reason=reason)
        return self._http.send(event) or b""

    async def _drip(self, head: bytes, body: bytes, bytes_per_s: float) -> None:
        await self._stream.send(head)
        step = max(1, int(bytes_per_s / 10))
        for start in range(0, len(body), step):
            await anyio.sleep(step / bytes_per_s)
            await self._stream.send(self._http.send(h11.Data(data=body[start : start + step])) or b"")

    async def _send(self, event: Any) -> None:
        if data := self._http.send(event):
            await self._stream.send(data)

    @property
    def can_answer(self) -> bool:
        """True if a response may still be sent after a broken request."""
        return self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    async def silence(self) -> None:
        """Send nothing until the client gives up."""
        with anyio.move_on_after(SILENCE_S):
            while True:
                await self._stream.receive()

    async def reset(self, after_s: float = 0) -> None:
        """Close with a TCP reset. `after_s` lets what was already sent arrive first."""
        await anyio.sleep(after_s)
        raw = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self._stream.aclose()

    async def close(self) -> None:
        """Close after the client has received everything that was sent."""
        with anyio.move_on_after(DRAIN_S):
            try:
                await self._stream.send_eof()
            except RuntimeError:  # uvloop's way to say that the connection is already closed
                return
            while True:
                await self._stream.receive()
