"""Simulate Open-Meteo's geocoder on the wire: small places, which nobody else knows, and a few cities."""

from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, serves

HOST, CUSTOMER = "geocoding-api.open-meteo.com", "customer-geocoding-api.open-meteo.com"


class SimPlace(NamedTuple):
    """One place."""

    name: str
    region: str
    country: str
    code: str
    lat: float
    lon: float
    population: int
    timezone: str


PLACES = tuple(
    SimPlace(*row)
    for row in (
        ("Berlin", "State of Berlin", "Germany", "DE", 52.52437, 13.41053, 3426354, "Europe/Berlin"),
        ("Berlin", "New Hampshire", "United States", "US", 44.46867, -71.18508, 9367, "America/New_York"),
        ("Cambridge", "England", "United Kingdom", "GB", 52.2, 0.11667, 145674, "Europe/London"),
        ("Cambridge", "New York", "United States", "US", 43.02813, -73.38122, 1870, "America/New_York"),
        ("Hallstatt", "Upper Austria", "Austria", "AT", 47.56223, 13.64927, 778, "Europe/Vienna"),
        ("London", "England", "United Kingdom", "GB", 51.50853, -0.12574, 8961989, "Europe/London"),
        ("London", "Ontario", "Canada", "CA", 42.98339, -81.23304, 422324, "America/Toronto"),
        ("Longyearbyen", "Svalbard", "Svalbard and Jan Mayen", "SJ", 78.22334, 15.64689, 2060, "Arctic/Longyearbyen"),
        ("Paris", "Île-de-France", "France", "FR", 48.85341, 2.3488, 2138551, "Europe/Paris"),
        ("Paris", "Texas", "United States", "US", 33.66094, -95.55551, 24171, "America/Chicago"),
        ("Rockport", "Maine", "United States", "US", 44.18452, -69.07615, 3330, "America/New_York"),
        ("Rockport", "Massachusetts", "United States", "US", 42.65565, -70.62032, 6952, "America/New_York"),
        ("Rockport", "Texas", "United States", "US", 28.02057, -97.05443, 8766, "America/Chicago"),
        ("São Lourenço do Sul", "Rio Grande do Sul", "Brazil", "BR", -31.36528, -51.97833, 14700, "America/Sao_Paulo"),
    )
)


def search(world: World, ask: Ask) -> Reply:
    """Search by the beginning of the name, without case; larger places first. Without a match `results` is missing."""
    name = ask.params.get("name", "").strip().casefold()
    if len(name) < 2:
        return Reply.json({"generationtime_ms": 0.2})
    places = [place for place in PLACES if name in (place.name.casefold(), _plain(place.name))]
    places = places or [place for place in PLACES if len(name) > 2 and place.name.casefold().startswith(name)]
    rows = [_row(place) for place in sorted(places, key=lambda place: -place.population)]
    return Reply.json(
        {"results": rows[: int(ask.params.get("count", "10"))], "generationtime_ms": 0.64}
        if rows
        else {"generationtime_ms": 0.31}
    )


def _plain(name: str) -> str:
    return name.casefold().translate(str.maketrans("ãç", "ac"))


def _row(place: SimPlace) -> dict[str, Any]:
    return {
        "id": round(abs(place.lat) * 10_000) * 100 + round(abs(place.lon)),
        "name": place.name,
        "latitude": place.lat,
        "longitude": place.lon,
        "elevation": 42.0,
        "feature_code": "PPL",
        "country_code": place.code,
        "population": place.population,
        "country": place.country,
        "timezone": place.timezone,
        **({"admin1": place.region} if place.region else {}),
    }


FORMS = {
    "empty": Reply.json({"generationtime_ms": 0.31}),
    "limited": Reply.json({"error": True, "reason": "Minutely API request limit exceeded."}, 429),
    "error200": Reply.json({"error": True, "reason": "Parameter name is missing"}),
}
for _host in (HOST, CUSTOMER):
    serves("OpenMeteo.geocoding", _host, "/v1/search", forms=FORMS)(search)
