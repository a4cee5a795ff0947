"""Hold all mutable state of the simulated world in one object."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolserver.world.clock import SimClock
from toolserver.world.faults import Faults
from toolserver.world.model import Edits, World
from toolserver.world.replay import Replay
from toolserver.world.requests_log import RequestLog
from toolserver.world.scenarios import PRIMARIES, scenarios

VERSION = "1"
EDITS_MOST = 10_000  # pins and events, each
PAID = "base_transfer"


@dataclass
class WorldState:
    """Seed, clock, edits, fault rules, recorded bodies and the log.

    Attributes:
        seed: determines everything random.
        clock: may be shared with a service in the same process, through `SimulatedClock`.
        primaries: public names, or host/path prefixes, of the sources that scenario `primary_down` disables.
        samples: the folder from which recorded bodies are replayed.
        edits_most: the number of pins, and of events, from which on no more are accepted.
    """

    seed: int = 1
    clock: SimClock = field(default_factory=SimClock)
    primaries: Sequence[str] = PRIMARIES
    samples: Path | None = None
    edits_most: int = EDITS_MOST

    def __post_init__(self) -> None:
        self._first_seed = self.seed
        self.edits = Edits()
        self.faults = Faults()
        self.log = RequestLog()
        self.replays: dict[str, Replay] = {}
        self.scenario = "normal"
        self.scenarios = scenarios(self.primaries)

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


def next_weekend(now: float) -> float:
    """Return the next Saturday 15:00 UTC, or now if it is already the weekend."""
    day = (math.floor(now / 86_400) + 3) % 7  # Monday is 0; the epoch began on a Thursday
    if day == 6 or (day == 5 and now % 86_400 >= 15 * 3600):
        return now
    return now - now % 86_400 + (5 - day) * 86_400 + 15 * 3600
