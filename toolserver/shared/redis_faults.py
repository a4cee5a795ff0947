"""Say why a Redis cannot be used, and what to do: one line for logs, `doctor`, the operators' page and a refused start.

A fault that waiting cannot mend, such as a wrong password, refuses the start. After an outage
or a failover the service starts, and shares memory as soon as the server can be written.
"""

import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple

REDIS_URL = "redis_url (TOOLSERVER_REDIS_URL)"


class RedisFault(NamedTuple):
    """Why a server cannot be used. `lasts` is True if no waiting mends it: the settings or the server must change."""

    cause: str
    remedy: str
    lasts: bool = False

    def __str__(self) -> str:
        return f"{self.cause}; {self.remedy}"


SPEAKS_TLS = RedisFault("the server speaks TLS", "write rediss:// in it", lasts=True)
SPEAKS_NO_TLS = RedisFault("the server does not speak TLS", "write redis:// in it", lasts=True)
_CLOSED = RedisFault(
    "the server closed the connection without an answer", "write rediss:// in it if the server speaks TLS"
)
_PASSWORD = RedisFault("the server refuses the password", "correct the user and the password in it", lasts=True)
_NO_PASSWORD = RedisFault("the server wants a password", "write redis://:password@host in it", lasts=True)
_CLUSTER = RedisFault(
    "the server is a node of a Redis Cluster, which is not supported: rules span keys of several nodes",
    "name a single server, or the Sentinels of one (redis+sentinel://)",
    lasts=True,
)
_NO_RIGHTS = RedisFault("its user may not run scripts on our keys", "allow it `+@all ~prefix*` there", lasts=True)
_NOT_REDIS = RedisFault("the server is not a Redis", "correct the host and the port in it", lasts=True)
_READ_ONLY = RedisFault("the server is a read-only replica", "name its master, or its Sentinels (redis+sentinel://)")
_FULL = RedisFault("the memory of the server is full", "raise its maxmemory, or set maxmemory-policy to allkeys-lru")
_OF_SERVER = (  # words of a refusal: an old server puts words of its own before the code
    ("WRONGPASS", _PASSWORD),
    ("invalid password", _PASSWORD),
    ("invalid username-password", _PASSWORD),
    ("NOAUTH", _NO_PASSWORD),
    ("already authenticated", _NO_PASSWORD),
    (
        "without any password configured",
        RedisFault("the server has no password", "take the password out of it, or set requirepass", lasts=True),
    ),
    ("READONLY", _READ_ONLY),
    ("read only replica", _READ_ONLY),
    ("OOM", _FULL),
    ("used memory > 'maxmemory'", _FULL),
    (
        "MISCONF",
        RedisFault("the server takes no writes: it cannot save them", "free its disk, or switch saving off there"),
    ),
    ("NOREPLICAS", RedisFault("the server takes no writes without its replicas", "start them (min-replicas-to-write)")),
    ("MASTERDOWN", RedisFault("the server is a replica that has lost its master", "name the master in it")),
    ("MOVED", _CLUSTER),
    ("CROSSSLOT", _CLUSTER),
    ("CLUSTERDOWN", _CLUSTER),
    ("NOPERM", _NO_RIGHTS),
    ("has no permissions", _NO_RIGHTS),  # redis-py leaves the code out
    ("LOADING", RedisFault("the server is loading its data", "wait until it has")),
    ("BUSY", RedisFault("the server is busy with another program's script", "end it (`redis-cli SCRIPT KILL`)")),
    ("max number of clients", RedisFault("the server takes no more connections", "raise its maxclients")),
    ("DENIED", RedisFault("the server is in protected mode", "give it a password, or bind an address", lasts=True)),
    ("DB index is out of range", RedisFault("the server has no database of this number", "correct it", lasts=True)),
    (
        "unknown command",
        RedisFault(
            "the server runs no scripts: it is a Sentinel, or not a Redis",
            "name the port of the Redis itself, or write redis+sentinel://host:26379/0?master=name",
            lasts=True,
        ),
    ),
    ("Protocol Error", _NOT_REDIS),
    ("Protocol error", _NOT_REDIS),  # so says hiredis, which redis-py takes where it is installed
)
_OF_SYSTEM: tuple[tuple[type[BaseException], RedisFault], ...] = (
    (ssl.SSLError, SPEAKS_NO_TLS),
    (FileNotFoundError, RedisFault("there is no such file", "start the server, or correct the path in it")),
    (PermissionError, RedisFault("permission denied", "let the user that runs toolserver open it", lasts=True)),
    (socket.gaierror, RedisFault("there is no such host", "correct the host name in it")),
    (
        ConnectionRefusedError,
        RedisFault("the connection was refused", "start the server, or correct the host and the port in it"),
    ),
    (TimeoutError, RedisFault("the server did not answer in time", "check the host and the port in it")),
    (ConnectionResetError, _CLOSED),
    (BrokenPipeError, _CLOSED),
    (EOFError, _CLOSED),
)
_DROPS = ("READONLY", "read only replica", "OOM", "used memory", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTER")


class NoMaster(Exception):
    """None of the Sentinels names a master."""


def explain_redis(error: BaseException) -> RedisFault:
    """Return the fault that an exception of redis-py shows. The text has neither the address nor a password."""
    chain = list(_list_chain(error))
    texts = [str(each) for each in chain]
    for words, fault in _OF_SERVER:
        if any(words in text for text in texts):
            return fault
    for each in chain:
        if (fault_of := _explain_system(each)) is not None:
            return fault_of
    if any("closed" in text.lower() or "reset" in text.lower() for text in texts):
        return _CLOSED
    return RedisFault(f"{type(error).__name__}: {str(error)[:200]}", "check the server's log")


def takes_no_writes(refusal: Exception) -> bool:
    """Return True if a refused script means that the server takes no writes now, from us or from anybody."""
    text = str(refusal)
    return any(words in text for words in _DROPS)


def _explain_system(error: BaseException) -> RedisFault | None:
    if isinstance(error, NoMaster):
        return RedisFault(f"no Sentinel named a master ({error})", "correct the Sentinels and `master` in it")
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "add ?ssl_ca_certs=FILE to it, or correct the host"
        return RedisFault(f"the server's certificate is not trusted ({error.verify_message})", remedy, lasts=True)
    return next((fault for kind, fault in _OF_SYSTEM if isinstance(error, kind)), None)


def _list_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what caused it, the outermost first."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__
