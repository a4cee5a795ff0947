"""Simulate the incidents of services: one of forty minutes a day on each, at a seeded time."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from toolserver.world.model import World

DAY = 86400.0
LASTS_S = 2400.0
IMPACTS = ["minor", "minor", "minor", "major"]  # an injected one may also be critical or maintenance
WHAT = ["Elevated error rates", "Increased latency", "Delayed notifications", "Failing sign-ins", "Degraded webhooks"]
COMPONENTS = {"OpenAI": ["Responses", "Chat Completions", "Embeddings", "Voice mode", "Codex Web"]}
"""The parts of a service that an incident concerns, on pages that list their parts."""
SERVICES = [
    "GitHub",
    "Cloudflare",
    "OpenAI",
    "Anthropic",
    "Vercel",
    "Discord",
    "Atlassian",
    "Reddit",
    "Stripe",
    "Zoom",
    "Datadog",
    "Slack",
    "AWS",
    "Google Cloud",
    "Azure",
]


class SimIncident(NamedTuple):
    """The true course of an incident, in epoch seconds. `component` is its part, on pages that list parts."""

    id: str
    impact: str
    title: str
    began: float
    ended: float
    component: str = ""


def incidents(world: World, service: str, since: float) -> list[SimIncident]:
    """Return the incidents of a service that ended after `since` and began by now, newest first."""
    days = range(math.floor(since / DAY), math.floor(world.now / DAY) + 1)
    candidates = [_daily(world, service, day) for day in days] + _injected(world, service)
    return sorted(
        (i for i in candidates if i.ended > since and i.began <= world.now), key=lambda i: i.began, reverse=True
    )


def current(world: World, service: str) -> SimIncident | None:
    """Return the most severe ongoing incident."""
    return gravest(incidents(world, service, world.now))


def gravest(ongoing: Iterable[SimIncident]) -> SimIncident | None:
    """Return the most severe of some incidents."""
    order = ["maintenance", "minor", "major", "critical"]
    return max(ongoing, key=lambda i: order.index(i.impact), default=None)


def _daily(world: World, service: str, day: int) -> SimIncident:
    key = f"incident.{service}"
    began = math.floor(day * DAY + world.between(key, day, 0, DAY - LASTS_S))
    impact, title = world.pick(key + ".impact", day, IMPACTS), world.pick(key + ".what", day, WHAT)
    component = world.pick(key + ".component", day, COMPONENTS.get(service, [""]))
    return SimIncident(f"{day}", impact, title, began, began + LASTS_S, component)


def _injected(world: World, service: str) -> list[SimIncident]:
    """Return injected incidents: `{"kind": "incident", "page": "GitHub", "impact": "major",
    "title": …, "duration_s": …, "component": …}`.
    """
    return [
        SimIncident(
            f"x{e['at']:.0f}",
            str(e.get("impact", "major")),
            str(e.get("title", "Injected incident")),
            float(e["at"]),
            float(e["at"]) + float(e.get("duration_s", LASTS_S)),
            str(e.get("component", COMPONENTS.get(service, [""])[0])),
        )
        for e in world.injected("incident")
        if e.get("page", "GitHub") == service
    ]
