"""Define the vocabulary of a simulated provider: the world at one instant, a request, a reply, a route.

Nothing here has state that changes with time: every value is a pure function of (seed, key,
instant), so instants can be queried in any order and two runs agree. Additions of a test
(pinned values, injected events) are kept in `Edits` and shared by all instants.
"""

import hashlib
import json as jsonlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl


@lru_cache(maxsize=1 << 16, typed=True)  # typed: 1 and 1.0 are different draws
def draw(seed: int, key: str, k: object) -> float:
    """Return a number in [0, 1) fixed by seed, key and k. Cached, because series draw the same numbers repeatedly."""
    digest = hashlib.sha256(f"{seed}|{key}|{k}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


BLOCK = 1024  # slots that are drawn at a time
PAID = "base_transfer"  # the kind of event that is a payment on the chain


@lru_cache(maxsize=512)
def draw_slots(
    seed: int, kind: str, block: int, slot_s: float, chance: float, step: int
) -> tuple[tuple[int, float], ...]:
    """`(slot index, instant)` of each event in a block of slots; of each slot that is a multiple of `step`, if not 0.

    Lists of the same events are requested at successive instants, and a list may go back by weeks.
    """
    slots = range(block * BLOCK, (block + 1) * BLOCK)
    filled = (index for index in slots if (step and index % step == 0) or draw(seed, kind, index) < chance)
    return tuple((index, (index + draw(seed, f"{kind}.at", index)) * slot_s) for index in filled)


@dataclass(slots=True)
class Edits:
    """Changes made through the control interface."""

    pins: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)  # key -> [(from, to, value)]
    events: list[dict[str, Any]] = field(default_factory=list)  # {"kind": …, "at": epoch seconds, …}


@dataclass(frozen=True, slots=True)
class World:
    """The world at `now` (epoch seconds)."""

    seed: int
    now: float
    edits: Edits = field(default_factory=Edits)

    def at(self, now: float) -> "World":
        """Return the same world at another instant."""
        return replace(self, now=now)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def u(self, key: str, k: object = "") -> float:
        """Return a number in [0, 1) fixed by seed, key and k."""
        return draw(self.seed, key, k)

    def noise(self, key: str, x: float) -> float:
        """Return smooth noise in [-1, 1], linear between random values at whole numbers of x."""
        low = math.floor(x)
        a, b = 2 * self.u(key, low) - 1, 2 * self.u(key, low + 1) - 1
        return a + (b - a) * (x - low)

    def between(self, key: str, k: object, low: float, high: float) -> float:
        """Return a number in [low, high) fixed by seed, key and k."""
        return low + (high - low) * self.u(key, k)

    def pick(self, key: str, k: object, options: Sequence[Any]) -> Any:
        """Return one of the options, fixed by seed, key and k."""
        return options[int(self.u(key, k) * len(options))]

    def pinned(self, key: str, at: float | None = None) -> float | None:
        """Return the value pinned to `key` at that instant, if any; the newest pin wins."""
        at = self.now if at is None else at
        for start, end, value in reversed(self.edits.pins.get(key, [])):
            if start <= at < end:
                return value
        return None

    def injected(self, kind: str, since: float = -math.inf) -> list[dict[str, Any]]:
        """Return manually injected events of a kind with `since` < at <= now, oldest first."""
        events = [e for e in self.edits.events if e["kind"] == kind and since < e["at"] <= self.now]
        return sorted(events, key=lambda e: e["at"])

    def slots(
        self,
        kind: str,
        *,
        since: float,
        until: float | None = None,
        slot_s: float,
        rate: float,
        at_least_every_s: float = 0,
    ) -> Iterator[tuple[int, float]]:
        """Yield a thinned Poisson process: `(slot index, instant)` of each event in (since, until], oldest first.

        A slot of `slot_s` seconds holds an event with probability `rate * slot_s` (rate per
        second). With `at_least_every_s`, every slot whose index is a multiple of that
        distance holds an event, so that a demo is never empty. Attributes of an event:
        `world.u(kind + ".what", index)`.
        """
        until = self.now if until is None else until
        step = max(1, int(at_least_every_s / slot_s)) if at_least_every_s else 0
        first, last = math.floor(since / slot_s), math.floor(until / slot_s)
        for block in range(first // BLOCK, last // BLOCK + 1):
            for index, instant in draw_slots(self.seed, kind, block, slot_s, rate * slot_s, step):
                if since < instant <= until:
                    yield index, instant


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as the upstream would receive it."""

    method: str
    host: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)  # lower-case names
    body: bytes = b""
    parts: Mapping[str, str] = field(default_factory=dict)  # what the route's {placeholders} matched

    @property
    def params(self) -> dict[str, str]:
        """The query parameters. The last value of a repeated name wins."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return jsonlib.loads(self.body)

    def key_ok(self, key: str | None) -> bool:
        """Return True if an API key is accepted here: any key that starts with `sim-`."""
        return key is not None and key.startswith("sim-")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response. `last_modified` (epoch seconds) lets the listener answer conditional requests.

    `records` are events that the request adds to the world, such as a transaction that was submitted.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    last_modified: float | None = None
    records: tuple[dict[str, Any], ...] = ()

    @classmethod
    def json(cls, value: Any, status: int = 200, **more: Any) -> "Reply":
        """Return a reply with `value` as compact JSON."""
        text = jsonlib.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(text.encode(), status, more.pop("content_type", "application/json"), **more)

    @classmethod
    def text(
        cls, value: str, status: int = 200, content_type: str = "text/plain; charset=utf-8", **more: Any
    ) -> "Reply":
        return cls(value.encode(), status, content_type, **more)


Handler = Callable[[World, Ask], Reply]


def always(reply: Reply) -> Handler:
    """Return the handler that gives the same reply in every world to every request."""
    return lambda world, ask: reply


@dataclass(slots=True)
class Route:
    """One upstream request shape. `forms` has its own answers to faults, as this upstream sends them.

    Keys of `forms`: `error200`, `empty`, `drift`, `geo`, `auth`, `limited` or `status:<code>`.
    """

    source: str
    host: str
    pattern: re.Pattern[str]
    handler: Handler
    methods: tuple[str, ...] = ("GET",)
    when: Callable[[Ask], bool] | None = None
    forms: dict[str, Handler] = field(default_factory=dict)

    def form(self, kind: str) -> Callable[[Handler], Handler]:
        """Decorate the function that answers as this upstream does under a kind of fault."""

        def keep(handler: Handler) -> Handler:
            self.forms[kind] = handler
            return handler

        return keep


@dataclass
class Routes:
    """All simulated routes. Every provider module shares one instance.

    `on_node` has routes with what makes the one that replaces each where the chain is a
    node's. `missing` describes a request without a route. `probes` has the results of TCP
    connections by host, and is None if they are simulated.
    """

    all: list[Route] = field(default_factory=list)
    expectations: dict[str, Callable[[World, Mapping[str, str]], Any]] = field(default_factory=dict)
    on_node: list[tuple[Route, Callable[[Any], Route]]] = field(default_factory=list)
    missing: str = "not simulated"
    probes: Mapping[str, Any] | None = None

    def serves(
        self,
        source: str,
        host: str,
        path: str,
        *methods: str,
        when: Callable[[Ask], bool] | None = None,
        forms: Mapping[str, Reply] | None = None,
    ) -> Callable[[Handler], Route]:
        """Decorate a function that answers `https://host/path` as `source` does. `{name}` matches a segment part.

        `source` is the public name; several routes may share it, and several sources an
        address: `when` tells their requests apart. `forms` has the answers to faults that are
        always the same; the decorated name becomes the Route, whose `form` decorator adds
        those that depend on the world or the request.
        """
        escaped = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+?)", re.escape(path))

        def keep(handler: Handler) -> Route:
            answers = {kind: always(reply) for kind, reply in (forms or {}).items()}
            route = Route(source, host, re.compile(escaped), handler, methods or ("GET",), when, answers)
            self.all.append(route)
            return route

        return keep

    def expects(self, endpoint: str) -> Callable[[Callable[[World, Mapping[str, str]], Any]], Any]:
        """Decorate a function that computes the parts of a payload that the world fixes, for `/_sim/expect/…`."""

        def keep(function: Callable[[World, Mapping[str, str]], Any]) -> Any:
            self.expectations[endpoint] = function
            return function

        return keep

    def on(self, chain: Any) -> "Routes":
        """Return the routes of a world whose chain is on a node, such as anvil."""
        replaced = {id(route): make(chain) for route, make in self.on_node}
        return replace(self, all=[replaced.get(id(route), route) for route in self.all])

    def find(self, ask: Ask) -> tuple[Route, Ask] | None:
        """Return the route for a request, and the request with `parts` filled in."""
        for route in self.all:
            if route.host != ask.host or ask.method not in route.methods:
                continue
            match = route.pattern.fullmatch(ask.path)
            if match and (route.when is None or route.when(ask)):
                return route, replace(ask, parts=match.groupdict())
        return None


ROUTES = Routes()
serves = ROUTES.serves
expects = ROUTES.expects
