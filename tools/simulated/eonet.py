"""Simulate EONET on the wire: events that GDACS has too, events that only EONET has, and icebergs."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.disasters import DAY, SimDisaster, disasters
from toolserver.world.model import Ask, Reply, World, serves

CATEGORIES = {
    "severeStorms": "Severe Storms",
    "volcanoes": "Volcanoes",
    "floods": "Floods",
    "wildfires": "Wildfires",
    "seaLakeIce": "Sea and Lake Ice",
}
ECHOES = {"TC": ("severeStorms", "JTWC"), "VO": ("volcanoes", "SIVolcano"), "FL": ("floods", "GDACS")}
FIRES, LARGE_ACRES = 8, 1000


def _reply(events: list[dict[str, Any]]) -> Reply:
    return Reply.json(
        {
            "title": "EONET Events",
            "description": "Natural events from EONET.",
            "link": "https://eonet.gsfc.nasa.gov/api/v3/events",
            "events": events,
        }
    )


@serves("NASA.eonet_events", "eonet.gsfc.nasa.gov", "/api/v3/events", forms={"empty": _reply([])})
def events(world: World, ask: Ask) -> Reply:
    return _reply([*_echoes(world), *only_here(world), *_no_disasters(world)])


@events.form("drift")
def other_order(world: World, ask: Ask) -> Reply:
    """Return the newest observation first, without a closing date, and the magnitude as text."""
    listed = [*_echoes(world), *only_here(world), *_no_disasters(world)]
    return _reply([_drifted(event) for event in listed])


def only_here(world: World) -> list[dict[str, Any]]:
    """Return a storm, a volcano, a flood (as a polygon) and the large fires, which GDACS does not list."""
    day = world.now - world.now % DAY
    storm = _event(
        world, 1, "Tropical Storm Onlyhere", "severeStorms", "NOAA_NHC", [(day - DAY, -115, -60), (day, -114, -59)]
    )
    volcano = _event(
        world, 2, "Erebus Volcano, Antarctica", "volcanoes", "SIVolcano", [(day - 3 * DAY, 167.17, -77.53)]
    )
    flood = _event(world, 3, "Flooding in the Far North", "floods", "EO", [(day - 2 * DAY, 60, 70)])
    corners = [[60.0, 70.0], [61.0, 70.0], [61.0, 71.0], [60.0, 70.0]]
    flood["geometry"][0] |= {"type": "Polygon", "coordinates": [corners]}
    return [storm, volcano, flood, *_fires(world)]


def _fires(world: World) -> list[dict[str, Any]]:
    """Return fires in North America, some of them large."""
    hour = world.now - world.now % 3600
    fires = []
    for index in range(FIRES):
        place = (-120 + index * 3, 45 - index * 1.5)
        fire = _event(
            world, 100 + index, f"Wildfire SIM {index}, Oregon", "wildfires", "IRWIN", [(hour - index * DAY, *place)]
        )
        acres = float(int(world.between("eonet.acres", index, 300, 6000)))
        fire["geometry"][0] |= {"magnitudeValue": acres, "magnitudeUnit": "acres"}
        fires.append(fire)
    return fires


def _no_disasters(world: World) -> list[dict[str, Any]]:
    """Return icebergs and a prescribed fire."""
    day = world.now - world.now % DAY
    icebergs = [
        _event(world, 200 + i, f"Iceberg A{70 + i}", "seaLakeIce", "NATICE", [(day, -40 + i, -60)]) for i in range(4)
    ]
    burn = _event(world, 300, "Prescribed Fire RX Impact Area, Minnesota", "wildfires", "IRWIN", [(day, -94.4, 46.3)])
    burn["geometry"][0] |= {"magnitudeValue": 2094.0, "magnitudeUnit": "acres"}
    return [*icebergs, burn]


def _echoes(world: World) -> list[dict[str, Any]]:
    """Return events that GDACS lists too, half a degree away and an hour later."""
    echoed = [d for d in disasters(world, world.now - 4 * DAY) if d.kind in ECHOES and d.number < 2_000_000]
    return [_echo(world, disaster) for disaster in echoed]


def _echo(world: World, disaster: SimDisaster) -> dict[str, Any]:
    category, origin = ECHOES[disaster.kind]
    titles = {"TC": f"Tropical Storm {disaster.own_name}", "VO": f"{disaster.own_name} Volcano, {disaster.country}"}
    title = titles.get(disaster.kind, f"Flood in {disaster.country}")
    first = min(disaster.began + 3600, world.now)
    last = max(first, min(disaster.ended, world.now))
    track = [(first, disaster.lon + 0.5, disaster.lat), (last, disaster.lon + 0.5, disaster.lat + 0.5)]
    return _event(world, 10_000 + disaster.number % 10_000 * 10 + len(disaster.kind), title, category, origin, track)


def _event(
    world: World, number: int, title: str, category: str, origin: str, track: list[tuple[float, float, float]]
) -> dict[str, Any]:
    identity = f"EONET_{number}"
    return {
        "id": identity,
        "title": title,
        "description": None,
        "link": f"https://eonet.gsfc.nasa.gov/api/v3/events/{identity}",
        "closed": None,
        "categories": [{"id": category, "title": CATEGORIES[category]}],
        "sources": [{"id": origin, "url": f"https://events.example/{identity}"}],
        "geometry": [
            {
                "magnitudeValue": 45.0 if category == "severeStorms" else None,
                "magnitudeUnit": "kts" if category == "severeStorms" else None,
                "date": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "type": "Point",
                "coordinates": [round(lon, 4), round(lat, 4)],
            }
            for at, lon, lat in track
        ],
    }


def _drifted(event: dict[str, Any]) -> dict[str, Any]:
    track = [
        g | {"magnitudeValue": None if g["magnitudeValue"] is None else f"{g['magnitudeValue']}"}
        for g in event["geometry"]
    ]
    return {k: v for k, v in event.items() if k != "closed"} | {"geometry": track[::-1]}
