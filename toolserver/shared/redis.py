"""Use Redis or Valkey as the memory that several instances share. Only this module imports redis-py, when needed.

There are two connections: a quick one for counts, and one for values, so that rate limits
never wait for a large answer. All requests within one turn of the event loop are sent
together. If an answer misses its deadline, the memory counts as lost: all waiting callers are
released at once, no further caller waits, and a task tries to reconnect. A server that takes
no writes (a replica after a failover, a full memory) is lost as well: each new connection, and
an idle one every second, must write a key, and a refused write drops the connection.

`redis_url` names a server, its socket file, or Sentinels, which name the master at that
moment: `redis+sentinel://[user:password@]host[:port][,host[:port]…][/database]?master=NAME`.
User and password are the master's, and `sentinel_password` the Sentinels' own.
`rediss+sentinel://` speaks TLS to all of them.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from toolserver.core.shared_memory import Script, SharedMemoryLost
from toolserver.errors import ToolserverError
from toolserver.shared.redis_faults import (
    REDIS_URL,
    SPEAKS_NO_TLS,
    SPEAKS_TLS,
    NoMaster,
    RedisFault,
    explain_redis,
    takes_no_writes,
)

if TYPE_CHECKING:
    from redis.asyncio.connection import Connection

Connect: TypeAlias = "Callable[[], Awaitable[Connection]]"
SENTINELS = ("redis+sentinel", "rediss+sentinel")
FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
SENTINEL_PORT, DEFAULT_MASTER = 26379, "mymaster"


class RedisMissing(ToolserverError):
    """A `redis_url` is set, but the Redis package is not installed."""


def make_connect(url: str) -> Connect:
    """Return a function that opens a connection to a server that should be the master. It raises as redis-py does.

    Raises:
        RedisMissing: the package redis is not installed.
        ValueError: the address is invalid.
    """
    try:
        import redis.asyncio.connection as driver
    except ImportError as error:
        raise RedisMissing(
            f"{REDIS_URL} needs the Redis driver: pip install 'agent-toolserver[redis]', or unset it"
        ) from error
    parts = urlsplit(url)
    if parts.scheme in SENTINELS:
        return _make_sentinel_connect(driver, url)
    options: dict[str, Any] = dict(driver.parse_url(url))
    kind = options.pop("connection_class", None)
    if kind is None:
        kind = driver.UnixDomainSocketConnection if url.startswith("unix:") else driver.Connection
    return lambda: _open(kind, options)


def _make_sentinel_connect(driver: Any, url: str) -> Connect:
    parts = urlsplit(url)
    kind = driver.SSLConnection if parts.scheme == "rediss+sentinel" else driver.Connection
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    name, own_password = query.pop("master", DEFAULT_MASTER), query.pop("sentinel_password", None)
    places = [_read_place(text) for text in parts.netloc.rpartition("@")[2].split(",") if text]
    if not places:
        raise ValueError("names no Sentinel")
    credentials = parts.netloc.rpartition("@")[0]
    user, _, password = credentials.partition(":")
    options = {
        **query,
        "db": int(parts.path.strip("/") or 0),
        "username": unquote(user) or None,
        "password": unquote(password) or None,
    }

    async def connect() -> "Connection":
        failures: list[str] = []
        for host, port in places:
            try:
                sentinel = await _open(kind, {**query, "host": host, "port": port, "password": own_password})
            except Exception as error:  # the next Sentinel may answer
                failures.append(f"{host}:{port}: {type(error).__name__}")
                continue
            try:
                await sentinel.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
                address = await sentinel.read_response()
            finally:
                await sentinel.disconnect(nowait=True)
            if address:
                return await _open(kind, {**options, "host": address[0].decode(), "port": int(address[1])})
            failures.append(f"{host}:{port}: knows no {name}")
        raise NoMaster("; ".join(failures))

    return connect


def _read_place(text: str) -> tuple[str, int]:
    place = urlsplit(f"//{text}")
    if not place.hostname:
        raise ValueError("names no Sentinel")
    return place.hostname, place.port or SENTINEL_PORT


async def _open(kind: Any, options: dict[str, Any]) -> "Connection":
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    connection: Connection = kind(**options, retry=Retry(NoBackoff(), 0))
    try:
        await connection.connect()  # type: ignore[no-untyped-call]
    except BaseException:
        with suppress(Exception):
            await connection.disconnect(nowait=True)
        raise
    return connection


def find_missing_file(url: str) -> RedisFault | None:
    """Return a fault if an address names a file for TLS that is not there or cannot be read, as no waiting mends it."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in FILES and not os.access(value, os.R_OK):
            return RedisFault(f"the file of {name} is not there or cannot be read", f"correct {name} in it", lasts=True)
    return None


async def find_wrong_scheme(url: str, within_s: float) -> RedisFault | None:
    """Return a fault if the server of a plain address answers a TLS greeting, or that of a TLS address a plain one.

    A Redis lets the wrong kind of greeting wait for the rest of a line, or closes the connection.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss") or parts.hostname is None:
        return None
    context = None
    if parts.scheme == "redis":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 6379, ssl=context)
            try:
                if context is not None:
                    return SPEAKS_TLS
                writer.write(b"PING\r\n")
                return SPEAKS_NO_TLS if (await reader.read(1)) in (b"+", b"-") else None
            finally:
                writer.transport.abort()
    return None


log = logging.getLogger(__name__)

BULK_FACTOR = 4  # how many deadlines a script with values may take
WAITING = 20_000  # maximum scripts waiting for one connection; for further ones, the memory counts as lost
MOST_RUNS = 64  # runs sent to the server as one command, which blocks the server while it runs
AT_ONCE = 512  # scripts sent together
COMPLAIN_EVERY_S = 60.0
CAN_WRITE = Script("return redis.call('SET', KEYS[1], '1', 'PX', 60000)")

__all__ = ["PAUSES", "RedisMemory", "RedisMissing", "RedisPauses", "RedisRefused", "find_fault", "open_redis"]


class RedisRefused(ToolserverError):
    """The Redis of `redis_url` cannot be used, and waiting does not help."""


@dataclass(slots=True, eq=False)
class _ScriptRun:
    """One run of a script in progress. `answer` is None if nobody waits for it."""

    script: Script
    keys: list[bytes]
    arguments: list[bytes]
    answer: asyncio.Future[Any] | None

    def settle(self, reply: Any) -> None:
        """Deliver the result: a value or an exception."""
        if self.answer is None or self.answer.done():
            return
        if isinstance(reply, BaseException):
            self.answer.set_exception(reply)
        else:
            self.answer.set_result(reply)


class _Command:
    """A command to the server: one run of a script, or several runs of a script that accepts many."""

    __slots__ = ("runs",)

    def __init__(self, first: _ScriptRun) -> None:
        self.runs = [first]

    def takes(self, each: _ScriptRun) -> bool:
        """Return True if another run can be added."""
        return each.script.many and each.script is self.runs[0].script and len(self.runs) < MOST_RUNS

    def pack(self, *, whole: bool = False) -> bytes:
        """Return the command in the Redis protocol. `whole` sends the text of a script that the server lacks."""
        script = self.runs[0].script
        keys, arguments = self.runs[0].keys, self.runs[0].arguments
        if script.many:
            keys = [key for run in self.runs for key in run.keys]
            arguments = [part for run in self.runs for part in (b"%d" % len(run.keys), run.arguments[0])]
        script_parts = (b"EVAL", script.text.encode()) if whole else (b"EVALSHA", script.sha)
        parts = [*script_parts, b"%d" % len(keys), *keys, *arguments]
        return b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])

    def settle(self, reply: Any) -> None:
        """Deliver to each run its own result."""
        if not self.runs[0].script.many or isinstance(reply, BaseException):
            for run in self.runs:
                run.settle(reply)
            return
        for run, each in zip(self.runs, reply, strict=True):
            run.settle(each)


def _group(batch: list[_ScriptRun]) -> list[_Command]:
    """Group runs into commands, in order."""
    commands: list[_Command] = []
    for each in batch:
        if commands and commands[-1].takes(each):
            commands[-1].runs.append(each)
        else:
            commands.append(_Command(each))
    return commands


@dataclass(frozen=True, slots=True)
class RedisPauses:
    """Seconds to wait after a lost connection, and after which an idle connection is checked."""

    retry_s: float = 0.5
    look_s: float = 1.0


PAUSES = RedisPauses()


class _Lane:
    """One connection and the scripts that wait for it."""

    def __init__(
        self, connect: Connect, key: bytes, deadline_s: float, on_change: Callable[[], None], pauses: RedisPauses
    ) -> None:
        self.connect = connect
        self.fault: RedisFault | None = None
        self._probe = _Command(_ScriptRun(CAN_WRITE, [key], [], None)).pack(whole=True)
        self.deadline_s = deadline_s
        self.on_change = on_change
        self.pauses = pauses
        self.is_up = False
        self.is_closing = False  # redis-py may swallow a cancellation that arrives while it reads
        self.waiting: list[_ScriptRun] = []
        self.wake = asyncio.Event()
        self.refused = 0
        self._complain_at = 0.0

    def add(self, each: _ScriptRun) -> None:
        """Queue a script. Raises SharedMemoryLost."""
        if not self.is_up or len(self.waiting) >= WAITING:
            raise SharedMemoryLost
        self.waiting.append(each)
        self.wake.set()

    async def run(self) -> None:
        """Stay connected and send waiting scripts until cancelled."""
        while not self.is_closing:
            connection: Connection | None = None
            try:
                async with asyncio.timeout(self.deadline_s):
                    connection = await self.connect()
                    await self._write_probe(connection)
                self.fault = None
                self._change(is_up=True)
                await self._send_batches(connection)
            except Exception as error:  # whatever ended the connection, it is reopened
                self.fault = explain_redis(error)
                self.on_change()
                log.debug("no connection to Redis", extra={"reason": f"{type(error).__name__}: {error}"})
            finally:
                self._change(is_up=False)
                self._release()
                if connection is not None:
                    with suppress(Exception):
                        await connection.disconnect(nowait=True)
            if not self.is_closing:
                await asyncio.sleep(self.pauses.retry_s)

    async def _write_probe(self, connection: "Connection") -> None:
        """Write a key, as only a master with room can. Raises the server's refusal."""
        await connection.send_packed_command([self._probe])
        await connection.read_response()

    def _change(self, *, is_up: bool) -> None:
        if is_up != self.is_up:
            self.is_up = is_up
            self.on_change()

    def _release(self) -> None:
        """Release everyone who waits for a lost connection."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.settle(SharedMemoryLost())

    async def _send_batches(self, connection: "Connection") -> None:
        while not self.is_closing:
            if not await self._wait_for_work():
                async with asyncio.timeout(self.deadline_s):
                    await self._write_probe(connection)
                continue
            batch, self.waiting = self.waiting[:AT_ONCE], self.waiting[AT_ONCE:]
            if not self.waiting:
                self.wake.clear()
            if not batch:  # woken to close, or for scripts that were released since: from Python 3.12 on, a transport
                continue  # that is given nothing to write keeps the event loop busy with it and never closes
            try:
                async with asyncio.timeout(self.deadline_s):
                    unknown = await self._exchange(connection, _group(batch))
                    if unknown:
                        await self._exchange(connection, unknown, whole=True)
            except BaseException:
                for each in batch:
                    each.settle(SharedMemoryLost())
                raise

    async def _wait_for_work(self) -> bool:
        """Wait for something to send. Returns False if there was nothing for a while and the server must be checked."""
        try:
            async with asyncio.timeout(self.pauses.look_s):
                return await self.wake.wait()
        except TimeoutError:
            return False

    async def _exchange(
        self, connection: "Connection", batch: list[_Command], *, whole: bool = False
    ) -> list[_Command]:
        """Send scripts and deliver their answers. Returns the commands whose script the server does not have.

        Raises the refusal of a server that takes no writes, after all answers were read.
        """
        from redis.exceptions import NoScriptError, ResponseError

        unknown, no_master = [], None
        await connection.send_packed_command([b"".join([each.pack(whole=whole) for each in batch])])
        read = connection.read_response
        for each in batch:
            try:
                each.settle(await read())
            except NoScriptError:
                unknown.append(each)
            except ResponseError as error:
                self._complain(error)
                each.settle(SharedMemoryLost())
                no_master = error if takes_no_writes(error) else no_master
        if no_master is not None:
            raise no_master
        return unknown

    def _complain(self, error: Exception) -> None:
        """Count a refusal by the server, such as "out of memory". Logs at most one a minute."""
        self.refused += 1
        now = asyncio.get_running_loop().time()
        if now >= self._complain_at:
            self._complain_at = now + COMPLAIN_EVERY_S
            log.warning("Redis refused a script: %s", str(error)[:200])


class RedisMemory:
    """The shared memory in Redis. `lost` counts how often it was lost."""

    def __init__(
        self,
        connect: Connect,
        *,
        prefix: str,
        deadline_s: float,
        instances: int,
        pauses: RedisPauses = PAUSES,
    ) -> None:
        self.instances, self.lost = instances, 0
        self._prefix = prefix.encode()
        self._was_lost: bool | None = None
        self._connected, self._failed = asyncio.Event(), asyncio.Event()
        key = self._prefix + b"probe"
        self._quick = _Lane(connect, key, deadline_s, self._note_change, pauses)
        self._bulk = _Lane(connect, key, BULK_FACTOR * deadline_s, self._note_change, pauses)

    @property
    def is_lost(self) -> bool:
        """True if one of the connections is down."""
        return not (self._quick.is_up and self._bulk.is_up)

    @property
    def fault(self) -> RedisFault | None:
        """Why the memory is lost; None while it is not."""
        return (self._quick.fault or self._bulk.fault) if self.is_lost else None

    @property
    def refused(self) -> int:
        """The number of scripts that the server has refused to run."""
        return self._quick.refused + self._bulk.refused

    async def run(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._add(script, keys, arguments, answer, bulk=bulk)
        return await answer

    def send(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> None:
        with suppress(SharedMemoryLost):
            self._add(script, keys, arguments, None, bulk=bulk)

    def _add(
        self,
        script: Script,
        keys: list[bytes],
        arguments: list[bytes],
        answer: asyncio.Future[Any] | None,
        *,
        bulk: bool,
    ) -> None:
        lane, prefix = self._bulk if bulk else self._quick, self._prefix
        lane.add(_ScriptRun(script, [prefix + key for key in keys], arguments, answer))

    def _note_change(self) -> None:
        """Log once when the memory is lost, and once when it is back."""
        if self._quick.fault is not None:
            self._failed.set()
        is_lost = self.is_lost
        if is_lost == self._was_lost or self._quick.is_closing:
            return
        if is_lost and self._was_lost is False:
            self.lost += 1
            log.warning(
                "Redis is lost: this instance continues with its own memory and its share of the limits",
                extra={"reason": str(self.fault)},
            )
        elif not is_lost:
            self._connected.set()
            log.log(logging.WARNING if self._was_lost else logging.INFO, "Redis is connected")
        if not is_lost or self._was_lost is not None:
            self._was_lost = is_lost

    async def keep_connected(self) -> None:
        """Keep both connections open until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._quick.run())
            tasks.create_task(self._bulk.run())

    def close(self) -> None:
        """End `keep_connected`, and stop logging."""
        self._quick.is_closing = self._bulk.is_closing = True
        self._quick.wake.set()
        self._bulk.wake.set()

    async def find_fault(self, longest_s: float) -> RedisFault | None:
        """Wait for the connection, or for the reason why there is none. Returns None if there is one."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._connected, self._failed)]
        await asyncio.wait(ends, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        return self.fault or explain_redis(TimeoutError()) if self.is_lost else None

    async def wait_until_connected(self, longest_s: float) -> bool:
        """Wait for both connections, so that the first calls are counted together with other instances' calls."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._connected.wait()
        if self.is_lost and self._was_lost is None:
            self._was_lost = True
            self.lost += 1
            log.warning(
                "Redis cannot be reached: this instance starts with its own memory and its share of the limits",
                extra={"reason": str(self.fault or explain_redis(TimeoutError()))},
            )
        return not self.is_lost


@asynccontextmanager
async def open_redis(
    url: str, *, prefix: str, deadline_s: float, instances: int, pauses: RedisPauses = PAUSES
) -> AsyncIterator[RedisMemory]:
    """Open the memory at an address of `redis_address`, and keep it connected while the block runs.

    Raises:
        RedisMissing: the package redis is not installed.
        RedisRefused: the server cannot be used, and waiting does not help.
        ValueError: the address is invalid.
    """
    async with _keep_memory(url, prefix, deadline_s, instances, pauses) as memory:
        if not await memory.wait_until_connected(2 * deadline_s):
            fault = await _examine(memory.fault, url, deadline_s)
            if fault is not None and fault.lasts:
                raise RedisRefused(f"{REDIS_URL}: {fault}")
        yield memory


async def find_fault(url: str, *, prefix: str, deadline_s: float) -> str | None:
    """Return in one line why the Redis of an address cannot be used; None if it can.

    Raises RedisMissing, ValueError.
    """
    async with _keep_memory(url, prefix, deadline_s, 1, PAUSES) as memory:
        fault = await _examine(await memory.find_fault(2 * deadline_s), url, deadline_s)
        return None if fault is None else f"{REDIS_URL}: {fault}"


@asynccontextmanager
async def _keep_memory(
    url: str, prefix: str, deadline_s: float, instances: int, pauses: RedisPauses
) -> AsyncIterator[RedisMemory]:
    memory = RedisMemory(make_connect(url), prefix=prefix, deadline_s=deadline_s, instances=instances, pauses=pauses)
    keeping = asyncio.ensure_future(memory.keep_connected())
    try:
        yield memory
    finally:
        memory.close()
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def _examine(fault: RedisFault | None, url: str, deadline_s: float) -> RedisFault | None:
    """Return the fault, or what is wrong with the address: a file that is not there, or the scheme of TLS."""
    if fault is None or fault.lasts:
        return fault
    return find_missing_file(url) or await find_wrong_scheme(url, deadline_s) or fault
