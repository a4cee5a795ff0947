"""Hold GeoNames' cities of at least 15,000 people: a copy is shipped (tools/shared/data), and read without a request.

https://www.geonames.org/export/
"""

from typing import Any

from tools.sources.hosts import other
from toolserver import Keys, Licence, Source


def request(query: None, keys: Keys) -> None:
    """Return None: there is no upstream."""
    return None


def parse(body: Any, query: None) -> None:
    return None


CITIES = Source(
    "Bundled.geonames_cities",
    request,
    parse,
    licence=Licence("attribution", "Place names by GeoNames (CC BY 4.0)", "https://www.geonames.org/about.html"),
    hosts=other("bundled"),
    fresh_s=0,
    keep_s=0,
    timeout_s=1,
)
