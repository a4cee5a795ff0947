"""How long a TCP connection takes, on loopback and with arranged clocks."""

import socket
from types import SimpleNamespace

import anyio
import pytest

from toolserver.upstream import tcp_probe
from toolserver.upstream.tcp_probe import GAP_S, TIMEOUT_S, TRIES, connect_ms


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(tcp_probe, "GAP_S", 0)


@pytest.fixture
async def port():
    """A port of this machine where somebody listens."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:

        async def close(stream):
            await stream.aclose()

        tasks.start_soon(listener.serve, close)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@pytest.fixture
def taken(monkeypatch):
    """Arranges how many seconds each connection takes by the clock."""

    def arrange(*seconds):
        ticks = iter([tick for each in seconds for tick in (100.0, 100.0 + each)])
        monkeypatch.setattr(tcp_probe, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))

    return arrange


async def test_the_median_of_three_tries_is_rounded_up_to_whole_milliseconds(port, taken):
    taken(0.0101, 0.5, 0.0021)
    assert await connect_ms("127.0.0.1", port) == 11


async def test_a_connection_takes_at_least_a_millisecond(port, taken):
    taken(0.0, 0.0, 0.0)
    assert await connect_ms("127.0.0.1", port) == 1


async def test_a_try_that_fails_does_not_count(port, monkeypatch, taken):
    tries, connect_tcp = [], anyio.connect_tcp

    async def fail_first(address, number):
        tries.append(address)
        if len(tries) == 1:
            raise OSError("reset")
        return await connect_tcp(address, number)

    ticks = iter([1.0, 2.0, 2.004, 3.0, 3.006])
    monkeypatch.setattr(tcp_probe, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr(anyio, "connect_tcp", fail_first)
    assert (await connect_ms("127.0.0.1", port), tries) == (5, ["127.0.0.1"] * 3)


async def test_where_nobody_listens_there_is_no_time():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert await connect_ms("127.0.0.1", bound.getsockname()[1]) is None


async def test_a_name_that_does_not_resolve_has_no_time(monkeypatch):
    async def fail(*args, **more):
        raise socket.gaierror("no such name")

    monkeypatch.setattr(anyio, "getaddrinfo", fail)
    assert await connect_ms("nowhere.invalid", 443) is None


def test_three_tries_lie_a_little_apart_and_have_two_seconds_each():
    assert (TRIES, GAP_S, TIMEOUT_S) == (3, 0.15, 2)
