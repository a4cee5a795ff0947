"""What can be done to the simulated world from outside: one function per control request."""

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NoReturn

from anyio import to_thread

from toolserver.world import checked
from toolserver.world.checked import Refused
from toolserver.world.model import Routes
from toolserver.world.replay import recorded
from toolserver.world.state import VERSION, WorldState

EVENT_MOST = 16_384  # bytes
EVENT_KINDS = {
    "earthquake",
    "launch",
    "story",
    "market_move",
    "alert",
    "eth_transfer",
    "btc_tx",
    "incident",
    "fire",
    "headline",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One control request: `rest` is the path after the command, decoded."""

    state: WorldState
    routes: Routes
    rest: str
    params: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        try:
            return json.loads(self.raw, parse_constant=_no_constant)
        except ValueError:
            raise Refused("the body must be JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


Command = Callable[[Call], Awaitable[Any]]
COMMANDS: dict[tuple[str, str], Command] = {}


def command(method: str, name: str) -> Callable[[Command], Command]:
    def keep(function: Command) -> Command:
        COMMANDS[method, name] = function
        return function

    return keep


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)


@command("GET", "")
async def overview(call: Call) -> Any:
    state = call.state
    return {
        "version": VERSION,
        "seed": state.seed,
        "scenario": state.scenario,
        "scenarios": {name: scenario.text for name, scenario in state.scenarios.items()},
        "clock": clock_of(state),
        "faults": [rule.describe() for rule in state.faults.rules],
        "replays": {name: replay.describe() for name, replay in state.replays.items()},
        "served": dict(sorted(state.log.served.items())),
        "unmatched": state.log.unmatched_count,
        "sources": sorted({route.source for route in call.routes.all}),
        "expectations": sorted(call.routes.expectations),
    }


def clock_of(state: WorldState) -> dict[str, Any]:
    clock = state.clock
    now = clock.now()
    time = plain(datetime.fromtimestamp(now, UTC))
    offset = round(clock.offset_s, 3) + 0.0  # no -0.0
    return {"now": now, "time": time, "offset_s": offset, "speed": clock.speed, "frozen": clock.frozen_at is not None}


@command("GET", "clock")
async def clock(call: Call) -> Any:
    return clock_of(call.state)


@command("PUT", "clock")
async def move_clock(call: Call) -> Any:
    """All members are checked before the first takes effect."""
    body = checked.members(call.body, {"now", "advance_s", "speed", "freeze"}, "the clock")
    sim = call.state.clock
    now = checked.instant(body["now"], "now") if "now" in body else None
    advance_s = checked.number(body.get("advance_s", 0), "advance_s", -1e10, 1e10)
    speed = checked.number(body["speed"], "speed", 0, 86_400) if "speed" in body else None
    freeze = checked.flag(body["freeze"], "freeze") if "freeze" in body else None
    checked.instant((sim.now() if now is None else now) + advance_s, "now")
    if freeze is not None:
        (sim.freeze if freeze else sim.thaw)()
    if speed is not None:
        sim.run(speed)
    if now is not None:
        sim.set(now)
    if advance_s:
        sim.advance(advance_s)
    return clock_of(call.state)


@command("PUT", "seed")
async def reseed(call: Call) -> Any:
    body = checked.members(call.body, {"seed"}, "the seed")
    call.state.seed = checked.whole(body.get("seed"), "seed", -(2**63), 2**63)
    return {"seed": call.state.seed}


@command("GET", "faults")
async def faults(call: Call) -> Any:
    return [rule.describe() for rule in call.state.faults.rules]


@command("POST", "faults")
async def add_fault(call: Call) -> Any:
    return call.state.faults.add(call.body, call.state.world()).describe()


@command("DELETE", "faults")
async def remove_faults(call: Call) -> Any:
    if not call.rest:
        call.state.faults.clear()
    elif not call.state.faults.remove(call.rest):
        raise Refused(f"there is no rule {call.rest!r}", 404)
    return {"faults": len(call.state.faults.rules)}


@command("GET", "events")
async def events(call: Call) -> Any:
    return call.state.edits.events


@command("POST", "events")
async def add_event(call: Call) -> Any:
    if len(call.raw) > EVENT_MOST:
        raise Refused(f"an event is at most {EVENT_MOST} bytes")
    body = checked.an_object(call.body, "an event")
    kind = checked.choice(body.get("kind"), "kind", EVENT_KINDS)
    at = call.state.world().now if body.get("at") is None else checked.instant(body["at"], "at")
    _room(call.state)
    event = body | {"kind": kind, "at": at}
    call.state.inject(event)
    return event


@command("GET", "values")
async def values(call: Call) -> Any:
    return {
        key: [{"value": value, "from": _shown(start), "to": _shown(end)} for start, end, value in pins]
        for key, pins in call.state.edits.pins.items()
    }


def _shown(at: float) -> float | None:
    return at if math.isfinite(at) else None


@command("PUT", "values")
async def pin_value(call: Call) -> Any:
    """A value of null takes the pins of the key away."""
    body = checked.members(call.body, {"key", "value", "from", "to"}, "a value")
    key = checked.text(body.get("key"), "key", 120)
    if "value" in body and body["value"] is None:
        call.state.unpin(key)
        return {"key": key, "value": None}
    value = body.get("value")
    value = float(value) if isinstance(value, bool) else checked.number(value, "value")
    start = -math.inf if body.get("from") is None else checked.instant(body["from"], "from")
    end = math.inf if body.get("to") is None else checked.instant(body["to"], "to")
    if not start < end:
        raise Refused("from must be before to")
    _room(call.state)
    call.state.pin(key, start, end, value)
    return {"key": key, "value": value, "from": _shown(start), "to": _shown(end)}


def _room(state: WorldState) -> None:
    if state.full:
        raise Refused("too many pins and events; reset or play a scenario")


@command("GET", "scenario")
async def scenario(call: Call) -> Any:
    state = call.state
    return {"name": state.scenario, "scenarios": {name: one.text for name, one in state.scenarios.items()}}


@command("PUT", "scenario")
async def play_scenario(call: Call) -> Any:
    body = checked.members(call.body, {"name"}, "a scenario")
    call.state.play(checked.choice(body.get("name"), "name", call.state.scenarios))
    return {"name": call.state.scenario, "faults": len(call.state.faults.rules), "clock": clock_of(call.state)}


@command("GET", "requests")
async def requests(call: Call) -> Any:
    since = call.params.get("since")
    if since is not None and since.replace(".", "", 1).isdigit():
        return call.state.log.entries(call.params.get("source"), checked.instant(float(since), "since"))
    return call.state.log.entries(call.params.get("source"), None if since is None else checked.instant(since, "since"))


@command("DELETE", "requests")
async def forget_requests(call: Call) -> Any:
    call.state.log.forget()
    return {"requests": 0}


@command("GET", "unmatched")
async def unmatched(call: Call) -> Any:
    return call.state.log.unmatched()


@command("GET", "expect")
async def expect(call: Call) -> Any:
    """What of an endpoint's payload the world fixes, with the query parameters of this request."""
    expectation = call.routes.expectations.get(call.rest)
    if expectation is None:
        raise Refused(f"nothing is expected of {call.rest!r}; see expectations in GET /_sim", 404)
    world, params = call.state.world(), dict(call.params)
    try:
        return await to_thread.run_sync(lambda: expectation(world, params))
    except Exception as error:  # most likely a parameter it cannot read
        raise Refused(f"{type(error).__name__}: {error}") from error


@command("PUT", "replay")
async def replay(call: Call) -> Any:
    body = checked.members(call.body, {"file", "shift_times"}, "a replay")
    name, file = checked.text(call.rest, "the source name"), checked.text(body.get("file"), "file")
    if name not in {route.source for route in call.routes.all}:
        raise Refused(f"there is no source {name!r}; see sources in GET /_sim", 404)
    shift = checked.flag(body.get("shift_times", False), "shift_times")
    samples = call.state.samples
    made = await to_thread.run_sync(lambda: recorded(samples, file, shift))
    call.state.replays[name] = made
    return {"source": name} | made.describe()


@command("DELETE", "replay")
async def stop_replay(call: Call) -> Any:
    if not call.rest:
        call.state.replays.clear()
    elif call.state.replays.pop(call.rest, None) is None:
        raise Refused(f"{call.rest!r} is not replayed", 404)
    return {"replays": sorted(call.state.replays)}


@command("POST", "reset")
async def reset(call: Call) -> Any:
    call.state.reset()
    return {"seed": call.state.seed, "clock": clock_of(call.state)}
