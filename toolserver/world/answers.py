"""Answer a request to a simulated upstream: with the provider's own answer, or with a fault's version of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from toolserver.world import error_replies, transforms
from toolserver.world.faults import Rule
from toolserver.world.model import Ask, Handler, Reply, Route, Routes, World
from toolserver.world.rendering import RenderedReply, Renderer
from toolserver.world.state import WorldState


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer is sent: delays, cuts and resets."""

    delay_s: float = 0
    bytes_per_s: float | None = None
    fraction: float = 1  # of the body that is sent before the connection is closed
    end: Literal["", "silence", "reset_headers", "reset_body", "not_modified"] = ""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer and its delivery. `page` is None when nothing is sent at all."""

    page: RenderedReply | None
    source: str | None = None
    rule: Rule | None = None
    delivery: Delivery = Delivery()


async def answer(state: WorldState, routes: Routes, renderer: Renderer, ask: Ask) -> SimulatedAnswer | None:
    """Return the answer to a request, or None when nothing is simulated at that address."""
    match = routes.find(replace(ask, path=unquote(ask.path))) or routes.find(ask)
    if match is None:
        return None
    route, ask = match
    world = state.world()
    rule = state.faults.fire(route.source, ask, world)
    handler = state.replays.get(route.source, route.handler)
    if rule is None:
        return SimulatedAnswer(await renderer.page(handler, world, ask), route.source)
    if rule.kind in ("timeout", "reset") and rule.terms.get("at") != "body":
        end: Any = "silence" if rule.kind == "timeout" else "reset_headers"
        return SimulatedAnswer(None, route.source, rule, Delivery(end=end))
    page = await _faulty_page(renderer, rule, route, handler, world, ask)
    return SimulatedAnswer(page, route.source, rule, delivery(rule, world))


def delivery(rule: Rule, world: World) -> Delivery:
    """Return how a fault rule changes the way an answer is sent."""
    terms = rule.terms
    if rule.kind == "latency":
        jitter = world.u(f"fault.{rule.id}.jitter", rule.uses.seen) * terms["jitter_ms"]
        return Delivery(delay_s=(terms["ms"] + jitter) / 1000)
    if rule.kind == "slow_drip":
        return Delivery(bytes_per_s=terms["bytes_per_s"])
    if rule.kind == "truncated":
        return Delivery(fraction=terms["fraction"])
    if rule.kind == "reset":
        return Delivery(end="reset_body", fraction=0.5)
    return Delivery(end="not_modified") if rule.kind == "conditional_stuck" else Delivery()


async def _faulty_page(
    renderer: Renderer, rule: Rule, route: Route, handler: Handler, world: World, ask: Ask
) -> RenderedReply:
    """Return the upstream's own form of the fault if it has one, a generic form otherwise."""
    if rule.kind == "frozen":
        return await renderer.page(handler, rule.world, ask)
    if rule.kind == "old":
        return await renderer.page(handler, world.at(world.now - rule.terms["seconds"]), ask)
    if (own := _own_form(rule, route)) is not None:
        page = await renderer.page(own, world, ask)
        later = rule.terms.get("retry_after")
        return page if later is None else await renderer.changed(page, lambda reply: _come_back(reply, later))
    if rule.kind in REFUSALS:
        return RenderedReply.of(REFUSALS[rule.kind](rule))
    page = await renderer.page(handler, world, ask)
    change = CHANGES.get(rule.kind)
    return page if change is None else await renderer.changed(page, lambda reply: change(reply, rule, world.now))


def _come_back(reply: Reply, after_s: int) -> Reply:
    return replace(reply, headers={**reply.headers, "Retry-After": str(after_s)})


def _announce(reply: Reply, rule: Rule) -> Reply:
    """Return the answer with the rule's announcements, or a permanent redirect to the host of `moved`."""
    said = {name.title(): text for name in ("deprecation", "sunset", "warning") if (text := rule.terms[name])}
    if rule.terms["moved"]:
        return Reply(b"", 308, "text/plain", headers={**said, "Location": f"https://{rule.terms['moved']}/"})
    return replace(reply, headers={**reply.headers, **said})


def _own_form(rule: Rule, route: Route) -> Handler | None:
    forms, terms = route.forms, rule.terms
    if rule.kind == "status":
        return forms.get(f"status:{terms['code']}")
    if rule.kind == "drift":
        form = terms["form"]
        if form in transforms.FORMS and f"drift:{form}" not in forms:
            return None
        return forms.get(f"drift:{form}", forms.get("drift"))
    return forms.get("limited" if rule.kind == "rate_limit" else rule.kind) if rule.kind in OWN_FORMS else None


OWN_FORMS = {"error200", "empty", "geo", "auth", "rate_limit"}

REFUSALS: dict[str, Callable[[Rule], Reply]] = {
    "status": lambda rule: error_replies.error(rule.terms["code"], rule.terms["retry_after"]),
    "rate_limit": lambda rule: error_replies.limited_reply(rule.uses.retry_after_s),
    "html200": lambda rule: error_replies.challenge(),
    "error200": lambda rule: error_replies.error_in_200(),
    "geo": lambda rule: error_replies.barred_reply(rule.terms["code"]),
    "auth": lambda rule: error_replies.unauthorized_reply(),
    "dns": lambda rule: error_replies.unresolved_reply(),
}

CHANGES: dict[str, Callable[[Reply, Rule, float], Reply]] = {
    "malformed": lambda reply, rule, now: transforms.damage(reply, rule.terms["fraction"]),
    "empty": lambda reply, rule, now: transforms.empty(reply),
    "zeros": lambda reply, rule, now: transforms.zeros(reply, now, rule.terms["keep_times"]),
    "drift": lambda reply, rule, now: transforms.drift(reply, rule.terms["form"]),
    "hostile": lambda reply, rule, now: transforms.spoil(reply, rule.terms["links"]),
    "jump": lambda reply, rule, now: transforms.jump(reply, now, rule.terms["factor"]),
    "announce": lambda reply, rule, now: _announce(reply, rule),
    "oversize": lambda reply, rule, now: transforms.oversize(reply, rule.terms["mib"]),
}

GONE = {"timeout", "reset", "status", "rate_limit", "geo", "auth", "dns", "malformed", "truncated", "html200"}
PROBED = "Probe.tcp_connect"


def probe(
    state: WorldState, host: str, recorded: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Rule | None]:
    """Return how long a TCP connection to a host takes (ms), or -1 for none. Pin `probe.<host>` to fix it.

    `recorded` values of a host apply unless a fault or a pin overrides them.
    """
    world = state.world()
    rule = state.faults.fire(PROBED, Ask("CONNECT", host, "/"), world)
    pinned = world.pinned(f"probe.{host}")
    if (rule is not None and rule.kind in GONE) or (pinned is not None and pinned < 0):
        return {"unreachable": True}, rule
    if pinned is None and rule is None and recorded is not None:
        return recorded[host], None
    usual = world.between("probe", host, 4, 160) * (1 + 0.1 * world.noise(f"probe.{host}", world.now / 60))
    late = delivery(rule, world).delay_s * 1000 if rule is not None else 0
    return {"latency_ms": max(1, round((usual if pinned is None else pinned) + late))}, rule
