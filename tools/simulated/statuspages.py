"""Simulate eleven status pages on the wire, and compute how all fifteen must be read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.incidents import SERVICES, SimIncident, current, gravest, incidents
from toolserver.world.model import Ask, Handler, Reply, World, expects, serves

PAGES = {
    "GitHub": ("www.githubstatus.com", "kctbh9vrtdwd"),
    "Cloudflare": ("www.cloudflarestatus.com", "yh6f0r4529hb"),
    "OpenAI": ("status.openai.com", "01JMDK9XYNY6RXSED6SDWW50WY"),
    "Anthropic": ("status.claude.com", "tymt9n04zgry"),
    "Vercel": ("www.vercel-status.com", "lvglq8h0mdyh"),
    "Discord": ("discordstatus.com", "srhpyqt94yxb"),
    "Atlassian": ("status.atlassian.com", "h6fkbm1cyrpn"),
    "Reddit": ("www.redditstatus.com", "2kbc0d48tv3j"),
    "Stripe": ("www.stripestatus.com", "5l2fj8lzzsp3"),
    "Zoom": ("www.zoomstatus.com", "14qjgk812kgk"),
    "Datadog": ("status.datadoghq.com", "1k6wzpspjf99"),
}
FORMER = {"Stripe": "status.stripe.com", "Zoom": "status.zoom.us"}
"""Where two of the pages were until 2026: these hosts lead to another site, which no source follows."""

WORDS = {
    "minor": "Minor Service Outage",
    "major": "Partial System Outage",
    "critical": "Major Service Outage",
    "maintenance": "Service Under Maintenance",
}

COMPONENT_STATES = {
    "minor": "degraded_performance",
    "major": "partial_outage",
    "critical": "major_outage",
    "maintenance": "under_maintenance",
}
OPENAI_API = {"Chat Completions", "Responses", "Embeddings", "Images", "Audio", "Files", "Fine-tuning", "Batch"}
OPENAI_OTHERS = ("Login", "Voice mode", "Codex Web", "Sora", "Deep Research", "ChatGPT Atlas")


def page(service: str) -> Handler:
    """Return the handler of one service's status.json."""

    def handler(world: World, ask: Ask) -> Reply:
        return Reply.json({"page": _page(world, service), "status": _status(world, service)})

    return handler


def with_more_members(service: str) -> Handler:
    """Return the form of summary.json: more members, another order, components in place of a time zone."""

    def handler(world: World, ask: Ask) -> Reply:
        identity = {k: v for k, v in _page(world, service).items() if k != "time_zone"}
        component = {"id": "c1", "name": "API", "position": 0, "status": "operational", "page_id": identity["id"]}
        status = dict(reversed(_status(world, service).items())) | {"since": None}
        return Reply.json({"components": [component], "status": status, "page": identity})

    return handler


def openai_summary(world: World, ask: Ask) -> Reply:
    """Return OpenAI's summary.json: every component with its state, and a verdict over all of them."""
    return Reply.json(
        {
            "components": [_component(world, name, n) for n, name in enumerate((*sorted(OPENAI_API), *OPENAI_OTHERS))],
            "page": _page(world, "OpenAI"),
            "status": _status(world, "OpenAI"),
        }
    )


def openai_reversed(world: World, ask: Ask) -> Reply:
    """Return the summary with its components in another order, each with the members of Statuspage's own."""
    names = (*OPENAI_OTHERS, *sorted(OPENAI_API, reverse=True))
    more = {"group": False, "group_id": None, "description": None, "showcase": False}
    components = [more | _component(world, name, n) for n, name in enumerate(names)]
    return Reply.json({"status": _status(world, "OpenAI"), "incidents": [], "components": components})


def _component(world: World, name: str, position: int) -> dict[str, Any]:
    incident = gravest(i for i in incidents(world, "OpenAI", world.now) if i.component == name)
    state = "operational" if incident is None else COMPONENT_STATES[incident.impact]
    return {"id": f"sim{position}", "name": name, "position": position, "status": state}


for _service, (_host, _) in PAGES.items():
    if _service == "OpenAI":
        _route = serves(f"Statuspage.{_service}", _host, "/api/v2/summary.json")(openai_summary)
        _route.form("drift")(openai_reversed)
    else:
        _route = serves(f"Statuspage.{_service}", _host, "/api/v2/status.json")(page(_service))
        _route.form("drift")(with_more_members(_service))


def moved(service: str) -> Handler:
    """Return the handler of the former host of a page, which has moved permanently."""

    def handler(world: World, ask: Ask) -> Reply:
        return Reply(b"", 301, headers={"location": f"https://{PAGES[service][0]}/api/v2/status.json"})

    return handler


for _service, _host in FORMER.items():
    serves(f"Statuspage.{_service}", _host, "/api/v2/status.json")(moved(_service))


def _page(world: World, service: str) -> dict[str, Any]:
    host, identity = PAGES[service]
    if service == "OpenAI":  # incident.io: no time zone, and a date that does not change for months
        stood = datetime.fromtimestamp(world.now - 90 * 86400, UTC).replace(hour=19, minute=25, second=56)
        return {
            "id": identity,
            "name": service,
            "url": f"https://{host}/",
            "updated_at": stood.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    last = max((i.began for i in incidents(world, service, world.now - 2 * 86400)), default=world.now)
    updated = datetime.fromtimestamp(last, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + "965Z"
    name = "Claude" if service == "Anthropic" else service
    return {"id": identity, "name": name, "url": f"https://{host}", "time_zone": "Etc/UTC", "updated_at": updated}


def _status(world: World, service: str) -> dict[str, str]:
    incident = current(world, service)
    if incident is None:
        return {"indicator": "none", "description": "All Systems Operational"}
    return {"indicator": incident.impact, "description": WORDS[incident.impact]}


@expects("service-status")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the states that `/api/service-status` must show at this instant when every page answers."""
    return [{"name": service, "status": status_of(service, _concerning(world, service))} for service in SERVICES]


def _concerning(world: World, service: str) -> SimIncident | None:
    """Return the most severe ongoing incident that the state of a service follows: of OpenAI one of its API."""
    if service == "OpenAI":
        return gravest(i for i in incidents(world, service, world.now) if i.component in OPENAI_API)
    return current(world, service)


def status_of(service: str, incident: SimIncident | None) -> str:
    """Return the word for an incident, as far as the page of that service distinguishes its severity."""
    if incident is None:
        return "operational"
    words = {"minor": "degraded", "major": "partial_outage", "critical": "major_outage", "maintenance": "maintenance"}
    narrower = {
        "Slack": {"major": "degraded"},
        "AWS": {"critical": "partial_outage", "maintenance": "operational"},
        "Google Cloud": {"maintenance": "operational"},
        "Azure": dict.fromkeys(words, "degraded"),
    }
    return narrower.get(service, {}).get(incident.impact, words[incident.impact])
