"""Connect to the Redis of `redis_url`: a server, its socket file, or the master that Sentinels name at that moment.

`redis+sentinel://[user:password@]host[:port][,host[:port]…][/database]?master=NAME` names Sentinels; user and
password are the master's, and `sentinel_password` the Sentinels' own. `rediss+sentinel://` speaks TLS to all of them.
"""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from toolserver.errors import ToolserverError
from toolserver.shared.redis_faults import REDIS_URL, SPEAKS_NO_TLS, SPEAKS_TLS, NoMaster, RedisFault

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
