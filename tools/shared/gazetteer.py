"""Look up cities, states and countries by name, offline, in a copy of GeoNames that is shipped.

The copy is one text, compressed with xz, which `scripts/build_gazetteer.py` writes. It is read
at the first look-up and then kept (under 4 MB). A look-up searches it from end to end, which
takes a few milliseconds. The names between bars are folded, the main one first:

    =countries
    |germany|de|deutschland|            DE          Germany
    =regions
    |bavaria|by|bayern|                 DE          02            Bavaria
    =cities
    @DE                                 02          Europe/Berlin
    |munich|munchen|                    Munich      48.14         11.58         17000000

Fields are separated by tabs. A line with @ says where the cities below it are. The last field
of a city is its weight, by which they are sorted.
"""

import lzma
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from tools.parsing.place_names import fold
from tools.parsing.places import Located, Place, two_decimals

SAME_SPELLING, SAME_NAME, LONGER_NAME, OTHER_NAME = 3, 1, 0.5, 0.2
"""How much a city counts if its main name is the one looked up, is longer or shorter, or is another."""

CITY_WORDS = ("市", "都", "府", "시", " city")  # at the end of a name that is known without it


class Territory(NamedTuple):
    """A country, or with `region` a state or province of it, by its code."""

    country_code: str
    region: str | None
    name: str


class City(NamedTuple):
    """A city, where it is, and how much the name that was looked up is its own."""

    located: Located
    area: Territory | None = None
    likeness: float = SAME_NAME

    @property
    def weight(self) -> float:
        """How likely the city is meant."""
        return self.located.weight * self.likeness

    def lies_in(self, area: Territory) -> bool:
        """Whether the city is in that country, or in that state of it."""
        here = self.area
        return here is not None and here.country_code == area.country_code and area.region in (None, here.region)


class Gazetteer:
    """The text, and where its parts begin."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._regions, self._cities = text.index(b"\n=regions\n"), text.index(b"\n=cities\n")
        self._names: dict[tuple[str, str | None], str] = {}
        for line in text[: self._cities].decode().splitlines():
            if not line.startswith("="):
                area = _read_area(line)
                self._names[area.country_code, area.region] = area.name

    def find_cities(self, name: str) -> list[City]:
        """Return the cities with that name, however it is spelled, the likeliest first.

        A name that is written with accents is only that of cities whose main name has them, if there are any.
        """
        key = fold(name)
        cities = self._find_cities(name, key)
        for word in CITY_WORDS:
            if not cities and key.endswith(word):
                cities = self._find_cities(name, key.removesuffix(word))
        accented = [] if name.isascii() else [city for city in cities if city.likeness == SAME_SPELLING]
        return sorted(accented or cities, key=lambda city: -city.weight)

    def _find_cities(self, name: str, key: str) -> list[City]:
        cities = (self._read_city(at) for at in self._find(key, self._cities, len(self._text)))
        return [city._replace(likeness=compare_names(name, city.located.name)) for city in cities]

    def find_areas(self, name: str) -> list[Territory]:
        """Return the countries, states and provinces with that name or code."""
        key = fold(name).removeprefix("the ")
        return [_read_area(self._line(at)) for at in self._find(key, 0, self._cities)]

    def list_largest(self, area: Territory, most: int) -> list[Located]:
        """Return the largest and best known cities of a country or state."""
        above = f"\n@{area.country_code}\t" + ("" if area.region is None else f"{area.region}\t")
        largest: list[Located] = []
        at = self._text.find(above.encode(), self._cities)
        while at >= 0:
            line_at = self._text.index(b"\n", at + 1) + 1
            for _ in range(most):
                if self._text[line_at : line_at + 1] != b"|":
                    break
                largest.append(self._read_city(line_at).located)
                line_at = self._text.index(b"\n", line_at) + 1
            at = self._text.find(above.encode(), at + 1)
        return sorted(largest, key=lambda located: -located.weight)[:most]

    def _find(self, key: str, start: int, stop: int) -> Iterator[int]:
        """Yield where each line with that name starts."""
        needle = f"|{key}|".encode()
        at = self._text.find(needle, start, stop) if key else -1
        while at >= 0:
            yield self._text.rindex(b"\n", 0, at) + 1
            at = self._text.find(needle, at + 1, stop)

    def _line(self, at: int) -> str:
        return self._text[at : self._text.index(b"\n", at)].decode()

    def _read_city(self, at: int) -> City:
        _, name, lat, lon, weight = self._line(at).split("\t")
        above = self._text.rindex(b"\n@", 0, at) + 2
        country, region, timezone = self._line(above).split("\t")
        located = Located(
            name=name,
            region=self._names.get((country, region)),
            country=self._names[country, None],
            country_code=country,
            weight=float(weight),
            place=Place(two_decimals(float(lat)), two_decimals(float(lon))),
            timezone=timezone,
        )
        return City(located, Territory(country, region, located.region or ""))


def compare_names(name: str, main_name: str) -> float:
    """Return how much a name that finds a city is like the main name of that city."""
    if _read_spelling(name) == _read_spelling(main_name):
        return SAME_SPELLING
    one, other = f"{fold(name)} ", f"{fold(main_name)} "
    if one == other:
        return SAME_NAME
    return LONGER_NAME if one.startswith(other) or other.startswith(one) else OTHER_NAME


def _read_spelling(name: str) -> str:
    return name.casefold().replace(".", "").replace("-", " ")


def _read_area(line: str) -> Territory:
    _, country, *region, name = line.split("\t")
    return Territory(country, region[0] if region else None, name)


@cache
def open_gazetteer() -> Gazetteer:
    """Return the shipped gazetteer. The first call reads and decompresses it, which takes a tenth of a second."""
    file = resources.files("tools.shared") / "data" / "gazetteer.txt.xz"
    return Gazetteer(lzma.decompress(file.read_bytes()))
