"""Starting, announcing, serving and stopping: what a script or an operator sees of the process."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.killing import selling
from tests.live.loading import HEAVY, LATER, LISTING_IMPORTS, imported
from tests.live.processes import COMMAND, PATHS, STOP_S, UNLIMITED, Program, control, environment, ran, started
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

SERVERS = ("hypercorn", "uvicorn")
PUBLIC = "https://data.example/tools"
MOST_MODULES = 1400
IDLE_MB = 90
OPEN_FOR_S = 2


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("world", folder=tmp_path_factory.mktemp("world")) as program:
        yield program


def via(world: Program) -> dict[str, str]:
    return {"TOOLSERVER_UPSTREAM__VIA": world.url}


@proves("operating.ready-line", "operating.graceful-stop")
@pytest.mark.parametrize("server", SERVERS)
def test_serve_says_one_line_on_stdout_and_everything_else_on_stderr(tmp_path: Path, server: str) -> None:
    with started("serve", "--server", server, folder=tmp_path, forked=False) as program:
        ready = program.ready
        assert set(ready) == {"ready", "base_url", "mcp_url", "metrics_url", "pid"}
        assert ready["ready"] is True
        assert ready["pid"] == program.process.pid
        assert ready["mcp_url"] == f"{ready['base_url']}/api/mcp"
        assert httpx.get(f"{program.url}/api/health").status_code == 200
        assert "toolserver_calls_total" in httpx.get(ready["metrics_url"]).text
        assert program.stop() == 0
        assert program.rest == b""
        assert {json.loads(line)["level"] for line in program.said.splitlines()} <= {"info", "warning"}


@proves("operating.ready-line")
def test_the_demo_adds_its_world_and_a_token_with_credits(demo: Program) -> None:
    assert set(demo.ready) == {
        *("ready", "base_url", "mcp_url", "metrics_url", "pid"),
        *("world_url", "chain_url", "token", "credits"),
    }
    assert re.fullmatch("svc_live_[0-9a-f]{64}", demo.ready["token"])
    assert demo.ready["credits"] > 0
    assert httpx.get(f"{demo.ready['world_url']}/_sim").json()["scenario"] == "normal"
    assert httpx.get(f"{demo.url}{PATHS['forex']}").json()["_meta"]["simulated"] is True


@proves("operating.ready-line")
def test_a_person_is_told_the_address_in_words(tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment({}), cwd=tmp_path, text=True
    ) as process:
        try:
            assert process.stdout is not None
            seen = ""
            while "http://" not in seen and (line := process.stdout.readline()):
                seen += line
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)
    assert process.returncode == 0
    assert re.search(r"http://127\.0\.0\.1:\d+", seen)
    assert not seen.startswith("{")


@proves("operating.graceful-stop")
@pytest.mark.parametrize(("server", "number"), [("hypercorn", signal.SIGTERM), ("uvicorn", signal.SIGINT)])
def test_a_signal_ends_it_soon_and_well_even_while_a_request_is_open(
    tmp_path: Path, world: Program, server: str, number: signal.Signals
) -> None:
    with (
        started("serve", "--server", server, folder=tmp_path, forked=False, **via(world)) as program,
        control(world.url) as sim,
    ):
        sim.scenario("all_down")
        try:
            with socket.create_connection(program.address, timeout=STOP_S) as caller:
                caller.sendall(b"GET /api/economic-data HTTP/1.1\r\nHost: x\r\n\r\n")
                wait_for(lambda: sim.requests())
                began = time.monotonic()
                code = program.stop(number)
                took = time.monotonic() - began
                answered = caller.recv(100)
        finally:
            sim.reset()
    assert code == 0
    assert answered.startswith((b"HTTP/1.1 200", b"HTTP/1.1 5")) or answered == b""
    print(f"\n{server}, {number.name}: ended after {took:.2f} s, open request got {answered[:15]!r}")


@proves("operating.graceful-stop")
@pytest.mark.parametrize("server", SERVERS)
def test_a_request_that_is_nearly_done_is_answered_before_the_end(tmp_path: Path, world: Program, server: str) -> None:
    with (
        started("serve", "--server", server, folder=tmp_path, forked=False, **via(world)) as program,
        control(world.url) as sim,
    ):
        sim.fault("*", "latency", ms=OPEN_FOR_S * 1000)
        try:
            with socket.create_connection(program.address, timeout=STOP_S) as caller:
                caller.sendall(b"GET /api/fear-greed HTTP/1.1\r\nHost: x\r\n\r\n")
                wait_for(lambda: sim.requests())
                assert program.stop(signal.SIGINT) == 0
                assert caller.recv(12) == b"HTTP/1.1 200"
        finally:
            sim.reset()


def wait_for(seen: object, within_s: float = 60) -> None:
    """Until something is there; what happens in another process cannot be waited for in another way."""
    assert callable(seen)
    until = time.monotonic() + within_s
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.02)


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--workers", "2"], "more than one worker needs PostgreSQL and Redis"),
        (["serve", "--everything", "--host", "0.0.0.0"], "for development"),
        (["serve", "--everything", "--host", "::"], "for development"),
        (["demo", "--host", "0.0.0.0"], "for development"),
        (["world", "--host", "0.0.0.0"], "loopback addresses only"),
        (["serve", "--host", "203.0.113.7"], "cannot listen on 203.0.113.7"),
        (["serve", "--port", "65536"], "65536 is not in the range"),
        (["serve", "--server", "nginx"], "'nginx' is not one of"),
        (["serve", "--data-dir", "/dev/null/data"], "data directory"),
        (["call", "nonsense"], "there is no tool called nonsense"),
        (["call", "forex", "--args", "[1]"], "must be a JSON object"),
        (["call", "forex", "--args", "{"], "is not JSON"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    done = ran(*words, folder=tmp_path, TOOLSERVER_DATA_DIR=str(tmp_path / "data"))
    told = done.stderr.decode()

    assert done.returncode in (1, 2)
    assert done.stdout == b""
    assert said in " ".join(told.split())
    assert "Traceback" not in told


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TOOLSERVER_NOPE", "1", "TOOLSERVER_NOPE is not a setting"),
        ("TOOLSERVER_LIMITS__NOPE", "1", "limits.nope"),
        ("TOOLSERVER_LIMITS__DAILY", "0", "limits.daily"),
        ("TOOLSERVER_BASE_URL", "data.example", "base_url: must be an absolute http or https URL"),
        ("TOOLSERVER_UPSTREAM__VIA", "file:///etc", "upstream.via"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, name: str, value: str, said: str) -> None:
    done = ran("serve", "--port", "0", folder=tmp_path, **{name: value})

    assert done.returncode == 1
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@proves("operating.refusals")
@pytest.mark.parametrize("verb", ["serve", "demo", "world"])
def test_a_port_in_use_is_said_in_a_sentence(tmp_path: Path, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ran(verb, "--port", str(port), folder=tmp_path, TOOLSERVER_DATA_DIR=str(tmp_path / "data"))

    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1, port {port}: address already in use" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@proves("operating.refusals")
def test_a_second_service_on_the_ledger_of_a_running_one_is_refused(tmp_path: Path, world: Program) -> None:
    sells = {**via(world), **selling(world.url)}
    with started("serve", folder=tmp_path, forked=False, **sells):
        done = ran("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), folder=tmp_path, **sells)

    assert done.returncode == 1
    assert "another process serves from" in done.stderr.decode()
    assert "set database_url (TOOLSERVER_DATABASE_URL) and redis_url" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@proves("operating.refusals")
@pytest.mark.parametrize("server", SERVERS)
def test_a_service_that_cannot_start_says_why_and_ends(tmp_path: Path, server: str) -> None:
    (tmp_path / "ledger.sqlite3").write_text("this is no database " * 100)
    done = ran("serve", "--server", server, "--port", "0", "--data-dir", str(tmp_path), folder=tmp_path)

    assert done.returncode == 1
    assert "the service could not start" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@proves("answers.public-url")
@pytest.mark.parametrize("server", SERVERS)
def test_every_url_given_out_starts_with_base_url_whatever_the_host_header_says(
    tmp_path: Path, world: Program, server: str
) -> None:
    with started(
        "serve", "--server", server, folder=tmp_path, TOOLSERVER_BASE_URL=f"{PUBLIC}/", **UNLIMITED, **via(world)
    ) as program:
        assert program.url == PUBLIC
        assert program.ready["mcp_url"] == f"{PUBLIC}/api/mcp"
        port = listened_to(program)
        lies = {"host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "ftp"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=lies, timeout=20) as client:
            description = client.get("/openapi.json")
            assert [s["url"] for s in description.json()["servers"]] == [PUBLIC]
            missing = client.get("/api/nothing")
            assert missing.json()["type"] == f"{PUBLIC}/problems/not_found"
            assert missing.json()["catalog"] == f"{PUBLIC}/api/llm-tools"
            assert f"<{PUBLIC}/openapi.json>" in missing.headers["link"]
            assert client.get("/api/forex").json()["source"] == "data.example"
            assert client.get("/api/mcp").json()["url"] == f"{PUBLIC}/api/mcp"
            for path in ("/", "/docs", "/llms.txt", "/llms-full.txt", "/api/llm-tools", "/api/meta", "/openapi.json"):
                told = client.get(path)
                assert told.status_code == 200, path
                assert "evil.example" not in told.text
                assert f"127.0.0.1:{port}" not in told.text, path
                assert "evil.example" not in str(told.headers)


def listened_to(program: Program) -> int:
    """The port the process takes calls on, as the system has it: the ready line names the public address."""
    own = {str(link.readlink()) for link in Path(f"/proc/{program.process.pid}/fd").iterdir()}
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {int(w[1].partition(":")[2], 16) for w in sockets if w[3] == "0A" and f"socket:[{w[9]}]" in own}
    (port,) = listening - {httpx.URL(program.ready["metrics_url"]).port}
    return port


@proves("operating.starts-fast")
def test_little_is_loaded_before_the_first_answer(tmp_path: Path) -> None:
    """Loading is most of what a start takes: 0.6 s on a machine that has nothing else to do."""
    began = time.monotonic()
    with started("serve", folder=tmp_path, forked=False, **LISTING_IMPORTS) as program:
        assert httpx.get(f"{program.url}/api/health", trust_env=False).status_code == 200
        took, loaded = time.monotonic() - began, imported(program.log)
    print(f"\n{len(loaded)} modules were loaded before the first answer, which took {took:.2f} s")
    assert "toolserver.app" in loaded
    assert loaded.isdisjoint((*HEAVY, *LATER))
    assert len(loaded) < MOST_MODULES


@proves("operating.small")
@pytest.mark.parametrize("server", SERVERS)
def test_an_idle_server_is_small(tmp_path: Path, server: str) -> None:
    with started("serve", "--server", server, folder=tmp_path, forked=False) as program:
        assert httpx.get(f"{program.url}/api/health").status_code == 200
        used = program.resident_mb
    print(f"\n{server}, idle: {used:.0f} MB (at most {IDLE_MB})")
    assert used <= IDLE_MB


IDLE = """
import sys
import anyio
import toolserver.cli.lean_libraries
from toolserver.app import App, ServiceParts
from toolserver.settings import Settings
import toolserver.cli.run_service, toolserver.serving.hypercorn_server

async def main():
    app = App(Settings(data_dir=sys.argv[1]), ServiceParts(base_url="http://127.0.0.1:1"))
    begin, end = anyio.Event(), anyio.Event()
    asked = iter([begin, end])
    async def receive():
        await next(asked).wait()
        return {"type": "lifespan"}
    async def send(event):
        assert event["type"].endswith(".complete"), event
        end.set()
    begin.set()
    await app({"type": "lifespan"}, receive, send)

anyio.run(main)
from toolserver.app import load_tools
from toolserver.serving.public_facts import read_public_facts
settings = Settings(data_dir=sys.argv[1])
tools = load_tools(settings, read_public_facts(settings, "http://127.0.0.1:1"))
print(" ".join(sys.modules))
built = [tool.name for tool in tools if any(m.__pydantic_complete__ for m in (tool.arguments, tool.result))]
print(" ".join(built))
"""


@proves("operating.small")
def test_nothing_heavy_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IDLE, str(tmp_path)], capture_output=True, text=True, env=environment({}), check=True
    )
    modules, built = done.stdout.splitlines()
    assert "hypercorn" in modules.split()
    assert set(modules.split()).isdisjoint((*HEAVY, *LATER))
    assert built.split() == []  # each tool's models are built with its first call: all of them take 5 MB


@proves("operating.data-dir")
def test_what_is_kept_can_be_read_by_the_owner_only(tmp_path: Path) -> None:
    with started("serve", folder=tmp_path, forked=False) as program:
        assert httpx.get(f"{program.url}/readyz").json()["ready"] is True
        folder = tmp_path / "data"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {f.stat().st_mode & 0o777 for f in folder.iterdir() if f.is_file()} == {0o600}
