"""Whatever keeps a verb from its work, a person reads one line: what is wrong, which setting it is, and what to do.

What keeps a service from starting stands in `tests.live.test_start_failures`.
"""

import json
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.hostile.disks import can_mount, full, read_only, small_disk
from tests.live.processes import COMMAND, ROOT, environment, ran
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


def refusal(folder: Path, *words: str, forked: bool = True, through: Sequence[str] = (), **more: str) -> str:
    """The last line of a verb that cannot do its work. All others are lines of the log, and none is a traceback.

    The verb is run plainly if it is not `forked`, or `through` the words of another program.
    """
    if forked and not through:
        done = ran(*words, folder=folder, **more)
    else:
        whole, env = [*through, *COMMAND, *words], environment(more, folder)
        done = subprocess.run(whole, env=env, cwd=folder, capture_output=True, timeout=60, check=False)
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
def test_doctor_explains_a_disk_that_takes_nothing(
    tmp_path: Path, fault: Callable[[Path], AbstractContextManager[None]], cause: str
) -> None:
    with small_disk(tmp_path / "disk") as disk, fault(disk):
        said = refusal(tmp_path, *VERBS["doctor"], TOOLSERVER_DATA_DIR=str(disk))
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
