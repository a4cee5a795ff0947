"""A source is two pure functions and a few numbers.

`request` turns a query into an HTTP request, `parse` turns the body into our model. Neither does
I/O nor reads a clock, so both are tested with plain values. The engine does the fetching, and with it
the deadline, the retry, the pacing, the cache and the bookkeeping, the same way for every source.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

Q = TypeVar("Q")
R = TypeVar("R")

Decode = Literal["json", "text", "bytes"]
Keys: TypeAlias = Mapping[str, str]  # the API keys that are set, by environment name: {"FRED_API_KEY": "…"}

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Get:
    """An HTTP GET to make. `url` is absolute and carries no secret that `params` or `headers` could carry."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    decode: Decode = "json"


@dataclass(frozen=True, slots=True)
class Post(Get):
    """An HTTP POST that only asks (JSON-RPC and query APIs), so it may be retried like a GET."""

    json: Any = None


@dataclass(frozen=True, slots=True)
class Connect(Get):
    """No HTTP at all: open TCP connections to the URL's host and port and say how long that took.

    The body given to `parse` is {"latency_ms": n} or {"unreachable": true}.
    """


Request: TypeAlias = Get | Post | Connect
Plan: TypeAlias = Request | Sequence[Request] | None
"""What to send: one request, several to try in order (mirrors of the same document), or None (not usable)."""


@dataclass(frozen=True, slots=True)
class Licence:
    """What the provider allows. `kind` decides what `sources.licence_policy` bars."""

    kind: Literal["yes", "attribution", "non_commercial", "unclear", "no"]
    attribution: str
    terms_url: str | None = None


@dataclass(frozen=True, slots=True)
class HostGroup:
    """How politely a group of hosts is asked: how many at once, how far apart, how many per period.

    `each_host` keeps the numbers per host instead of for the whole group. `key` names an API key whose
    presence replaces budget and gap by `keyed_budget` and `keyed_gap_s`.
    """

    name: str
    parallel: int
    gap_s: float
    budget: int
    period_s: float
    each_host: bool = False
    key: str | None = None
    keyed_budget: int | None = None
    keyed_gap_s: float | None = None


@dataclass(frozen=True, slots=True)
class Gauge(Generic[R]):
    """The numbers of an answer that must not jump, by a name that providers of the same quantity share.

    A value farther than `limit` from the last good one (a fraction, or in the value's own unit when
    `absolute`) is withheld until another provider agrees, or the same one repeats it ten minutes later.
    """

    values: Callable[[R], Mapping[str, float]]
    limit: float
    absolute: bool = False


def same(query: Any) -> Hashable:
    """The usual cache key: the query itself."""
    return query  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Source(Generic[Q, R]):
    """One upstream request shape with a permanent public name.

    Attributes:
        name: `Provider.specific_metric`, permanent: it appears in `_meta.sources[]`.
        request: `(query, keys) -> Plan`. None means "not usable": a key is missing.
        parse: `(body, query) -> result`; raises a `SourceError` or any of KeyError, ValueError, TypeError, …
            which the engine turns into `SourceChanged`. Body is what `Get.decode` asked for.
        fresh_s: how long an answer is served as live.
        keep_s: how much longer it may be served, marked stale, while the upstream is down.
        timeout_s: the whole exchange, retry included.
        newest: the time of the youngest item in an answer, for `_meta` and for `newest_max_s`.
        stamp: the time the upstream put on the document, judged by `newest_max_s` instead of `newest`.
        newest_max_s: oldest acceptable stamp or newest item; older raises `SourceFrozen`.
        least: fewest items of a sized answer; fewer raises `SourceEmpty` (0: may be empty).
        also: statuses besides 200 that are an answer (404 where "not indexed" is what was asked).
        conditional: send If-None-Match and If-Modified-Since, understand 304.
        prefix: stop reading after `max_bytes` and parse the complete lines only.
        key: the cache key of a query, where the query holds more than identifies the answer (a date).
        user_input: the query comes from a caller: kept in a small cache of its own, never on disk.
        untrusted: answers carry third-party text.
        probe: a query that `doctor` may ask.
    """

    name: str
    request: Callable[[Q, Keys], Plan]
    parse: Callable[[Any, Q], R]
    licence: Licence
    hosts: HostGroup
    fresh_s: float
    keep_s: float
    timeout_s: float
    max_bytes: int = 2 * MIB
    prefix: bool = False
    conditional: bool = False
    newest: Callable[[R], datetime | None] | None = None
    stamp: Callable[[R], datetime | None] | None = None
    newest_max_s: float | None = None
    least: int = 1
    also: frozenset[int] = frozenset()
    key: Callable[[Q], Hashable] = same
    user_input: bool = False
    untrusted: bool = False
    gauge: Gauge[R] | None = None
    probe: Any = None

    def __repr__(self) -> str:
        return f"Source({self.name!r})"
