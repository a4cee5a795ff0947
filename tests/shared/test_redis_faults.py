"""Why a Redis cannot be used is said in one line, and one that takes no writes is lost until a master answers."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
import trustme

from tests.ports import reserve_port
from tests.redis_server import ListeningRedis, memory_in, start_listening_redis
from toolserver.core.shared_memory import Script, SharedMemoryLost
from toolserver.settings import Settings
from toolserver.shared.redis import RedisPauses, RedisRefused, find_fault, open_redis
from toolserver.shared.redis_faults import explain_redis

pytestmark = pytest.mark.live
ADD = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
SOON = RedisPauses(retry_s=0.02, look_s=0.02)
DEADLINE_S = 3.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListeningRedis]:
    """A server that speaks plainly and with TLS, whose settings each test sets back."""
    with start_listening_redis(tmp_path_factory.mktemp("tls")) as server:
        yield server


@contextmanager
def set_to(server: ListeningRedis, name: str, value: str, normal: str, *, password: str = "") -> Iterator[None]:
    assert server.command("config", "set", name, value) == "OK"
    try:
        yield
    finally:
        as_user = ["-a", password] if password else []
        assert server.command(*as_user, "config", "set", name, normal).endswith("OK")


@contextmanager
def replica(server: ListeningRedis) -> Iterator[None]:
    server.command("replicaof", "127.0.0.1", "1")
    try:
        yield
    finally:
        server.command("replicaof", "no", "one")


@contextmanager
def sentinel(server: ListeningRedis, folder: Path) -> Iterator[int]:
    """A Sentinel that watches the server as `main`; its port."""
    port, path = reserve_port(), folder / "sentinel.conf"
    path.write_text(f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {server.port} 1\n")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["redis-server", str(path), "--sentinel"], **quiet)
    try:
        until = time.monotonic() + 20
        ping = ["redis-cli", "-p", str(port), "ping"]
        while subprocess.run(ping, capture_output=True, check=False).stdout.strip() != b"PONG":
            assert time.monotonic() < until, "the Sentinel did not start"
            time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()


async def say(url: str) -> str | None:
    return await find_fault(url, prefix="say:", deadline_s=DEADLINE_S)


async def test_each_fault_of_a_server_is_told_apart_and_says_what_to_do(server, tmp_path, monkeypatch):
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))  # else tests share what they trust
    plain, secure = server.url, f"rediss://localhost:{server.tls_port}"
    trusting = f"{secure}?ssl_ca_certs={server.authority}"
    assert await say(plain) is None
    assert await say(trusting) is None
    said = {
        "absent": await say("redis://127.0.0.1:1"),
        "no such file": await say("unix:///no/such/redis.sock"),
        "TLS wanted": await say(f"redis://127.0.0.1:{server.tls_port}"),
        "no TLS": await say(f"rediss://127.0.0.1:{server.port}"),
        "unknown authority": await say(secure),
        "number": await say(f"{plain}/99"),
    }
    with set_to(server, "requirepass", "right", "", password="right"):
        said["password"] = await say(f"redis://:secret@127.0.0.1:{server.port}")
        said["no password"] = await say(plain)
    with replica(server):
        said["replica"] = await say(plain)
    with set_to(server, "maxmemory", "1", "0"):
        said["full"] = await say(plain)
    with sentinel(server, tmp_path) as port:
        said["Sentinel"] = await say(f"redis://127.0.0.1:{port}")
        said["other master"] = await say(f"redis+sentinel://127.0.0.1:{port}/0?master=other")
        assert await say(f"redis+sentinel://127.0.0.1:1,127.0.0.1:{port}/0?master=main") is None

    expected = {
        "absent": ("the connection was refused", "start the server"),
        "no such file": ("no such file", "the path"),
        "TLS wanted": ("speaks TLS", "rediss://"),
        "no TLS": ("does not speak TLS", "write redis://"),
        "unknown authority": ("certificate is not trusted", "ssl_ca_certs"),
        "number": ("no database of this number", "correct it"),
        "password": ("refuses the password", "correct the user and the password"),
        "no password": ("wants a password", "redis://:password@host"),
        "replica": ("read-only replica", "name its master"),
        "full": ("memory of the server is full", "raise its maxmemory"),
        "Sentinel": ("a Sentinel", "redis+sentinel://"),
        "other master": ("no Sentinel named a master", "`master`"),
    }
    for kind, (cause, remedy) in expected.items():
        line = said[kind]
        assert line is not None, kind
        assert line.startswith("redis_url (TOOLSERVER_REDIS_URL): "), line
        assert cause in line, (kind, line)
        assert remedy in line, (kind, line)
        assert "secret" not in line
        assert "\n" not in line


async def test_a_start_is_refused_only_for_what_waiting_does_not_mend(server):
    def opened(url: str) -> object:
        return open_redis(url, prefix="start:", deadline_s=DEADLINE_S, instances=1)

    with set_to(server, "requirepass", "right", "", password="right"):
        with pytest.raises(RedisRefused, match="wants a password"):
            async with opened(server.url):
                pass
    with replica(server):
        async with opened(server.url) as memory:
            assert memory.is_lost


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another program
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (replica, "read-only replica"),
        (lambda server: set_to(server, "maxmemory", "1", "0"), "memory of the server is full"),
        (lambda server: set_to(server, "min-replicas-to-write", "3", "0"), "without its replicas"),
    ],
)
@pytest.mark.parametrize("busy", [True, False])
async def test_a_server_that_takes_no_writes_any_more_is_lost_until_it_does(server, fault, words, busy):
    """Also without a call: an idle connection writes a key now and then."""
    async with memory_in(server.redis, pauses=SOON) as memory:
        await memory.run(ADD, [b"x"], [b"1"])
        with fault(server):
            if busy:
                with pytest.raises(SharedMemoryLost):
                    await memory.run(ADD, [b"x"], [b"1"])
            await until(lambda: memory.is_lost and memory.fault is not None)
            assert words in str(memory.fault)
            await anyio.sleep(0.1)
            assert memory.is_lost
        await until(lambda: not memory.is_lost)
        assert memory.fault is None
        assert await memory.run(ADD, [b"x"], [b"1"]) == 2
        assert memory.lost == 1


async def test_sentinels_lead_to_the_new_master_after_a_failover(tmp_path, server):
    """The connection is asked for anew each time it is lost."""
    with sentinel(server, tmp_path) as port:
        url = f"redis+sentinel://127.0.0.1:{port}/1?master=main"
        async with open_redis(url, prefix="s:", deadline_s=DEADLINE_S, instances=1, pauses=SOON) as memory:
            await memory.run(ADD, [b"x"], [b"1"])
            assert server.command("-n", "1", "get", "s:x") == "1"
            server.command("client", "kill", "type", "normal")
            await until(lambda: memory.lost == 1 and not memory.is_lost)
            assert await memory.run(ADD, [b"x"], [b"1"]) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        "READONLY You can't write against a read only replica. script: 5a, on @user_script:1.",
        "ERR Error running script (call to f_5a): @user_script:1: -READONLY You can't write against it.",
    ],
)
def test_old_and_new_servers_word_a_refused_script_differently(refusal):
    assert explain_redis(ValueError(refusal)).cause == "the server is a read-only replica"


def test_a_cluster_is_refused_with_words():
    with pytest.raises(ValueError, match="Redis Cluster, which is not supported"):
        Settings(redis_url="redis+cluster://10.0.0.1")
    assert explain_redis(ValueError("MOVED 3999 127.0.0.1:6381")).lasts


def test_what_nobody_foresaw_is_said_as_it_is():
    assert str(explain_redis(ValueError("odd"))) == "ValueError: odd; check the server's log"
