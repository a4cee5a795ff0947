"""What can go wrong on the wire, and what must come of it for a free call, a paid one and a webhook.

`unshare --net --mount python -m tests.rehearsal.wire_faults FOLDER` runs each fault in a network of its own, on the
product as it is built with real connections: names, TCP, TLS, HTTP/1.1, HTTP/2 and a proxy. It writes what came of
each to `FOLDER/seen.json`, which `test_wire_faults` judges.
"""

import asyncio
import contextlib
import gzip
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import anyio
import trustme
from h2.errors import ErrorCodes
from pydantic import SecretStr

from tests.calls.parts import RICH
from tests.rehearsal.name_server import NXDOMAIN, SERVFAIL, NameServer, open_names
from tests.rehearsal.walled_net import run
from tests.rehearsal.wire_host import (
    HTTP1,
    HTTP2,
    NO_FAULT,
    Http2Exchange,
    WireFault,
    WireHost,
    never_shake_hands,
    open_host,
    reset_at_once,
    send,
)
from tests.webhooks.room import Room, open_room
from toolserver.clock import ManualClock
from toolserver.settings import LimitSettings, ProbeSettings, Settings, UpstreamSettings, WebhookSettings

SOURCES, RECEIVER, WITNESS = "test.example", "receiver.example", "witness.example"
ADDRESSES = {SOURCES: "93.184.215.14", RECEIVER: "93.184.215.15", WITNESS: "93.184.215.15"}
PROXY, CLOSED, SWALLOWING = "10.99.0.9", "93.184.215.16", "2a0e:dead::2"
FIRST, SECOND = "/Test.one", "/Test.two"
PROXY_PORTS = {SOURCES: 3128, RECEIVER: 3129}
LATE_S = 0.9  # of a source's two seconds, and more than a look at the network takes
LONGEST_S = 25.0  # for a call whose own deadline is 12 s; more is a hang
ANEW_S = 1000.0  # after which sources are asked again, also those whose circuit was open
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BODY = b'{"value": 666}'  # of a value that no answer may have
Outcome = Literal["new", "held"]
"""A new answer, which is charged; or the last good one, marked, or none, and no charge."""


@dataclass(frozen=True)
class Case:
    """A fault, and what comes of it: for calls, and for a delivery (the error of its attempt, or None)."""

    calls: Outcome
    delivery: str | None
    fault: WireFault = NO_FAULT
    protocol: str = HTTP1
    name_fails: int | None = None
    name_late_s: float = 0
    also_at: str | None = None
    instead_at: str | None = None
    is_witness_late: bool = False
    proxy: str | None = None


async def go_away(exchange: Http2Exchange) -> None:
    exchange.connection.close_connection(ErrorCodes.NO_ERROR, last_stream_id=0)
    await exchange.end()


async def reset_stream_after_head(exchange: Http2Exchange) -> None:
    exchange.send_head()
    exchange.connection.reset_stream(exchange.stream, ErrorCodes.INTERNAL_ERROR)


async def refuse_stream(exchange: Http2Exchange) -> None:
    exchange.connection.reset_stream(exchange.stream, ErrorCodes.REFUSED_STREAM)


async def end_in_body(exchange: Http2Exchange) -> None:
    exchange.send_head(("content-length", "100"))
    exchange.connection.send_data(exchange.stream, BODY)
    await exchange.end()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Send a body a byte at a time, so that no single wait is long."""
    writer.write(OK + b"Content-Length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def end(exchange: Http2Exchange) -> None:
    await exchange.end()


STALE = WireFault(answer=send(), answer_http2=end, of_kept=True)


def answers(*pieces: bytes, then: str = "end") -> WireFault:
    return WireFault(answer=send(*pieces, then=then))


GZIPPED = gzip.compress(BODY * 100)
LENGTH = b"Content-Length: %d\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LOOP = b"HTTP/1.1 302 Found\r\nLocation: https://test.example%b\r\nContent-Length: 0\r\n\r\n"
PORTAL = b"<html><title>Welcome to our network</title></html>"
EARLY = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


def over(kind: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n"


CASES = {
    "reset before TLS": Case("held", "connect", WireFault(begin=reset_at_once)),
    "slow handshake": Case("held", "timeout", WireFault(begin=never_shake_hands)),
    "expired certificate": Case("held", "tls", WireFault(certificate="expired")),
    "certificate of another host": Case("held", "tls", WireFault(certificate="other")),
    "unknown authority": Case("held", "tls", WireFault(certificate="unknown")),
    "ended without an answer": Case("held", "closed", answers()),
    "reset after the headers": Case("held", None, answers(OK + LENGTH % 100, then="reset")),
    "stale connection": Case("new", "closed", STALE),
    "bad chunk size": Case("held", "closed", answers(CHUNKED + b"zz\r\n" + BODY)),
    "missing last chunk": Case("held", None, answers(CHUNKED + b"%x\r\n%b\r\n" % (len(BODY), BODY))),
    "header too long": Case("held", "closed", answers(OK + b"X: " + b"x" * 300_000 + b"\r\n" + LENGTH % 2 + b"{}")),
    "body shorter than its length": Case("held", None, answers(OK + LENGTH % 100 + BODY)),
    "truncated gzip": Case(
        "held",
        None,
        answers(OK + b"Content-Encoding: gzip\r\n" + LENGTH % (len(GZIPPED) - 9) + GZIPPED[:-9], then="keep"),
    ),
    "portal": Case("held", None, answers(over(b"text/html") + LENGTH % len(PORTAL) + PORTAL, then="keep")),
    "redirect loop": Case("held", "redirect", answers(LOOP % b"/Test.one", then="keep")),
    "interim responses": Case("new", None, WireFault(early=EARLY)),
    "switches protocols": Case(
        "held", "http_101", answers(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    ),
    "slow drip of a body": Case("held", None, WireFault(answer=drip)),
    "name answered late": Case("new", None, name_late_s=LATE_S),
    "name unknown": Case("held", "dns", name_fails=NXDOMAIN),
    "name server fails": Case("held", "dns", name_fails=SERVFAIL),
    "connection refused": Case("held", "connect", instead_at=CLOSED),
    "connection refused, and all names late": Case(
        "held", "connect", instead_at=CLOSED, name_late_s=LATE_S, is_witness_late=True
    ),
    "IPv6 swallows packets": Case("new", None, also_at=SWALLOWING),
    "GOAWAY": Case("held", None, WireFault(answer_http2=go_away), HTTP2),
    "GOAWAY of a kept connection": Case("new", None, WireFault(answer_http2=go_away, of_kept=True), HTTP2),
    "RST_STREAM after the headers": Case("held", None, WireFault(answer_http2=reset_stream_after_head), HTTP2),
    "stream refused": Case("held", None, WireFault(answer_http2=refuse_stream), HTTP2),
    "ended in an HTTP/2 body": Case("held", None, WireFault(answer_http2=end_in_body), HTTP2),
    "stale HTTP/2 connection": Case("new", "closed", STALE, HTTP2),
    "proxy wants a password": Case("held", "connect", NO_FAULT, HTTP2, proxy="407 Proxy Authentication Required"),
    "proxy has no route": Case("held", "connect", NO_FAULT, HTTP2, proxy="502 Bad Gateway"),
    "stale tunnel": Case("new", "closed", STALE, HTTP2, proxy=""),
}


class Proxy:
    """A proxy that leads a tunnel to where it is asked for, or refuses with a status."""

    def __init__(self) -> None:
        self.refusal, self.tasks = "", set[asyncio.Task[Any]]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        host = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().rpartition(":")[0]
        if self.refusal:
            writer.write(b"HTTP/1.1 " + self.refusal.encode() + b"\r\nContent-Length: 0\r\n\r\n")
            await close(writer)
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        behind_reader, behind = await asyncio.open_connection(ADDRESSES.get(host, host), 443)
        there, back = pump(reader, behind), pump(behind_reader, writer)
        try:
            async with asyncio.TaskGroup() as tasks:
                self.tasks |= {tasks.create_task(there), tasks.create_task(back)}
        except asyncio.CancelledError:
            pass  # the tunnels are ended
        finally:
            behind.transport.abort()
            writer.transport.abort()

    async def end_tunnels(self) -> None:
        """End every tunnel on both sides."""
        tasks = [task for task in self.tasks if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass bytes on until they end, on either side."""
    try:
        while piece := await source.read(65_536):
            target.write(piece)
            await target.drain()
    except ConnectionError:
        pass
    await close(target)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@dataclass
class Wire:
    """The network around the service. Hosts are by the names that lead to them, and so are the proxies on the way."""

    hosts: dict[str, WireHost]
    names: NameServer
    proxies: dict[str, Proxy]

    async def strike(self, case: Case, name: str) -> None:
        """Let a case's fault strike what has this name, also if there were connections to it. `heal` ends it."""
        self.hosts[name].fault, self.proxies[name].refusal = case.fault, case.proxy or ""
        if case.name_fails is not None:
            self.names.failures[name] = case.name_fails
        self.names.late_s[name] = case.name_late_s
        addresses = [case.also_at, case.instead_at or ADDRESSES[name]]
        self.names.addresses[name] = [address for address in addresses if address is not None]
        if case.is_witness_late:
            self.names.late_s[WITNESS] = LATE_S
        if not case.fault.of_kept:
            await self.proxies[name].end_tunnels()
            await self.hosts[name].end_connections()

    def heal(self) -> None:
        for host in self.hosts.values():
            host.fault = NO_FAULT
        for proxy in self.proxies.values():
            proxy.refusal = ""
        self.names.failures.clear()
        self.names.late_s.clear()
        self.names.addresses = {name: [address] for name, address in ADDRESSES.items()}

    @property
    def connections(self) -> int:
        """How many connections the hosts have."""
        return sum(len(host.tasks) for host in self.hosts.values())

    def count_tasks(self) -> int:
        """Return how many tasks there are beside those of this network."""
        own = set[asyncio.Task[Any]]().union(*(each.tasks for each in (*self.hosts.values(), *self.proxies.values())))
        return len(asyncio.all_tasks() - own)


@asynccontextmanager
async def open_wire(certificates: dict[str, ssl.SSLContext]) -> AsyncIterator[Wire]:
    """Open the hosts, the name server and the proxy."""
    async with AsyncExitStack() as stack:
        hosts = {}
        for name in (SOURCES, RECEIVER):
            hosts[name] = await stack.enter_async_context(open_host(ADDRESSES[name], 443, certificates))
        names = await stack.enter_async_context(open_names({}))
        proxies = {SOURCES: Proxy(), RECEIVER: Proxy()}
        for name, proxy in proxies.items():
            await stack.enter_async_context(await asyncio.start_server(proxy.serve, PROXY, PROXY_PORTS[name]))
        wire = Wire(hosts, names, proxies)
        wire.heal()
        yield wire


def make_certificates(folder: Path) -> dict[str, ssl.SSLContext]:
    """Return the host's certificates by what is wrong with them, and write the authority that is trusted."""
    authority, past = trustme.CA(), datetime.now(UTC) - timedelta(days=1)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    hosts = (SOURCES, RECEIVER, WITNESS)
    issued = {
        "good": authority.issue_cert(*hosts),
        "expired": authority.issue_cert(*hosts, not_before=past - timedelta(days=9), not_after=past),
        "other": authority.issue_cert("other.example"),
        "unknown": trustme.CA().issue_cert(*hosts),
    }
    contexts = {}
    for name, certificate in issued.items():
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(contexts[name])
    return contexts


class Rehearsal:
    """A service on the wire. Each phase has a value of its own, so that an answer says whence it is."""

    def __init__(self, room: Room, wire: Wire) -> None:
        self.room, self.wire, self.value = room, wire, 0.0

    def begin_phase(self) -> None:
        """Let time pass until everything is asked for anew, and the sources say something new."""
        self.room.clock.advance(ANEW_S)
        self.value += 1
        self.wire.hosts[SOURCES].values = {FIRST: self.value, SECOND: self.value}

    async def call(self) -> dict[str, Any]:
        """Make a free and a paid call at the same time. Return what both say, and what was charged."""
        self.begin_phase()
        before, answers = await self.room.spent(), dict[str, Any]()

        async def get(path: str) -> None:
            answers[path] = await self.room.shop.buy(path)

        with anyio.fail_after(LONGEST_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(get, "/api/number")
                tasks.start_soon(get, "/api/pro/report")
        free, paid = answers["/api/number"].json(), answers["/api/pro/report"].json()
        return {
            "free": free,
            "paid": paid,
            "value": self.value,
            "statuses": [answer.status_code for answer in answers.values()],
            "charged": await self.room.spent() - before,
            "held": await self.room.held(),
            "receipt": await self.room.shop.verify(answers["/api/pro/report"].headers["x-service-receipt"]),
        }

    async def deliver(self, case: Case) -> dict[str, Any]:
        """Send a delivery, the next one under the fault, and again without. Return how it went, and what it cost."""
        self.begin_phase()
        subscription = await self.room.subscribe(f"https://{RECEIVER}/hook")
        await self.room.pass_slots()
        before = await self.room.spent()
        await self.wire.strike(case, RECEIVER)
        with anyio.fail_after(LONGEST_S):
            await self.room.pass_slots()
        _, struck = await self.room.fires(subscription.id)
        charged = await self.room.spent() - before
        self.wire.heal()
        await self.room.pass_time(60)
        _, healed = await self.room.fires(subscription.id)
        total = await self.room.spent() - before
        await self.room.hooks.subscriptions.cancel(RICH, subscription.id)
        return {
            "struck": [struck.state, struck.error, struck.attempts, charged],
            "healed": [healed.state, healed.error, healed.attempts, total],
            "held": await self.room.held(),
        }

    async def go_through(self, case: Case) -> dict[str, Any]:
        """Call without the fault, with it and without it again, and deliver. Return all that came of it."""
        before = await self.call()
        tasks = self.wire.count_tasks()
        await self.wire.strike(case, SOURCES)
        during = await self.call()
        self.wire.heal()
        after = await self.call()
        delivery = await self.deliver(case)
        left = {"tasks": self.wire.count_tasks() - tasks, "connections": self.wire.connections}
        return {"before": before, "during": during, "after": after, "delivery": delivery, "left": left}


async def rehearse(folder: Path, names: list[str]) -> dict[str, Any]:
    """Run the cases of each way out on a service of its own. Return what came of each."""
    certificates, seen = make_certificates(folder), dict[str, Any]()
    os.environ["SSL_CERT_FILE"] = str(folder / "ca.pem")
    ways = [(HTTP1, False), (HTTP2, False), (HTTP2, True)]
    async with open_wire(certificates) as wire:
        for number, (protocol, has_proxy) in enumerate(ways):
            for host in wire.hosts.values():
                host.speak(protocol)
            proxies = {name: SecretStr(f"http://{PROXY}:{port}") for name, port in PROXY_PORTS.items()}
            into = folder / str(number)
            into.mkdir()
            settings = Settings(
                data_dir=into,
                upstream=UpstreamSettings(proxy=proxies[SOURCES] if has_proxy else SecretStr("direct")),
                webhooks=WebhookSettings(proxy=proxies[RECEIVER] if has_proxy else None),
                limits=LimitSettings(enabled=False),
                probes=ProbeSettings(targets={"witness": WITNESS}),
            )
            async with open_room(into, clock=ManualClock(datetime.now(UTC)), whole=settings) as room:
                await room.shop.ledger.mint(RICH, 1000, cause="rehearsal")
                rehearsal = Rehearsal(room, wire)
                for name in names:
                    case = CASES[name]
                    if (case.protocol, case.proxy is not None) == (protocol, has_proxy):
                        seen[name] = await rehearsal.go_through(case)
            seen[f"left {number}"] = {"connections": wire.connections}
    return seen


def arrange_network(folder: Path) -> None:
    """Give this machine the addresses of the test, and a name server of its own."""
    run("ip", "link", "set", "lo", "up")
    for address in {*ADDRESSES.values(), CLOSED, PROXY}:
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    run("ip", "link", "add", "swallow", "type", "veth", "peer", "name", "void")
    for end in ("swallow", "void"):
        run("ip", "link", "set", end, "up")
    run("ip", "-6", "address", "add", "2a0e:dead::1/64", "dev", "swallow", "nodad")
    run("ip", "-6", "neighbour", "add", SWALLOWING, "lladdr", "02:00:00:00:00:01", "dev", "swallow")  # nobody's
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    run("mount", "--bind", str(folder / "hosts"), "/etc/hosts")
    run("mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf")


if __name__ == "__main__":
    into = Path(sys.argv[1])
    arrange_network(into)
    (into / "seen.json").write_text(json.dumps(asyncio.run(rehearse(into, sys.argv[2:] or [*CASES]))))
