"""What a running server leaves alone, as `doctor` reads it from that server's metrics."""

import anyio
import pytest

from toolserver.cli.doctor import LeftAlone, RunningServer, ask_running_server, describe_server, read_left_alone
from toolserver.core.metrics import Metrics
from toolserver.serving.listen import bind_socket, serve_metrics
from toolserver.serving.running_note import note_running
from toolserver.settings import Settings

REFUSING = LeftAlone("www.cisa.gov", "403", 1800.0)
FAILING = LeftAlone("Test.one", None, 30.0)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def metrics():
    """Those of a service which one host refuses, and one source of which keeps failing."""
    made = Metrics()
    made.follow_closed(lambda: [("www.cisa.gov", 403, 1800.0)], lambda: [("Test.one", 30.0)])
    return made


async def test_the_metrics_of_the_server_that_runs_are_read(tmp_path):
    made, stop = metrics(), anyio.Event()
    sock = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/metrics"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_metrics, Settings(), sock, lambda: made, stop)
        with note_running(tmp_path, url):
            found = await ask_running_server(tmp_path)
        stop.set()
    assert found == RunningServer(url, True, (REFUSING, FAILING))


async def test_a_server_that_was_killed_does_not_answer(tmp_path):
    sock = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/metrics"
    sock.close()
    with note_running(tmp_path, url):
        assert await ask_running_server(tmp_path) == RunningServer(url, False, ())


async def test_without_a_note_nobody_is_asked(tmp_path):
    assert await ask_running_server(tmp_path) is None


def test_only_what_is_left_alone_is_read():
    assert read_left_alone(metrics().text().decode()) == (REFUSING, FAILING)
    assert read_left_alone(Metrics().text().decode()) == ()
    with pytest.raises(ValueError, match=r".+"):
        read_left_alone("<html>this is { another server")


def test_what_was_found_is_said_in_lines():
    said = describe_server(RunningServer("http://h/metrics", True, (REFUSING, FAILING)))
    assert said[0] == "the running server (http://h/metrics) is currently skipping:"
    assert said[1].split() == "www.cisa.gov refuses it (status 403); retried in 1800 s".split()
    assert said[2].split() == "Test.one keeps failing; retried in 30 s".split()
    assert describe_server(RunningServer("u", True, ())) == ["the running server (u) uses every source"]
    assert "does not answer" in describe_server(RunningServer("u", False, ()))[0]
    assert describe_server(None) == ["no server runs on this data directory"]
