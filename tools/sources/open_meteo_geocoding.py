"""Find places by name with Open-Meteo's geocoder (JSON, no key; names by GeoNames, CC BY 4.0).

https://open-meteo.com/en/docs/geocoding-api
"""

from typing import Any

from tools.parsing.fields import NAME, clean, clean_or_none, number, optional, within
from tools.parsing.places import Located, Place, two_decimals
from tools.sources.hosts import OPENMETEO, WEEK
from toolserver import Get, Keys, KeyTerms, Licence, Proof, Source, SourceChanged, read_rows

SEARCH = "geocoding-api.open-meteo.com/v1/search"
KEY = "OPENMETEO_API_KEY"
LICENCE = Licence("non_commercial", "Place names by GeoNames via Open-Meteo.com", "https://open-meteo.com/en/terms")
PAID = Licence("attribution", LICENCE.attribution, "https://www.geonames.org/about.html")  # the names are CC BY 4.0
MOST = 10


def request(query: str, keys: Keys) -> Get:
    params = {"name": query, "count": str(MOST), "language": "en", "format": "json"}
    if KEY in keys:
        return Get(f"https://customer-{SEARCH}", params=params | {"apikey": keys[KEY]}, under=KEY)
    return Get(f"https://{SEARCH}", params=params)


def parse(body: Any, query: str) -> tuple[Located, ...]:
    """Return the places, in the order of the answer; `results` is missing where there are none."""
    if body.get("error"):
        raise SourceChanged(clean(str(body.get("reason")), 90))
    if "results" not in body and body.keys() != {"generationtime_ms"}:  # forecasts have that member, too
        raise SourceChanged("neither results nor only the time of the search")
    return read_rows(body.get("results") or (), _located)


def _located(row: dict[str, Any]) -> Located:
    lat, lon = within(number(row["latitude"]), -90, 90), within(number(row["longitude"]), -180, 180)
    if lat == lon == 0:
        raise ValueError("no town lies at 0, 0: the row is not filled")
    return Located(
        name=clean(row["name"], NAME),
        region=clean_or_none(row.get("admin1"), NAME),
        country=clean_or_none(row.get("country"), NAME),
        country_code=clean_or_none(row.get("country_code"), 2),
        weight=optional(number, row.get("population")) or 0.0,
        place=Place(two_decimals(lat), two_decimals(lon)),
        timezone=clean_or_none(row.get("timezone"), NAME),
    )


GEOCODING = Source(
    "OpenMeteo.geocoding",
    request,
    parse,
    licence=LICENCE,
    terms={KEY: KeyTerms(PAID, alone=True)},
    hosts=OPENMETEO,
    fresh_s=WEEK,
    ageless="towns stay where they are",
    keep_s=WEEK,
    timeout_s=6,
    least=0,
    proof=Proof.harmless("an unknown name is refused, and no weather is shown"),
    user_input=True,
    untrusted=True,
    probe="Berlin",
)
