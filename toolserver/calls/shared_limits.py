"""Counts limits over all instances. While the shared memory is lost, each instance applies its share.

A script repeats the rules of `rate_limit` and `quotas`: a bucket is one number, the time at
which it is full again, and a set of values is sorted by the time at which each was counted.
All steps of a call are checked before any is counted.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from msgspec.msgpack import encode

from toolserver.calls.rate_limit import (
    Bucket,
    FreeLimits,
    LimitState,
    PersonalLimits,
    Quota,
    UnchargedLimit,
    Verdict,
    make_rejection,
)
from toolserver.calls.visitor_tokens import VisitorCount, VisitorCounts, VisitorRules
from toolserver.core.caller import wider_network
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.errors import StorageUnavailable

LIMITS = Script(
    """
-- The argument is a time, or 0 for the server's, and for each key a step: a kind, two numbers and a value. "b" takes
-- from a bucket (interval, window), "l" only looks at one, "r" gives back to one, "v" counts a value (most, window).
-- Returns {0, us until full, ...} or {step, us to wait, us until full}.
local steps, full, found = cmsgpack.unpack(argument), {}, {0}
if steps[1] > 0 then now = steps[1] end
for i, key in ipairs(keys) do
  local kind, a, b, value = unpack(steps, 4 * i - 2, 4 * i + 1)
  if kind == 'v' then
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.6f', now - b))
    if not redis.call('ZSCORE', key, value) and redis.call('ZCARD', key) >= a then
      local oldest = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
      return {i, math.ceil((oldest + b - now) * 1e6), math.ceil(b * 1e6)}
    end
  else
    local f = tonumber(redis.call('GET', key) or now)
    if f < now then f = now end
    local wait = f + a - now - b
    if kind ~= 'r' and wait > a / 1000 then
      return {i, math.ceil(wait * 1e6), math.ceil((f - now) * 1e6)}
    end
    full[i] = f
  end
end
for i, key in ipairs(keys) do
  local kind, a, b, value = unpack(steps, 4 * i - 2, 4 * i + 1)
  local f = full[i]
  if kind == 'v' then
    redis.call('ZADD', key, 'NX', string.format('%.6f', now), value)
    redis.call('PEXPIRE', key, math.ceil(b * 1000))
  elseif kind ~= 'l' then
    f = kind == 'b' and f + a or f - a
    if f > now then
      redis.call('SET', key, string.format('%.6f', f), 'PX', math.ceil((f - now) * 1000) + 1)
    else
      redis.call('DEL', key)
    end
  end
  found[i + 1] = f and math.floor((f - now) * 1e6 + 0.5) or 0
end
return found
""",
    many=True,
)


VISITORS = Script(
    """
-- The keys are the counts of an address and, for IPv6, of its /48. The arguments are the numbers that cost nothing, may
-- be had by an address and by a /48, and for which the work is done (-1: none). Returns {issued, of the /48, counted}.
local issued = tonumber(redis.call('GET', KEYS[1]) or 0)
local wide = KEYS[2] and tonumber(redis.call('GET', KEYS[2]) or 0) or 0
local cheap, most, most_wide, proved = unpack(ARGV)
if issued >= tonumber(most) or wide >= tonumber(most_wide) then return {issued, wide, 0} end
if issued >= tonumber(cheap) and issued ~= tonumber(proved) then return {issued, wide, 0} end
for _, key in ipairs(KEYS) do
  redis.call('INCR', key)
  redis.call('EXPIRE', key, 90000)
end
return {issued, wide, 1}
"""
)
WAIT_S = 10  # until a caller tries again while the shared memory is lost
PREPARED = 1000  # quotas whose numbers are kept ready


class LimitStep(NamedTuple):
    """One limit that a call counts in: the kind, the quota, the client's name, and a value if the limit has one."""

    kind: str
    quota: Quota
    name: str
    value: str = ""


def share(quota: Quota, instances: int) -> Quota:
    """Return the share of a quota that one of several instances may allow, so that all together do not exceed it."""
    if quota.quota >= instances:
        return Quota(quota.name, quota.quota // instances, quota.window_s)
    return Quota(quota.name, 1, quota.window_s * instances / quota.quota)


def divide(quota: int, instances: int) -> int:
    """Return one instance's share of a number, at least 1."""
    return max(1, quota // instances)


class SharedCounter:
    """Runs steps in the shared memory. `now` is for tests; otherwise the shared server's time applies to all."""

    def __init__(self, memory: SharedMemory, now: Callable[[], float] | None = None) -> None:
        self._memory, self._now = memory, now
        self._prepared: dict[Quota, tuple[bytes, float]] = {}

    @property
    def instances(self) -> int:
        return self._memory.instances

    async def count(self, steps: list[LimitStep]) -> list[Verdict] | tuple[LimitStep, Verdict]:
        """Count a call. Return each step's verdict, or the refusing step and its verdict. Raise SharedMemoryLost."""
        numbers: list[int] = await self._memory.run(LIMITS, *self._pack(steps))
        if len(numbers) != (3 if numbers[0] else len(steps) + 1):
            raise SharedMemoryLost
        if numbers[0]:
            refused = steps[numbers[0] - 1]
            return refused, Verdict(False, 0, numbers[2] / 1e6, numbers[1] / 1e6)
        return [_allow(step.quota, us) for step, us in zip(steps, numbers[1:], strict=True)]

    def send(self, steps: list[LimitStep]) -> None:
        """Count a call without waiting. A refused or lost call is not counted."""
        self._memory.send(LIMITS, *self._pack(steps))

    def _pack(self, steps: list[LimitStep]) -> tuple[list[bytes], list[bytes]]:
        keys: list[bytes] = []
        plan: list[Any] = [self._now() if self._now else 0.0]
        for kind, quota, name, value in steps:
            key, interval = self._prepared.get(quota) or self._prepare(quota)
            if kind == "v":
                plan += (kind, quota.quota, quota.window_s, hash_name(value).decode())
            else:
                plan += (kind, interval, quota.window_s, "")
            keys.append(key + hash_name(name))
        return keys, [encode(plan)]

    def _prepare(self, quota: Quota) -> tuple[bytes, float]:
        """Return the key prefix of a quota, and the seconds between two calls at its even pace."""
        name = hash_name(f"{quota.name} {quota.quota} {quota.window_s:g}")[:8]
        prepared = b"limit:" + name + b":", quota.window_s / quota.quota
        if len(self._prepared) < PREPARED:
            self._prepared[quota] = prepared
        return prepared


def _allow(quota: Quota, us: int) -> Verdict:
    """Return the verdict on an allowed call after which the bucket is full in `us` microseconds."""
    reset_s = max(us / 1e6, 0.0)
    return Verdict(True, quota.remaining(reset_s), reset_s, 0.0)


class SharedFreeLimits(FreeLimits):
    """The limits of the free tier, counted over all instances."""

    def __init__(
        self, memory: SharedMemory, *, daily: int, spacing_s: float, now: Callable[[], float] | None = None, **more: Any
    ) -> None:
        super().__init__(daily=daily, spacing_s=spacing_s, **more)
        self._counter = SharedCounter(memory, now)
        own_spacing_s = share(self.spacing.quota, memory.instances).window_s if self._spaces else 0
        self._own = FreeLimits(daily=divide(daily, memory.instances), spacing_s=own_spacing_s, **more)

    async def count(
        self,
        client: str,
        endpoint: str,
        *,
        question: Hashable = None,
        spaced: bool = True,
        distinct: tuple[Quota, str] | None = None,
    ) -> list[LimitState]:
        if not self.enabled:
            return []
        spaced = spaced and self._spaces
        steps = self._list_steps(client, endpoint, question=question, spaced=spaced, distinct=distinct)
        try:
            verdicts = await self._counter.count(steps)
        except SharedMemoryLost:
            return self._own.take(client, endpoint, question=question, spaced=spaced, distinct=distinct)
        if isinstance(verdicts, tuple):
            step, verdict = verdicts
            if step.quota is self.spacing.quota:
                by_question = self._is_spaced_by_question(client)
                raise self._reject_spacing(endpoint, verdict, by_question=by_question)
            raise make_rejection(step.quota, verdict)
        return self._list_states(client, endpoint, question, steps, verdicts)

    def _list_states(
        self, client: str, endpoint: str, question: Hashable, steps: list[LimitStep], verdicts: list[Verdict]
    ) -> list[LimitState]:
        """Return what the client has left. This instance also counts the call, in case the memory is lost."""
        states = [LimitState(self.daily.quota, verdicts[-1].reset_s)]
        self._own.daily.take(client)
        if steps[0].quota is self.spacing.quota:
            states.append(LimitState(self.spacing.quota, verdicts[0].reset_s))
            self._own.spacing.take(self._spacing_key(client, endpoint, question))
        return states

    def _list_steps(
        self, client: str, endpoint: str, *, question: Hashable, spaced: bool, distinct: tuple[Quota, str] | None
    ) -> list[LimitStep]:
        """Return the steps of a call, in the order in which `FreeLimits.take` checks them; the day is last."""
        by_question = self._is_spaced_by_question(client)
        steps = [LimitStep("b", self.spacing.quota, self._spacing_key(client, endpoint, question))] if spaced else []
        wider = wider_network(client)
        if wider is not None:
            steps.append(LimitStep("b", self._wide[0].quota, wider))
            if spaced and not by_question:
                steps.append(LimitStep("b", self._wide[1].quota, f"{wider} {endpoint}"))
        for quota, value in self._count_distinct(distinct, (endpoint, question) if spaced and by_question else None):
            steps.append(LimitStep("v", quota, client, value))
            if wider is not None:
                steps.append(LimitStep("v", quota.widen(), wider, value))
        return [*steps, LimitStep("b", self.daily.quota, client)]

    def give_back_spacing(self, client: str, endpoint: str, question: Hashable = None) -> None:
        if self.enabled and self._spaces:
            counted = self._list_spacing(client, endpoint, question)
            self._counter.send([LimitStep("r", bucket.quota, key) for bucket, key in counted])
            self._own.give_back_spacing(client, endpoint, question)


class SharedPersonalLimits(PersonalLimits):
    """The limits of one kind of tools for a client, counted over all instances."""

    def __init__(
        self, memory: SharedMemory, *, per_minute: int = 60, now: Callable[[], float] | None = None, **more: Any
    ) -> None:
        super().__init__(per_minute=per_minute, **more)
        self._counter = SharedCounter(memory, now)
        self._share = PersonalLimits(per_minute=divide(per_minute, memory.instances), **more)

    async def count(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        await self._ask("b", client, tool, tuple(quotas))

    async def look(self, client: str, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        await self._ask("l", client, tool, tuple(quotas))

    async def _ask(self, kind: str, client: str, tool: str, quotas: tuple[tuple[int, float], ...]) -> None:
        if not self.enabled:
            return
        steps = [LimitStep(kind, bucket.quota, client) for bucket in self._buckets(tool, quotas)]
        divided = [(each.quota, each.window_s) for each in (share(s.quota, self._counter.instances) for s in steps[1:])]
        try:
            outcome = await self._counter.count(steps)
        except SharedMemoryLost:
            (self._share.take if kind == "b" else self._share.check)(client, tool, divided)
            return
        if isinstance(outcome, tuple):
            raise make_rejection(outcome[0].quota, outcome[1])
        if kind == "b":
            self._remember(client, tool, divided)

    def _remember(self, client: str, tool: str, divided: list[tuple[int, float]]) -> None:
        """Count a call locally too, in case the memory is lost. The local share does not refuse calls now."""
        for bucket in self._share._buckets(tool, divided):
            bucket.take(client)


class SharedVisitorCounts(VisitorCounts):
    """Counts visitor tokens over all instances. While the shared memory is lost, none is issued."""

    def __init__(self, memory: SharedMemory, rules: VisitorRules) -> None:
        super().__init__(rules)
        self._memory = memory

    async def count(self, day: int, client: str, proved: int | None) -> VisitorCount:
        names = [name for name in (client, wider_network(client)) if name is not None]
        keys = [b"visitors:%d:%s" % (day, hash_name(name)) for name in names]
        rules = self.rules
        figures = (rules.cheap, rules.most, rules.most_of_network, -1 if proved is None else proved)
        try:
            issued, wide, counted = await self._memory.run(VISITORS, keys, [b"%d" % figure for figure in figures])
        except SharedMemoryLost:
            text = "Visitor tokens are counted over several instances, which cannot reach each other now."
            raise StorageUnavailable(text, headers={"Retry-After": str(WAIT_S)}, retry_after_seconds=WAIT_S) from None
        return VisitorCount(issued, wide, bool(counted))


class SharedUnchargedLimit(UnchargedLimit):
    """The limit on a payer's uncharged calls, counted over all instances."""

    def __init__(
        self, memory: SharedMemory, *, per_hour: int = 12, now: Callable[[], float] | None = None, **more: Any
    ) -> None:
        super().__init__(per_hour=per_hour, **more)
        self._counter = SharedCounter(memory, now)
        own = share(self._bucket.quota, memory.instances)
        self._own = Bucket(own, monotonic=more["monotonic"])

    async def _look(self, key: str) -> Verdict:
        try:
            verdicts = await self._counter.count([LimitStep("l", self._bucket.quota, key)])
        except SharedMemoryLost:
            return self._own.look(key)
        return verdicts[1] if isinstance(verdicts, tuple) else verdicts[0]

    async def _take(self, key: str) -> Verdict:
        own = self._own.take(key)
        try:
            verdicts = await self._counter.count([LimitStep("b", self._bucket.quota, key)])
        except SharedMemoryLost:
            return own
        return verdicts[1] if isinstance(verdicts, tuple) else verdicts[0]

    def _note(self, key: str) -> None:
        self._counter.send([LimitStep("b", self._bucket.quota, key)])
        self._own.take(key)
