"""Several workers behind one port, on PostgreSQL and Redis: they share everything, and one may die or be renewed."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.buying import bought
from tests.live.killing import begun, selling
from tests.live.patient import MODULE as PATIENT
from tests.live.processes import UNLIMITED, Program, ran, started
from tests.live.test_shared_database import client_of
from tests.ports import reserve_ports
from tests.postgres import url_of
from tests.redis_server import RedisServer
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

GUARD_S = 60.0  # what has not come by then never does
BRIEFING, FREE = "/api/pro/briefing", "/api/forex"
SERVERS = ("hypercorn", "uvicorn")


@dataclass
class Team:
    """A service of several workers, and the world that it reads and sells on."""

    program: Program
    world: Program

    def workers(self) -> list[int]:
        """The processes that serve, by their numbers: the children of the one that was started."""
        folder = Path(f"/proc/{self.program.process.pid}/task")
        words = [path.read_text() for path in folder.glob("*/children")]
        return sorted(int(word) for text in words for word in text.split())

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.program.said.splitlines()]
        return [line for line in lines if line["event"] == name]

    def wait_for(self, name: str, count: int = 1, within_s: float = 60) -> None:
        """Until the log has so many lines of an event."""
        until = time.monotonic() + within_s
        while len(self.events(name)) < count:
            assert time.monotonic() < until, self.program.said
            time.sleep(0.05)


@pytest.fixture
def settings(tmp_path: Path, redis_server: RedisServer) -> dict[str, str]:
    shared = {"TOOLSERVER_DATABASE_URL": url_of(tmp_path), "TOOLSERVER_REDIS_URL": redis_server.url, "PATIENCE_S": "20"}
    return {**UNLIMITED, **shared, "TOOLSERVER_SCALING__REDIS_PREFIX": f"{tmp_path.name}:"}


@pytest.fixture
def start(tmp_path: Path, settings: dict[str, str]) -> Iterator[Callable[..., Team]]:
    """Starts a service of two workers, which sells on a world of its own."""
    with ExitStack() as stack:
        world = stack.enter_context(started("world", folder=tmp_path))
        full = settings | {"TOOLSERVER_UPSTREAM__VIA": world.url} | selling(world.url)

        def begin(*flags: str, ends_well: bool = True, **more: str) -> Team:
            if not ends_well:
                program, _ = stack.enter_context(begun(tmp_path, TOOLSERVER_WORKERS="2", **full))
                return Team(program, world)
            serving = started("serve", "--workers", "2", *flags, folder=tmp_path, module=PATIENT, **full, **more)
            return Team(stack.enter_context(serving), world)

        yield begin


@dataclass
class Load:
    """Calls that are made all the time: how many were answered, and every one that was not."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def wait_for_answers(self, more: int) -> None:
        """Until so many more calls were answered."""
        enough, until = self.answered + more, time.monotonic() + GUARD_S
        while self.answered < enough:
            assert time.monotonic() < until, self.failed
            time.sleep(0.02)

    def call(self, at: Program, token: str, path: str) -> None:
        with client_of(at, token) as client:
            while not self.stop.wait(0.01):
                try:
                    answer = client.get(path)
                except httpx.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                if answer.status_code == 200:
                    self.answered += 1
                else:
                    self.failed.append(f"{answer.status_code} {answer.text[:200]}")


@contextmanager
def under_load(team: Team, token: str) -> Iterator[Load]:
    """Paid and free calls over kept connections, from six clients, while the block runs."""
    load = Load()
    with ThreadPoolExecutor(6) as threads:
        calls: list[Future[None]] = [
            threads.submit(load.call, team.program, token, path) for path in (BRIEFING, FREE) * 3
        ]
        try:
            yield load
        finally:
            load.stop.set()
            for each in calls:
                each.result(60)


def calls_counted(url: str) -> int:
    """How many calls the worker has answered whose metrics are at this address."""
    text = httpx.get(url, timeout=30, trust_env=False).text
    return int(sum(float(found) for found in re.findall(r"^toolserver_calls_total\{.*\} (\S+)$", text, re.MULTILINE)))


def one_call(team: Team, token: str) -> httpx.Response:
    """A paid call over a connection of its own, so that the kernel gives it to any worker."""
    with client_of(team.program, token) as client:
        return client.get(BRIEFING)


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that has ended, and whose end nobody has asked for yet, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@proves("operating.ready-line", "operating.graceful-stop")
@pytest.mark.parametrize("server", SERVERS)
def test_two_workers_serve_one_address_and_spend_a_token_to_exactly_zero(start, server):
    port = reserve_ports(2)
    team = start("--server", server, TOOLSERVER_METRICS__PORT=str(port))
    ready = team.program.ready
    assert set(ready) == {"ready", "base_url", "mcp_url", "metrics_url", "pid"}
    assert ready["pid"] == team.program.process.pid
    assert ready["metrics_url"] == f"http://127.0.0.1:{port}/metrics"
    (said,) = team.events("every worker is ready")
    assert sorted(said["pids"]) == team.workers()
    assert len(team.workers()) == 2

    token = bought(team.program, team.world.url)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: one_call(team, token), range(150)))
    paid = [answer.status_code for answer in answers].count(200)
    assert paid * (100 // paid) == 100
    assert {answer.status_code for answer in answers} == {200, 402}
    assert min(calls_counted(f"http://127.0.0.1:{each}/metrics") for each in (port, port + 1)) > 0

    folder = team.program.log.parent / "data"
    assert {"receipts.json", "log.json", "webhooks.key"} <= {path.name for path in (folder / "keys").iterdir()}
    assert sorted(path.name for path in folder.glob("worker-*")) == ["worker-0", "worker-1"]
    assert not list(folder.glob("worker-*/keys/receipts.json"))
    assert team.program.stop() == 0
    assert not any(map(is_alive, said["pids"]))


def test_one_that_is_killed_is_started_again_and_only_calls_in_progress_on_it_are_lost(start):
    team = start()
    token = bought(team.program, team.world.url, 400)
    with under_load(team, token) as load:
        load.wait_for_answers(20)
        killed = team.workers()[1]
        os.kill(killed, signal.SIGKILL)
        team.wait_for("a worker has ended")
        with client_of(team.program, token) as client:  # over a new connection each, also to the socket of the dead one
            for _ in range(8):
                assert httpx.get(team.program.url + FREE, timeout=30, trust_env=False).status_code == 200
            assert client.get(BRIEFING).status_code == 200
        until = time.monotonic() + GUARD_S
        while len(team.workers()) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
    assert killed not in team.workers()
    assert len(load.failed) <= 6, load.failed  # each of six clients waits for one answer at a time
    assert all("ReadError" in each or "RemoteProtocolError" in each for each in load.failed), load.failed


@pytest.mark.parametrize("server", SERVERS)
def test_workers_are_renewed_one_by_one_without_a_failed_call(start, server):
    team = start("--server", server)
    token = bought(team.program, team.world.url, 400)
    before = team.workers()
    with under_load(team, token) as load:
        load.wait_for_answers(20)
        team.program.process.send_signal(signal.SIGHUP)
        team.wait_for("all workers were renewed")
        answered = load.answered
        load.wait_for_answers(20)
    assert load.failed == []
    assert load.answered > answered
    assert len(team.workers()) == 2
    assert not set(before) & set(team.workers())
    print(f"\n{server}: {load.answered} calls while both workers were renewed, {len(load.failed)} failed")


def test_when_the_supervisor_is_killed_its_workers_end_too(start):
    team = start(ends_well=False)
    workers = team.workers()
    team.program.process.kill()
    team.program.process.wait()
    until = time.monotonic() + GUARD_S  # nobody kills a worker that a busy machine lets wait
    while any(map(is_alive, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)


@proves("operating.graceful-stop")
def test_a_second_signal_ends_all_of_them_at_once(start):
    team = start(ends_well=False)
    workers = team.workers()
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)  # they end by nothing else than SIGKILL
    team.program.process.send_signal(signal.SIGTERM)
    team.wait_for("stopping")
    team.program.process.send_signal(signal.SIGTERM)
    assert team.program.process.wait(GUARD_S) == 130
    until = time.monotonic() + GUARD_S
    while any(map(is_alive, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Set database_url (TOOLSERVER_DATABASE_URL) and redis_url (TOOLSERVER_REDIS_URL)"),
        ({"TOOLSERVER_REDIS_URL": "redis://127.0.0.1"}, "Set database_url (TOOLSERVER_DATABASE_URL), or"),
        ({"TOOLSERVER_DATABASE_URL": "postgresql://127.0.0.1/none"}, "Set redis_url (TOOLSERVER_REDIS_URL), or"),
    ],
)
@pytest.mark.parametrize("verb", ["serve", "demo"])
def test_workers_without_what_they_share_are_refused_with_what_to_set(tmp_path, verb, given, said):
    flags = ("--workers", "2", "--port", "0", "--data-dir", str(tmp_path))
    done = ran(verb, *flags, folder=tmp_path, **given)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.decode().split())
    assert done.stdout == b""


def test_a_service_whose_first_worker_cannot_start_ends_with_a_sentence(tmp_path, settings):
    given = settings | {"TOOLSERVER_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    flags = ("--workers", "2", "--port", "0", "--data-dir", str(tmp_path))
    done = ran("serve", *flags, folder=tmp_path, within_s=60, **given)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "the service could not start: worker 0 ended with status 1" in said
    assert "Traceback" not in said


def test_the_demo_has_workers_too_and_one_token(tmp_path, settings):
    with started("demo", "--workers", "2", folder=tmp_path, **settings) as program:
        assert {"world_url", "chain_url", "token", "credits"} < set(program.ready)
        with client_of(program, program.ready["token"]) as client:
            assert client.get("/api/payment/balance").json()["credits"] == program.ready["credits"]
            assert client.get(BRIEFING).json()["_meta"]["simulated"] is True
