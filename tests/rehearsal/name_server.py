"""A name server for a network of tests: it answers at once, late, not at all, or with a failure, by name."""

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

KINDS = {1: 4, 28: 6}  # A and AAAA, by the version of the addresses
NO_ERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
RESPONSE, AUTHORITATIVE, RECURSION = 0x8000, 0x0400, 0x0180
TTL_S = 0


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """The addresses of names. `failures` has the code for names that fail, `late_s` the seconds that others take."""

    addresses: Mapping[str, list[str]]
    failures: dict[str, int] = field(default_factory=dict)
    late_s: dict[str, float] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        name, end = read_name(data, 12)
        (kind,) = struct.unpack_from("!H", data, end)
        self.asked.append(name)
        answer = self._answer(data[:2], data[12 : end + 4], name, kind)
        asyncio.get_running_loop().call_later(self.late_s.get(name, 0), self._send, answer, addr)

    def _send(self, answer: bytes, to: Any) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(answer, to)

    def _answer(self, id: bytes, question: bytes, name: str, kind: int) -> bytes:
        code = self.failures.get(name, NO_ERROR if name in self.addresses else NXDOMAIN)
        parsed = [ipaddress.ip_address(each) for each in self.addresses.get(name, ())] if code == NO_ERROR else []
        packed = [each.packed for each in parsed if each.version == KINDS.get(kind)]
        flags = RESPONSE | AUTHORITATIVE | RECURSION | code
        records = [struct.pack("!HHHIH", 0xC00C, kind, 1, TTL_S, len(each)) + each for each in packed]
        return b"".join([id, struct.pack("!HHHHH", flags, 1, len(packed), 0, 0), question, *records])


def read_name(data: bytes, start: int) -> tuple[str, int]:
    """Return the name of a question, and where it ends."""
    labels = []
    while length := data[start]:
        labels.append(data[start + 1 : start + 1 + length].decode())
        start += 1 + length
    return ".".join(labels).lower(), start + 1


@asynccontextmanager
async def open_names(addresses: Mapping[str, list[str]], host: str = "127.0.0.1") -> AsyncIterator[NameServer]:
    """Run the name server on port 53 until the block ends."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(addresses), local_addr=(host, 53))
    try:
        yield server
    finally:
        transport.close()
