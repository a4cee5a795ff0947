"""A source says what to ask, how to read the answer, and a few numbers.

`request` is an HTTP request, or a function that turns a query into one; `parse` turns the body into our model.
Neither does I/O nor reads a clock, so both are tested with plain values. The engine does the fetching, and with
it the deadline, the retry, the pacing, the cache and the bookkeeping, in the same way for every source.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from toolserver.upstream.proof import Proof
from toolserver.upstream.rows import USUAL_SHARE

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
    presence replaces budget and gap by `keyed_budget` and `keyed_gap_s`. `reserve` is the part of the budget that
    queries chosen by callers may not touch; 0 for a group that only they use. `refusing` are the statuses, besides
    403 and 451, by which its hosts refuse clients that are no browsers: 429 where it comes whatever the pace.
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
    reserve: float = 0.5
    refusing: frozenset[int] = frozenset()


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
        request: what to send: a `Get` or `Post` that never changes, several of them (mirrors, tried in order), or
            a function `(query, keys) -> Plan` where it depends on the query or on a key. A function that returns
            None says "not usable": a key is missing.
        parse: `(body, query) -> result`; raises a `SourceError` or any of KeyError, ValueError, TypeError, …
            which the engine turns into `SourceChanged`. Body is what `Get.decode` asked for.
        fresh_s: how long an answer is served as live.
        keep_s: how much longer it may be served, marked stale, while the upstream is down; usually a day.
        timeout_s: seconds for the whole exchange, retry included.
        newest: the time of the youngest item in an answer, for `_meta` and for `newest_max_s`.
        stamp: the time the upstream put on the document, judged by `newest_max_s` instead of `newest`.
        newest_max_s: oldest acceptable stamp or newest item; older raises `SourceFrozen`.
        ageless: why an answer has no age limit, in a sentence: where no `newest_max_s`, no proof and no `moves` is one.
        least: fewest items of a sized answer; fewer raises `SourceEmpty` (0: may be empty, if there is a `proof`).
        proof: what proves that the source is alive; required where `least` is 0, and otherwise checked if given.
        lists: what it lists, in a word that providers of the same things share: lists that are far shorter than usual
            are believed when two of them are.
        size_varies: why the number of items may fall to less than a seventh of what it usually is, in a sentence.
        advances: no time of its newest item can prove that it is of today, but that time does not go back: if it does
            within an hour, the answer is an old one and `SourceFrozen` is raised.
        moves: what of an answer changes all the time, to the last digit: if it stands still, `SourceFrozen` is raised.
        also: statuses besides 200 that are an answer (404 where "not indexed" is what was asked).
        conditional: send If-None-Match and If-Modified-Since, understand 304.
        prefix: stop reading after `max_bytes` and parse the complete lines only.
        key: the cache key of a query, where the query holds more than identifies the answer (a date).
        user_input: the query comes from a caller: kept in a small cache of its own, never on disk. Unless the
            caller left the arguments at their defaults, it also has a lane, a circuit and a budget of its own.
        few_choices: a caller's argument is one of a few words: cached like any other, in the lane of callers.
        covers: what of the upstream's whole list an answer covers, in words that follow "read was"; None for all of it.
        unreadable_share: of the rows of a list, how large a part may be unreadable; more of them is no answer.
        untrusted: answers carry third-party text.
        probe: a query that `doctor` may ask, or a function of the time that returns one.
    """

    name: str
    request: Callable[[Q, Keys], Plan] | Request | Sequence[Request]
    parse: Callable[[Any, Q], R]
    licence: Licence
    hosts: HostGroup
    fresh_s: float
    keep_s: float = 86400
    timeout_s: float = 8
    max_bytes: int = 2 * MIB
    prefix: bool = False
    conditional: bool = False
    newest: Callable[[R], datetime | None] | None = None
    stamp: Callable[[R], datetime | None] | None = None
    newest_max_s: float | None = None
    ageless: str = ""
    least: int = 1
    proof: Proof | None = None
    lists: str = ""
    size_varies: str = ""
    advances: bool = False
    moves: Callable[[R], Hashable] | None = None
    also: frozenset[int] = frozenset()
    key: Callable[[Q], Hashable] = same
    user_input: bool = False
    few_choices: bool = False
    covers: Callable[[R], str | None] | None = None
    unreadable_share: float = USUAL_SHARE
    untrusted: bool = False
    gauge: Gauge[R] | None = None
    probe: Any = None

    def __post_init__(self) -> None:
        if self.least == 0 and self.proof is None:
            raise TypeError(f"{self.name} may be empty and declares no proof of life: see docs/adding-a-source.md")
        if self.ageless and (self.has_age_limit or len(self.ageless.split()) < 4):
            raise TypeError(f"{self.name} has an age limit, or says in less than a sentence why it has none")
        if self.size_varies and len(self.size_varies.split()) < 4:
            raise TypeError(f"{self.name} says in less than a sentence why the number of its items varies")

    def plan(self, query: Q, keys: Keys) -> Plan:
        """What to send for a query with the API keys that are set."""
        return self.request(query, keys) if callable(self.request) else self.request

    @property
    def has_age_limit(self) -> bool:
        """Whether an answer that is served but no longer written is found out: by a time in it, or by its stillness."""
        proves_by_time = self.proof is not None and self.proof.how in ("stamp", "newest")
        return bool(self.newest_max_s) or proves_by_time or self.moves is not None

    def make_probe(self, now: datetime) -> Any:
        """Return the query that `doctor` asks; None where no query is needed, or none was given.

        Raises:
            LookupError: no query is good without another source's answer.
        """
        return self.probe(now) if callable(self.probe) else self.probe

    @cached_property
    def request_name(self) -> str:
        """The request function's name, or the constant request: sources that share it and `name` share answers."""
        return self.request.__qualname__ if callable(self.request) else repr(self.request)

    def __repr__(self) -> str:
        return f"Source({self.name!r})"
