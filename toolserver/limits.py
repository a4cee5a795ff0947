"""Limits per client. GCRA: one number per key.

The free tier: so many calls a day, and one per endpoint and 30 seconds. Payment and account tools: so many a minute.

Check and write happen without an await between them, so one process needs no lock.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.errors import RateLimited

_FREE = ("daily", "spacing")
KEYS = 200_000  # per bucket; beyond it the least recently seen clients are forgotten, which only favours them


@dataclass(frozen=True, slots=True)
class Quota:
    """`quota` calls per `window_s`, which may all come at once."""

    name: str
    quota: int
    window_s: float

    @property
    def policy(self) -> str:
        return f'"{self.name}";q={self.quota};w={self.window_s:g}'


class Verdict(NamedTuple):
    """`remaining` calls now, full again in `reset_s`; `retry_after_s` is 0 when allowed."""

    allowed: bool
    remaining: int
    reset_s: float
    retry_after_s: float


class Bucket:
    """One quota for many clients, in bounded memory, most recently seen last."""

    def __init__(self, quota: Quota, *, monotonic: Callable[[], float], keys: int = KEYS) -> None:
        self.quota = quota
        self._interval = quota.window_s / quota.quota
        self._burst_s = quota.window_s
        self._monotonic, self._keys = monotonic, keys
        self._full_at: OrderedDict[str, float] = OrderedDict()  # a plain dict is slow to lose what it got first
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._full_at)

    def look(self, key: str) -> Verdict:
        """What a call would get now, without making it."""
        now = self._monotonic()
        return self._verdict(max(self._full_at.get(key, now), now), now, take=False)

    def take(self, key: str) -> Verdict:
        """Make a call. A refused one costs nothing."""
        now = self._monotonic()
        full_at = max(self._full_at.pop(key, now), now)
        verdict = self._verdict(full_at, now, take=True)
        self._full_at[key] = full_at + self._interval if verdict.allowed else full_at
        if len(self._full_at) > self._keys:
            self._forget(now)
        return verdict

    def give_back(self, key: str) -> None:
        """Undo one call."""
        if key in self._full_at:
            self._full_at[key] -= self._interval

    def _verdict(self, full_at: float, now: float, *, take: bool) -> Verdict:
        wait = full_at + self._interval - now - self._burst_s
        if wait > self._interval / 1000:  # what adding up a hundred thousand intervals may be off by
            return Verdict(False, 0, full_at - now, wait)
        after = full_at + self._interval if take else full_at
        remaining = int((now + self._burst_s - after) / self._interval + 1e-9)
        return Verdict(True, remaining, max(after - now, 0.0), 0.0)

    def _forget(self, now: float) -> None:
        """Drop clients seen longest ago: those whose bucket is full again, and one that is not if need be."""
        for _ in range(64):
            if next(iter(self._full_at.values())) > now:
                break
            self._full_at.popitem(last=False)
        while len(self._full_at) > self._keys:
            self._full_at.popitem(last=False)
            self.forgotten += 1


class Distinct:
    """So many different values of an argument per client and window; a value asked for again is free."""

    def __init__(self, *, monotonic: Callable[[], float], clients: int = KEYS) -> None:
        self._monotonic, self._clients = monotonic, clients
        self._seen: OrderedDict[str, dict[str, float]] = OrderedDict()

    def take(self, client: str, quota: Quota, value: str) -> None:
        """Count a value. Raises RateLimited when it is one too many."""
        now = self._monotonic()
        seen = {v: at for v, at in self._seen.pop(client, {}).items() if at > now - quota.window_s}
        self._seen[client] = seen
        if len(self._seen) > self._clients:
            self._seen.popitem(last=False)
        if value in seen:
            return
        if len(seen) >= quota.quota:
            oldest = min(seen.values())
            raise _refusal(quota, Verdict(False, 0, quota.window_s, oldest + quota.window_s - now))
        seen[value] = now


class Standing(NamedTuple):
    """What a client has left after a call, for the RateLimit headers."""

    quota: Quota
    verdict: Verdict

    @property
    def header(self) -> str:
        return f'"{self.quota.name}";r={self.verdict.remaining};t={int(self.verdict.reset_s + 0.999)}'


class FreeLimits:
    """The two limits of the free tier, taken together or not at all."""

    def __init__(
        self, *, daily: int, spacing_s: float, monotonic: Callable[[], float], enabled: bool = True, keys: int = KEYS
    ) -> None:
        self.enabled = enabled
        self.daily = Bucket(Quota("daily", daily, 86400), monotonic=monotonic, keys=keys)
        self.spacing = Bucket(Quota("spacing", 1, spacing_s), monotonic=monotonic, keys=keys)
        self.distinct = Distinct(monotonic=monotonic, clients=keys)
        self.policy = f"{self.daily.quota.policy}, {self.spacing.quota.policy}"

    def take(self, client: str, endpoint: str, *, spaced: bool = True) -> list[Standing]:
        """Count a call. Raises RateLimited, naming the limit; then nothing was counted."""
        if not self.enabled:
            return []
        key = f"{client} {endpoint}"
        if spaced and not (verdict := self.spacing.look(key)).allowed:
            raise _refusal(self.spacing.quota, verdict)
        day = self.daily.take(client)
        if not day.allowed:
            raise _refusal(self.daily.quota, day)
        standings = [Standing(self.daily.quota, day)]
        if spaced:
            standings.append(Standing(self.spacing.quota, self.spacing.take(key)))
        return standings

    def give_back_spacing(self, client: str, endpoint: str) -> None:
        """A 304 costs nothing of the spacing budget."""
        if self.enabled:
            self.spacing.give_back(f"{client} {endpoint}")


class PersonalLimits:
    """What a kind of tools allows a client: so many calls a minute over all of them, and their own quotas."""

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
        """Count a call. Raises RateLimited, naming the limit; then nothing was counted."""
        if not self.enabled:
            return
        buckets = [self._shared, *(self._bucket(Quota(tool, calls, window_s)) for calls, window_s in quotas)]
        for bucket in buckets:
            if not (verdict := bucket.look(client)).allowed:
                raise _refusal(bucket.quota, verdict)
        for bucket in buckets:
            bucket.take(client)

    def _bucket(self, quota: Quota) -> Bucket:
        if quota not in self._own:
            self._own[quota] = Bucket(quota, monotonic=self._monotonic, keys=self._keys)
        return self._own[quota]


def _refusal(quota: Quota, verdict: Verdict) -> RateLimited:
    wait = max(1, int(verdict.retry_after_s + 0.999))
    said = f"At most {quota.quota} calls per {quota.window_s:g} s are answered here. Try again in {wait} s."
    if quota.name in _FREE:
        what = f"{quota.quota} calls per {quota.window_s:g} s"
        if quota.name == "spacing":
            what = f"one call per {quota.window_s:g} s and endpoint"
        said = f"The free tier allows {what}. Try again in {wait} s; a shorter wait brings the same data."
    return RateLimited(
        said,
        headers={"Retry-After": str(wait), "RateLimit": Standing(quota, verdict).header},
        retry_after_seconds=wait,
        limit=quota.name,
    )
