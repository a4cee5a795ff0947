"""Limits the calls of each client.

The free tier has a daily quota, and one call per endpoint every 30 seconds, or with a token one per question (endpoint
and arguments). Payment and account tools have a quota per minute.

Check and write happen without an await between them, so that one process needs no lock.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import Literal, NamedTuple

from pydantic import BaseModel

from toolserver.calls.cache_key import is_default
from toolserver.calls.quotas import DROPPED, KEYS, Bucket, LimitState, Quota, Verdict, make_rejection
from toolserver.core.caller import wider_network
from toolserver.errors import RateLimited
from toolserver.registry.registry import Operation

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
        """`scope` says what callers without a token are spaced by."""
        self.enabled, self._by_question = enabled, scope == "question"
        self._monotonic = monotonic
        self._questions: dict[str, Quota] = {}  # by endpoint
        self.daily = Bucket(Quota("daily", daily, 86400), monotonic=monotonic, keys=keys)
        self.spacing = Bucket(Quota("spacing", 1, spacing_s), monotonic=monotonic, keys=keys)
        self._wide = [Bucket(each.quota.widen(), monotonic=monotonic, keys=keys) for each in (self.daily, self.spacing)]
        self.distinct = DistinctValueLimit(monotonic=monotonic, clients=keys)
        self.policy = f"{self.daily.quota.policy}, {self.spacing.quota.policy}"

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

        `question` is the cache key of the answer. A caller with a token is spaced by question, and may ask up to
        `QUESTIONS` different questions about an endpoint in the time between two calls.

        Raises:
            RateLimited: a limit, which it names, is exceeded; nothing was counted.
        """
        if not self.enabled:
            return []
        now, by_question = self._monotonic(), self._is_spaced_by_question(client)
        key = f"{client} {endpoint} {question!r}" if by_question else f"{client} {endpoint}"
        daily, spacing = self.daily, self.spacing
        if spaced and spacing.find_wait(key, now):
            raise self._reject_spacing(endpoint, spacing.look(key), by_question=by_question)
        wide = self._check_wider(client, endpoint, spaced=spaced and not by_question) if client.endswith("/64") else []
        asked = (endpoint, question) if spaced and by_question else None
        values = self._count_distinct(distinct, asked) if distinct or asked else []
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
        self, distinct: tuple[Quota, str] | None, asked: tuple[str, Hashable] | None
    ) -> list[tuple[Quota, str]]:
        """Return the quotas of different values that a call counts in: of arguments and of an endpoint's questions."""
        found = [] if distinct is None else [distinct]
        if asked is not None:
            endpoint, question = asked
            quota = self._questions.get(endpoint)
            if quota is None:
                quota = Quota(f"questions {endpoint}", QUESTIONS, self.spacing.quota.window_s)
                self._questions[endpoint] = quota
            found.append((quota, repr(question)))
        return found

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
        if self.enabled:
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
