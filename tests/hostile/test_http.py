"""Strangers on the wire: HTTP/2, broken framing, clients that are slow, and more of them than descriptors."""

import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.hostile.wires import say
from tests.live.processes import Program, control, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

SERVERS = ("hypercorn", "uvicorn")
HOST = b"Host: localhost\r\n"
GET = b"GET /api/health HTTP/1.1\r\n" + HOST + b"\r\n"
BUY = (
    b"POST /api/payment/buy-credits HTTP/1.1\r\n"
    + HOST
    + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
SHORT = {"TOOLSERVER_LIMITS__HEAD_S": "1", "TOOLSERVER_LIMITS__BODY_S": "1", "TOOLSERVER_LIMITS__IDLE_S": "2"}
GUARD_S = 60.0  # who is not answered by then never is
SETTINGS_FRAME = bytes(3) + b"\x04" + bytes(5)


@pytest.fixture(scope="module", params=SERVERS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", "--server", request.param, folder=tmp_path_factory.mktemp(request.param), **SHORT) as program:
        yield program


@pytest.mark.parametrize(
    "words",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS_FRAME,
        b"GET /api/health HTTP/3.0\r\n" + HOST + b"\r\n",
        b"head /api/receipts/1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\n" + HOST + b"X-A: b\r\n c\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 70_000 + b"\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: -4\r\n\r\n",
        b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\nabcd",
    ],
    ids=[
        *["h2", "version", "small-letters", "two-lengths", "folded", "large-header"],
        *["junk", "negative", "lengths-differ", "coding"],
    ],
)
def test_what_is_no_plain_http_1_is_refused_and_the_connection_closed(service, words):
    heard = say(service.address, words, within_s=GUARD_S)

    assert heard.status in {400, 431}, "by then: 408 is said when the time for a head or a body is over"
    assert heard.ended


REPORTED = {
    277: (b"CONNECT victim.example:443 HTTP/1.1\r\nHost: victim.example\r\n\r\n", {400, 405, 421}),
    279: (
        b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        {400},
    ),
    280: (
        b"POST /api/payment/quote HTTP/1.1\r\n"
        + HOST
        + b"Content-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        {400, 415},
    ),
    284: (b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 46 + b"\r\n\r\nHello\r\n", {400, 413}),
}
"""A request by the number of hypercorn's open report about it, and how it may be refused."""


@pytest.mark.parametrize("report", REPORTED)
def test_what_hypercorn_is_reported_for_is_refused_by_both_servers(service, report):
    words, statuses = REPORTED[report]
    smuggled = b"GET /api/health HTTP/1.1\r\n" + HOST + b"\r\n"
    heard = say(service.address, words + smuggled, within_s=GUARD_S)

    assert heard.status in statuses
    if report != 280:  # its length is clear, so what follows is a request
        assert heard.ended
        assert heard.data.count(b"HTTP/1.1 ") == 1


def test_a_connection_that_was_refused_in_the_middle_of_a_body_leaves_no_trace(service):
    begun = b"GET /api/pro/whales HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    for broken in (b"zz\r\n", b"9c;a=b\xd9\r\n", b"2\r\n{}}}\r\n"):
        assert say(service.address, begun + broken, within_s=3).status in {400, 402}
    say(service.address, BUY % 17 + b'{"amount_usd": 5}' + begun + b"zz\r\n", within_s=3)

    assert "Traceback" not in service.said


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_no_upgrade_is_made(service, protocol):
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol + b"\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    heard = say(service.address, b"GET /api/health HTTP/1.1\r\n" + HOST + wish, within_s=3)

    assert heard.status == 200
    assert b"101" not in heard.data.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "words",
    [b"", b"GET /api/he", BUY % 40 + b"{", GET],
    ids=["silent", "half-a-line", "one-byte-of-a-body", "idle"],
)
def test_each_phase_of_a_request_has_a_deadline(service, words):
    """Which one, tests/serving/test_connections.py shows: here it ends what would never end by itself."""
    heard = say(service.address, words, within_s=GUARD_S)

    assert heard.ended
    print(f"after {heard.seconds:.1f} s")


def test_who_still_sends_a_large_body_can_read_that_it_is_refused_and_the_connection_ends(service):
    """13 MB, more than the buffers between both sides hold: a server that closes at once resets the connection."""
    chunked = b"POST /api/mcp HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    heard = say(service.address, chunked + 200 * (b"10000\r\n" + bytes(65_536) + b"\r\n"), within_s=GUARD_S)

    assert heard.status == 413
    assert heard.ended


def test_a_truncated_body_is_never_carried_out(service):
    whole = BUY % 17 + b'{"amount_usd": 5}'
    statuses = (say(service.address, whole, within_s=1).status for _ in range(20))
    assert 200 in statuses, "the chain is read within seconds of the start"
    before = service.said.count('"quote made"')
    say(service.address, BUY % 400 + b'{"amount_usd": 5}', half_close=True, within_s=2)

    assert service.said.count('"quote made"') == before


@pytest.mark.parametrize("server", SERVERS)
def test_more_slow_clients_than_descriptors(tmp_path, server):
    """With 128 descriptors and 200 silent clients, others are served, nothing spins and the log stays short.

    A process that spins beside it shows how much CPU that takes on this machine just now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        running = started("demo", "--server", server, folder=tmp_path)
        program = running.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    slow = [socket.create_connection(program.address) for _ in range(200)]
    try:
        said = len(program.said)
        with spinning() as spinner:
            shares = [share_of_a_spin(program, spinner) for _ in range(8)]
        print(f"of the CPU that was to be had it took {', '.join(f'{share:.2f}' for share in shares)}")
        assert min(shares) < 1 / 3, "who spins does so all the time; what a start leaves to do has an end"
        assert len(program.said) - said < 20_000
    finally:
        for sock in slow:
            sock.close()
        running.__exit__(None, None, None)


def share_of_a_spin(program: Program, spinner: int) -> float:
    """Serve a call in half a second. Return the CPU that took, as a part of what a process took which only spins."""
    used, spun = cpu_s(program.process.pid), cpu_s(spinner)
    assert httpx.get(f"{program.url}/api/health", timeout=GUARD_S).status_code == 200
    time.sleep(0.5)
    return (cpu_s(program.process.pid) - used) / max(cpu_s(spinner) - spun, 0.01)


@contextmanager
def spinning() -> Iterator[int]:
    """A process that does nothing but spin: its number."""
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize("server", SERVERS)
def test_a_stop_under_load_answers_what_is_in_progress_and_refuses_the_rest(tmp_path, server):
    statuses: list[int] = []
    done = threading.Event()
    with started("demo", "--server", server, folder=tmp_path) as program:

        def ask() -> None:
            with httpx.Client(base_url=program.url, timeout=GUARD_S) as client:
                while not done.is_set():
                    try:
                        statuses.append(client.get("/api/health").status_code)
                    except httpx.TransportError:
                        return

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for client in clients:
            client.start()
        until = time.monotonic() + GUARD_S
        while len(statuses) < 8 and time.monotonic() < until:
            time.sleep(0.1)
        at = time.monotonic()
        assert program.stop() == 0
        took = time.monotonic() - at
        done.set()
        for client in clients:
            client.join()
    print(f"ended after {took:.1f} s")
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 0


def test_a_second_signal_ends_at_once(tmp_path):
    with started("demo", folder=tmp_path, ends_with=130) as program:
        with control(program.ready["world_url"]) as world:
            world.fault("*", "latency", ms=60_000)
        with socket.create_connection(program.address) as sock:
            sock.sendall(b"GET /api/weather?lat=10&lon=11 HTTP/1.1\r\n" + HOST + b"\r\n")
            time.sleep(0.3)
            program.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + GUARD_S
            while '"stopping"' not in program.said:
                assert time.monotonic() < until
                time.sleep(0.01)
            program.process.send_signal(signal.SIGTERM)
            code = program.process.wait(timeout=GUARD_S)
        assert code == 130, "it ended by the second signal: when its time to end in order is over it says 0"
