"""Defines a source: what to request, how to read the answer, a few numbers, and the errors that say why it failed.

`request` is an HTTP request, or a function that turns a query into one; `parse` turns the
body into our model. Neither does I/O or reads a clock, so both are tested with plain values.
The engine does the fetching, deadline, retry, pacing, caching and bookkeeping in the same way
for every source.

An empty list looks the same whether nothing happened or the feed is dead. Every source that
may be empty declares with a `Proof` how to tell the difference. An answer without proof
raises `SourceUnproved`, and the next source is queried.

A source that returned nothing usable raises a `SourceError`. Callers still get the data of
other sources. Every other reading is a `SourceAnswer`: the value, its origin and its age.
"""

import csv
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from toolserver.errors import ToolserverError
from toolserver.upstream.fan_out import FanOut

UNREADABLE = (
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    SyntaxError,
    csv.Error,
)
"""The exceptions that a parser raises for a body or row of an unexpected form."""


class SourceError(ToolserverError):
    """An upstream returned nothing usable.

    `word` is the failure in one word, `reason` adds the detail, which has no URL query and no
    key. `retry_after_s` is set if the upstream said when to retry.
    """

    word = "changed"
    was_sent = True  # False if we did not send the request, which says nothing about the upstream

    def __init__(self, detail: str = "", *, word: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.word = word or self.word
        self.retry_after_s = retry_after_s

    @property
    def reason(self) -> str:
        """`word: detail`, at most 100 characters of detail: one entry of `_meta.sources[].reason`."""
        detail = str(self)[:100]
        return f"{self.word}: {detail}" if detail else self.word

    @classmethod
    def first_of(cls, group: ExceptionGroup[Any]) -> "SourceError":
        """Return the first error of a group, which has to be a source error. Other errors are bugs and are raised."""
        error = group.exceptions[0]
        if isinstance(error, ExceptionGroup):
            return cls.first_of(error)
        if not isinstance(error, cls):
            raise group
        return error


class SourceDown(SourceError):
    """No connection, no answer in time, or a server error. `word` is connect, timeout, http_<code> or breaker_open."""

    word = "connect"


class NotConnected(SourceDown):
    """No connection could be opened: the name does not resolve, or the host (or our proxy) takes none."""


class NoAddress(NotConnected):
    """The host's name does not resolve: the name service answered that there is no such name."""


class SourceLimited(SourceError):
    """The upstream (429, 418, quota text) or our own budget allows no request now."""

    word = "rate_limited"


class SourceRefused(SourceError):
    """401, 403 or 451."""

    word = "refused"


class HostRefused(SourceRefused):
    """The host refuses our requests. If `was_sent` is False, we did not retry because it refused recently."""

    def __init__(self, detail: str, *, was_sent: bool = True) -> None:
        super().__init__(detail)
        self.was_sent = was_sent


class SourceChanged(SourceError):
    """The body does not have the known shape of this source; `word` is that of the base class."""


class SourceEmpty(SourceError):
    """A well-formed body with fewer items than required."""

    word = "empty"


class SourceUnproved(SourceEmpty):
    """An empty or short answer without proof that the upstream is alive."""

    word = "unproved_empty"


class SourceFrozen(SourceError):
    """The newest item is older than this source permits."""

    word = "frozen"


class SourceTooLarge(SourceError):
    """More bytes than the source allows."""

    word = "too_large"


class SourceImplausible(SourceError):
    """A value jumped and no second provider agrees."""

    word = "implausible"


class SourceExcluded(SourceError):
    """The licence policy excludes this source."""

    word = "licence"


class SourceUnusable(SourceError):
    """The source needs a key that is not set."""

    word = "no_key"


@dataclass(frozen=True, slots=True)
class Proof:
    """How a source proves that it is alive. `within_s` is the maximum age of its stamp or newest item, in seconds.

    - `stamp`: the upstream's own time on the document is recent enough, regardless of the number of items.
    - `newest`: an item of a query that is never empty is recent enough.
    - `second`: nothing in the answer proves it, so an empty answer of a single provider is not believed.
    - `harmless`: an empty answer misleads no caller, for the given `reason`.
    """

    how: Literal["stamp", "newest", "second", "harmless"]
    within_s: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.how in ("stamp", "newest") and not self.within_s:
            raise TypeError(f"a proof by {self.how} says within how many seconds")
        if self.how in ("second", "harmless") and len(self.reason.split()) < 4:
            raise TypeError(f"a proof that is {self.how} gives its reason in a sentence")

    @classmethod
    def by_stamp(cls, within_s: float) -> "Proof":
        return cls("stamp", within_s)

    @classmethod
    def by_newest(cls, within_s: float) -> "Proof":
        return cls("newest", within_s)

    @classmethod
    def by_second(cls, reason: str) -> "Proof":
        return cls("second", reason=reason)

    @classmethod
    def harmless(cls, reason: str) -> "Proof":
        return cls("harmless", reason=reason)

    def check(self, value: Any, *, stamp: datetime | None, newest: datetime | None, now: datetime) -> None:
        """Raise SourceUnproved for an answer that does not prove that its source is alive."""
        if self.how == "harmless":
            return
        if self.how == "second":
            if is_empty(value):
                raise SourceUnproved("nothing in the answer proves it")
            return
        time = stamp if self.how == "stamp" else newest
        if time is None:
            raise SourceUnproved(f"no {self.how} proves it")
        if (now - time).total_seconds() > (self.within_s or 0):
            raise SourceUnproved(f"its {self.how} is from {time:%Y-%m-%d %H:%M}")


def is_empty(value: Any) -> bool:
    """Return True if an answer lists nothing: it is a list, or a record whose first field is a list."""
    return count_listed(value) == 0


def count_listed(value: Any) -> int | None:
    """Return how many items an answer lists, for a list or a record whose first field is a list, otherwise None."""
    listed = value[0] if hasattr(value, "_fields") and value else value
    if listed is None:
        return 0
    return len(listed) if isinstance(listed, Sized) and not isinstance(listed, str | bytes) else None


Q = TypeVar("Q")
R = TypeVar("R")

Decode = Literal["json", "text", "bytes"]
Keys: TypeAlias = Mapping[str, str]  # the API keys that are set, by environment name: {"FRED_API_KEY": "…"}

MIB = 1024 * 1024
USUAL_SHARE = 0.1  # of the rows of a list, that may be unreadable


@dataclass(frozen=True, slots=True)
class Get:
    """An HTTP GET to send. `url` is absolute and contains no secret that `params` or `headers` could carry.

    `under` names the API key whose plan, or the setting whose server, it uses: the source's `terms` for it hold.
    """

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    decode: Decode = "json"
    under: str = field(default="", repr=False)  # the repr is part of the keys of stored answers


@dataclass(frozen=True, slots=True)
class Post(Get):
    """An HTTP POST that only reads (JSON-RPC and query APIs), so that it may be retried like a GET."""

    json: Any = None


@dataclass(frozen=True, slots=True)
class Connect(Get):
    """No HTTP: open TCP connections to the URL's host and port and measure the time.

    The body passed to `parse` is {"latency_ms": n} or {"unreachable": true}.
    """


Request: TypeAlias = Get | Post | Connect
Plan: TypeAlias = Request | Sequence[Request] | None
"""What to send: one request, several to try in order (mirrors of the same document), or None (not usable)."""


@dataclass(frozen=True, slots=True)
class Licence:
    """What the provider allows. `kind` decides which values of `sources.licence_policy` exclude the source.

    No source declares `contract`: it is the class of a source that the operator has a contract for.
    """

    kind: Literal["yes", "attribution", "non_commercial", "unclear", "no", "contract"]
    attribution: str
    terms_url: str | None = None


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """The licence of what a source answers to requests with an API key, or on the operator's own server.

    `alone` means that with the key set, no other request is sent. The credit stays the source's.
    """

    licence: Licence
    alone: bool = False


@dataclass(frozen=True, slots=True)
class HostGroup:
    """The request limits of a group of hosts: how many at once, how far apart, how many per period.

    A host that was left alone gets up to `burst` requests without a gap; later ones are again
    `gap_s` apart. In any time there are less than `burst` more than with gaps, and never more
    than `budget` in a period. `burst` is at least the number of requests that a tool sends to
    the group together, and at most the budget.

    `each_host` applies the limits per host instead of to the whole group. `key` names an API key whose presence
    replaces budget and gap with `keyed_budget` and `keyed_gap_s`. `reserve` is the part of the budget that queries
    chosen by callers may not use; 0 for a group that only they use. `refusing` are the statuses, in addition to 403 and
    451, with which its hosts refuse clients that are not browsers, such as a 429 that comes at any pace.
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
    burst: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= min(self.budget, self.keyed_budget or self.budget):
            raise TypeError(f"the burst of {self.name} is at least 1 and at most its budget")


@dataclass(frozen=True, slots=True)
class Gauge(Generic[R]):
    """The numbers of an answer that must not jump, by a name shared by providers of the same quantity.

    A value that differs by more than `limit` from the last good one (a fraction, or in the
    value's own unit if `absolute`) is withheld until another provider agrees, or the same one
    repeats it ten minutes later.
    """

    values: Callable[[R], Mapping[str, float]]
    limit: float
    absolute: bool = False


def same(query: Any) -> Hashable:
    """Return the usual cache key: the query itself."""
    return query  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Source(Generic[Q, R]):
    """One upstream request shape with a permanent public name.

    Attributes:
        name: `Provider.specific_metric`, permanent: it appears in `_meta.sources[]`.
        request: what to send: a constant `Get` or `Post`, several of them (mirrors, tried in order), or a function
            `(query, keys) -> Plan` if it depends on the query or on a key. A function that returns None says "not
            usable": a key is missing.
        parse: `(body, query) -> result`; raises a `SourceError` or any of KeyError, ValueError, TypeError, …
            which the engine turns into `SourceChanged`. The body has the type that `Get.decode` names.
        fresh_s: how long an answer is served as live.
        keep_s: how much longer it may be served, marked stale, while the upstream is down; usually a day.
        timeout_s: seconds for the whole exchange, including the retry.
        newest: the time of the newest item in an answer, for `_meta` and for `newest_max_s`.
        stamp: the time the upstream put on the document, judged by `newest_max_s` instead of `newest`.
        newest_max_s: oldest acceptable stamp or newest item; older raises `SourceFrozen`.
        ageless: why an answer has no age limit, in a sentence, if `newest_max_s`, proof and `moves` do not set one.
        least: fewest items of a sized answer; fewer raises `SourceEmpty` (0: may be empty, if there is a `proof`).
        proof: what proves that the source is alive; required if `least` is 0, and otherwise checked if given.
        lists: the kind of items, in a word shared by providers of the same data: a list that is far shorter than usual
            is accepted if two of them are.
        size_varies: why the number of items may fall below a seventh of its usual value, in a sentence.
        advances: the newest item's time cannot prove that the answer is current, but it never goes back. If it does
            within an hour, the answer is old and `SourceFrozen` is raised.
        moves: the part of an answer that changes constantly, to the last digit; if it stops, `SourceFrozen` is raised.
        also: statuses in addition to 200 that are an answer (such as 404 for "not indexed").
        conditional: send If-None-Match and If-Modified-Since, understand 304.
        prefix: stop reading after `max_bytes` and parse the complete lines only.
        key: the cache key of a query, if the query has more than identifies the answer (such as a date).
        user_input: the query comes from a caller. It is kept in a separate small cache, never on disk. Unless the
            caller left the arguments at their defaults, it also has a separate lane, circuit and budget.
        few_choices: a caller's argument is one of a few words. It is cached normally, but uses the callers' lane.
        covers: the part of the upstream's list that an answer covers, as text after "read was"; None for all of it.
        unreadable_share: the part of a list's rows that may be unreadable; with more, there is no answer.
        untrusted: answers carry third-party text.
        terms: the licence of requests that name a key in `under`, by the name of the key.
        probe: a query that `doctor` may send, or a function of the time that returns one.
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
    terms: Mapping[str, KeyTerms] = field(default_factory=dict)
    probe: Any = None

    def __post_init__(self) -> None:
        if self.least == 0 and self.proof is None:
            raise TypeError(f"{self.name} may be empty and declares no proof of life: see docs/adding-a-source.md")
        if self.ageless and (self.has_age_limit or len(self.ageless.split()) < 4):
            raise TypeError(f"{self.name} has an age limit, or says in less than a sentence why it has none")
        if self.size_varies and len(self.size_varies.split()) < 4:
            raise TypeError(f"{self.name} says in less than a sentence why the number of its items varies")

    def plan(self, query: Q, keys: Keys) -> Plan:
        """Return what to send for a query with the API keys that are set."""
        return self.request(query, keys) if callable(self.request) else self.request

    @property
    def has_age_limit(self) -> bool:
        """True if an answer that is served but no longer updated is detected, by a time in it or because it stops."""
        proves_by_time = self.proof is not None and self.proof.how in ("stamp", "newest")
        return bool(self.newest_max_s) or proves_by_time or self.moves is not None

    def make_probe(self, now: datetime) -> Any:
        """Return the query that `doctor` sends, or None if no query is needed or none was given.

        Raises:
            LookupError: a valid query needs another source's answer.
        """
        return self.probe(now) if callable(self.probe) else self.probe

    @cached_property
    def request_name(self) -> str:
        """The request function's name, or the constant request. Sources that share it and `name` share answers."""
        return self.request.__qualname__ if callable(self.request) else repr(self.request)

    def __repr__(self) -> str:
        return f"Source({self.name!r})"


@dataclass(frozen=True, slots=True)
class SourceAnswer(Generic[R]):
    """One answer of a source.

    `dated` is the time that `newest_max_s` limits (the document's stamp, or its newest item).
    `latency_ms` is that of the exchange that this read started or waited for, or None if the
    value was cached. `failure` says why the value could not be refreshed, if an older one is
    returned instead. `dropped` counts the unreadable rows that are left out. `missing` names the
    members that the source used to give and that all rows now lack.
    """

    value: R
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    latency_ms: int | None = None
    failure: str | None = None
    dropped: int = 0
    missing: tuple[str, ...] = ()


class SourceReader(Protocol):
    """Reads sources. The engine implements it with its cache; tests may use their own."""

    async def fresh(
        self,
        source: Source[Q, R],
        query: Q,
        *,
        sla_s: float,
        is_chosen: bool = False,
        is_patient: bool = True,
        fan_out: FanOut | None = None,
    ) -> SourceAnswer[R]:
        """Return a live or cached answer, never a stale one. Concurrent reads share one fetch.

        `is_chosen` says that the caller chose arguments, so the query may be the caller's.
        Without `is_patient` a read ends if our own pacing makes it wait for long and there is
        a kept answer. The requests of reads with the same `fan_out` are admitted to a host
        together or not at all.

        Raises:
            SourceError: no answer is recent enough, and the fetch failed.
        """
        ...

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Return the last good answer within `keep_s`, or None, without querying the upstream."""
        ...


class CallReader:
    """Reads sources for one call, with its settings of `is_chosen` and `is_patient`, as one fan-out."""

    def __init__(self, reader: SourceReader, *, is_chosen: bool, is_patient: bool) -> None:
        self._reader, self._is_chosen, self._is_patient = reader, is_chosen, is_patient
        self._fan_out = FanOut()
        self.has_asked = False  # whether a read waited for a request to an upstream, or one failed

    async def fresh(
        self,
        source: Source[Q, R],
        query: Q,
        *,
        sla_s: float,
        is_chosen: bool = False,
        is_patient: bool = True,
        fan_out: FanOut | None = None,
    ) -> SourceAnswer[R]:
        """Do what `SourceReader.fresh` does, with the settings of this call."""
        try:
            answer = await self._reader.fresh(
                source,
                query,
                sla_s=sla_s,
                is_chosen=is_chosen or self._is_chosen,
                is_patient=is_patient and self._is_patient,
                fan_out=fan_out or self._fan_out,
            )
        except SourceError:
            self.has_asked = True
            raise
        self.has_asked = self.has_asked or answer.latency_ms is not None
        return answer

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Do what `SourceReader.kept` does."""
        return await self._reader.kept(source, query)


class KeptReader:
    """Reads only kept answers, for a call whose time has run out. Every other read is a `timeout`, and says `why`."""

    def __init__(self, reader: SourceReader, why: str) -> None:
        self._reader, self._why = reader, why

    async def fresh(
        self,
        source: Source[Q, R],
        query: Q,
        *,
        sla_s: float,
        is_chosen: bool = False,
        is_patient: bool = True,
        fan_out: FanOut | None = None,
    ) -> SourceAnswer[R]:
        """Always raise SourceError."""
        raise SourceDown(self._why, word="timeout")

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Do what `SourceReader.kept` does."""
        return await self._reader.kept(source, query)


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stored good exchange: the raw body, so that the parser of the running version reads it."""

    body: bytes
    fetched_at: datetime
    validators: dict[str, str] = field(default_factory=dict)


class BodyStore(Protocol):
    """Keeps the last good body of each source and query across restarts."""

    async def load(self, source: str, key: str) -> StoredBody | None: ...

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        """Schedule the body to be stored. This neither waits nor raises."""
        ...

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        """Schedule an update of the stored body's time, after the upstream answered "not modified"."""
        ...


class NoStore:
    """A store that keeps nothing."""

    async def load(self, source: str, key: str) -> StoredBody | None:
        return None

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        return None

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        return None
