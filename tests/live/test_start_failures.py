"""A start that fails ends with 1 and one line: the cause, the setting it is about, and what to do.

`KINDS` are all ways to fail that are tried. What waiting may mend is none of them: without its Redis a service starts,
says so once, and answers free calls.
"""

import json
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from tests.hostile.disks import can_mount, full, read_only, small_disk
from tests.live.processes import ran, started
from tests.live.test_start_errors import VERBS, refusal
from tests.postgres import Server, Standby, program, run_sql
from tests.redis_server import ListeningRedis, start_listening_redis, start_redis
from tests.requirements import proves
from toolserver.money.ledger.store import FILE

pytestmark = pytest.mark.live
SERVE = ("serve", "--port", "0")
DATABASE, REDIS = "database_url (TOOLSERVER_DATABASE_URL)", "redis_url (TOOLSERVER_REDIS_URL)"
NOT_ALMIGHTY = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")  # root may else open every file
USERS = """CREATE ROLE secretive LOGIN PASSWORD 'right'; CREATE ROLE late LOGIN CONNECTION LIMIT 0;
  CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on; CREATE ROLE poor LOGIN;
  CREATE ROLE encrypted LOGIN;"""
RULES = "host all secretive 127.0.0.1/32 scram-sha-256\nhostnossl all encrypted 127.0.0.1/32 reject\n"


class Databases(NamedTuple):
    """A server whose users are refused for one reason each, and a standby of it; both have current tables."""

    primary: Server
    standby: Standby

    def make(self, name: str, change: str, folder: Path) -> str:
        """A database with tables in it that a statement has changed; its URL."""
        url = f"{self.primary.url.rpartition('/')[0]}/{name}"
        run_sql(f"CREATE DATABASE {name}", self.primary.url)
        done = ran("migrate", folder=folder, TOOLSERVER_DATABASE_URL=url)
        assert done.returncode == 0, done.stderr
        run_sql(change, url)
        return url


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    primary = Server(program("initdb"), program("postgres"))
    rules = primary.data / "pg_hba.conf"
    rules.write_text(RULES + rules.read_text())
    primary.start()
    try:
        run_sql(USERS, primary.url)
        standby = Standby(primary, program("pg_basebackup"), program("postgres"))
        try:
            standby.start()
            yield Databases(primary, standby)
        finally:
            standby.stop(signal.SIGQUIT)
            standby.remove()
    finally:
        primary.stop(signal.SIGQUIT)
        primary.remove()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListeningRedis]:
    with start_listening_redis(tmp_path_factory.mktemp("tls")) as server:
        users = ("secretive", "on", ">right", "~*", "+@all"), ("poor", "on", "nopass", "~*", "+ping", "+hello")
        for user in users:
            assert server.command("acl", "setuser", *user) == "OK"
        yield server


class Place(NamedTuple):
    """Where a start is tried. Servers are started when a kind asks for them."""

    folder: Path
    request: pytest.FixtureRequest

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def databases(self) -> Databases:
        return self.request.getfixturevalue("databases")  # type: ignore[no-any-return]

    @property
    def redis(self) -> ListeningRedis:
        return self.request.getfixturevalue("redis")  # type: ignore[no-any-return]


class Start(NamedTuple):
    """Settings beside the data directory, further words of the command, and what it is run through."""

    settings: Mapping[str, str] = MappingProxyType({})
    words: Sequence[str] = ()
    through: Sequence[str] = ()


Arrange = Callable[[Place], AbstractContextManager[Start]]


class Kind(NamedTuple):
    """How the start is made to fail, and parts of the line about cause, setting and remedy."""

    arrange: Arrange
    cause: str
    remedy: str
    setting: str = ""


def given(*words: str, **settings: str) -> Arrange:
    """Start with these settings, by the part of their names after TOOLSERVER_, and words."""
    return lambda place: nullcontext(Start({f"TOOLSERVER_{name}": text for name, text in settings.items()}, words))


def write(name: str, text: str) -> Arrange:
    """Put a file into the data directory."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        path = place.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return nullcontext(Start())

    return arrange


def used(*changes: tuple[str, str | None]) -> Arrange:
    """Let a service use the data directory, and then write other texts into files of it, or remove them."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        with started("serve", folder=place.folder):
            pass
        for name, text in changes:
            (place.data / name).unlink()
            if text is not None:
                (place.data / name).write_text(text)
        return nullcontext(Start())

    return arrange


def forbidden(name: str) -> Arrange:
    """Let a service use the data directory, and then take a file or folder of it away from its user."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        with started("serve", folder=place.folder):
            pass
        path = place.data / name
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        path.chmod(0)
        return nullcontext(Start(through=NOT_ALMIGHTY if os.geteuid() == 0 else ()))

    return arrange


def on_disk(fault: Callable[[Path], AbstractContextManager[None]]) -> Arrange:
    """Have the data directory on a small disk that has a fault."""

    @contextmanager
    def arrange(place: Place) -> Iterator[Start]:
        if not can_mount():
            pytest.skip("mounts a file system")
        with small_disk(place.folder / "disk") as disk, fault(disk):
            yield Start({"TOOLSERVER_DATA_DIR": str(disk)})

    return arrange


def at_postgres(address: str) -> Arrange:
    """Name a database at the server that is started for these tests."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        filled = address.format(port=place.databases.primary.port, standby=place.databases.standby.port)
        return nullcontext(Start({"TOOLSERVER_DATABASE_URL": f"postgresql://{filled}"}))

    return arrange


def migrated(name: str, change: str, **settings: str) -> Arrange:
    """Name a database whose tables a statement has changed."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        own = {"TOOLSERVER_DATABASE_URL": place.databases.make(name, change, place.folder)}
        return nullcontext(Start(own | settings))

    return arrange


def at_redis(address: str) -> Arrange:
    """Name the Redis that is started for these tests."""

    def arrange(place: Place) -> AbstractContextManager[Start]:
        server = place.redis
        return nullcontext(Start({"TOOLSERVER_REDIS_URL": address.format(port=server.port, tls=server.tls_port)}))

    return arrange


@contextmanager
def wanting_a_password(place: Place) -> Iterator[Start]:
    with start_redis() as redis:
        assert redis.command("config", "set", "requirepass", "right") == "OK"
        yield Start({"TOOLSERVER_REDIS_URL": redis.url})


class NotRedis(socketserver.StreamRequestHandler):
    """Answers whatever comes as a web server would."""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


@contextmanager
def at_a_web_server(place: Place) -> Iterator[Start]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), NotRedis) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield Start({"TOOLSERVER_REDIS_URL": f"redis://127.0.0.1:{server.server_address[1]}"})
        server.shutdown()


@contextmanager
def at_a_taken_port(place: Place) -> Iterator[Start]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield Start(words=("--port", str(taken.getsockname()[1])))


@contextmanager
def beside_another(place: Place) -> Iterator[Start]:
    with started("serve", folder=place.folder):
        pass  # now there is a ledger
    with started("serve", folder=place.folder):
        yield Start()


OLDER = "DELETE FROM migration WHERE number = (SELECT max(number) FROM migration)"
NEWER = "INSERT INTO migration SELECT number + 1, 'later', checksum, applied_at FROM migration ORDER BY 1 DESC LIMIT 1"
KINDS: dict[str, Kind] = {
    # PostgreSQL
    "it refuses the connection": Kind(at_postgres("poor@127.0.0.1:1/a"), "was refused", "start the server", DATABASE),
    "no such host": Kind(at_postgres("poor@no-host.invalid/a"), "no such host", "correct the host name", DATABASE),
    "wrong password": Kind(
        at_postgres("secretive:wrong@127.0.0.1:{port}/postgres"),
        "password authentication failed", "check the user and the password", DATABASE,
    ),
    "no such role": Kind(
        at_postgres("nobody@127.0.0.1:{port}/postgres"), "does not exist", "check the user", DATABASE
    ),
    "no such database": Kind(
        at_postgres("poor@127.0.0.1:{port}/nowhere"), "there is no database of this name", "createdb", DATABASE
    ),
    "no rights": Kind(
        at_postgres("poor@127.0.0.1:{port}/postgres"), "permission denied", "GRANT CREATE", DATABASE
    ),
    "older tables": Kind(
        migrated("older", OLDER, TOOLSERVER_STORAGE__MIGRATE="manual"),
        "this software needs", "run `toolserver migrate`", "",
    ),
    "newer tables": Kind(migrated("newer", NEWER), "this software knows", "run the newer version", ""),
    "a standby": Kind(at_postgres("poor@127.0.0.1:{standby}/postgres"), "read-only", "name the primary", DATABASE),
    "a read-only user": Kind(
        at_postgres("reader@127.0.0.1:{port}/postgres"), "read-only transaction", "name the primary", DATABASE
    ),
    "it speaks no TLS": Kind(
        at_postgres("poor@127.0.0.1:{port}/postgres?sslmode=require"),
        "does not speak TLS", "sslmode=disable", DATABASE,
    ),
    "it wants TLS": Kind(
        at_postgres("encrypted@127.0.0.1:{port}/postgres?sslmode=disable"),
        "no encryption", "sslmode=require", DATABASE,
    ),
    "too many connections": Kind(
        at_postgres("late@127.0.0.1:{port}/postgres"), "too many connections", "max_connections", DATABASE
    ),
    "no such schema": Kind(
        at_postgres("poor@127.0.0.1:{port}/postgres?search_path=nowhere"),
        "no schema has been", "create the schema", DATABASE,
    ),
    "no such parameter": Kind(
        at_postgres("poor@127.0.0.1:{port}/postgres?bogus=1"), "unrecognized", "after the question mark", DATABASE
    ),
    "no file of authorities": Kind(
        at_postgres("poor@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert=/no/such"),
        "is not there", "correct sslrootcert", DATABASE,
    ),
    # Redis
    "Redis: wrong password": Kind(
        at_redis("redis://secretive:wrong@127.0.0.1:{port}"), "refuses the password", "correct the user", REDIS
    ),
    "Redis: no password": Kind(wanting_a_password, "wants a password", "redis://:password@host", REDIS),
    "Redis: no rights": Kind(at_redis("redis://poor:x@127.0.0.1:{port}"), "may not run scripts", "allow it", REDIS),
    "Redis: it speaks TLS": Kind(at_redis("redis://127.0.0.1:{tls}"), "speaks TLS", "rediss://", REDIS),
    "Redis: it speaks no TLS": Kind(
        at_redis("rediss://127.0.0.1:{port}"), "does not speak TLS", "write redis://", REDIS
    ),
    "Redis: an unknown authority": Kind(
        at_redis("rediss://localhost:{tls}"), "certificate is not trusted", "ssl_ca_certs", REDIS
    ),
    "Redis: no file of authorities": Kind(
        at_redis("rediss://localhost:{tls}?ssl_ca_certs=/no/such"),
        "the file of ssl_ca_certs is not there", "correct ssl_ca_certs", REDIS,
    ),
    "Redis: not a Redis": Kind(at_a_web_server, "is not a Redis", "correct the host and the port", REDIS),
    "Redis: a database too high": Kind(
        at_redis("redis://127.0.0.1:{port}/99"), "no database of this number", "correct it", REDIS
    ),
    # this machine
    "a port in use": Kind(at_a_taken_port, "address already in use", "to a free port", "port (TOOLSERVER_PORT)"),
    "an address of another machine": Kind(given(HOST="203.0.113.7"), "203.0.113.7", "set host (TOOLSERVER_HOST)"),
    "a data directory of somebody else": Kind(forbidden("."), "permission denied", "read and write it"),
    "a ledger of somebody else": Kind(forbidden(FILE), FILE, "read and write it"),
    "keys of somebody else": Kind(forbidden("keys"), "keys", "read and write it"),
    "a key of somebody else": Kind(forbidden("keys/receipts.json"), "keys/receipts.json", "read and write it"),
    "a full disk": Kind(on_disk(full), "full", "free some space", "data_dir"),
    "a read-only disk": Kind(on_disk(read_only), "read-only", "make it writable", "data_dir"),
    "another service on the same data": Kind(beside_another, "another process serves from", "set database_url"),
    # what is stored
    "a broken key": Kind(used(("keys/receipts.json", "{")), "receipts.json is not a key file", "restore"),
    "a key file without a key": Kind(used(("keys/receipts.json", '{"keys": []}')), "holds no key", "restore"),
    "a broken key of the log": Kind(write("keys/log.json", "[]"), "log.json is not a key file", "restore"),
    "broken marks": Kind(write("keys/high-water.json", "{"), "high-water.json is not JSON", "restore"),
    "no database in the file": Kind(write(FILE, "this is no database"), FILE, "restore a backup"),
    "a lost ledger": Kind(used((FILE, None)), "is missing or empty", "restore a backup"),
    "play money": Kind(write("simulated-world", ""), "holds simulated credits", "its own data directory"),
    # settings
    "a number that is none": Kind(given(LIMITS__DAILY="many"), "valid integer", "Correct", "TOOLSERVER_LIMITS__DAILY"),
    "an unknown setting": Kind(given(LIMITS__DALY="1"), "is not a setting", "did you mean limits.daily?"),
    "an unknown variable": Kind(given(PROT="1"), "TOOLSERVER_PROT is not a setting", "TOOLSERVER_PORT"),
    "a list that is no JSON": Kind(
        given(LIMITS__TRUSTED_PROXIES="10.0.0.1"), "is not JSON", 'write ["…", "…"]', "limits.trusted_proxies"
    ),
    "keys for one instance alone": Kind(given(SCALING__KEYS_DIR="/no/such"), "scaling.keys_dir", "database_url"),
    "workers on a file": Kind(given("--workers", "2"), "SQLite", "database_url"),
    "no such package of tools": Kind(
        given(TOOLS='["no_such_package"]'), "no Python package no_such_package", "install it", "TOOLSERVER_TOOLS"
    ),
    "selling without an address": Kind(given(PAYMENTS__ENABLED="true"), "to sell credits", "set rpc_urls", "payments"),
}  # fmt: skip


@proves("operating.refusals")
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_that_fails_says_why_in_one_line(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    arrange, cause, remedy, setting = KINDS[kind]
    place = Place(tmp_path, request)
    with arrange(place) as start:
        own = {"TOOLSERVER_DATA_DIR": str(place.data), **start.settings}
        said = refusal(tmp_path, *SERVE, *start.words, through=start.through, **own)
    assert cause in said, said
    assert remedy in said, said
    assert setting in said, said
    assert "wrong" not in said, said  # a password
    print(f"{kind}: {said}")


@proves("operating.refusals")
@pytest.mark.parametrize("verb", ["demo", "doctor", "webhooks", "call"])
def test_every_verb_explains_a_database_that_refuses_it(tmp_path: Path, databases: Databases, verb: str) -> None:
    url = f"postgresql://secretive:wrong@127.0.0.1:{databases.primary.port}/postgres"
    own = {"TOOLSERVER_DATABASE_URL": url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")}
    said = refusal(tmp_path, *VERBS[verb], **own)
    assert DATABASE in said
    assert "check the user and the password" in said
    assert "wrong" not in said


@proves("operating.refusals")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("replicaof", "127.0.0.1", "1"), "the server is a read-only replica; name its master"),
        (("config", "set", "maxmemory", "1"), "the memory of the server is full; raise its maxmemory"),
        ((), "the connection was refused; start the server"),
    ],
)
def test_with_a_redis_that_takes_no_writes_the_service_starts_and_says_so_once(
    tmp_path: Path, fault: tuple[str, ...], words: str
) -> None:
    """A failover may mend it, and free calls need no Redis."""
    with start_redis() as redis:
        if fault:
            assert redis.command(*fault) == "OK"
        url = redis.url if fault else "redis://127.0.0.1:1"
        own = {"TOOLSERVER_REDIS_URL": url, "TOOLSERVER_DATA_DIR": str(tmp_path / "data")}
        with started("serve", folder=tmp_path, **own) as server:
            lines = [json.loads(line) for line in server.said.splitlines()]
            told = [line["reason"] for line in lines if line["event"].startswith("Redis cannot be reached")]
            assert len(told) == 1
            assert words in told[0]
            done = ran("doctor", "--no-live", folder=tmp_path, **own)
            assert words in done.stdout.decode()
