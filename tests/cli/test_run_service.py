"""A service in this process: what is refused, what is announced, in which order it starts and how it ends."""

import json
from functools import partial

import anyio
import httpx
import pytest

from tests.garbage import garbage_found_afterwards
from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.run_service import serve_command, serve_until
from toolserver.serving.listeners import Listeners
from toolserver.settings import MetricsSettings, ServingSettings, Settings

AT_ONCE = ServingSettings(drain_s=0)


@pytest.fixture(autouse=True)
def thawed():
    """What a service froze at its start is found by garbage collection again once a test has ended."""
    with garbage_found_afterwards():
        yield


async def test_what_prepares_a_service_is_done_before_the_ready_line(tmp_path, capsys):
    stop, printed = anyio.Event(), []
    settings = Settings(data_dir=tmp_path, port=0, serving=AT_ONCE)

    async def prepare(service):
        printed.append(capsys.readouterr().out)
        stop.set()

    with anyio.fail_after(60):
        await serve_until(settings, stop, ReadyNotice(True, {"credits": 5}), prepare=prepare)
    line = json.loads(capsys.readouterr().out)
    assert printed == [""]
    assert (line["ready"], line["credits"]) == (True, 5)


async def test_metrics_and_the_operators_page_are_served_beside_the_service(tmp_path):
    stop, ready = anyio.Event(), anyio.Event()
    settings = Settings(data_dir=tmp_path, port=0, metrics=MetricsSettings(port=0), serving=AT_ONCE)
    listeners = Listeners.open(settings)

    async def prepare(service):
        ready.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            start = partial(serve_until, prepare=prepare, listeners=listeners)
            tasks.start_soon(start, settings, stop, ReadyNotice(True))
            await ready.wait()
            metrics = await client.get(listeners.addresses["metrics_url"])
            operators = await client.get(listeners.operators)
            stop.set()
    assert (metrics.status_code, operators.status_code) == (200, 200)
    assert "toolserver_" in metrics.text


async def test_a_service_that_cannot_start_ends_the_program_with_its_reason(tmp_path):
    (tmp_path / "ledger.sqlite3").write_text("no database" * 99)
    settings = Settings(data_dir=tmp_path, port=0, metrics=MetricsSettings(enabled=False))
    listeners = Listeners.open(settings)
    with listeners.main, anyio.fail_after(60), pytest.raises(BaseExceptionGroup) as ended:
        await serve_until(settings, anyio.Event(), ReadyNotice(True), listeners=listeners)
    assert ended.group_contains(SystemExit, match="the service could not start: .*not a database")


async def test_what_cannot_be_served_is_refused_before_anything_is_bound(capsys):
    with pytest.raises(SystemExit, match="more than one worker"):
        await serve_command(Settings(workers=2), ready_json=True)
    assert capsys.readouterr().out == ""
