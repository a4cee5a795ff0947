"""A start that fails for a setting, a key, a ledger or a Redis ends with 1 and one line: the cause and what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.processes import ran, started
from tests.live.test_start_errors import refusal
from tests.redis_server import RedisServer, start_redis
from tests.requirements import proves
from toolserver.money.ledger.store import FILE

pytestmark = pytest.mark.live
SERVE = ("serve", "--port", "0")
Arrange = Callable[[Path], None]


def write(name: str, text: str) -> Arrange:
    """Put a file into the data directory."""

    def arrange(data: Path) -> None:
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return arrange


def used(*changes: tuple[str, str | None]) -> Arrange:
    """Let a service use the data directory, and then write other texts into files of it, or remove them."""

    def arrange(data: Path) -> None:
        with started("serve", folder=data.parent):
            pass
        for name, text in changes:
            (data / name).unlink()
            if text is not None:
                (data / name).write_text(text)

    return arrange


REFUSED: dict[str, tuple[Arrange, dict[str, str], str, str]] = {
    "a broken key": (used(("keys/receipts.json", "{")), {}, "receipts.json is not a key file", ""),
    "a key file without a key": (used(("keys/receipts.json", '{"keys": []}')), {}, "receipts.json holds no key", ""),
    "a broken key of the log": (write("keys/log.json", "[]"), {}, "log.json is not a key file", ""),
    "broken marks": (write("keys/high-water.json", "{"), {}, "high-water.json is not JSON", ""),
    "no database": (write(FILE, "this is no database"), {}, "ledger.sqlite3", ""),
    "a lost ledger": (used((FILE, None)), {}, "is missing or empty", "restore a backup"),
    "play money": (write("simulated-world", ""), {}, "holds simulated credits", "its own data directory"),
    "a host that is not ours": (
        lambda data: None, {"TOOLSERVER_HOST": "203.0.113.7"}, "203.0.113.7", "set host (TOOLSERVER_HOST)",
    ),
    "keys for one instance alone": (
        lambda data: None, {"TOOLSERVER_SCALING__KEYS_DIR": "/no/such"}, "scaling.keys_dir", "database_url",
    ),
    "workers on a file": (lambda data: None, {"WORKERS": "2"}, "SQLite", "database_url"),
}  # fmt: skip


@proves("operating.refusals")
@pytest.mark.parametrize("kind", REFUSED)
def test_a_start_that_fails_says_why_in_one_line(tmp_path: Path, kind: str) -> None:
    arrange, settings, cause, remedy = REFUSED[kind]
    data = tmp_path / "data"
    arrange(data)
    own = {name: value for name, value in settings.items() if name != "WORKERS"}
    words = (*SERVE, "--workers", settings["WORKERS"]) if "WORKERS" in settings else SERVE
    said = refusal(tmp_path, *words, TOOLSERVER_DATA_DIR=str(data), **own)
    assert cause in said, said
    assert remedy in said, said


def set_password(redis: RedisServer) -> None:
    redis.command("config", "set", "requirepass", "right")


REDIS: dict[str, tuple[Callable[[RedisServer], object], str, str, str]] = {
    "no password": (set_password, "", "wants a password", "redis://:password@host"),
    "wrong password": (set_password, "?password=wrong", "refuses the password", "correct the user and the password"),
    "a database too high": (lambda redis: None, "?db=99", "no database of this number", "correct it"),
}  # fmt: skip


@proves("operating.refusals")
@pytest.mark.parametrize("kind", REDIS)
def test_a_redis_that_no_waiting_mends_refuses_the_start(tmp_path: Path, kind: str) -> None:
    arrange, query, cause, remedy = REDIS[kind]
    with start_redis() as redis:
        arrange(redis)
        said = refusal(
            tmp_path, *SERVE, TOOLSERVER_REDIS_URL=redis.url + query, TOOLSERVER_DATA_DIR=str(tmp_path / "d")
        )
    assert said.startswith("redis_url (TOOLSERVER_REDIS_URL): ") or "redis_url (TOOLSERVER_REDIS_URL): " in said
    assert cause in said, said
    assert remedy in said, said
    assert "wrong" not in said


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("replicaof", "127.0.0.1", "1"), "the server is a read-only replica; name its master"),
        (("config", "set", "maxmemory", "1"), "the memory of the server is full; raise its maxmemory"),
    ],
)
def test_with_a_redis_that_takes_no_writes_the_service_starts_and_says_so_once(
    tmp_path: Path, fault: tuple[str, ...], words: str
) -> None:
    """A failover may mend it, and free calls need no Redis."""
    with start_redis() as redis:
        assert redis.command(*fault) == "OK"
        own = {"TOOLSERVER_REDIS_URL": redis.url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")}
        with started("serve", folder=tmp_path, **own) as server:
            lines = [json.loads(line) for line in server.said.splitlines()]
            told = [line["reason"] for line in lines if line["event"].startswith("Redis cannot be reached")]
            assert len(told) == 1
            assert words in told[0]
            done = ran("doctor", "--no-live", folder=tmp_path, **own)
            assert words in done.stdout.decode()
