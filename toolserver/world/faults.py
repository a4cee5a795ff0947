"""Apply fault rules: what fails, for which clients, how often and for how long."""

import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from toolserver.world import request_checks
from toolserver.world.model import Ask, World

RULES_MOST = 1_000
MEMBERS = {"id", "match", "kind", "probability", "count", "after", "for_s"}

Check = Callable[[Any, str], Any]


def _number(low: float, high: float) -> Check:
    return partial(request_checks.number, low=low, high=high)


def _whole(low: int, high: int) -> Check:
    return partial(request_checks.whole, low=low, high=high)


KINDS: dict[str, dict[str, tuple[Check, Any]]] = {  # parameter -> (its check, its default)
    "latency": {"ms": (_number(0, 600_000), 1000), "jitter_ms": (_number(0, 600_000), 0)},
    "slow_drip": {"bytes_per_s": (_number(0.1, 1e9), 64)},
    "timeout": {},
    "reset": {"at": (partial(request_checks.choice, options={"headers", "body"}), "headers")},
    "status": {"code": (_whole(200, 599), 503), "retry_after": (_whole(0, 86_400), None)},
    "rate_limit": {"n": (_whole(0, 1_000_000), 10), "window_s": (_number(0.001, 1e7), 60)},
    "malformed": {"fraction": (_number(0, 1), 0.6)},
    "truncated": {"fraction": (_number(0, 1), 0.6)},
    "html200": {},
    "error200": {},
    "empty": {},
    "zeros": {"keep_times": (request_checks.flag, False)},
    "frozen": {},
    "old": {"seconds": (_number(0, 1e9), 86_400)},
    "drift": {"form": (request_checks.text, None)},
    "jump": {"factor": (_number(-1e9, 1e9), 1.5)},
    "hostile": {"links": (request_checks.flag, False)},
    "oversize": {"mib": (_number(0.001, 128), 32)},
    "geo": {"code": (_whole(400, 499), 403)},
    "auth": {},
    "conditional_stuck": {},
    "dns": {},
    "announce": {
        "deprecation": (request_checks.text, None),
        "sunset": (request_checks.text, None),
        "warning": (request_checks.text, None),
        "moved": (request_checks.text, None),
    },
}


@dataclass(frozen=True, slots=True)
class Occasion:
    """When a rule applies: with what probability, how many times, after how many requests and for how many seconds."""

    probability: float = 1.0
    count: int | None = None
    after: int = 0
    for_s: float | None = None


@dataclass(slots=True)
class Uses:
    """How often a rule was considered and fired. For a rate limit: when it may be tried again, and requests by host."""

    seen: int = 0
    fired: int = 0
    retry_after_s: int = 0
    recent: dict[str, deque[float]] = field(default_factory=dict)


@dataclass(slots=True)
class Rule:
    """One fault rule and how often it fired. `terms` are its parameters, `world` that of the time when it was set."""

    id: str
    match: str
    kind: str
    terms: dict[str, Any]
    world: World
    occasion: Occasion = Occasion()
    uses: Uses = field(default_factory=Uses)

    def concerns(self, source: str, host: str, path: str) -> bool:
        """Return True if `match` fits: a source name (`*` allowed), a host, or a host and the start of a path."""
        if "/" in self.match:
            return f"{host}{path}".startswith(self.match)
        return self.match == host or fnmatchcase(source, self.match)

    def fires(self, ask: Ask, world: World) -> bool:
        """Return True if the rule applies to this request, and count the request."""
        occasion, uses = self.occasion, self.uses
        if occasion.for_s is not None and world.now >= self.world.now + occasion.for_s:
            return False
        if self.kind == "conditional_stuck" and not is_conditional(ask):
            return False
        uses.seen += 1
        due = uses.seen > occasion.after and (occasion.count is None or uses.fired < occasion.count)
        lucky = due and world.u(f"fault.{self.id}", uses.seen) < occasion.probability
        if not lucky or (self.kind == "rate_limit" and not self._over_limit(ask.host, world.now)):
            return False
        uses.fired += 1
        return True

    def _over_limit(self, host: str, now: float) -> bool:
        """Apply a sliding window per host. Refused requests do not count."""
        limit, window_s = self.terms["n"], self.terms["window_s"]
        recent = self.uses.recent.setdefault(host, deque())
        while recent and not now - window_s < recent[0] <= now:
            recent.popleft()
        if len(recent) < limit:
            recent.append(now)
            return False
        self.uses.retry_after_s = max(1, math.ceil((recent[0] if recent else now) + window_s - now))
        return True

    def describe(self) -> dict[str, Any]:
        """Return the rule as the control interface shows it."""
        past = {"set_at": self.world.now, "seen": self.uses.seen, "fired": self.uses.fired}
        return {"id": self.id, "match": self.match, "kind": self.kind} | self.terms | asdict(self.occasion) | past


def is_conditional(ask: Ask) -> bool:
    return "if-none-match" in ask.headers or "if-modified-since" in ask.headers


class Faults:
    """The rules in force, in the order in which they were set. The first one that fires decides."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self._numbered = 0

    def clear(self) -> None:
        self.rules = []
        self._numbered = 0

    def add(self, body: Any, world: World) -> Rule:
        """Set a rule from its JSON. It replaces a rule with the same id.

        Raises:
            ControlRefused: the rule is invalid.
        """
        kind = request_checks.choice(request_checks.an_object(body, "a rule").get("kind"), "kind", KINDS)
        request_checks.members(body, MEMBERS | set(KINDS[kind]), f"a rule of kind {kind}")
        rule = Rule(
            self._identity(body), request_checks.text(body.get("match"), "match"), kind, _read_terms(kind, body), world
        )
        rule.occasion = Occasion(
            probability=request_checks.number(body.get("probability", 1), "probability", 0, 1),
            count=_optional(body, "count", _whole(0, 1_000_000_000)),
            after=request_checks.whole(body.get("after", 0), "after", 0, 1_000_000_000),
            for_s=_optional(body, "for_s", _number(0, 1e9)),
        )
        others = [other for other in self.rules if other.id != rule.id]
        if len(others) >= RULES_MOST:
            raise request_checks.ControlRefused(f"there are {RULES_MOST} rules already")
        self.rules = [*others, rule]
        return rule

    def _identity(self, body: dict[str, Any]) -> str:
        if body.get("id") is not None:
            identity = request_checks.text(body["id"], "id", 64)
            if not re.fullmatch(r"[\w.-]+", identity):
                raise request_checks.ControlRefused("id may contain only letters, digits, '.', '_' and '-'")
            return identity
        taken = {rule.id for rule in self.rules}
        while (identity := f"f{self._numbered + 1}") in taken:
            self._numbered += 1
        self._numbered += 1
        return identity

    def remove(self, identity: str) -> bool:
        before = len(self.rules)
        self.rules = [rule for rule in self.rules if rule.id != identity]
        return len(self.rules) < before

    def fire(self, source: str, ask: Ask, world: World) -> Rule | None:
        """Return the first rule that applies to this request."""
        for rule in self.rules:
            if rule.concerns(source, ask.host, ask.path) and rule.fires(ask, world):
                return rule
        return None


def _read_terms(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    terms = {}
    for name, (check, default) in KINDS[kind].items():
        value = body.get(name)
        terms[name] = default if value is None else check(value, name)
    return terms


def _optional(body: dict[str, Any], name: str, check: Check) -> Any:
    return None if body.get(name) is None else check(body[name], name)
