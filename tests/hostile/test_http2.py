"""HTTP/2 belongs to the proxy in front: floods of it cost a server with little room neither memory nor answers."""

import socket
import statistics
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import h2.config
import h2.connection
import h2.settings
import httpx
import pytest

from tests.live.processes import Program, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

SERVERS = ("hypercorn", "uvicorn")
CONNECTIONS, STREAMS, FRAMES, ROUNDS = 10, 90, 20_000, 4
MOST_TIMES = 20  # as long as without the attack may an answer take
MOST_MB = 50  # over what was in use before
SETTINGS, PING = b"\0\0\0\x04" + bytes(5), b"\0\0\x08\x06" + bytes(13)
UPGRADE = (
    b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAQAAAAA\r\n\r\n"
)


def windowless(path: str = "/api/briefing", *, reset: bool = False) -> bytes:
    """A client that knows of HTTP/2 already, takes no byte of any answer (a window of 0), and asks 90 times."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.local_settings = h2.settings.Settings(
        client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0}
    )
    client.initiate_connection()
    asked = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
    for stream in range(1, 2 * STREAMS, 2):
        client.send_headers(stream, asked, end_stream=True)
        if reset:
            client.reset_stream(stream)
    return client.data_to_send()


BEGUN = windowless()
ATTACKS = {
    "windowless": BEGUN,
    "settings": BEGUN + SETTINGS * FRAMES,
    "ping": BEGUN + PING * FRAMES,
    "reset": windowless(reset=True) * 20,
    "upgrade": UPGRADE + BEGUN + SETTINGS * FRAMES,
}


@pytest.fixture(params=SERVERS)
def program(request, tmp_path: Path):
    with started("demo", "--server", request.param, folder=tmp_path) as program:
        program.limit_address_space()
        yield program


def test_the_attack_is_what_it_says():
    settings = BEGUN.partition(b"SM\r\n\r\n")[2]
    assert BEGUN.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"\x00\x04\x00\x00\x00\x00" in settings[:60], "the initial window is 0"
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    server.receive_data(BEGUN)
    assert server.open_inbound_streams == STREAMS


def test_floods_of_http_2_are_refused_in_little_memory_while_others_are_served(program):
    answer_s(program)  # the first one makes what later ones find made
    calm_s, beside_s = [], []
    before_mb = program.resident_mb
    for _ in range(ROUNDS):
        for name, data in ATTACKS.items():
            calm_s.append(answer_s(program))
            with ExitStack() as stack:
                attackers = [stack.enter_context(socket.create_connection(program.address)) for _ in range(CONNECTIONS)]
                for attacker in attackers:
                    send(attacker, data)
                beside_s.append(answer_s(program))
                for attacker in attackers:
                    assert is_http_1(heard_on(attacker)), name
    assert program.process.poll() is None
    answer_s(program)
    times = statistics.median(beside_s) / statistics.median(calm_s)
    print(f"beside an attack an answer took {times:.1f} times as long: {statistics.median(beside_s) * 1000:.0f} ms")
    assert times < MOST_TIMES
    assert program.resident_mb - before_mb < MOST_MB, f"{program.resident_mb:.0f} MB over {before_mb:.0f} MB"
    print(f"{before_mb:.0f} MB before, {program.resident_mb:.0f} MB after")


def send(attacker: socket.socket, data: bytes) -> None:
    """Send as much as the other side takes before it ends the connection."""
    attacker.settimeout(5)
    with suppress(ConnectionResetError, BrokenPipeError):
        attacker.sendall(data)


def heard_on(attacker: socket.socket) -> bytes:
    """What came back until the other side ended the connection, which it does soon."""
    heard = b""
    with suppress(ConnectionResetError):
        while piece := attacker.recv(65536):
            heard += piece
    return heard


def is_http_1(heard: bytes) -> bool:
    """Whether nothing came back but answers of HTTP/1.1; none where the connection was reset under them."""
    return not heard or (heard.startswith(b"HTTP/1.1 ") and b"HTTP/1.1 101" not in heard)


def answer_s(program: Program) -> float:
    """Seconds until a normal request is answered."""
    begun = time.monotonic()
    assert httpx.get(f"{program.url}/api/health", timeout=60, trust_env=False).status_code == 200
    return time.monotonic() - begun
