"""Listening: sockets, the ready line, signals, metrics, and how the program ends when the service does."""

import asyncio
import gc
import json
import logging
import os
import platform
import re
import signal
import socket
import subprocess
import sys

import anyio
import httpx
import pytest

from tests.garbage import garbage_found_afterwards
from toolserver.core.metrics import Metrics
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving import listen
from toolserver.serving.listen import (
    address_of,
    announce,
    bind_socket,
    freeze_startup,
    loop_factory,
    metrics_app,
    refuse_public,
    run_async,
    serve,
    serve_metrics,
    stop_signal,
)
from toolserver.settings import LimitSettings, ServingSettings, Settings

AT_ONCE = Settings(serving=ServingSettings(drain_s=0))
FACTS = SiteFacts(base_url="https://data.example", source="data.example")


async def hello(scope, receive, send):
    """An ASGI app that answers every request with its path."""
    if scope["type"] == "lifespan":
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


# --- sockets


async def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged():
    """Clients acknowledge up to 40 ms late, and the kernel holds the second write of an answer back until then."""
    found = []

    async def look(reader, writer):
        found.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with bind_socket("127.0.0.1", 0) as sock:
        async with await asyncio.start_server(look, sock=sock):
            reader, writer = await asyncio.open_connection(*sock.getsockname())
            await reader.read()
            writer.close()
            await writer.wait_closed()
    assert found
    assert all(found)


def test_port_0_picks_a_free_port_and_the_socket_accepts_connections():
    with bind_socket("127.0.0.1", 0) as sock:
        address = sock.getsockname()
        assert address[1] > 0
        assert sock.getblocking() is False
        socket.create_connection(address, timeout=5).close()


def test_a_port_in_use_ends_the_program_with_a_sentence():
    with bind_socket("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            bind_socket("127.0.0.1", port)
    assert str(ended.value) == (
        f"cannot listen on 127.0.0.1, port {port}: address already in use;"
        " set --port to a free port, or to 0, which picks one"
    )


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "localhost"),
        ("", "localhost"),
        ("::", "localhost"),
        ("::1", "[::1]"),
        ("data.example", "data.example"),
    ],
)
def test_the_address_is_one_that_can_be_typed(host, shown):
    with bind_socket("127.0.0.1", 0) as sock:
        assert address_of(sock, host) == f"http://{shown}:{sock.getsockname()[1]}"


# --- the ready line


def test_the_ready_line_is_one_line_of_json(capsys):
    announce(base_url="http://127.0.0.1:1", metrics_url=None)
    out = capsys.readouterr().out
    assert out.endswith("\n")
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "ready": True,
        "base_url": "http://127.0.0.1:1",
        "metrics_url": None,
        "pid": os.getpid(),
    }


def test_garbage_is_collected_again_once_the_service_has_started():
    threshold = gc.get_threshold()
    with garbage_found_afterwards():
        gc.disable()
        freeze_startup()
        assert (gc.isenabled(), gc.get_freeze_count() > 0) == (True, True)
        assert gc.get_threshold() == (10_000, *threshold[1:])


# --- serving


async def test_an_app_is_served_until_the_event_is_set():
    sock, stop = bind_socket("127.0.0.1", 0), anyio.Event()
    url = address_of(sock, "127.0.0.1")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            tasks.start_soon(lambda: serve(hello, sock, AT_ONCE, stop=stop))
            assert (await client.get(f"{url}/path")).text == "/path"
            stop.set()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), timeout=1)


async def test_an_app_that_ends_by_itself_ends_the_program(caplog):
    caplog.set_level(logging.CRITICAL)

    async def dies(scope, receive, send):
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})

    sock = bind_socket("127.0.0.1", 0)
    with anyio.fail_after(30), pytest.raises(SystemExit, match="the service ended unexpectedly"):
        await serve(dies, sock, Settings(), stop=anyio.Event())


def test_connections_are_bounded_as_set_and_per_client_only_where_limits_are_on():
    limits = {"connections": 50, "connections_per_client": 5, "head_s": 1, "body_s": 2, "idle_s": 3, "write_s": 4}
    settings = Settings(limits=LimitSettings(**limits, trusted_proxies=["192.0.2.0/24"]))
    connections = listen.make_connections(settings, lambda: 0.0, FACTS)
    on = connections.limits
    off = listen.make_connections(Settings(limits=LimitSettings(**limits, enabled=False)), lambda: 0.0, FACTS).limits

    assert (on.in_all, on.per_client, off.per_client) == (50, 5, 50)
    assert (on.head_s, on.body_s, on.idle_s, on.write_s) == (1, 2, 3, 4)
    assert all(connections.admit("192.0.2.9") for _ in range(6)), "a trusted proxy has no limit itself"
    assert [connections.admit("198.51.100.1") is None for _ in range(6)] == [False] * 5 + [True]
    assert json.loads(connections.refusal().partition(b"\r\n\r\n")[2])["error"] == "overloaded"


def test_connections_are_metrics():
    connections = listen.make_connections(Settings(limits=LimitSettings(connections_per_client=1)), lambda: 0.0, FACTS)
    metrics = Metrics()
    metrics.follow_connections(connections.count)
    for _ in range(3):
        connections.admit("192.0.2.1")
    text = metrics.text().decode()

    assert 'toolserver_connections{phase="answering"} 1.0' in text
    assert "toolserver_connected_clients 1.0" in text
    assert 'toolserver_connections_closed_total{reason="per_client"} 2.0' in text


# --- metrics


async def get(app, path, host="localhost:9000"):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}") as client:
        return await client.get(path)


def settled(text):
    """The metrics, byte for byte but for the figures of the process, which change at any time."""
    return re.sub(rb"(?m)^(process_\w+) .*$", rb"\1", text)


async def test_metrics_are_served_alone_and_only_once_the_service_runs():
    metrics = Metrics()
    app = metrics_app(lambda: metrics)
    found = await get(app, "/metrics")

    assert (found.status_code, settled(found.content)) == (200, settled(metrics.text()))
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert (await get(app, "/")).status_code == 404
    assert (await get(metrics_app(lambda: None), "/metrics")).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:9000", "127.0.0.1.nip.example", "[::2]"])
async def test_a_page_whose_name_was_made_to_lead_here_reads_no_metrics(host):
    assert (await get(metrics_app(Metrics), "/metrics", host)).status_code == 421
    assert (await get(metrics_app(Metrics, is_private=False), "/metrics", host)).status_code == 200


async def test_pages_beside_the_metrics_answer_every_other_path_once_they_are_there():
    metrics = Metrics()
    app = metrics_app(lambda: metrics, lambda: hello)

    assert (await get(app, "/")).text == "/"
    assert settled((await get(app, "/metrics")).content) == settled(metrics.text())
    assert (await get(metrics_app(lambda: metrics, lambda: None), "/")).status_code == 404


async def test_the_metrics_listener_serves_until_the_event_is_set():
    sock, stop = bind_socket("127.0.0.1", 0), anyio.Event()
    url = address_of(sock, "127.0.0.1")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            tasks.start_soon(serve_metrics, AT_ONCE, sock, Metrics, stop)
            assert (await client.get(f"{url}/metrics")).status_code == 200
            stop.set()


# --- signals and the end


async def test_a_first_signal_sets_the_event_and_a_second_ends_the_process(monkeypatch):
    ended = anyio.Event()
    codes = []

    def leave(code):
        codes.append(code)
        ended.set()

    monkeypatch.setattr(os, "_exit", leave)
    stop = anyio.Event()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_signal, stop, lambda: codes.append("before"))
            await anyio.wait_all_tasks_blocked()
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
            assert codes == []
            os.kill(os.getpid(), signal.SIGINT)
            await ended.wait()
            tasks.cancel_scope.cancel()
    assert codes == ["before", 130]


def test_the_end_of_the_program_is_not_hidden_in_a_group_of_errors():
    async def main(message):
        async with anyio.create_task_group() as outer:
            outer.start_soon(leave, message)

    async def leave(message):
        raise SystemExit(message)

    with pytest.raises(SystemExit, match="no room"):
        run_async(Settings(), main, "no room")


def test_other_errors_of_tasks_are_not_mistaken_for_the_end():
    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    async def fail():
        raise OSError("a fault")

    with pytest.raises(BaseExceptionGroup) as group:
        run_async(Settings(), main)
    assert group.group_contains(OSError)


def test_only_uvicorn_runs_on_another_loop_and_only_where_it_is_installed(monkeypatch):
    assert loop_factory(Settings()) is None
    assert loop_factory(Settings(server="uvicorn")).__module__.startswith("uvloop")
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory(Settings(server="uvicorn")) is None


def test_what_is_for_development_listens_on_loopback_only():
    refuse_public(Settings(host="::1"), "the demo")
    with pytest.raises(SystemExit, match="the demo is for development"):
        refuse_public(Settings(host="0.0.0.0"), "the demo")


COUNT = """
import ctypes, sys, threading
from toolserver.serving.listen import share_heap

if sys.argv[1] == "shared":
    assert share_heap()
meeting = threading.Barrier(7)

def allocate():
    kept = [bytes(4000) for _ in range(3000)]
    meeting.wait()
    meeting.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads:
    thread.start()
meeting.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
meeting.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread a heap of its own")
@pytest.mark.parametrize(("how", "is_one"), [("shared", True), ("own", False)])
def test_threads_use_one_heap(tmp_path, how, is_one):
    report = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", COUNT, how, str(report)], check=True, timeout=60)
    assert (report.read_text().count("<heap nr=") == 1) is is_one


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert listen.share_heap() is False
