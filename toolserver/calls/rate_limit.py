"""Limits the calls of each client.

A quota is counted in a bucket (GCRA: one number per key). The free tier has a daily quota,
and one call per endpoint every 30 seconds, or with a token one per question (endpoint and
arguments). Payment and account tools have a quota per minute. A payer's paid calls that end
without a charge are limited too: they cost the caller nothing, but the service an answer, a
receipt and a line in the public log. A payer is a token with all its allowances or, for calls
with their own payment (x402), the signing account and the client's address.

Check and write happen without an await between them, so that one process needs no lock.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import anyio
from pydantic import BaseModel

from toolserver.calls.arguments import is_default
from toolserver.core.caller import token_hash, wider_network
from toolserver.errors import PaymentRequired, RateLimited
from toolserver.registry.registry import Operation

_FREE = ("daily", "spacing")
_WIDE = " of a /48"
WIDER = 16  # all clients of a /48 together may use this many times the quota of one /64
KEYS = 200_000  # per bucket; above it the least recently seen clients are forgotten, which only favours them
DROPPED = 3  # clients with a full bucket dropped with each call: more than are added, so that they do not accumulate


@dataclass(frozen=True, slots=True)
class Quota:
    """`quota` calls per `window_s`, which may all come at once."""

    name: str
    quota: int
    window_s: float

    @property
    def policy(self) -> str:
        """The quota as an item of the header RateLimit-Policy: a list of RFC 9651, whose decimals have three digits."""
        window = f"{self.window_s:.3f}".rstrip("0").rstrip(".")
        return f'"{self.name}";q={self.quota};w={window}'

    def remaining(self, reset_s: float) -> int:
        """Return the calls left to a client whose quota is full again in `reset_s` seconds."""
        left = (self.window_s - reset_s) * self.quota / self.window_s
        return int(left + 1e-3) if left > 0 else 0

    def widen(self) -> "Quota":
        """Return the quota that all clients of one IPv6 /48 share."""
        return Quota(self.name + _WIDE, self.quota * WIDER, self.window_s)


def _describe(quota: Quota) -> str:
    """Return the rule of a quota as a sentence, by the quota's name."""
    allowed = f"{quota.quota} calls per {quota.window_s:g} s"
    if quota.name.endswith(_WIDE):
        return (
            f"All addresses of an IPv6 /48 together get {quota.quota} {_name_counted(quota)} per {quota.window_s:g} s."
        )
    if quota.name in _FREE:
        return f"The free tier allows {allowed}."
    if quota.name == "personal":
        return f"Payment, receipt and account tools together answer {allowed} and caller."
    if quota.name == "premium":
        return f"Premium tools answer {allowed} and token."
    if quota.name.startswith("questions "):
        endpoint = quota.name.split()[1]
        return f"{endpoint} answers {quota.quota} different questions per {quota.window_s:g} s and caller."
    if quota.name.startswith("distinct "):
        names = " and ".join(quota.name.split()[1:])
        return f"{quota.quota} different values of {names} are answered per {quota.window_s:g} s. Repeats are exempt."
    return f"At most {allowed} are answered here."


def _name_counted(quota: Quota) -> str:
    """Return what the quota of a /48 counts, in words."""
    name = quota.name.removesuffix(_WIDE)
    kind, _, rest = name.partition(" ")
    words = {
        "daily": "free calls",
        "spacing": "calls of one free endpoint",
        "questions": f"different questions to {rest}",
        "distinct": f"different values of {rest.replace(' ', ' and ')}",
    }
    return words.get(kind, name)


class Verdict(NamedTuple):
    """The result of a check: `remaining` calls, full again in `reset_s`; `retry_after_s` is 0 if allowed."""

    allowed: bool
    remaining: int
    reset_s: float
    retry_after_s: float


class Bucket:
    """One quota for many clients, in bounded memory; the most recently seen client is last."""

    def __init__(self, quota: Quota, *, monotonic: Callable[[], float], keys: int = KEYS) -> None:
        self.quota = quota
        self._interval = quota.window_s / quota.quota
        self._burst_s = quota.window_s
        self._tolerance = self._interval / 1000  # the rounding error of adding a hundred thousand intervals
        self._monotonic, self._keys = monotonic, keys
        self._full_at: OrderedDict[str, float] = OrderedDict()  # a plain dict is slow to remove its oldest entry
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._full_at)

    def look(self, key: str) -> Verdict:
        """Return the verdict on a call without counting it."""
        now = self._monotonic()
        if (wait := self.find_wait(key, now)) > 0:
            return Verdict(False, 0, self._full_at[key] - now, wait)
        reset_s = max(self._full_at.get(key, now) - now, 0.0)
        return Verdict(True, self.quota.remaining(reset_s), reset_s, 0.0)

    def take(self, key: str) -> Verdict:
        """Count a call and return its verdict. A refused call is not counted."""
        now = self._monotonic()
        if (wait := self.find_wait(key, now)) > 0:
            self._full_at.move_to_end(key)
            return Verdict(False, 0, self._full_at[key] - now, wait)
        reset_s = self.count(key, now)
        return Verdict(True, self.quota.remaining(reset_s), reset_s, 0.0)

    def find_wait(self, key: str, now: float) -> float:
        """Return the seconds until a call is allowed, 0 if it is allowed at `now` by the bucket's clock."""
        full_at = self._full_at.get(key)
        if full_at is None or full_at <= now:
            return 0.0
        wait = full_at + self._interval - now - self._burst_s
        return wait if wait > self._tolerance else 0.0

    def count(self, key: str, now: float) -> float:
        """Count a call that `find_wait` allowed at `now`, and return the seconds until the bucket is full again."""
        full_at = self._full_at.pop(key, now)
        full_at = (full_at if full_at > now else now) + self._interval
        self._full_at[key] = full_at
        self._forget(now)
        return full_at - now

    def give_back(self, key: str) -> None:
        """Undo one call."""
        if key in self._full_at:
            self._full_at[key] -= self._interval

    def _forget(self, now: float) -> None:
        """Drop the least recently seen clients: those with a full bucket, and another one if necessary."""
        clients = self._full_at
        if clients[next(iter(clients))] <= now:
            self._drop_full(now)
        while len(clients) > self._keys:
            clients.popitem(last=False)
            self.forgotten += 1

    def _drop_full(self, now: float) -> None:
        clients = self._full_at
        for _ in range(min(DROPPED, len(clients))):
            if clients[next(iter(clients))] > now:
                break
            clients.popitem(last=False)


class ClientBuckets:
    """One quota for each client, and a larger one for all clients of an IPv6 /48 together."""

    def __init__(self, quota: Quota, *, monotonic: Callable[[], float]) -> None:
        self.quota = quota
        self._each = Bucket(quota, monotonic=monotonic)
        self._wide = Bucket(quota.widen(), monotonic=monotonic)

    def look(self, client: str) -> Verdict:
        """Return the verdict on a call without counting it: the stricter of that on the client and on its /48."""
        verdict, wider = self._each.look(client), wider_network(client)
        if wider is None or not verdict.allowed:
            return verdict
        return min(verdict, self._wide.look(wider), key=lambda each: (each.allowed, each.remaining))

    def take(self, client: str) -> Verdict:
        """Count a call of a client and of its /48, and return its verdict. A refused call is not counted."""
        if not (verdict := self.look(client)).allowed:
            return verdict
        if (wider := wider_network(client)) is not None:
            self._wide.take(wider)
        return self._each.take(client)


class LimitState(NamedTuple):
    """The calls left to a client, for the RateLimit headers. The quota is full again in `reset_s` seconds."""

    quota: Quota
    reset_s: float

    @property
    def remaining(self) -> int:
        """The calls left now."""
        return self.quota.remaining(self.reset_s)

    @property
    def header(self) -> str:
        quota, reset_s = self
        return f'"{quota.name}";r={quota.remaining(reset_s)};t={int(reset_s + 0.999)}'


def name_quota(quota: Quota, reset_s: float, wait_s: int) -> dict[str, str]:
    """Return the headers of a refusal: how long to wait, the quota that is exceeded, and its policy."""
    state = LimitState(quota, reset_s).header
    return {"Retry-After": str(wait_s), "RateLimit-Policy": quota.policy, "RateLimit": state}


def make_rejection(quota: Quota, verdict: Verdict, rule: str | None = None) -> RateLimited:
    """Return the refusal of a call that exceeds a quota, with its rule, or `rule`, and how long to wait."""
    wait = max(1, int(verdict.retry_after_s + 0.999))
    return RateLimited(
        f"{rule or _describe(quota)} Try again in {wait} s.",
        headers=name_quota(quota, verdict.reset_s, wait),
        retry_after_seconds=wait,
        limit=quota.name,
    )


QUESTIONS = 12  # different questions about an endpoint that are answered in the time between two calls
TOKEN_CLIENT = "token "  # prefix of the name of a client that is identified by its token


def find_distinct_quota(operation: Operation, arguments: BaseModel) -> tuple[Quota, str] | None:
    """Return the tool's quota of different argument values and this call's values, or None if it does not apply."""
    if operation.distinct is None or is_default(operation, arguments):
        return None
    names, quota, window_s = operation.distinct
    values = [getattr(arguments, name) for name in names]
    return Quota(f"distinct {' '.join(names)}", quota, window_s), repr(values)


class _SeenValues(NamedTuple):
    """The values that a client has asked for and when each was counted. Some may be older than the window.

    From `until` on, none of them counts.
    """

    until: float
    at: dict[str, float]


class DistinctValueLimit:
    """Limits the different values of an argument per client and window; repeated values are free."""

    def __init__(self, *, monotonic: Callable[[], float], clients: int = KEYS) -> None:
        self._monotonic, self._clients = monotonic, clients
        self._seen: OrderedDict[str, _SeenValues] = OrderedDict()  # the least recently counted client first

    def __len__(self) -> int:
        return len(self._seen)

    def check(self, client: str, quota: Quota, value: str) -> None:
        """Raise RateLimited if the value exceeds the quota of the client or of its /48. Nothing is counted."""
        self._check(client, quota, value)
        if (wider := wider_network(client)) is not None:
            self._check(wider, quota.widen(), value)

    def _check(self, client: str, quota: Quota, value: str) -> None:
        seen = self._seen.get(f"{client} {quota.name}")
        if seen is None or len(seen.at) < quota.quota:
            return
        now = self._monotonic()
        recent = _find_recent(seen, quota, now)
        if value not in recent and len(recent) >= quota.quota:
            oldest = min(recent.values())
            raise make_rejection(quota, Verdict(False, 0, quota.window_s, oldest + quota.window_s - now))

    def take(self, client: str, quota: Quota, value: str) -> None:
        """Count a value that `check` allowed. A value that was already counted keeps its time."""
        self._take(client, quota, value)
        if (wider := wider_network(client)) is not None:
            self._take(wider, quota.widen(), value)

    def _take(self, client: str, quota: Quota, value: str) -> None:
        now, key = self._monotonic(), f"{client} {quota.name}"
        seen = self._seen.pop(key, None)
        at = {} if seen is None else seen.at if len(seen.at) < quota.quota else _find_recent(seen, quota, now)
        if at.get(value, -inf) <= now - quota.window_s:
            at[value] = now
        self._seen[key] = _SeenValues(now + quota.window_s, at)
        for _ in range(min(DROPPED, len(self._seen))):
            if next(iter(self._seen.values())).until > now and len(self._seen) <= self._clients:
                break
            self._seen.popitem(last=False)


def _find_recent(seen: _SeenValues, quota: Quota, now: float) -> dict[str, float]:
    """Return the values of the current window, each with the time at which it was counted."""
    return {value: at for value, at in seen.at.items() if at > now - quota.window_s}


class FreeLimits:
    """The limits of the free tier. A call counts in all of them or in none."""

    def __init__(
        self,
        *,
        daily: int,
        spacing_s: float,
        monotonic: Callable[[], float],
        enabled: bool = True,
        keys: int = KEYS,
        scope: Literal["endpoint", "question"] = "endpoint",
    ) -> None:
        """`scope` says what callers without a token are spaced by. With `spacing_s` of 0, nobody is spaced."""
        self.enabled = enabled
        self._by_question = scope == "question"
        self._spaces = spacing_s > 0
        self._monotonic = monotonic
        self._questions: dict[str, Quota] = {}  # by endpoint
        self.daily = Bucket(Quota("daily", daily, 86400), monotonic=monotonic, keys=keys)
        self.spacing = Bucket(Quota("spacing", 1, spacing_s or 1), monotonic=monotonic, keys=keys)
        self._wide = [Bucket(each.quota.widen(), monotonic=monotonic, keys=keys) for each in (self.daily, self.spacing)]
        self.distinct = DistinctValueLimit(monotonic=monotonic, clients=keys)
        self.policy = self.daily.quota.policy + (f", {self.spacing.quota.policy}" if self._spaces else "")

    def take(
        self,
        client: str,
        endpoint: str,
        *,
        question: Hashable = None,
        spaced: bool = True,
        distinct: tuple[Quota, str] | None = None,
    ) -> list[LimitState]:
        """Count a call, and the value of an argument whose different values are limited.

        `question` is the cache key of the answer. A caller with a token is spaced by
        question, and may ask up to `QUESTIONS` different questions about an endpoint in the
        time between two calls.

        Raises:
            RateLimited: a limit, which it names, is exceeded; nothing was counted.
        """
        if not self.enabled:
            return []
        spaced = spaced and self._spaces
        now, by_question = self._monotonic(), self._is_spaced_by_question(client)
        key = f"{client} {endpoint} {question!r}" if by_question else f"{client} {endpoint}"
        daily, spacing = self.daily, self.spacing
        if spaced and spacing.find_wait(key, now):
            raise self._reject_spacing(endpoint, spacing.look(key), by_question=by_question)
        wide = self._check_wider(client, endpoint, spaced=spaced and not by_question) if client.endswith("/64") else []
        endpoint_question = (endpoint, question) if spaced and by_question else None
        values = self._count_distinct(distinct, endpoint_question) if distinct or endpoint_question else []
        for quota, value in values:
            self.distinct.check(client, quota, value)
        if daily.find_wait(client, now):
            raise make_rejection(daily.quota, daily.look(client))
        for bucket, name in wide:
            bucket.take(name)
        limit_states = [LimitState(daily.quota, daily.count(client, now))]
        if spaced:
            limit_states.append(LimitState(spacing.quota, spacing.count(key, now)))
        for quota, value in values:
            self.distinct.take(client, quota, value)
        return limit_states

    async def count(
        self,
        client: str,
        endpoint: str,
        *,
        question: Hashable = None,
        spaced: bool = True,
        distinct: tuple[Quota, str] | None = None,
    ) -> list[LimitState]:
        """Do what `take` does, wherever the calls are counted; here without waiting. Raise RateLimited."""
        return self.take(client, endpoint, question=question, spaced=spaced, distinct=distinct)

    def _count_distinct(
        self, distinct: tuple[Quota, str] | None, endpoint_question: tuple[str, Hashable] | None
    ) -> list[tuple[Quota, str]]:
        """Return the quotas of different values that a call counts in: of arguments and of an endpoint's questions."""
        values = [] if distinct is None else [distinct]
        if endpoint_question is not None:
            endpoint, question = endpoint_question
            quota = self._questions.get(endpoint)
            if quota is None:
                quota = Quota(f"questions {endpoint}", QUESTIONS, self.spacing.quota.window_s)
                self._questions[endpoint] = quota
            values.append((quota, repr(question)))
        return values

    def _is_spaced_by_question(self, client: str) -> bool:
        return self._by_question or client.startswith(TOKEN_CLIENT)

    def _spacing_key(self, client: str, endpoint: str, question: Hashable) -> str:
        return f"{client} {endpoint} {question!r}" if self._is_spaced_by_question(client) else f"{client} {endpoint}"

    def _reject_spacing(self, endpoint: str, verdict: Verdict, *, by_question: bool) -> RateLimited:
        """Return the refusal of a call that comes too soon, with the rule and what helps."""
        every = f"{self.spacing.quota.window_s:g} s"
        if by_question:
            helps = f"The same arguments are answered once in {every}; other arguments are answered now."
        else:
            helps = (
                f"{endpoint} is answered once in {every} for a client, whatever the arguments. With a bearer token (a"
                f" balance of 0 is enough) up to {QUESTIONS} different questions are answered in that time."
            )
        return make_rejection(self.spacing.quota, verdict, helps)

    def _check_wider(self, client: str, endpoint: str, *, spaced: bool) -> list[tuple[Bucket, str]]:
        """Return the buckets of the client's /48 that a call counts in. Raise RateLimited if one of them refuses it."""
        wider = wider_network(client)
        if wider is None:
            return []
        daily, spacing = self._wide
        wide = [(daily, wider), *([(spacing, f"{wider} {endpoint}")] if spaced else [])]
        for bucket, name in wide:
            if not (verdict := bucket.look(name)).allowed:
                raise make_rejection(bucket.quota, verdict)
        return wide

    def give_back_spacing(self, client: str, endpoint: str, question: Hashable = None) -> None:
        """Undo the spacing count of a call that was answered with a 304 or a 400, also that of its /48."""
        if self.enabled and self._spaces:
            for bucket, key in self._list_spacing(client, endpoint, question):
                bucket.give_back(key)

    def _list_spacing(self, client: str, endpoint: str, question: Hashable) -> list[tuple[Bucket, str]]:
        """Return the buckets of spacing that a call counts in, each with its key."""
        counted = [(self.spacing, self._spacing_key(client, endpoint, question))]
        wider = None if self._is_spaced_by_question(client) else wider_network(client)
        return counted if wider is None else [*counted, (self._wide[1], f"{wider} {endpoint}")]


class PersonalLimits:
    """The limits of one kind of tools for a client: calls per minute over all of them, and each tool's own quotas."""

    def __init__(
        self,
        *,
        per_minute: int = 60,
        monotonic: Callable[[], float],
        enabled: bool = True,
        keys: int = KEYS,
        name: str = "personal",
    ) -> None:
        self.enabled = enabled
        self._monotonic, self._keys = monotonic, keys
        self._shared = Bucket(Quota(name, per_minute, 60), monotonic=monotonic, keys=keys)
        self._own: dict[Quota, Bucket] = {}

    def take(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        """Count a call. Raise RateLimited, naming the limit, with nothing counted."""
        if not self.enabled:
            return
        buckets = self._buckets(tool, quotas)
        _check(buckets, client)
        for bucket in buckets:
            bucket.take(client)

    def check(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        """Raise RateLimited, naming the limit, if `take` would. Nothing is counted."""
        if self.enabled:
            _check(self._buckets(tool, quotas), client)

    async def count(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        """Do what `take` does, wherever the calls are counted. Raise RateLimited."""
        self.take(client, tool, quotas)

    async def look(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        """Do what `check` does, wherever the calls are counted. Raise RateLimited."""
        self.check(client, tool, quotas)

    def _buckets(self, tool: str, quotas: Iterable[tuple[int, float]]) -> list[Bucket]:
        return [self._shared, *(self._bucket(Quota(tool, calls, window_s)) for calls, window_s in quotas)]

    def _bucket(self, quota: Quota) -> Bucket:
        if quota not in self._own:
            self._own[quota] = Bucket(quota, monotonic=self._monotonic, keys=self._keys)
        return self._own[quota]


def _check(buckets: list[Bucket], client: str) -> None:
    """Raise RateLimited for the first of the buckets that would refuse a call."""
    for bucket in buckets:
        if not (verdict := bucket.look(client)).allowed:
            raise make_rejection(bucket.quota, verdict)


HOUR_S = 3600
AT_ONCE = 8  # calls of one token and tool whose charge is not certain yet; further calls wait


class CallToSettle:
    """A call that counts as free until it is known to be charged."""

    charged = False


class UnchargedLimit:
    """Counts uncharged calls per payer and tool. `per_hour` of them may come at once."""

    def __init__(
        self, *, per_hour: int = 12, monotonic: Callable[[], float], enabled: bool = True, keys: int = KEYS
    ) -> None:
        self._enabled = enabled
        self._bucket = Bucket(Quota("uncharged", per_hour, HOUR_S), monotonic=monotonic, keys=keys)
        self._open: dict[str, anyio.Semaphore] = {}

    @asynccontextmanager
    async def admit(self, payer: str, tool: str) -> AsyncIterator[CallToSettle]:
        """Admit a call within the limit. It is counted unless it is marked as charged or refused for lack of payment.

        Raises:
            RateLimited: too many calls of this payer to this tool have cost nothing.
        """
        call = CallToSettle()
        if not self._enabled:
            yield call
            return
        key = _name_key(payer, tool)
        async with self._wait_for_place(key):
            if not (verdict := await self._look(key)).allowed:
                raise make_rejection(self._bucket.quota, verdict, self._describe(tool))
            try:
                yield call
            except PaymentRequired:  # refused before anything was composed
                call.charged = True
                raise
            finally:
                if not call.charged:
                    self._note(key)

    async def count(self, payer: str, tool: str) -> None:
        """Count a call that ends without a charge. Raise RateLimited if there were too many: the call gets nothing."""
        if self._enabled and not (verdict := await self._take(_name_key(payer, tool))).allowed:
            raise make_rejection(self._bucket.quota, verdict, self._describe(tool))

    async def _look(self, key: str) -> Verdict:
        """Return the verdict on an uncharged call without counting it."""
        return self._bucket.look(key)

    async def _take(self, key: str) -> Verdict:
        """Count an uncharged call, unless there were too many."""
        return self._bucket.take(key)

    def _note(self, key: str) -> None:
        """Count an uncharged call without waiting, because the caller may have been cancelled."""
        self._bucket.take(key)

    @asynccontextmanager
    async def _wait_for_place(self, key: str) -> AsyncIterator[None]:
        places = self._open.setdefault(key, anyio.Semaphore(AT_ONCE))
        try:
            async with places:
                yield
        finally:
            if places.value == AT_ONCE and not places.statistics().tasks_waiting:
                self._open.pop(key, None)

    def _describe(self, tool: str) -> str:
        allowed = self._bucket.quota.quota
        return f"{allowed} calls of {tool} an hour may end without a charge, and its data are currently not fresh."


def _name_key(payer: str, tool: str) -> str:
    return f"{token_hash(payer).hex()} {tool}"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Every limit on calls: of the free tier, of payment and account tools, of paid and uncharged calls, of pages."""

    free: FreeLimits
    personal: PersonalLimits
    premium: PersonalLimits
    uncharged: UnchargedLimit
    pages: PersonalLimits
