"""A service of several workers: what each is given, and what is said when all are ready."""

import json
import os
import signal

import anyio
import pytest

from toolserver.cli import workers as module
from toolserver.cli.ready_notice import ReadyNotice
from toolserver.cli.workers import make_worker_settings, supervise, workers_command
from toolserver.serving.data_directory import read_running
from toolserver.serving.listeners import Listeners
from toolserver.serving.supervisor import WorkerFailed
from toolserver.settings import MetricsSettings, Settings

SHARED = {"database_url": "postgresql://db.example/tools", "redis_url": "redis://cache.example"}


def test_a_worker_has_a_folder_of_its_own_and_keys_in_common(tmp_path):
    given = Settings(data_dir=tmp_path, workers=3, **SHARED)
    made = [make_worker_settings(given, number) for number in range(3)]
    assert [each.data_dir for each in made] == [tmp_path / f"worker-{number}" for number in range(3)]
    assert {each.scaling.keys_dir for each in made} == {tmp_path / "keys"}
    assert {each.scaling.instances for each in made} == {3}
    assert {each.database_url for each in made} == {given.database_url}


def test_what_is_set_for_several_machines_stays(tmp_path):
    scaling = {"instances": 8, "keys_dir": tmp_path / "mounted"}
    made = make_worker_settings(Settings(data_dir=tmp_path, workers=2, scaling=scaling, **SHARED), 1)
    assert (made.scaling.instances, made.scaling.keys_dir) == (8, tmp_path / "mounted")


@pytest.fixture
def supervised(monkeypatch, tmp_path):
    """A supervisor that starts each worker once, plays what a test has set, and ends."""

    class Played:
        orders, renewed, play = [], 0, None

        def __init__(self, count, start, times):
            self.count, self.start, self.times = count, start, times

        async def run(self, stop, on_ready):
            for number in range(self.count):
                await self.start(number)
            on_ready([{"pid": number} for number in range(self.count)])
            if Played.play is not None:
                await Played.play(stop)

        async def renew(self):
            Played.renewed += 1
            Played.changed.set()

        def kill_all(self):
            pass

    class Started:
        @staticmethod
        async def start(number, words, orders, files):
            Played.orders.append((words, json.loads(json.dumps(orders)), files))

    monkeypatch.setattr(module, "Supervisor", Played)
    monkeypatch.setattr(module, "WorkerProcess", Started)
    sockets = []
    opened = Listeners.open_for_workers
    monkeypatch.setattr(module.Listeners, "open_for_workers", lambda *given: sockets.extend(opened(*given)) or sockets)
    yield Played
    for each in sockets:
        for sock in (each.main, each.metrics):
            if sock is not None:
                sock.close()


async def test_each_worker_gets_the_flags_and_its_sockets_and_one_line_is_printed(supervised, tmp_path, capsys):
    settings = Settings(data_dir=tmp_path, port=0, workers=2, upstream={"contact": "ops@data.example"}, **SHARED)
    await workers_command(settings, {"data_dir": tmp_path, "port": 0}, ready_json=True)
    line = json.loads(capsys.readouterr().out)
    assert set(line) == {"ready", "base_url", "mcp_url", "metrics_url", "pid"}
    assert line["pid"] == os.getpid()
    (first, second) = supervised.orders
    assert [orders["number"] for _, orders, _ in (first, second)] == [0, 1]
    for words, orders, files in (first, second):
        assert words[1:] == ["-m", "toolserver.cli.worker"]
        assert orders["flags"] == {"data_dir": str(tmp_path), "port": 0}
        assert orders["world"] is None
        assert sorted(files) == sorted(file for file in orders["files"].values() if file is not None)
    assert not set(first[2]) & set(second[2])


async def test_a_person_reads_it_in_words_and_doctor_finds_the_metrics_while_it_runs(supervised, tmp_path, capsys):
    noted = []

    async def look(stop):
        noted.append(read_running(tmp_path))

    supervised.play = look
    await workers_command(Settings(data_dir=tmp_path, port=0, workers=2, **SHARED), {}, ready_json=False)
    assert "ready; Ctrl+C stops" in capsys.readouterr().out
    assert noted[0].endswith("/metrics")
    assert read_running(tmp_path) is None


async def test_a_hang_up_signal_renews_the_workers_and_a_stop_signal_sets_the_event(supervised, tmp_path):
    supervised.changed = anyio.Event()

    async def signals(stop):
        os.kill(os.getpid(), signal.SIGHUP)
        await supervised.changed.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()

    supervised.play = signals
    settings = Settings(data_dir=tmp_path, port=0, workers=2, metrics=MetricsSettings(enabled=False), **SHARED)
    with anyio.fail_after(20):
        await supervise(settings, {}, anyio.Event(), ReadyNotice(True))
    assert supervised.renewed == 1


async def test_workers_that_cannot_be_kept_running_end_the_program_with_the_reason(supervised, tmp_path):
    async def fail(stop):
        raise WorkerFailed("worker 1 ended again and again")

    supervised.play = fail
    settings = Settings(data_dir=tmp_path, port=0, workers=2, **SHARED)
    with pytest.raises(BaseExceptionGroup) as ended:
        await supervise(settings, {}, anyio.Event(), ReadyNotice(True))
    assert ended.group_contains(SystemExit, match="worker 1 ended again and again")


async def test_workers_without_a_database_are_refused_before_anything_is_bound(supervised):
    with pytest.raises(SystemExit, match="more than one worker"):
        await workers_command(Settings(workers=2), {}, ready_json=True)
    assert supervised.orders == []
