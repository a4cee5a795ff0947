"""Provide a PostgreSQL for tests: the one that TEST_DATABASE_URL names, else our own, started at the first use.

Each folder of a test is a schema, so that a ledger opened again in the same folder has kept its content. Our own server
does not wait for the disk (`fsync=off`), since no test cuts the power of the machine.
"""

import getpass
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path

import pytest

from tests.money.ledger.programs import missing
from tests.ports import reserve_port
from toolserver.sql.errors import TransactionLost
from toolserver.sql.postgres import PostgresConnection, PostgresTerms

POSTGRES = pytest.param("postgres", marks=pytest.mark.live)
WORK_S = 20.0  # the machine of a test may be busy: only tests of deadlines have short ones
AT_END = ExitStack()
FOLDERS = ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Leave nothing behind, when the last test has closed what it had opened."""
    AT_END.close()


def terms_of(folder: Path | str, **changes: object) -> PostgresTerms:
    """The database of a folder, with patience."""
    named = {"connect_s": WORK_S, "work_s": WORK_S, "readers": 1, **changes}
    return PostgresTerms(url_of(folder), **named)  # type: ignore[arg-type]


def url_of(folder: Path | str) -> str:
    """The URL of a schema that belongs to a folder; it is made if there is none."""
    schema = "t_" + hashlib.sha256(f"{os.getpid()} {folder}".encode()).hexdigest()[:16]
    base = server_url()
    run_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}", base)
    return f"{base}{'&' if '?' in base else '?'}search_path={schema}"


def run_sql(script: str, url: str) -> None:
    """Run a script beside everything else, on a thread of its own: a connection has an event loop."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(_run_sql, script, url).result()


def _run_sql(script: str, url: str) -> None:
    with closing(PostgresConnection(PostgresTerms(url, connect_s=WORK_S, work_s=WORK_S))) as db:
        db.connect()
        db.run_script("SET client_min_messages = warning")
        db.run_script(script)  # by itself: databases are not made and dropped beside other statements


@cache
def server_url() -> str:
    """The server of this run. Skips where there is none, and fails where everything is required."""
    pytest.importorskip("asyncpg") if os.environ.get("REQUIRE") != "all" else __import__("asyncpg")
    if given := os.environ.get("TEST_DATABASE_URL"):
        name = f"toolserver_test_{os.getpid()}"
        run_sql(f"DROP DATABASE IF EXISTS {name}", given)
        run_sql(f"CREATE DATABASE {name}", given)
        AT_END.callback(_run_sql, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", given)
        return given.rpartition("/")[0] + f"/{name}"
    server = Server(program("initdb"), program("postgres"))
    AT_END.callback(server.remove)
    server.start()
    return server.url


def program(name: str) -> str:
    """A program of PostgreSQL, which distributions keep out of the way."""
    found = shutil.which(name) or next(
        (str(path) for folder in FOLDERS for path in sorted(Path(folder).glob(f"*/bin/{name}"), reverse=True)), None
    )
    return found or missing("PostgreSQL (TEST_DATABASE_URL, or the server's programs)")


class Server:
    """A server in a folder of its own, which tests may stop, kill and start again."""

    def __init__(self, initdb: str, postgres: str) -> None:
        self._postgres = postgres
        self.user = self._user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        self._folder = Path(tempfile.mkdtemp(prefix="toolserver-postgres-"))
        self._folder.chmod(0o755)
        self.data = self._folder / "data"
        self.data.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self.data, self._user)
        who = self._user or getpass.getuser()
        done = subprocess.run(
            [initdb, "-D", self.data, "-A", "trust", "-U", who, "-E", "UTF8", "--no-sync", "--locale=C"],
            user=self._user,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        self.port = reserve_port()
        self.url = f"postgresql://{who}@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
            "max_connections": 200, "shared_buffers": "32MB", "max_wal_size": "256MB", "autovacuum": "off",
            "log_min_messages": "fatal", "restart_after_crash": "on",
        }  # fmt: skip
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._postgres, "-D", self.data, *flags], user=self._user, cwd="/", stdout=log, stderr=log
            )
        until = time.monotonic() + 60
        while not self.takes_connections():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until, "the server takes no connections"
            time.sleep(0.05)

    def takes_connections(self) -> bool:
        try:
            run_sql("SELECT 1", self.url)
        except TransactionLost:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it orderly and at once, SIGQUIT as a crash does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def hang(self) -> None:
        """Let it and each of its processes stand still: it takes connections, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after it hung."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)  # first, so that it starts no further ones
        words = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for word in words:
            with suppress(ProcessLookupError):
                os.kill(int(word), number)

    def set_read_only(self, is_read_only: bool) -> None:
        """Let it refuse each write, or take them again, also from who is connected."""
        setting = "SET default_transaction_read_only = on" if is_read_only else "RESET default_transaction_read_only"
        for statement in (f"ALTER SYSTEM {setting}", "SELECT pg_reload_conf()"):
            run_sql(statement, self.url)

    def remove(self) -> None:
        """Stop it and delete its folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=sys.platform == "win32")


class Standby(Server):
    """A copy of a running server that follows it, and whose copy each commit of that server waits for."""

    def __init__(self, primary: Server, pg_basebackup: str, postgres: str) -> None:
        self._postgres, self._user, self._primary = postgres, primary.user, primary
        self._folder = Path(tempfile.mkdtemp(prefix="toolserver-standby-"))
        self._folder.chmod(0o755)
        self.data = self._folder / "data"
        self.data.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self.data, self._user)
        self._process = None
        self.port = reserve_port()
        self.url = primary.url.replace(str(primary.port), str(self.port))
        words = [pg_basebackup, "-D", self.data, "-d", primary.url, "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        done = subprocess.run(words, user=self._user, cwd="/", capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and let each commit of the server that it follows wait for it."""
        super().start()
        for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            run_sql(statement, self._primary.url)

    def takes_connections(self) -> bool:
        """Whether it does, as a standby: our own connections are to a server that takes writes."""
        words = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(words, check=False, timeout=20).returncode == 0

    def promote(self) -> None:
        """Make it a server of its own, which takes writes."""
        words = [program("pg_ctl"), "promote", "-w", "-D", self.data]
        subprocess.run(words, user=self._user, cwd="/", check=True, capture_output=True, timeout=60)
