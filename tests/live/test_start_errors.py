"""Whatever keeps a verb from its work, a person reads one line: what is wrong, which setting it is, and what to do."""

import itertools
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.hostile.disks import can_mount, full, read_only, small_disk
from tests.live.processes import COMMAND, ROOT, environment, ran
from tests.postgres import Server, program, run_sql
from tests.redis_server import start_redis
from tests.requirements import proves

pytestmark = pytest.mark.live

DATABASE = "TOOLSERVER_DATABASE_URL"
VERBS = {
    "serve": ("serve", "--port", "0"),
    "demo": ("demo", "--port", "0", "--data-dir", "data"),
    "doctor": ("doctor", "--no-live"),
    "webhooks": ("webhooks", "list"),
    "call": ("call", "fear_greed"),
}


def refusal(folder: Path, *words: str, forked: bool = True, **more: str) -> str:
    """The last line of a verb that cannot do its work. All others are lines of the log, and none is a traceback."""
    if forked:
        done = ran(*words, folder=folder, **more)
    else:
        env = environment(more, folder)
        done = subprocess.run([*COMMAND, *words], env=env, cwd=folder, capture_output=True, timeout=60, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1, said
    if words[0] == "doctor" and b"(cannot_start)" in done.stdout:  # it says all that it found out beside that
        assert b"verdict: " in done.stdout
        assert b"data_dir  " in done.stdout
        return next(line for line in done.stdout.decode().splitlines() if line.endswith("(cannot_start)"))
    assert "Traceback" not in said
    assert "Group" not in said
    *before, last = said.splitlines()
    assert all(isinstance(json.loads(line), dict) for line in before)
    return last


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("module", "setting", "url"),
    [
        ("redis", "TOOLSERVER_REDIS_URL", "redis://127.0.0.1:1"),
        ("asyncpg", DATABASE, "postgresql://a@127.0.0.1:1/b"),
    ],
)
@pytest.mark.parametrize("verb", ["serve", "demo", "doctor"])
def test_a_driver_that_is_not_installed_is_named_with_its_setting(
    tmp_path: Path, verb: str, module: str, setting: str, url: str
) -> None:
    missing = tmp_path / "missing"
    (missing / module).mkdir(parents=True)
    (missing / module / "__init__.py").write_text(f"raise ImportError('No module named {module}')")
    own = {setting: url, "PYTHONPATH": f"{missing}:{ROOT}", "TOOLSERVER_DATA_DIR": str(tmp_path / "data")}
    said = refusal(tmp_path, *VERBS[verb], forked=False, **own)
    assert setting in said
    assert "pip install 'agent-toolserver[" in said


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL whose users are refused for one reason each."""
    server = Server(program("initdb"), program("postgres"))
    rules = server.data / "pg_hba.conf"
    rules.write_text("host all secretive 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    server.start()
    users = """CREATE ROLE secretive LOGIN PASSWORD 'right'; CREATE ROLE late LOGIN CONNECTION LIMIT 0;
      CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on; CREATE ROLE poor LOGIN;"""
    try:
        run_sql(users, server.url)
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        server.remove()


REFUSED = {
    "wrong password": ("secretive:wrong@127.0.0.1:{port}/postgres", "password authentication failed", "the password"),
    "no such database": ("poor@127.0.0.1:{port}/nowhere", "there is no database of this name", "createdb"),
    "refused": ("poor@127.0.0.1:1/postgres", "the connection was refused", "start the server"),
    "no such host": ("poor@no-such-host.invalid/postgres", "no such host", "correct the host name"),
    "too many connections": ("late@127.0.0.1:{port}/postgres", "too many connections", "max_connections"),
    "read-only": ("reader@127.0.0.1:{port}/postgres", "read-only transaction", "name the primary"),
    "no TLS": ("poor@127.0.0.1:{port}/postgres?sslmode=require", "does not speak TLS", "sslmode=disable"),
    "no such role": ("nobody@127.0.0.1:{port}/postgres", "does not exist", "check the user"),
    "no such schema": ("poor@127.0.0.1:{port}/postgres?search_path=nowhere", "no schema has been", "create the schema"),
    "no such parameter": ("poor@127.0.0.1:{port}/postgres?bogus=1", "unrecognized", "after the question mark"),
    "no such file": (
        "poor@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert=/no/such",
        "is not there",
        "correct sslrootcert",
    ),
    "no rights": ("poor@127.0.0.1:{port}/postgres", "permission denied", "GRANT CREATE"),
}


@proves("operating.refusals")
@pytest.mark.parametrize(("why", "verb"), [*zip(REFUSED, itertools.cycle(VERBS), strict=False), ("refused", "doctor")])
def test_a_database_that_refuses_us_is_explained(tmp_path: Path, server: Server, why: str, verb: str) -> None:
    address, cause, remedy = REFUSED[why]
    url = "postgresql://" + address.format(port=server.port)
    said = refusal(tmp_path, *VERBS[verb], **{DATABASE: url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")})
    assert f"database_url ({DATABASE})" in said
    assert cause in said
    assert remedy in said
    assert "wrong" not in said  # the password


@proves("operating.refusals")
@pytest.mark.parametrize("verb", ["serve", "doctor"])
def test_something_else_that_listens_there_is_no_database(tmp_path: Path, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://a@127.0.0.1:{silent.getsockname()[1]}/b"
        said = refusal(tmp_path, *VERBS[verb], **{DATABASE: url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")})
    assert "the server did not answer in time" in said
    assert "check the host and the port" in said


@proves("operating.refusals")
def test_a_redis_that_no_waiting_mends_refuses_the_start_and_doctor_names_every_fault(tmp_path: Path) -> None:
    """An outage does not keep a service from starting: free calls need no Redis."""
    with start_redis() as redis:
        redis.command("config", "set", "requirepass", "right")
        own = {"TOOLSERVER_REDIS_URL": redis.url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")}
        said = refusal(tmp_path, *VERBS["serve"], **own)
        assert "redis_url (TOOLSERVER_REDIS_URL): the server wants a password; write redis://:password@host" in said
        assert "the server wants a password" in refusal(tmp_path, *VERBS["doctor"], **own)
    done = ran(*VERBS["doctor"], folder=tmp_path, **own)  # it is gone
    assert done.returncode == 1
    assert b"redis_url (TOOLSERVER_REDIS_URL): there is no such file; start the server" in done.stdout
    assert b"(cannot_start)" not in done.stdout


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("words", "setting"),
    [
        (("serve", "--port"), "port (TOOLSERVER_PORT)"),
        (("demo", "--port"), "port (TOOLSERVER_PORT)"),
        (("world", "--port"), "--port"),
        (("webhooks", "listen", "--port"), "--port"),
    ],
)
def test_a_port_in_use_is_named_with_the_setting_that_moves_it(
    tmp_path: Path, words: tuple[str, ...], setting: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(tmp_path, *words, str(port), TOOLSERVER_DATA_DIR=str(tmp_path / "data"))
    assert f"cannot listen on 127.0.0.1, port {port}: address already in use; set {setting} to a free port" in said


@proves("operating.refusals")
@pytest.mark.parametrize("verb", ["serve", "doctor", "call"])
@pytest.mark.parametrize(
    ("place", "cause"),
    [
        ("file", "it is a file, not a directory"),
        ("file/below", "a part of the path is a file"),
        ("data/answers.sqlite3", "answers.sqlite3: it is a directory, not a file"),
        ("data/ledger.sqlite3", "ledger.sqlite3: it is a directory, not a file"),
    ],
)
def test_a_path_that_is_something_else_is_named(tmp_path: Path, verb: str, place: str, cause: str) -> None:
    (tmp_path / "file").write_text("")
    data_dir = tmp_path / place
    if place.startswith("data"):
        data_dir.mkdir(parents=True)
        data_dir = tmp_path / "data"
    said = refusal(tmp_path, *VERBS[verb], TOOLSERVER_DATA_DIR=str(data_dir))
    assert cause in said
    assert "set data_dir (TOOLSERVER_DATA_DIR or --data-dir) to another place" in said


@proves("operating.refusals")
@pytest.mark.skipif(not can_mount(), reason="mounts a file system")
@pytest.mark.parametrize(("fault", "cause"), [(full, "full"), (read_only, "read-only")])
@pytest.mark.parametrize("verb", ["serve", "doctor"])
def test_a_disk_that_takes_nothing_is_explained(
    tmp_path: Path, verb: str, fault: Callable[[Path], AbstractContextManager[None]], cause: str
) -> None:
    with small_disk(tmp_path / "disk") as disk, fault(disk):
        said = refusal(tmp_path, *VERBS[verb], TOOLSERVER_DATA_DIR=str(disk))
    assert cause in said
    assert "data_dir (TOOLSERVER_DATA_DIR or --data-dir)" in said


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("place", "cause"),
    [("nowhere/x.mcpb", "no such file or folder"), ("file/x.mcpb", "is a file, not a directory")],
)
def test_a_bundle_that_cannot_be_written_is_explained(tmp_path: Path, place: str, cause: str) -> None:
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path, "mcpb", place)
    assert cause in said
    assert "set FILE to another place" in said
