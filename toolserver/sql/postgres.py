"""Connect to PostgreSQL over asyncpg with the interface that stores use. The only importer of asyncpg.

A connection belongs to one thread and runs that thread's statements one after another in its
own event loop. Every piece of work has a deadline, after which the connection is cut, so that
a hanging server cannot block a caller. There are four kinds of errors: rows that break a rule
(`ConstraintViolated`), an invalid statement (`DatabaseError`), a transaction that may be run
again (`TransactionLost`), and an unreachable server (`ServerAway`, which is also a
`TransactionLost`).
"""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from toolserver.sql.connection import Parameters
from toolserver.sql.errors import ConstraintViolated, DatabaseError, StorageFailed, TransactionLost
from toolserver.sql.server_seal import BEGIN_NOTING, READ_NOTED, ServerSeal

R = TypeVar("R")

LOCK_WAITS = 4  # how many lock timeouts fit into the time of a group
IDLE_TRANSACTION_S = 5.0  # after this, the locks of an instance that vanished within a transaction are freed
# SQLSTATE prefixes: the server stops or is not the primary; a conflict with another transaction; a rule of a table.
_AWAY = ("08", "57P", "25006", "53300")
_LOST = ("40001", "40P01", "57014", "55P03")
_REFUSED = "23"
_NOT_SEALED = "22012"  # a division by zero, which `ServerSeal.extend` arranges
DATABASE_URL = "database_url (TOOLSERVER_DATABASE_URL)"
_REMEDIES = {  # by SQLSTATE or its beginning, for what an operator can mend
    "28": "check the user and the password in it, and the server's pg_hba.conf (add ?sslmode=require if it wants TLS)",
    "3D000": "create the database (`createdb`), or correct its name there",
    "53300": "raise max_connections of the server, or run fewer workers or instances",
    "25006": "the server is read-only: name the primary there",
    "42501": "let its user create tables (GRANT CREATE ON SCHEMA public)",
    "3F000": "create the schema that search_path names in it",
    "42704": "correct the parameters after the question mark in it",
    "57P03": "the server is starting or stopping: try again",
}
_POOLERS: dict[str, bool] = {}  # by user, host and port: whether a pooler answers there
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'      # text
    |"(?:[^"]|"")*"         # a name
    |--[^\n]*               # a comment
    |::\w+                  # a type
    |\?(?P<number>\d*)      # a placeholder, numbered or not
    |(?<![\w:]):(?P<name>[a-z_]\w*)""",
    re.VERBOSE,
)
_GIVES_ROWS = re.compile(r"\s*(SELECT|WITH|VALUES|SHOW|FETCH|EXPLAIN)\b", re.IGNORECASE)
_RETURNING = re.compile(r"\bRETURNING\b")


class PostgresMissing(StorageFailed, abstract=True):
    """The PostgreSQL driver is not installed: `pip install 'agent-toolserver[postgres]'`."""


class ServerAway(TransactionLost):
    """There is no connection to the server, or it was cut."""


@dataclass(frozen=True, slots=True)
class PostgresTerms:
    """Where the server is and how long to wait for it. `url` contains a password and is never shown.

    `work_s` is the time limit for a group or a read, including reconnects and retries.
    `cached` is the number of prepared statements per connection: 0 to treat the server as a
    pooler that gives each transaction another connection, which is also found out by itself.
    `row_key` is the key of the seal over rows of money, without which they are not sealed, and
    `data_dir` has the marks of how far the seals have come.
    """

    url: str = field(repr=False)
    cached: int = 256
    readers: int = 2
    connect_s: float = 0.8
    work_s: float = 0.8
    row_key: bytes | None = field(default=None, repr=False)
    data_dir: Path | None = None


def load_driver() -> ModuleType:
    """Import the module `asyncpg`. Raises PostgresMissing."""
    try:
        import asyncpg
    except ImportError:
        raise PostgresMissing(
            f"{DATABASE_URL} needs the PostgreSQL driver: pip install 'agent-toolserver[postgres]', or unset it"
        ) from None
    return asyncpg  # type: ignore[no-any-return]


class PostgresCursor:
    """The result of one statement."""

    def __init__(self, rows: Sequence[Sequence[Any]], status: str) -> None:
        self._rows: Iterator[Sequence[Any]] = iter(rows)
        count = status.rpartition(" ")[2]
        self.rowcount = int(count) if count.isdecimal() else len(rows) if rows else -1

    def fetchone(self) -> Any:
        row = next(self._rows, None)
        return None if row is None else tuple(row)

    def fetchall(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return map(tuple, self._rows)


class PostgresConnection:
    """One connection, opened when first needed and reopened after a loss."""

    shared = True

    def __init__(self, terms: PostgresTerms) -> None:
        self.terms = terms
        self._seal = None if terms.row_key is None else ServerSeal(terms.row_key)
        self._driver = load_driver()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_report_error)
        self._raw: Any = None
        self._until = float("inf")
        self.is_pooled = not terms.cached
        self.in_transaction = False
        self._sealing = ""  # the statement that is sent together with the commit
        self.patience_s = 0.0  # more time for a group than its terms give
        self.has_connected = False  # a server has answered, on this connection or on one before it
        self.retries = 0  # how often a transaction on it was run again
        self._is_torn = False  # the connection was lost within a transaction that its user has not yet ended

    def limit(self, until: float) -> None:
        """Cut the connection if work on it lasts beyond this time (`time.monotonic()`)."""
        self._until = until

    def connect(self) -> None:
        """Connect if necessary.

        Raises ServerAway, also if the connection was lost within a transaction: the rest of
        it must not run on another connection, where each statement would be committed.
        """
        if self._raw is not None and not self._raw.is_closed():
            return
        self.drop()
        if self._is_torn:
            raise ServerAway("the connection was lost within a transaction")
        self._raw = self._drive(self._connect())
        self.has_connected = True

    @property
    def is_open(self) -> bool:
        """True while it is connected."""
        return self._raw is not None and not self._raw.is_closed()

    def drop(self) -> None:
        """Drop the connection. The server rolls back its open transaction, if any."""
        self._is_torn = self._is_torn or self.in_transaction
        raw, self._raw, self.in_transaction = self._raw, None, False
        if raw is not None:
            raw.terminate()
            self._loop.run_until_complete(asyncio.sleep(0))  # lets the transport close

    def close(self) -> None:
        """Close the connection and its loop. Must be called by the thread that used it."""
        self.drop()
        self._loop.close()

    def begin(self, *, read_only: bool = False) -> None:
        """Begin a transaction. Behind a pooler, the session's settings are set only for this transaction."""
        self._is_torn, self._sealing = False, ""
        self.connect()
        mode = "READ COMMITTED" if not read_only else "REPEATABLE READ, READ ONLY"
        noting = "" if self._seal is None or read_only else f"; {BEGIN_NOTING}"
        self._simple(f"BEGIN ISOLATION LEVEL {mode}" + (f"; {self._local_terms()}" if self.is_pooled else "") + noting)
        self.in_transaction = True

    def commit(self) -> None:
        """Commit, in one round trip with what `seal_changes` left to do.

        Raises:
            ServerAway: no answer arrived, so that the transaction may or may not be committed.
            TransactionLost: another process has replaced the seal of this writer. Nothing was written.
        """
        try:
            status = self._simple(f"{self._sealing}; COMMIT" if self._sealing else "COMMIT")
            if status != "COMMIT":  # a statement failed, and its caller continued as if nothing had happened
                raise DatabaseError("the transaction was rolled back: a statement in it had failed")
        except (DatabaseError, TransactionLost) as error:
            self.rollback()
            if self._seal is not None:
                self._seal.forget()
            if getattr(error.__cause__, "sqlstate", None) == _NOT_SEALED:
                raise TransactionLost("the seal of this writer is not the one that it stored last") from error
            raise
        self.in_transaction = self._is_torn = False
        if self._seal is not None:
            self._seal.note_commit()

    def seal_changes(self) -> str | None:
        """Seal the rows that the transaction changed, if the connection has a key. Call this before `commit`.

        Returns the number of the transaction; None if it has written nothing. Raises SealBroken.
        """
        noted = READ_NOTED if self._seal is not None else "''"
        number, rows = self.execute(f"SELECT pg_current_xact_id_if_assigned()::text, {noted}").fetchone()
        if self._seal is not None:
            self._sealing = self._seal.extend(self, rows)
        return number  # type: ignore[no-any-return]

    def transact(self, job: Callable[[], R]) -> R:
        """Run a job in one transaction and return its result. If the job raises, nothing is written."""
        self.begin()
        try:
            done = job()
            if self._seal is not None:
                self.seal_changes()
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return done

    def rollback(self) -> None:
        """Roll back, or drop the connection if that fails."""
        if self._raw is None or self._raw.is_closed():
            self.drop()
        else:
            try:
                self._simple("ROLLBACK")
            except (DatabaseError, TransactionLost):
                self.drop()
        self.in_transaction = self._is_torn = False
        if self._seal is not None:
            self._seal.note_rollback()

    def execute(self, sql: str, parameters: Parameters = (), /) -> PostgresCursor:
        """Run one statement. Raises DatabaseError, or TransactionLost."""
        statement = translate(sql)
        values = statement.bind(parameters)
        self.connect()
        if statement.gives_rows:
            return PostgresCursor(self._drive(self._raw.fetch(statement.sql, *values)), "")
        return PostgresCursor((), self._drive(self._raw.execute(statement.sql, *values)))

    def run_script(self, script: str) -> None:
        """Run several statements without parameters."""
        self._simple(script)

    def copy_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to a table by COPY, within the caller's transaction. Raises as `execute` does."""
        self.connect()
        self._drive(self._raw.copy_records_to_table(table, columns=list(columns), records=rows))

    def _simple(self, sql: str) -> str:
        if self._raw is None:
            raise ServerAway("the connection was lost")
        return str(self._drive(self._raw.execute(sql)))

    async def _connect(self) -> Any:
        self.is_pooled = not self.terms.cached or await self._finds_pooler()
        raw = await self._open(cached=0 if self.is_pooled else self.terms.cached, is_pooled=self.is_pooled)
        # Sums of whole numbers have type numeric, for which the driver would return decimals.
        await raw.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=_read_number, format="text")
        return raw

    async def _open(self, *, cached: int, is_pooled: bool) -> Any:
        return await self._driver.connect(
            self.terms.url,
            timeout=max(0.01, min(self.terms.connect_s, self._until - time.monotonic())),
            statement_cache_size=cached,
            server_settings=None if is_pooled else self._session_terms(),
            target_session_attrs="primary",
        )

    async def _finds_pooler(self) -> bool:
        """Return True if a pooler such as PgBouncer is between us and the server. Asked once for each address.

        A pooler refuses the settings of a session, or greets with a number that is not the
        server's process.
        """
        place = urlsplit(self.terms.url).netloc
        if place not in _POOLERS:
            try:
                raw = await self._open(cached=0, is_pooled=False)
            except self._driver.PostgresError as error:
                if error.sqlstate != "08P01":
                    raise
                _POOLERS[place] = True
                return True
            try:
                async with raw.transaction():
                    _POOLERS[place] = raw.get_server_pid() != await raw.fetchval("SELECT pg_backend_pid()")
            finally:
                raw.terminate()
        return _POOLERS[place]

    def _session_terms(self) -> dict[str, str]:
        work = f"{int(self.terms.work_s * 1000)}ms"
        # Deadlocked transactions are ended, and run again within the time of the group.
        wait = f"{int(self.terms.work_s * 1000 / LOCK_WAITS)}ms"
        return {
            "application_name": "toolserver",
            "statement_timeout": work,
            "lock_timeout": wait,
            "idle_in_transaction_session_timeout": f"{int(IDLE_TRANSACTION_S * 1000)}ms",
            "synchronous_commit": "on",
            "jit": "off",
            # A statement that is planned while its tables are empty would use full scans for as long as it is cached.
            "enable_seqscan": "off",
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            # The server starts processes for the first rows of a large join, which takes longer than reading them.
            "max_parallel_workers_per_gather": "0",
        }

    def _local_terms(self) -> str:
        terms = self._session_terms()
        del terms["application_name"]
        return "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in terms.items())

    def _drive(self, work: Awaitable[R]) -> R:
        left = self._until - time.monotonic()
        cut = self._loop.call_later(left, self._cut) if left != float("inf") else None
        try:
            return self._loop.run_until_complete(_await(work))
        except self._driver.PostgresError as error:
            named = _name_error(error)
            if isinstance(named, ServerAway):
                self.drop()
            raise named from error
        except (ValueError, TypeError, OverflowError) as error:  # a value of a type that its column does not accept
            raise DatabaseError(str(error)) from error
        except (self._driver.InternalClientError, OSError, TimeoutError) as error:
            self.drop()
            raise ServerAway(_describe_absence(error)) from error
        except (self._driver.InterfaceError, AttributeError) as error:  # the latter if cut between two steps
            if self._raw is not None and not self._raw.is_closed():
                raise DatabaseError(str(error)) from error  # the driver's own refusal, such as a parameter too few
            self.drop()
            raise ServerAway("the connection was lost between two steps of a statement") from error
        finally:
            if cut is not None:
                cut.cancel()

    def _cut(self) -> None:
        if self._raw is not None:
            self._raw.terminate()


def _report_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error of the loop, but not a lost connection: the statement that needed it has raised."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)


async def _await(work: Awaitable[R]) -> R:
    return await work


def _read_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _name_error(error: Any) -> Exception:
    state = str(error.sqlstate or "")
    text = f"{state} {error.args[0] if error.args else error!r}"  # without the row, which the server adds
    if state == "3D000":  # an address with a slash too few has its password in the name of the database
        text = f"{state} there is no database of this name"
    text += next((f"; {remedy}" for start, remedy in _REMEDIES.items() if state.startswith(start)), "")
    if state.startswith(_AWAY):
        return ServerAway(text)
    if state.startswith(_LOST):
        return TransactionLost(text)
    return ConstraintViolated(text) if state.startswith(_REFUSED) else DatabaseError(text)


_OF_SYSTEM: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "there is no such host ({error.strerror}): correct the host name in it"),
    (TimeoutError, "the server did not answer in time: check the host and the port in it, and the server's load"),
    (
        ConnectionRefusedError,
        "the connection was refused ({error}): start the server, or correct the host and the port in it",
    ),
    (
        ssl.SSLCertVerificationError,
        "the server's certificate is not trusted ({error.verify_message}): correct the host or sslrootcert in it",
    ),
    (FileNotFoundError, "a file that it names is not there: correct sslrootcert, sslcert or sslkey in it"),
    (PermissionError, "a file that it names cannot be read: correct sslrootcert, sslcert or sslkey in it"),
    (ConnectionResetError, "the server closed the connection: it is stopping, or is not a PostgreSQL; check the port"),
)
_OF_DRIVER = (
    ("TargetServerAttributeNotMatched", "the server is read-only (a standby): name the primary in it"),
    ("SSL upgrade", "the server does not speak TLS: turn TLS on there, write ?sslmode=disable, or correct the port"),
    ("connection_lost", "the server closed the connection: it is stopping, or is not a PostgreSQL; check the port"),
)


def _describe_absence(error: Exception) -> str:
    """Say why there is no connection, and what to check. The text names the host, and no password."""
    said = f"{type(error).__name__}: {error}"
    by_kind = (text.format(error=error) for kind, text in _OF_SYSTEM if isinstance(error, kind))
    by_words = (text for words, text in _OF_DRIVER if words in said)
    return next(by_kind, None) or next(by_words, said)


class PostgresStatement(NamedTuple):
    """A statement with `$1` and so on. `names` are the named parameters in order, if parameters are named."""

    sql: str
    names: tuple[str, ...]
    gives_rows: bool

    def bind(self, parameters: Parameters) -> tuple[Any, ...]:
        """Return the values in the order of their numbers."""
        if isinstance(parameters, Mapping):
            return tuple(parameters[name] for name in self.names)
        return tuple(parameters)


@lru_cache(maxsize=1024)
def translate(sql: str) -> PostgresStatement:
    """Return the statement with numbered placeholders. Texts, names and comments are unchanged."""
    names: list[str] = []
    marks = 0

    def number(token: re.Match[str]) -> str:
        nonlocal marks
        if name := token["name"]:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        if token["number"] is None:
            return token[0]
        if token["number"]:
            return f"${token['number']}"
        marks += 1
        return f"${marks}"

    text = _TOKEN.sub(number, sql)
    gives_rows = _GIVES_ROWS.match(text) is not None or _RETURNING.search(text) is not None
    return PostgresStatement(text, tuple(names), gives_rows)
