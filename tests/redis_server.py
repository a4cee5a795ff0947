"""Start a Redis server for the tests on a socket file, and build memories that are shared through it."""

import itertools
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.ports import reserve_port
from toolserver.core.shared_memory import Script, SharedMemoryLost
from toolserver.shared.redis import PAUSES, RedisMemory, RedisPauses, open_redis

_NUMBERS = itertools.count()
DEADLINE_S = 5.0  # far more than a loaded machine takes


class LostMemory:
    """A shared memory that is away."""

    def __init__(self, instances: int = 1, *, is_lost: bool = True) -> None:
        self.instances, self.is_lost = instances, is_lost

    async def run(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> Any:
        raise SharedMemoryLost

    def send(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> None:
        """Nothing happens."""


class RedisServer:
    """One server, which tests may stop, hang and empty."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder, self._flags = folder, flags
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, empty, and wait until it can be asked."""
        words = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [*words, "--dir", str(self._folder), *self._flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 20
        while self.command("ping") != "PONG":
            assert time.monotonic() < until, "redis-server did not start"
            time.sleep(0.01)

    def command(self, *words: str) -> str:
        """What redis-cli prints."""
        done = subprocess.run(
            ["redis-cli", "-s", str(self.socket), *words], capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout.strip()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def hang(self) -> None:
        """Let it accept connections and answer nothing."""
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it; everything in it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)


@asynccontextmanager
async def memory_in(
    server: RedisServer,
    *,
    prefix: str | None = None,
    deadline_s: float = DEADLINE_S,
    instances: int = 1,
    pauses: RedisPauses = PAUSES,
) -> AsyncIterator[RedisMemory]:
    """A memory in a server, apart from those of other tests unless it has their `prefix`."""
    prefix = prefix or f"test{next(_NUMBERS)}:"
    async with open_redis(
        server.url, prefix=prefix, deadline_s=deadline_s, instances=instances, pauses=pauses
    ) as memory:
        yield memory


def _require() -> None:
    if shutil.which("redis-server") is None or shutil.which("redis-cli") is None:
        pytest.skip("redis-server is not on this machine")


@contextmanager
def start_redis(*flags: str) -> Iterator[RedisServer]:
    """A server, with further flags, that ends with the block. Skips the test where there is none to start."""
    _require()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder), *flags)
        try:
            yield server
        finally:
            server.stop()


@dataclass(frozen=True, slots=True)
class ListeningRedis:
    """A server with its ports, one of which speaks TLS, and the file of the authority that signed its certificate."""

    redis: RedisServer
    port: int
    tls_port: int
    authority: Path

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def command(self, *words: str) -> str:
        return self.redis.command(*words)


@contextmanager
def start_listening_redis(folder: Path) -> Iterator[ListeningRedis]:
    """A server that speaks plainly and with TLS, until the block ends. Its certificate is in the folder."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    port, tls_port = reserve_port(), reserve_port()
    files = {"--tls-cert-file": "cert.pem", "--tls-key-file": "key.pem", "--tls-ca-cert-file": "ca.pem"}
    flags = [word for flag, name in files.items() for word in (flag, str(folder / name))]
    ports = ["--port", str(port), "--tls-port", str(tls_port), "--tls-auth-clients", "no", "--bind", "127.0.0.1"]
    with start_redis(*ports, *flags) as redis:
        yield ListeningRedis(redis, port, tls_port, folder / "ca.pem")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server that tests share: nobody stops it."""
    with start_redis() as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server for one test, which may do with it what it likes."""
    with start_redis() as server:
        yield server
