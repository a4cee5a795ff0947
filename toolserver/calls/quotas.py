"""Defines quotas, and the buckets that count calls against them (GCRA: one number per key).

Check and write happen without an await between them, so that one process needs no lock.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.core.caller import wider_network
from toolserver.errors import RateLimited

_FREE = ("daily", "spacing")
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
        """The quota as an item of the header RateLimit-Policy."""
        return f'"{self.name}";q={self.quota};w={self.window_s:g}'

    def remaining(self, reset_s: float) -> int:
        """Return the calls left to a client whose quota is full again in `reset_s` seconds."""
        left = (self.window_s - reset_s) * self.quota / self.window_s
        return int(left + 1e-3) if left > 0 else 0

    def widen(self) -> "Quota":
        """Return the quota that all clients of one IPv6 /48 share."""
        return Quota(f"{self.name} of a /48", self.quota * WIDER, self.window_s)


def _describe(quota: Quota) -> str:
    """Return the rule of a quota as a sentence, by the quota's name."""
    allowed = f"{quota.quota} calls per {quota.window_s:g} s"
    if quota.name.split()[0] in _FREE:
        return f"The free tier allows {allowed}."
    if quota.name.startswith("questions "):
        endpoint = quota.name.split()[1]
        return f"{endpoint} answers {quota.quota} different questions per {quota.window_s:g} s and caller."
    if quota.name.startswith("distinct "):
        names = " and ".join(quota.name.split()[1:])
        return f"{quota.quota} different values of {names} are answered per {quota.window_s:g} s. Repeats are exempt."
    return f"At most {allowed} are answered here."


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
        kept = self._full_at
        if kept[next(iter(kept))] <= now:
            self._drop_full(now)
        while len(kept) > self._keys:
            kept.popitem(last=False)
            self.forgotten += 1

    def _drop_full(self, now: float) -> None:
        kept = self._full_at
        for _ in range(min(DROPPED, len(kept))):
            if kept[next(iter(kept))] > now:
                break
            kept.popitem(last=False)


class ClientBuckets:
    """One quota for each client, and a larger one for all clients of an IPv6 /48 together."""

    def __init__(self, quota: Quota, *, monotonic: Callable[[], float]) -> None:
        self.quota = quota
        self._each, self._wide = Bucket(quota, monotonic=monotonic), Bucket(quota.widen(), monotonic=monotonic)

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


def make_rejection(quota: Quota, verdict: Verdict, rule: str | None = None) -> RateLimited:
    """Return the refusal of a call that exceeds a quota, with its rule, or `rule`, and how long to wait."""
    wait = max(1, int(verdict.retry_after_s + 0.999))
    return RateLimited(
        f"{rule or _describe(quota)} Try again in {wait} s.",
        headers={"Retry-After": str(wait), "RateLimit": LimitState(quota, verdict.reset_s).header},
        retry_after_seconds=wait,
        limit=quota.name,
    )
