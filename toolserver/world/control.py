"""Serve the control interface under /_sim, for callers on this machine only: JSON commands, and a page of buttons."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from html import escape
from ipaddress import ip_address
from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from anyio import to_thread

from toolserver.world import request_checks
from toolserver.world.chain import TransferOrder
from toolserver.world.faults import Rule
from toolserver.world.model import Reply, Routes
from toolserver.world.replay import read_recorded
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import VERSION, WorldState
from toolserver.world.wire import Received

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
FROM = "0x00000000000000000000000000000000000f00d5"
MOST_USD = 10**9
DEEPEST = 64  # blocks of a reorganisation
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class ControlRequest:
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
            raise ControlRefused("the body must be JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


Command = Callable[[ControlRequest], Awaitable[Any]]
COMMANDS: dict[tuple[str, str], Command] = {}


def command(method: str, name: str) -> Callable[[Command], Command]:
    def register(function: Command) -> Command:
        COMMANDS[method, name] = function
        return function

    return register


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)


@command("GET", "")
async def overview(call: ControlRequest) -> Any:
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
async def clock(call: ControlRequest) -> Any:
    return clock_of(call.state)


@command("PUT", "clock")
async def move_clock(call: ControlRequest) -> Any:
    """Move, freeze or speed up the clock. All members are checked before the first takes effect."""
    body = request_checks.members(call.body, {"now", "advance_s", "speed", "freeze"}, "the clock")
    sim = call.state.clock
    now = request_checks.instant(body["now"], "now") if "now" in body else None
    advance_s = request_checks.number(body.get("advance_s", 0), "advance_s", -1e10, 1e10)
    speed = request_checks.number(body["speed"], "speed", 0, 86_400) if "speed" in body else None
    freeze = request_checks.flag(body["freeze"], "freeze") if "freeze" in body else None
    request_checks.instant((sim.now() if now is None else now) + advance_s, "now")
    if freeze is not None:
        (sim.freeze if freeze else sim.thaw)()
    if speed is not None:
        sim.run(speed)
    if now is not None:
        sim.set(now)
    if advance_s:
        sim.advance(advance_s)
    await call.state.chain.follow()
    return clock_of(call.state)


@command("PUT", "seed")
async def reseed(call: ControlRequest) -> Any:
    body = request_checks.members(call.body, {"seed"}, "the seed")
    call.state.seed = request_checks.whole(body.get("seed"), "seed", -(2**63), 2**63)
    return {"seed": call.state.seed}


@command("GET", "faults")
async def faults(call: ControlRequest) -> Any:
    return [rule.describe() for rule in call.state.faults.rules]


@command("POST", "faults")
async def add_fault(call: ControlRequest) -> Any:
    return call.state.faults.add(call.body, call.state.world()).describe()


@command("DELETE", "faults")
async def remove_faults(call: ControlRequest) -> Any:
    if not call.rest:
        call.state.faults.clear()
    elif not call.state.faults.remove(call.rest):
        raise ControlRefused(f"there is no rule {call.rest!r}", 404)
    return {"faults": len(call.state.faults.rules)}


@command("GET", "events")
async def events(call: ControlRequest) -> Any:
    return call.state.edits.events


@command("POST", "events")
async def add_event(call: ControlRequest) -> Any:
    if len(call.raw) > EVENT_MOST:
        raise ControlRefused(f"an event is at most {EVENT_MOST} bytes")
    body = request_checks.an_object(call.body, "an event")
    kind = request_checks.choice(body.get("kind"), "kind", EVENT_KINDS)
    at = call.state.world().now if body.get("at") is None else request_checks.instant(body["at"], "at")
    _room(call.state)
    event = body | {"kind": kind, "at": at}
    call.state.inject(event)
    return event


@command("GET", "values")
async def values(call: ControlRequest) -> Any:
    return {
        key: [{"value": value, "from": _shown(start), "to": _shown(end)} for start, end, value in pins]
        for key, pins in call.state.edits.pins.items()
    }


def _shown(at: float) -> float | None:
    return at if math.isfinite(at) else None


@command("PUT", "values")
async def pin_value(call: ControlRequest) -> Any:
    """Pin a value; null removes the pins of the key."""
    body = request_checks.members(call.body, {"key", "value", "from", "to"}, "a value")
    key = request_checks.text(body.get("key"), "key", 120)
    if "value" in body and body["value"] is None:
        call.state.unpin(key)
        return {"key": key, "value": None}
    value = body.get("value")
    value = float(value) if isinstance(value, bool) else request_checks.number(value, "value")
    start = -math.inf if body.get("from") is None else request_checks.instant(body["from"], "from")
    end = math.inf if body.get("to") is None else request_checks.instant(body["to"], "to")
    if not start < end:
        raise ControlRefused("from must be before to")
    _room(call.state)
    call.state.pin(key, start, end, value)
    return {"key": key, "value": value, "from": _shown(start), "to": _shown(end)}


def _room(state: WorldState) -> None:
    if state.full:
        raise ControlRefused("too many pins and events; reset or play a scenario")


@command("GET", "scenario")
async def scenario(call: ControlRequest) -> Any:
    state = call.state
    return {"name": state.scenario, "scenarios": {name: one.text for name, one in state.scenarios.items()}}


@command("PUT", "scenario")
async def play_scenario(call: ControlRequest) -> Any:
    body = request_checks.members(call.body, {"name"}, "a scenario")
    call.state.play(request_checks.choice(body.get("name"), "name", call.state.scenarios))
    return {"name": call.state.scenario, "faults": len(call.state.faults.rules), "clock": clock_of(call.state)}


@command("GET", "requests")
async def requests(call: ControlRequest) -> Any:
    since = call.params.get("since")
    if since is not None and since.replace(".", "", 1).isdigit():
        return call.state.log.entries(call.params.get("source"), request_checks.instant(float(since), "since"))
    return call.state.log.entries(
        call.params.get("source"), None if since is None else request_checks.instant(since, "since")
    )


@command("DELETE", "requests")
async def forget_requests(call: ControlRequest) -> Any:
    call.state.log.forget()
    return {"requests": 0}


@command("GET", "unmatched")
async def unmatched(call: ControlRequest) -> Any:
    return call.state.log.unmatched()


@command("GET", "expect")
async def expect(call: ControlRequest) -> Any:
    """Return the part of an endpoint's payload that the world fixes, for the query parameters of this request."""
    expectation = call.routes.expectations.get(call.rest)
    if expectation is None:
        raise ControlRefused(f"there are no expectations of {call.rest!r}; see expectations in GET /_sim", 404)
    world, params = call.state.world(), dict(call.params)
    try:
        return await to_thread.run_sync(lambda: expectation(world, params))
    except Exception as error:  # most likely a parameter that it cannot read
        raise ControlRefused(f"{type(error).__name__}: {error}") from error


@command("PUT", "replay")
async def replay(call: ControlRequest) -> Any:
    body = request_checks.members(call.body, {"file", "shift_times"}, "a replay")
    name, file = request_checks.text(call.rest, "the source name"), request_checks.text(body.get("file"), "file")
    if name not in {route.source for route in call.routes.all}:
        raise ControlRefused(f"there is no source {name!r}; see sources in GET /_sim", 404)
    shift = request_checks.flag(body.get("shift_times", False), "shift_times")
    samples = call.state.samples
    recorded = await to_thread.run_sync(lambda: read_recorded(samples, file, shift))
    call.state.replays[name] = recorded
    return {"source": name} | recorded.describe()


@command("DELETE", "replay")
async def stop_replay(call: ControlRequest) -> Any:
    if not call.rest:
        call.state.replays.clear()
    elif call.state.replays.pop(call.rest, None) is None:
        raise ControlRefused(f"{call.rest!r} is not replayed", 404)
    return {"replays": sorted(call.state.replays)}


@command("POST", "reset")
async def reset(call: ControlRequest) -> Any:
    call.state.reset()
    return {"seed": call.state.seed, "clock": clock_of(call.state)}


@command("POST", "chain")
async def change_chain(call: ControlRequest) -> Any:
    """Make a transfer (`/_sim/chain/transfer`), or replace the newest blocks (`/_sim/chain/reorganise`)."""
    if call.rest == "reorganise":
        return await _reorganise(call)
    if call.rest != "transfer":
        raise ControlRefused("POST /_sim/chain/transfer or /_sim/chain/reorganise", 404)
    return await _transfer(call)


async def _transfer(call: ControlRequest) -> Any:
    """Send USDC: `{"to", "amount_usd"}` and optionally `"from"`. The next block contains it.

    `"via"` names a contract that the transaction calls and that moves the money; `"token"`
    another token than USDC; `"known_to"` the one RPC server that invents this payment.
    """
    body = request_checks.members(call.body, {"to", "amount_usd", "from", "via", "token", "known_to"}, "a transfer")
    _room(call.state)
    order = TransferOrder(
        sender=_address(body.get("from", FROM), "from"),
        to=_address(body.get("to"), "to"),
        amount=_amount(body.get("amount_usd")),
        via=_address(body["via"], "via") if "via" in body else None,
        token=_address(body["token"], "token") if "token" in body else None,
        known_to=request_checks.text(body["known_to"], "known_to") if "known_to" in body else None,
    )
    hash = await call.state.chain.transfer(order)
    named = {"via": order.via, "token": order.token, "known_to": order.known_to}
    shown = {"tx_hash": hash, "from": order.sender, "to": order.to, "amount": order.amount}
    return shown | {name: value for name, value in named.items() if value is not None}


async def _reorganise(call: ControlRequest) -> Any:
    """Replace the newest blocks: `{"depth", "again"?}`. Transactions of `again` are mined again, others are gone."""
    body = request_checks.members(call.body, {"depth", "again"}, "a reorganisation")
    depth = request_checks.whole(body.get("depth"), "depth", 1, DEEPEST)
    again = body.get("again", [])
    if not isinstance(again, list):
        raise ControlRefused("again must be a list of transaction hashes")
    done = await call.state.chain.reorganise(depth, {str(hash).lower() for hash in again})
    return done._asdict()


@command("DELETE", "chain")
async def undo(call: ControlRequest) -> Any:
    """Remove a transfer from the chain, as a reorganisation does: `DELETE /_sim/chain/0x…`."""
    if not await call.state.chain.undo(call.rest.lower()):
        raise ControlRefused("there is no such transfer", 404)
    return {"undone": call.rest.lower()}


@command("GET", "chain")
async def list_transfers(call: ControlRequest) -> Any:
    """List all transfers."""
    return await call.state.chain.list_transfers()


def _address(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ControlRefused(f"{name} must be an address: 0x and 40 hexadecimal digits")
    return value.lower()


def _amount(value: Any) -> int:
    """Return the amount in units of 0.000001 USDC."""
    try:
        usd = Decimal(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or not 0 < usd <= MOST_USD or usd != round(usd, 6):
        raise ControlRefused(f"amount_usd must be a number above 0, at most {MOST_USD}, with at most 6 decimals")
    return int(usd * 10**6)


async def control(state: WorldState, routes: Routes, request: Received) -> Reply:
    """Carry out a control request."""
    if not is_from_this_machine(request):
        return elsewhere()
    name, _, rest = request.path.removeprefix("/_sim").strip("/").partition("/")
    function = COMMANDS.get((request.method, name))
    if function is None:
        allowed = sorted(m for m, n in COMMANDS if n == name)
        return _refusal(405, f"{name} takes {', '.join(allowed)}") if allowed else _refusal(404, f"no {name!r} here")
    params = dict(parse_qsl(request.query, keep_blank_values=True))
    try:
        value = await function(ControlRequest(state, routes, unquote(rest), params, request.body))
        if request.method != "GET":
            state.keep()
        return Reply.text(json.dumps(value, ensure_ascii=False, default=plain), content_type="application/json")
    except ControlRefused as error:
        return _refusal(error.status, str(error))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        return _refusal(400, f"{type(error).__name__}: {error}")


def _refusal(status: int, text: str) -> Reply:
    return Reply.json({"error": text}, status)


def elsewhere() -> Reply:
    """Return the refusal of a request that may come from another machine, or from a page of another site."""
    return Reply.json({"error": "the page and the control interface are for callers on this machine"}, 403)


def is_from_this_machine(request: Received) -> bool:
    """Return True if the peer is on the loopback interface and no foreign web page sent the request."""
    try:
        local = ip_address(request.peer.partition("%")[0]).is_loopback
        host = urlsplit(f"//{request.headers.get('host', '')}")
        origin = request.headers.get("origin")
        named = host.hostname in ("127.0.0.1", "localhost", "::1")
        return local and named and (origin is None or urlsplit(origin).netloc == host.netloc)
    except ValueError:
        return False


# --- the page ---


STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mark: #2563eb; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .6rem; } p { margin: .2rem 0; }
main { display: grid; gap: 1rem; margin-top: 1rem; grid-template-columns: minmax(0, 1fr); }
section { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; min-width: 0; }
.wide { overflow-x: auto; }
@media (min-width: 64rem) { main { grid-template-columns: 1fr 1fr; } .all { grid-column: 1 / -1; } }
.buttons { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
.row { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .6rem; }
button { font: inherit; text-align: left; padding: .6rem .8rem; min-height: 2.75rem; border-radius: .5rem;
  border: 1px solid var(--line); background: var(--soft); color: inherit; cursor: pointer; }
button:hover, button:focus-visible { border-color: var(--mark); outline: none; }
button[aria-pressed=true] { border: 2px solid var(--mark); }
button small { display: block; opacity: .75; font-size: .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; } td { overflow-wrap: anywhere; }
td button, .row button { white-space: nowrap; }
.time { font-size: 1.35rem; font-variant-numeric: tabular-nums; } code { font-size: .9em; }
"""
SCRIPT = """
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-path]");
  if (!button) return;
  button.disabled = true;
  const body = button.dataset.body;
  const answer = await fetch("/_sim/" + button.dataset.path, { method: button.dataset.method, body });
  if (answer.ok) location.reload();
  else { document.getElementById("said").textContent = (await answer.json()).error; button.disabled = false; }
});
"""


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


POLICY = (
    f"default-src 'none'; style-src 'sha256-{_hash(STYLE)}'; script-src 'sha256-{_hash(SCRIPT)}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page(state: WorldState) -> Reply:
    """Render the page for the current state."""
    text = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Simulated world</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><header><h1>Simulated world</h1>
<p>Stand-ins for every upstream, on this machine only. Control interface: <a href="/_sim"><code>/_sim</code></a>.</p>
<p id="said" role="alert"></p></header>
<main>{_clock(state)}{_counts(state)}{_scenarios(state)}{_rules(state)}{_served(state)}</main>
<script>{SCRIPT}</script></body></html>"""
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return Reply.text(text, content_type="text/html; charset=utf-8", headers=headers)


def _button(label: str, method: str, path: str, body: str = "", *, note: str = "", pressed: bool = False) -> str:
    small = f"<small>{escape(note)}</small>" if note else ""
    sent = f' data-body="{escape(body)}"' if body else ""
    return (
        f'<button type="button" data-method="{method}" data-path="{escape(path)}"{sent} '
        f'aria-pressed="{str(pressed).lower()}">{escape(label)}{small}</button>'
    )


def _clock(state: WorldState) -> str:
    clock = state.clock
    shown = datetime.fromtimestamp(clock.now(), UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")
    frozen = clock.frozen_at is not None
    buttons = [
        _button("Run" if frozen else "Freeze", "PUT", "clock", f'{{"freeze": {str(not frozen).lower()}}}'),
        *(_button(f"+ {name}", "PUT", "clock", f'{{"advance_s": {s}}}') for name, s in _STEPS),
        *(_button(f"× {x}", "PUT", "clock", f'{{"speed": {x}}}', pressed=clock.speed == x) for x in (1, 60, 600)),
    ]
    how = "frozen" if frozen else f"running at {clock.speed:g} × real time"
    ahead = f"{round(clock.offset_s):+d} s from this machine"
    return (
        f'<section><h2>Clock</h2><p class="time">{shown}</p><p>{how}, {ahead}</p>'
        f'<div class="row">{"".join(buttons)}</div></section>'
    )


_STEPS = (("1 min", 60), ("1 h", 3600), ("1 day", 86_400))


def _counts(state: WorldState) -> str:
    rows = [
        ("Seed", str(state.seed)),
        ("Requests answered", str(sum(state.log.served.values()))),
        ("Not simulated", str(state.log.unmatched_count)),
        ("Pinned values", str(len(state.edits.pins))),
        ("Injected events", str(len(state.edits.events))),
        ("Recorded bodies replayed", ", ".join(sorted(state.replays)) or "none"),
    ]
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    reset = _button("Reset all", "POST", "reset")
    return f'<section><h2>State</h2><table>{lines}</table><div class="row">{reset}</div></section>'


def _scenarios(state: WorldState) -> str:
    buttons = (
        _button(name, "PUT", "scenario", f'{{"name": "{name}"}}', note=one.text, pressed=name == state.scenario)
        for name, one in state.scenarios.items()
    )
    return f'<section class="all"><h2>Scenarios</h2><div class="buttons">{"".join(buttons)}</div></section>'


def _rules(state: WorldState) -> str:
    if not state.faults.rules:
        return '<section class="all"><h2>Fault rules</h2><p>None.</p></section>'
    head = '<tr><th>Rule</th><th>For</th><th>Fault</th><th class="n">Fired</th><th></th></tr>'
    rows = "".join(_rule(rule) for rule in state.faults.rules)
    remove = _button("Remove all", "DELETE", "faults")
    return (
        f'<section class="all"><h2>Fault rules</h2><div class="wide"><table>{head}{rows}</table></div>'
        f'<div class="row">{remove}</div></section>'
    )


def _rule(rule: Rule) -> str:
    terms = ", ".join(f"{k} {v}" for k, v in rule.terms.items() if v is not None)
    fault = escape(f"{rule.kind} {terms}".strip())
    return (
        f"<tr><td>{escape(rule.id)}</td><td>{escape(rule.match)}</td><td>{fault}</td>"
        f'<td class="n">{rule.uses.fired}</td><td>{_button("Remove", "DELETE", f"faults/{rule.id}")}</td></tr>'
    )


def _served(state: WorldState) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{count}</td></tr>'
        for name, count in state.log.served.most_common(200)
    )
    body = (
        f'<table><tr><th>Source</th><th class="n">Requests</th></tr>{rows}</table>' if rows else "<p>Nothing yet.</p>"
    )
    return f'<section class="all"><h2>Served</h2>{body}</section>'
