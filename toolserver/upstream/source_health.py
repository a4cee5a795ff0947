"""Decides whether a source may be queried: by the circuit of the source, and by the refusals of its host.

One line is logged when a source goes down and one when it is back.

With shared memory, the failures of one instance reduce the requests of all, and one probes
for all: a script repeats the rules of `core/circuit_breaker` for failures in a row.

A refusal is not a failure of the upstream: a host refuses data centres, countries or clients
without a browser, every client at this address gets the refusal, and retrying soon changes
nothing. The first refusal closes a host for a source for an hour, the next one in a row for a
day. A host may refuse everyone a single page, so it is closed to all its sources only after it
has refused two of them, or one of them twice while it answered nobody. A host whose name has
not resolved for six hours counts as refusing everything: it is asked once a day, whatever its
sources.

The history records each source's past day by quarters of an hour, and when it went down and
came back. Only actual exchanges are counted. A quarter in which a source was not queried has
no row: its state is unknown.
"""

import logging
import math
from collections import deque
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from msgspec.msgpack import encode

from toolserver.clock import Clock
from toolserver.core.circuit_breaker import BreakerPolicy, CircuitBreaker, State
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.upstream.shared_clock import AHEAD, READ_NOW, SharedClock
from toolserver.upstream.source import (
    HostRefused,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceFrozen,
    SourceImplausible,
    SourceLimited,
)

QUARTER_S = 900
QUARTERS = 96  # a day of them, including the current one
CHANGES = 200  # of all sources together; the oldest are dropped first

ExchangeVerdict = Literal["good", "old", "failed"]
"""`old` means that the source answered, but its data are older than permitted."""


class SourceQuarter(NamedTuple):
    """The exchanges with one source in one quarter of an hour, which is counted from the epoch.

    `good_at` is when the last good exchange ended, in epoch seconds, and `last_at` when the
    last of all ended. `last` is the result of that last one: `ok`, or the word of its
    failure.
    """

    quarter: int
    good: int = 0
    old: int = 0
    failed: int = 0
    good_at: float | None = None
    last_at: float = 0.0
    last: str = ""

    @property
    def asked(self) -> int:
        """The number of exchanges."""
        return self.good + self.old + self.failed


class SourceChange(NamedTuple):
    """A source went down (its circuit opened) or came back. `at` is in epoch seconds, `reason` one word."""

    at: float
    source: str
    kind: Literal["down", "back"]
    reason: str


class SourceHistoryKeeper(Protocol):
    """Stores the history, so that a restart loses none of it."""

    def save_quarter(self, source: str, row: SourceQuarter) -> None:
        """Store a quarter, replacing its stored row."""
        ...

    def save_change(self, change: SourceChange) -> None:
        """Store a change."""
        ...


class SourceHistory:
    """The past day of every source that was queried."""

    def __init__(self, clock: Clock, keeper: SourceHistoryKeeper | None = None) -> None:
        self._clock, self._keeper = clock, keeper
        self._quarters: dict[str, deque[SourceQuarter]] = {}
        self._changes: deque[SourceChange] = deque(maxlen=CHANGES)

    def restore(self, quarters: Iterable[tuple[str, SourceQuarter]], changes: Iterable[SourceChange]) -> None:
        """Restore stored rows, oldest first."""
        for source, row in quarters:
            self._put(source, row)
        self._changes.extend(changes)

    def count(self, source: str, verdict: ExchangeVerdict, word: str) -> None:
        """Count an exchange that has just ended with the result `word`."""
        now = self._clock.time()
        quarter = math.floor(now / QUARTER_S)
        rows = self._quarters.get(source)
        row = rows[-1] if rows and rows[-1].quarter == quarter else SourceQuarter(quarter)
        counted = row._replace(
            good=row.good + (verdict == "good"),
            old=row.old + (verdict == "old"),
            failed=row.failed + (verdict == "failed"),
            good_at=now if verdict == "good" else row.good_at,
            last_at=now,
            last=word,
        )
        self._put(source, counted)
        if self._keeper is not None:
            self._keeper.save_quarter(source, counted)

    def note(self, source: str, kind: Literal["down", "back"], reason: str) -> None:
        """Record that a source went down or came back."""
        change = SourceChange(self._clock.time(), source, kind, reason)
        self._changes.append(change)
        if self._keeper is not None:
            self._keeper.save_change(change)

    def quarters(self, source: str) -> list[SourceQuarter]:
        """Return the quarters of the past day in which a source was queried, oldest first."""
        first = math.floor(self._clock.time() / QUARTER_S) - QUARTERS + 1
        return [row for row in self._quarters.get(source, ()) if row.quarter >= first]

    def find_good(self, source: str) -> float | None:
        """Return when the last good exchange of the past day ended, in Unix seconds; None if there was none."""
        return next((row.good_at for row in reversed(self.quarters(source)) if row.good_at is not None), None)

    def changes(self) -> list[SourceChange]:
        """Return the last changes of all sources, newest first."""
        return list(reversed(self._changes))

    def _put(self, source: str, row: SourceQuarter) -> None:
        rows = self._quarters.setdefault(source, deque(maxlen=QUARTERS))
        if rows and rows[-1].quarter == row.quarter:
            rows[-1] = row
        elif not rows or rows[-1].quarter < row.quarter:
            rows.append(row)


log = logging.getLogger(__name__)

POLICY = BreakerPolicy(failures_in_a_row=3, first_wait_s=30, longest_wait_s=600, probes=1, spread=0, window=None)
POLICY_FOR_CALLERS = BreakerPolicy(
    failures_in_a_row=10, first_wait_s=30, longest_wait_s=120, probes=1, spread=0, window=None
)

PROBE_S = 60.0  # after this the probe of a dead instance is abandoned
KEEP_S = 86_400.0  # how long failures in a row are remembered

ADMIT = Script(
    """
-- Keys: how far clocks are ahead, the circuit. Returns {state, microseconds until the next probe}.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local found = redis.call('HMGET', KEYS[2], 'until', 'probe')
local open_until, probe = tonumber(found[1] or ''), tonumber(found[2] or '')
if not open_until then return {'closed', 0} end
if open_until > now then return {'open', math.ceil((open_until - now) * 1e6)} end
if probe and probe > now then return {'open', 0} end
redis.call('HSET', KEYS[2], 'probe', string.format('%.6f', now + asked.probe))
return {'half_open', 0}
"""
)
RECORD = Script(
    """
-- Keys: how far clocks are ahead, the circuit. A result after the circuit has opened is ignored until one probes.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local found = redis.call('HMGET', KEYS[2], 'until', 'probe', 'wait')
local wait, is_open = tonumber(found[3] or ''), found[1]
if is_open and not found[2] then return end
if asked.result == 'good' then
  redis.call('DEL', KEYS[2])
  return
end
if asked.result == 'nothing' then
  redis.call('HDEL', KEYS[2], 'probe')
  return
end
if is_open then
  wait = math.min(2 * wait, asked.longest)
elseif redis.call('HINCRBY', KEYS[2], 'failures', 1) >= asked.failures then
  wait = asked.first
end
if wait then
  redis.call('HSET', KEYS[2], 'until', string.format('%.6f', now + wait), 'wait', wait)
  redis.call('HDEL', KEYS[2], 'probe')
end
redis.call('PEXPIRE', KEYS[2], asked.keep * 1000)
"""
)


class CircuitOpen(SourceDown):
    """We did not send the request: the source keeps failing, and no probe is due."""

    word = "breaker_open"
    was_sent = False


class SourceHealth:
    """Three failures in a row open a source's circuit for 30 s, doubling to 10 min; then one probe decides.

    Queries that callers choose have separate circuits, which open after ten failures. A
    refusal of the query (status 4xx, or an empty answer) does not open them, because it says
    something about the query, not about the source.

    `history` also counts every exchange that says something about the source, and each time
    that its circuit opened or closed again.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        is_for_callers: bool = False,
        history: SourceHistory | None = None,
        memory: SharedMemory | None = None,
    ) -> None:
        self._clock, self._is_for_callers = clock, is_for_callers
        self._history = history or SourceHistory(clock)
        self._policy = POLICY_FOR_CALLERS if is_for_callers else POLICY
        kind = "callers" if is_for_callers else "defaults"
        self._shared = None if memory is None else SharedCircuits(memory, clock, kind=kind)
        self._circuits: dict[str, CircuitBreaker] = {}
        self._down: set[str] = set()

    def admit(self, name: str) -> None:
        """Admit a request: any while the circuit is closed, one probe when it is due. Raise CircuitOpen."""
        circuit = self._circuits.get(name)
        if circuit is not None and not circuit.closed and not circuit.start_probe():
            raise CircuitOpen(f"probe in {circuit.wait_s:.0f} s")

    async def admit_among_all(self, name: str) -> None:
        """Do what `admit` does, based on what all instances know about the source. Raise CircuitOpen."""
        if self._shared is not None:
            try:
                state, wait_s = await self._shared.admit(name)
            except SharedMemoryLost:
                return self.admit(name)
            if state != "closed" or name in self._circuits:
                self._circuit(name).adopt(state, wait_s)
            if state == "open":
                raise CircuitOpen(f"probe in {wait_s:.0f} s")
            return None
        return self.admit(name)

    def list_open(self) -> list[tuple[str, float]]:
        """Return the sources that are not queried because they keep failing, with the seconds left, by name."""
        return [(name, circuit.wait_s) for name, circuit in sorted(self._circuits.items()) if not circuit.closed]

    def record_success(self, name: str) -> None:
        """Count a good answer."""
        if name in self._down:
            log.warning("source is back", extra={"source": name, "for_callers": self._is_for_callers})
            self._down.remove(name)
        self._history.count(name, "good", "ok")
        self._share(name, "good")
        if (circuit := self._circuits.get(name)) is not None:
            self._record(name, circuit, "ok")

    def state(self, name: str) -> State:
        """Return the state of a source's circuit."""
        circuit = self._circuits.get(name)
        return "closed" if circuit is None else circuit.state

    def record_failure(self, name: str, error: SourceError) -> None:
        """Count a failure, unless the source was not queried, limited or refused us, or had an implausible value."""
        of_query = self._is_for_callers and self._is_no_failure(error)
        if error.was_sent and not of_query:
            self._history.count(name, "old" if isinstance(error, SourceFrozen) else "failed", error.word)
        if not error.was_sent or isinstance(error, SourceLimited | SourceImplausible) or self._is_no_failure(error):
            self.record_nothing(name)
            return
        if name not in self._down:
            log.warning(
                "source is down",
                extra={"source": name, "reason": error.reason, "for_callers": self._is_for_callers},
            )
            self._down.add(name)
        self._share(name, "bad")
        self._record(name, self._circuit(name), error.word)

    def _is_no_failure(self, error: SourceError) -> bool:
        """Return True if the host refuses us, which is recorded elsewhere, or refused only the caller's query."""
        if not self._is_for_callers:
            return isinstance(error, HostRefused)
        return isinstance(error, SourceEmpty) or error.word.startswith("http_4")

    def record_nothing(self, name: str) -> None:
        """Let the next request probe a half-open circuit, because this one said nothing about the source."""
        if (circuit := self._circuits.get(name)) is not None:
            if circuit.state == "half_open":
                self._share(name, "nothing")
            circuit.abandon_probe()

    def _circuit(self, name: str) -> CircuitBreaker:
        return self._circuits.setdefault(name, CircuitBreaker(self._clock, self._policy))

    def _share(self, name: str, result: Literal["good", "bad", "nothing"]) -> None:
        if self._shared is not None:
            self._shared.record(name, result, self._policy)

    def _record(self, name: str, circuit: CircuitBreaker, word: str) -> None:
        """Count a result. During a probe, a late result of an earlier request also decides."""
        was_closed, good = circuit.closed, word == "ok"
        if circuit.state == "half_open":
            circuit.record_probe(good=good)
        else:
            circuit.record(good=good)
        if circuit.closed != was_closed and not self._is_for_callers:
            self._history.note(name, "down" if was_closed else "back", word)


class SharedCircuits:
    """The circuits of one kind of queries, by the names of sources."""

    def __init__(self, memory: SharedMemory, clock: Clock, *, kind: str) -> None:
        self._memory, self._clock, self._kind = memory, SharedClock(clock), kind

    async def admit(self, name: str) -> tuple[State, float]:
        """Return the state of a circuit, and the seconds until the next probe may be sent.

        "half_open" says that this instance sends the probe. Raises SharedMemoryLost.
        """
        terms = self._clock.date({"probe": PROBE_S})
        state, us = await self._memory.run(ADMIT, self._keys(name), [encode(terms)])
        return state.decode(), us / 1e6

    def record(self, name: str, result: Literal["good", "bad", "nothing"], policy: BreakerPolicy) -> None:
        """Count a result. After "nothing", the next request probes."""
        terms: dict[str, object] = {
            "result": result,
            "keep": KEEP_S,
            "failures": policy.failures_in_a_row,
            "first": policy.first_wait_s,
            "longest": policy.longest_wait_s,
        }
        self._memory.send(RECORD, self._keys(name), [encode(self._clock.date(terms))])

    def _keys(self, name: str) -> list[bytes]:
        return [AHEAD, b"circuit:" + hash_name(f"{self._kind} {name}")]


HOUR_S, DAY_S = 3_600.0, 86_400.0
NAMELESS_S = 6 * HOUR_S  # without an address, before a host is asked once a day
NO_ADDRESS = 0  # in place of the status of a refusal
SEVERAL = 2  # refused sources of a host after which it refuses us, not just a page


class HostRefusal(NamedTuple):
    """The last refusal of a host: its status, its time, and the end of the pause; times in Unix seconds.

    The status is 0 if the host's name does not resolve.
    """

    host: str
    status: int
    seen_at: float
    until: float


class HostRefusals:
    """Remembers each last refusal until a day after its pause. Callers' queries obey refusals but add none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[str, dict[str, HostRefusal]] = {}  # by host and source
        self._answered_at: dict[str, float] = {}  # by host that refuses some sources
        self._nameless_since: dict[str, float] = {}  # by host

    def admit(self, host: str, source: str) -> None:
        """Admit a source's request to a host. Raise HostRefused while requests to the host are paused."""
        if (refusals := self._refusals.get(host)) is None:
            return
        now = self._clock.time()
        closed = {name: each for name, each in refusals.items() if now < each.until}
        is_whole = len(closed) >= SEVERAL or any(self._is_of_host(each) for each in closed.values())
        refusal = closed.get(source) or (max(closed.values(), key=_end) if is_whole else None)
        if refusal is not None:
            left_min = (refusal.until - now) / 60
            fault = f"{host} {describe_refusal(refusal.status)}"
            raise HostRefused(f"{fault}; asked again in {left_min:.0f} min", was_sent=False)

    def _is_of_host(self, refusal: HostRefusal) -> bool:
        """Return True if a source was refused twice, and the host answered no other source between."""
        is_lasting = refusal.until - refusal.seen_at >= DAY_S
        answered_at = self._answered_at.get(refusal.host, -DAY_S)
        return refusal.status == NO_ADDRESS or (is_lasting and answered_at < refusal.seen_at - HOUR_S)

    def record(self, host: str, source: str, status: int) -> None:
        """Record that a host refused a source, and pause requests to it: for a day if a refusal is already recorded."""
        now, refusals = self._clock.time(), self._find(host)
        pause_s = DAY_S if source in refusals else HOUR_S
        self._refusals.setdefault(host, {})[source] = HostRefusal(host, status, now, now + pause_s)
        if not refusals:
            log.warning("a host refuses us", extra={"host": host, "status": status, "pause_s": pause_s})

    def record_no_address(self, host: str, source: str) -> None:
        """Record that a host's name does not resolve. After six hours without an answer, pause requests for a day."""
        now = self._clock.time()
        if now - self._nameless_since.setdefault(host, now) < NAMELESS_S:
            return
        if not self._find(host):
            log.warning("a host has no address any more", extra={"host": host, "pause_s": DAY_S})
        self._refusals.setdefault(host, {})[source] = HostRefusal(host, NO_ADDRESS, now, now + DAY_S)

    def forget(self, host: str, source: str) -> None:
        """Forget a refusal, because the host answers the source again."""
        self._nameless_since.pop(host, None)
        refusals = self._refusals.get(host)
        if refusals is not None:
            self._answered_at[host] = self._clock.time()
            for name in [name for name, each in refusals.items() if each.status == NO_ADDRESS]:
                del refusals[name]
        if refusals is None:
            return
        refusals.pop(source, None)
        if not refusals:
            del self._refusals[host], self._answered_at[host]
            log.warning("a host no longer refuses us", extra={"host": host})

    def list_all(self) -> list[HostRefusal]:
        """Return the recorded refusals by host: of several, the one that lasts longest."""
        return [max(refusals.values(), key=_end) for host in sorted(self._refusals) if (refusals := self._find(host))]

    def list_closed(self) -> list[tuple[str, int, float]]:
        """Return the hosts that are currently paused, each with the status of its refusal and the seconds left."""
        now = self._clock.time()
        return [(each.host, each.status, each.until - now) for each in self.list_all() if now < each.until]

    def _find(self, host: str) -> dict[str, HostRefusal]:
        """Return the refusals of a host, each until a day after its pause."""
        now, refusals = self._clock.time(), self._refusals.get(host, {})
        return {source: each for source, each in refusals.items() if now <= each.until + DAY_S}


def describe_refusal(status: int) -> str:
    """Say in two words how a host refuses."""
    return f"answered {status}" if status else "has no address"


def _end(refusal: HostRefusal) -> float:
    return refusal.until
