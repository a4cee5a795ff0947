"""Simulate NIFC's incident layer on the wire: GeoJSON of an ArcGIS server, times in milliseconds."""

from typing import Any

from tools.simulated.fires import SimFireIncident, incidents
from toolserver.world.model import Ask, Reply, World, serves

PATH = "/T4QMspbfLg3qTGWY/arcgis/rest/services/WFIGS_Incident_Locations_Current/FeatureServer/0/query"


def _collection(features: list[dict[str, Any]]) -> Reply:
    head = {"type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "EPSG:4326"}}}
    return Reply.json(head | {"features": features}, content_type="application/geo+json; charset=utf-8")


FORMS = {
    "empty": _collection([]),
    "error200": Reply.json(
        {"error": {"code": 400, "message": "Unable to complete operation.", "details": ["Invalid query parameters"]}}
    ),
    "limited": Reply.json({"error": {"code": 429, "message": "Too many requests.", "details": []}}),
}


@serves("NIFC.wildfire_incidents", "services3.arcgis.com", PATH, forms=FORMS)
def query(world: World, ask: Ask) -> Reply:
    most = int(ask.params.get("resultRecordCount", "2000"))
    return _collection([_feature(world, number, i) for number, i in enumerate(incidents(world)[:most])])


def _feature(world: World, number: int, incident: SimFireIncident) -> dict[str, Any]:
    """Return an incident; every seventh has no containment in any report yet."""
    return {
        "type": "Feature",
        "id": number + 1,
        "geometry": {"type": "Point", "coordinates": [round(incident.lon, 4), round(incident.lat, 4)]},
        "properties": {
            "IncidentName": incident.name,
            "IncidentSize": incident.acres,
            "PercentContained": None if number % 7 == 6 else incident.contained,
            "POOState": f"US-{incident.state}",
            "POOCounty": "Nowhere",
            "FireDiscoveryDateTime": int(incident.discovered * 1000),
            "ModifiedOnDateTime_dt": int((world.now - world.now % 900) * 1000),
        },
    }
