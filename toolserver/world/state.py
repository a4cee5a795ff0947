"""Hold all mutable state of the simulated world in one object: its clock, its faults, its edits, and the request log.

The clock can be set, moved, sped up, stopped, and shared with a service.
"""

import json
import logging
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from toolserver.core.private_file import write_private
from toolserver.world.chain import Reorganisation, TransferOrder, WorldChain, block_at, head_at
from toolserver.world.faults import Faults
from toolserver.world.model import PAID, Edits, Routes, World
from toolserver.world.replay import Replay
from toolserver.world.request_checks import LATEST

log = logging.getLogger(__name__)

FASTEST = 86_400.0
LOOK_S = 0.5  # how long a sleeper may miss that the clock was set forward


class _Anchor(NamedTuple):
    """The clock's state at its last change, replaced as a whole so that every thread reads a consistent one."""

    real: float  # the machine's monotonic seconds
    now: float  # simulated epoch seconds
    elapsed: float  # total simulated seconds that have passed
    rate: float  # simulated per real second; 0 while frozen
    pace: float  # elapsed per real second; at least 1


class SimClock:
    """Simulated time. Starts at `epoch` (now, if None) and runs `speed` times as fast as real time.

    Wall time may be set back or frozen; `elapsed` never goes back, and follows every step
    forward. It is the time by which a service waits between requests, so it is never slower
    than the machine's and does not stand still.
    """

    def __init__(
        self,
        epoch: float | None = None,
        *,
        speed: float = 1.0,
        frozen: bool = False,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = (epoch, speed, frozen)
        self._wall, self._monotonic = wall, monotonic
        self.epoch = wall() if epoch is None else epoch
        self._speed = _in_range("speed", speed, FASTEST)
        self._frozen = frozen
        now = _in_range("now", self.epoch, LATEST)
        self._anchor = _Anchor(monotonic(), now, 0.0, 0.0 if frozen else speed, max(speed, 1.0))

    def now(self) -> float:
        """Return simulated epoch seconds."""
        anchor = self._anchor
        return anchor.now + (self._monotonic() - anchor.real) * anchor.rate

    def elapsed(self) -> float:
        """Return simulated seconds since the start, which never go back."""
        anchor = self._anchor
        return anchor.elapsed + (self._monotonic() - anchor.real) * anchor.pace

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def frozen_at(self) -> float | None:
        return self._anchor.now if self._frozen else None

    @property
    def offset_s(self) -> float:
        """How far simulated time is ahead of the machine's."""
        return self.now() - self._wall()

    def set(self, now: float) -> None:
        """Move the clock to an instant, forward or back."""
        self._move(_in_range("now", now, LATEST))

    def advance(self, seconds: float) -> None:
        self._move(_in_range("now", self.now() + seconds, LATEST))

    def run(self, speed: float) -> None:
        """Run at another speed from now on (after thawing, if frozen)."""
        self._speed = _in_range("speed", speed, FASTEST)
        self._move(self.now())

    def freeze(self) -> None:
        now = self.now()
        self._frozen = True
        self._move(now)

    def thaw(self) -> None:
        now = self.now()
        self._frozen = False
        self._move(now)

    def restart(self) -> None:
        """Return to the initial instant (or the machine's time if none was given), speed and state."""
        epoch, self._speed, self._frozen = self._start
        self.epoch = self._wall() if epoch is None else epoch
        self._move(self.epoch)

    def _move(self, now: float) -> None:
        elapsed = self.elapsed() + max(0.0, now - self.now())
        rate = 0.0 if self._frozen else self._speed
        self._anchor = _Anchor(self._monotonic(), now, elapsed, rate, max(self._speed, 1.0))


class SharedSimClock:
    """The same clock with the interface of a service: aware datetimes, and seconds that never go back."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def time(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.elapsed()

    async def sleep(self, seconds: float) -> None:
        """Wait until so much simulated time has passed, also if the clock is set forward in the meantime."""
        until = self._clock.elapsed() + seconds
        while (left := until - self._clock.elapsed()) > 0:  # noqa: ASYNC110 - the clock is set from other threads too
            await anyio.sleep(min(left / max(self._clock.speed, 1.0), LOOK_S))


def _in_range(name: str, value: float, highest: float) -> float:
    if not 0 <= value <= highest:
        raise ValueError(f"{name} must be between 0 and {highest:.0f}")
    return value


KEPT = 10_000
UNMATCHED_KEPT = 1_000
URL_KEPT = 2_000


@dataclass(slots=True)
class LoggedRequest:
    """A request as the simulated world got it. `t` is in simulated epoch seconds; a long URL is shortened."""

    t: float
    method: str
    url: str

    def __post_init__(self) -> None:
        self.url = self.url[:URL_KEPT]


@dataclass(slots=True)
class Entry:
    """The answer to one request. `status` is None if the connection got none; `ms` is None until it is answered."""

    request: LoggedRequest
    source: str | None
    status: int | None = None
    ms: float | None = None
    conditional: bool = False
    fault: str | None = None  # id of the rule that fired

    def as_json(self) -> dict[str, Any]:
        return {
            "t": self.request.t,
            "source": self.source,
            "method": self.request.method,
            "url": self.request.url,
            "status": self.status,
            "ms": self.ms,
            "conditional": self.conditional,
            "fault": self.fault,
        }


class RequestLog:
    """The newest requests, the count per source, and the requests that matched no simulated route."""

    def __init__(self) -> None:
        self.clear()

    def forget(self) -> None:
        """Drop the requests; counts and unmatched requests remain."""
        self._entries.clear()

    def clear(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._unmatched: deque[dict[str, Any]] = deque(maxlen=UNMATCHED_KEPT)
        self.served: Counter[str] = Counter()
        self.unmatched_count = 0

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        if entry.source:
            self.served[entry.source] += 1

    def served_by(self, entry: Entry, source: str) -> None:
        """Record which provider answered an entry."""
        entry.source = source
        self.served[source] += 1

    def miss(self, request: LoggedRequest, reason: str) -> None:
        """Record a request that should have been simulated but was not."""
        self.unmatched_count += 1
        self._unmatched.append({**asdict(request), "reason": reason[:300]})

    def entries(self, source: str | None = None, since: float | None = None) -> list[dict[str, Any]]:
        """List entries, oldest first, only of `source` and not older than `since` (epoch s)."""
        return [
            entry.as_json()
            for entry in self._entries
            if (source is None or entry.source == source) and (since is None or entry.request.t >= since)
        ]

    def unmatched(self) -> list[dict[str, Any]]:
        return list(self._unmatched)


PRIMARIES = (  # the first source of each endpoint's chain, without any API keys
    "Coinbase.*",
    "CNBC.quotes",
    "CoinGecko.markets",
    "AlternativeMe.fear_greed",
    "Frankfurter.usd_timeseries",
    "NYFed.effr",
    "BLS.timeseries",
    "Treasury.par_yield_curve",
    "DBnomics.us_real_gdp_growth",
    "FreddieMac.pmms_30y",
    "GoldApi.xau_spot",
    "USGS.earthquakes_*",
    "GDACS.event_list",
    "HackerNewsAlgolia.front_page",
    "Polymarket.markets_by_volume",
    "OpenMeteo.*",
    "LaunchLibrary.*",
    "GitHub.search_repositories",
    "www.cisa.gov",
    "Steam.concurrent_players",
    "Ethereum.fee_history",
    "SWPC.planetary_k",
    "SWPC.solar_wind_1m",
    "services.swpc.noaa.gov/json/goes/primary/",
    "NASA.firms_area",
    "NWS.alerts_active",
    "BinanceFutures.*",
    "Bybit.linear_tickers",
    "Binance.*",
    "SmithsonianGVP.weekly_report",
    "Mempool.*",
    "BlockchainInfo.unconfirmed_txs",
)
CRASHED_BTC = 85_400.0  # 12 % below the price around which the simulated price moves
GEO_BLOCKED = ("Binance.*", "BinanceFutures.*", "Bybit.*", "Reddit.*", "www.cisa.gov")
CLOUD = (*GEO_BLOCKED, "Yahoo.*", "YahooFinance.*", "Dydx.*")  # sources that refuse data centres
QUIET = ("quakes", "launches", "stories", "bets", "eth", "btc")
BUSY: tuple[dict[str, Any], ...] = (
    {"kind": "earthquake", "magnitude": 7.1, "place": "120 km E of Hachinohe, Japan", "lat": 40.6, "lon": 143.1}
    | {"depth": 24.0, "tsunami": 1, "alert": "red"},
    {
        "kind": "alert",
        "event": "Tornado Warning",
        "severity": "Extreme",
        "urgency": "Immediate",
        "certainty": "Observed",
    },
    {"kind": "alert", "event": "Tropical Cyclone", "level": "red", "type": "TC", "country": "Philippines"},
    {"kind": "market_move", "market": 0, "move": 0.2},
    {"kind": "incident", "page": "GitHub", "impact": "critical", "title": "Incident with Git Operations"},
    {"kind": "incident", "page": "Cloudflare", "impact": "major", "title": "Elevated errors in several regions"},
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The changes that `PUT /_sim/scenario` makes. `text` describes them in a sentence."""

    text: str
    rules: tuple[dict[str, Any], ...] = ()
    pins: Mapping[str, float] = field(default_factory=dict)  # at every instant
    pins_from_now: Mapping[str, float] = field(default_factory=dict)
    events: tuple[dict[str, Any], ...] = ()
    weekend: bool = False  # moves the clock to the next Saturday afternoon


def _everywhere(kind: str, **parameters: Any) -> tuple[dict[str, Any], ...]:
    return ({"id": kind, "match": "*", "kind": kind} | parameters,)


def scenarios(primaries: Sequence[str] = PRIMARIES) -> dict[str, Scenario]:
    """Return all presets by name. `primaries` are the sources that `primary_down` disables."""
    down = tuple({"match": name, "kind": "status", "code": 503} for name in primaries)
    refusing = tuple({"match": name, "kind": "geo"} for name in GEO_BLOCKED)
    cloud = tuple({"match": name, "kind": "geo"} for name in CLOUD)
    quiet = {f"{what}.quiet": 1.0 for what in QUIET}
    return {
        "normal": Scenario("Everything answers; no rules, pins or injected events."),
        "quiet": Scenario("No earthquake of M4 or more, no launch, no move of a market: empty answers.", pins=quiet),
        "busy": Scenario(
            "M7.1 with tsunami flag, red alerts, an X-class flare, bitcoin down 12 %, two outages.",
            pins_from_now={"xray.flux": 2.5e-4, "price.BTC": CRASHED_BTC},
            events=BUSY,
        ),
        "all_down": Scenario("Every source accepts the request and never answers.", _everywhere("timeout")),
        "primary_down": Scenario("The first source of every chain answers 503: fallbacks take over.", down),
        "geo_blocked": Scenario("Binance, Bybit, Reddit and CISA refuse this region.", refusing),
        "cloud": Scenario("Every host that refuses data centres does so: also Yahoo and dYdX.", cloud),
        "rate_limited": Scenario("Every source says: too many requests.", _everywhere("rate_limit", n=0, window_s=60)),
        "drifted": Scenario("Every source answers in its alternative known form.", _everywhere("drift")),
        "frozen_world": Scenario("Every source keeps returning its body of this moment.", _everywhere("frozen")),
        "html_storm": Scenario("Every source answers 200 with a page for browsers.", _everywhere("html200")),
        "weekend": Scenario("The clock moves to Saturday 15:00 UTC: markets closed, no fixing.", weekend=True),
        "cold_start_offline": Scenario("No name resolves; set this before the first request.", _everywhere("dns")),
        "keys_present": Scenario("As normal; requests with keys that start with sim- are answered as keyed."),
    }


VERSION = "1"
EDITS_MOST = 10_000  # pins and events, each


@dataclass
class WorldState:
    """Seed, clock, edits, fault rules, recorded bodies and the log.

    Attributes:
        seed: determines everything random.
        clock: may be shared with a service in the same process, through `SimulatedClock`.
        primaries: public names, or host/path prefixes, of the sources that scenario `primary_down` disables.
        samples: the folder from which recorded bodies are replayed.
        edits_most: the number of pins, and of events, from which on no more are accepted.
        file: where the payments on the chain and the clock are kept, for the next world with this file; None: nowhere.
    """

    seed: int = 1
    clock: SimClock = field(default_factory=SimClock)
    primaries: Sequence[str] = PRIMARIES
    samples: Path | None = None
    edits_most: int = EDITS_MOST
    file: Path | None = None

    def __post_init__(self) -> None:
        self._first_seed = self.seed
        self.edits = Edits()
        self.chain: WorldChain = EventChain(self)
        self.faults = Faults()
        self.log = RequestLog()
        self.replays: dict[str, Replay] = {}
        self.scenario = "normal"
        self.scenarios = scenarios(self.primaries)
        if self.file is not None and self.file.exists():
            kept = json.loads(self.file.read_text(encoding="utf-8"))
            self.edits = Edits(events=kept["payments"])
            self.clock.advance(kept["ahead_s"] - self.clock.offset_s)

    def keep(self) -> None:
        """Write the payments and how far the clock is ahead of the machine's to the file, if there is one.

        While the disk takes nothing, the world goes on, and the next one would begin with what was written before.
        """
        if self.file is None:
            return
        payments = [event for event in self.edits.events if event["kind"] == PAID]
        try:
            write_private(self.file, json.dumps({"ahead_s": self.clock.offset_s, "payments": payments}) + "\n")
        except OSError as error:
            log.warning("the simulated chain and clock cannot be kept", extra={"reason": str(error)})

    def world(self) -> World:
        """Return the world now, to the second: within one second every answer is the same."""
        return World(self.seed, float(math.floor(self.clock.now())), self.edits)

    def pin(self, key: str, start: float, end: float, value: float) -> None:
        """Fix a value from `start` to before `end`."""
        pins = dict(self.edits.pins)
        pins[key] = [*pins.get(key, []), (start, end, value)]
        self.edits = Edits(
            pins, self.edits.events
        )  # replaced, never changed: worlds returned earlier stay as they were

    def unpin(self, key: str) -> None:
        self.edits = Edits({k: v for k, v in self.edits.pins.items() if k != key}, self.edits.events)

    def inject(self, event: dict[str, Any]) -> None:
        """Add an event (`kind`, `at` and attributes)."""
        self.edits = Edits(self.edits.pins, [*self.edits.events, event])

    def record(self, events: Sequence[dict[str, Any]]) -> None:
        """Add the transactions that a request submitted, each once: the same request may have been answered twice."""
        payments = [event for event in self.edits.events if event["kind"] == PAID]
        hashes, used = {each["hash"] for each in payments}, {_use(each) for each in payments} - {None}
        new = []
        for each in events:
            if each["hash"] not in hashes and _use(each) not in used:
                new.append(each)
                hashes.add(each["hash"])
                used |= {_use(each)} - {None}
        if new:
            self.edits = Edits(self.edits.pins, [*self.edits.events, *new])
            self.keep()

    @property
    def full(self) -> bool:
        """True if the limit of pins or events is reached."""
        return max(sum(map(len, self.edits.pins.values())), len(self.edits.events)) >= self.edits_most

    def play(self, name: str) -> None:
        """Replace all rules, pins and events with a scenario's. The clock continues, or jumps ahead if needed.

        Payments on the chain remain.
        """
        scenario = self.scenarios[name]
        self.edits = Edits(events=[event for event in self.edits.events if event["kind"] == PAID])
        self.faults.clear()
        if scenario.weekend:
            self.clock.set(next_weekend(self.clock.now()))
        for start, pins in ((-math.inf, scenario.pins), (self.world().now, scenario.pins_from_now)):
            for key, value in pins.items():
                self.pin(key, start, math.inf, value)
        for event in scenario.events:
            self.inject({"at": self.world().now} | event)
        for rule in scenario.rules:
            self.faults.add(rule, self.world())
        self.scenario = name

    def reset(self) -> None:
        """Reset everything to the start: seed, clock, rules, edits, recorded bodies and log."""
        self.seed = self._first_seed
        self.clock.restart()
        self.edits = Edits()
        self.faults.clear()
        self.replays = {}
        self.log.clear()
        self.scenario = "normal"


def _use(payment: dict[str, Any]) -> tuple[str, str] | None:
    """Return the authorisation that a payment used up: its payer and nonce."""
    return (payment["from"], payment["nonce"]) if "nonce" in payment else None


def next_weekend(now: float) -> float:
    """Return the next Saturday 15:00 UTC, or now if it is already the weekend."""
    day = (math.floor(now / 86_400) + 3) % 7  # Monday is 0; the epoch began on a Thursday
    if day == 6 or (day == 5 and now % 86_400 >= 15 * 3600):
        return now
    return now - now % 86_400 + (5 - day) * 86_400 + 15 * 3600


class EventChain:
    """The chain of a world without a node: each payment is an event, and a block is what its two seconds contain."""

    def __init__(self, state: "WorldState") -> None:
        self._state = state

    async def transfer(self, order: TransferOrder) -> str:
        event: dict[str, Any] = {
            "kind": PAID,
            "at": self._state.world().now,
            "hash": f"0x{secrets.token_hex(32)}",
            "from": order.sender,
            "to": order.to,
            "amount": order.amount,
        }
        named = {"via": order.via, "token": order.token, "known_to": order.known_to}
        self._state.inject(event | {name: value for name, value in named.items() if value is not None})
        return str(event["hash"])

    async def undo(self, hash: str) -> bool:
        return bool(self._remove({hash}))

    async def reorganise(self, depth: int, again: Collection[str]) -> Reorganisation:
        now = self._state.world().now
        first = head_at(now) - depth + 1
        found = [event for event in await self.list_transfers() if block_at(event["at"]) >= first]
        self._remove({event["hash"] for event in found})
        kept = [event for event in found if event["hash"] in again]
        for event in kept:
            self._state.inject(event | {"at": now})
        back = [str(event["hash"]) for event in kept]
        return Reorganisation([str(event["hash"]) for event in found if event["hash"] not in again], back)

    async def list_transfers(self) -> list[dict[str, Any]]:
        return [event for event in self._state.edits.events if event["kind"] == PAID]

    async def follow(self) -> None:
        """Do nothing: the blocks of this chain are counted by the clock."""

    def serve(self, routes: Routes) -> Routes:
        return routes

    def _remove(self, hashes: set[str]) -> int:
        """Return how many transfers were removed."""
        edits = self._state.edits
        remaining = [event for event in edits.events if event.get("hash") not in hashes]
        self._state.edits = Edits(edits.pins, remaining)
        return len(edits.events) - len(remaining)
