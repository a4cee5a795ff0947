"""Quotas, and the buckets that count calls against them. GCRA: one number per key.

Check and write happen without an await between them, so one process needs no lock.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.errors import RateLimited

_FREE = ("daily", "spacing")
WIDER = 16  # how many times what one /64 is allowed, all of a /48 are allowed together
KEYS = 200_000  # per bucket; beyond it the least recently seen clients are forgotten, which only favours them
DROPPED = 3  # clients whose bucket is full again, with each call: more than come, so that they are not kept


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
        """Calls that are left to a client whose quota is whole again in `reset_s` seconds."""
        left = (self.window_s - reset_s) * self.quota / self.window_s
        return int(left + 1e-3) if left > 0 else 0

    def widen(self) -> "Quota":
        """Return what all clients of one /48 of IPv6 share."""
        return Quota(f"{self.name} of a /48", self.quota * WIDER, self.window_s)


def _describe(quota: Quota) -> str:
    """The rule of a quota, by its name."""
    allowed = f"{quota.quota} calls per {quota.window_s:g} s"
    if quota.name.split()[0] in _FREE:
        return f"The free tier allows {allowed}."
    if quota.name.startswith("questions "):
        endpoint = quota.name.split()[1]
        return f"{endpoint} answers {quota.quota} different questions per {quota.window_s:g} s and caller."
    if quota.name.startswith("distinct "):
        names = " and ".join(quota.name.split()[1:])
        return (
            f"{quota.quota} different values of {names} are answered per {quota.window_s:g} s; earlier ones still are."
        )
    return f"At most {allowed} are answered here."


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
        self._tolerance = self._interval / 1000  # what adding up a hundred thousand intervals may be off by
        self._monotonic, self._keys = monotonic, keys
        self._full_at: OrderedDict[str, float] = OrderedDict()  # a plain dict is slow to lose what it got first
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._full_at)

    def look(self, key: str) -> Verdict:
        """What a call would get now, without making it."""
        now = self._monotonic()
        if (wait := self.find_wait(key, now)) > 0:
            return Verdict(False, 0, self._full_at[key] - now, wait)
        reset_s = max(self._full_at.get(key, now) - now, 0.0)
        return Verdict(True, self.quota.remaining(reset_s), reset_s, 0.0)

    def take(self, key: str) -> Verdict:
        """Make a call. A refused one costs nothing."""
        now = self._monotonic()
        if (wait := self.find_wait(key, now)) > 0:
            self._full_at.move_to_end(key)
            return Verdict(False, 0, self._full_at[key] - now, wait)
        reset_s = self.count(key, now)
        return Verdict(True, self.quota.remaining(reset_s), reset_s, 0.0)

    def find_wait(self, key: str, now: float) -> float:
        """Seconds until a call is allowed; 0 when it is allowed at `now`, by the bucket's clock."""
        full_at = self._full_at.get(key)
        if full_at is None or full_at <= now:
            return 0.0
        wait = full_at + self._interval - now - self._burst_s
        return wait if wait > self._tolerance else 0.0

    def count(self, key: str, now: float) -> float:
        """Make a call that `find_wait` allowed at `now`. Returns the seconds until the bucket is full again."""
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
        """Drop clients seen longest ago: those whose bucket is full again, and one that is not if need be."""
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


class LimitState(NamedTuple):
    """What a client has left after a call, for the RateLimit headers. The quota is whole again in `reset_s` seconds."""

    quota: Quota
    reset_s: float

    @property
    def remaining(self) -> int:
        """Calls that are left now."""
        return self.quota.remaining(self.reset_s)

    @property
    def header(self) -> str:
        quota, reset_s = self
        return f'"{quota.name}";r={quota.remaining(reset_s)};t={int(reset_s + 0.999)}'


def make_rejection(quota: Quota, verdict: Verdict, rule: str | None = None) -> RateLimited:
    """Return the refusal of a call that a quota has no room for: its rule, or `rule`, and how long to wait."""
    wait = max(1, int(verdict.retry_after_s + 0.999))
    return RateLimited(
        f"{rule or _describe(quota)} Try again in {wait} s.",
        headers={"Retry-After": str(wait), "RateLimit": LimitState(quota, verdict.reset_s).header},
        retry_after_seconds=wait,
        limit=quota.name,
    )
