"""Turn a place's name, as people write it, into coordinates, or refuse it with a list of candidates.

The shipped gazetteer knows the cities of the world; only for smaller places is a geocoder
asked. A place is meant if no other of its name is nearly as large and well known. A state,
country or city nearby, after a comma, narrows it down.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import anyio.to_thread
from pydantic import AfterValidator, Field

from tools.parsing.place_names import PlaceQuery, fold, read_place
from tools.parsing.places import DEFAULT, Located, Place, distance_km
from tools.shared.gazetteer import OTHER_NAME, City, Gazetteer, Territory, open_gazetteer
from tools.sources.geonames import CITIES
from tools.sources.open_meteo_geocoding import GEOCODING
from toolserver import InvalidArguments, SourceNote, SourceUnproved, ToolContext

LARGER = 3  # times the weight of the next one: that one is then not meant
SAME_PLACE_KM = 25  # a district is no other place than its city
NEARBY_KM = 60  # between a place and the city that is written after it
SHORTEST_AREA = 4  # letters: LA is a city, though it is also the code of Laos
SHOWN, RIVALS = 8, 3  # candidates of a refusal; those among them that only lie in an area of the name
KNOWN = "London"  # a name that every working geocoder knows
SECTION = "data.place"
DEFAULT_NAME = "Los Angeles, California, United States"

PlaceName = Annotated[
    str,
    AfterValidator(lambda name: " ".join(name.split())),
    Field(
        min_length=2,
        max_length=80,
        description="City, with state or country where several have the name",
        examples=["Portland, OR"],
    ),
]


class ChosenPlace(NamedTuple):
    """The place that an answer is about. `name` is None if only coordinates were given, `timezone` if no name was."""

    place: Place
    name: str | None = None
    by_default: bool = False
    timezone: str | None = None


async def choose_place(ctx: ToolContext, point: Place | None, name: str | None) -> ChosenPlace:
    """Return the given point, the place with that name, or Los Angeles with a warning.

    Raises:
        InvalidArguments: both were given, or the name matches no place or several.
        SourceError: the geocoder did not answer.
    """
    if name is not None and point is not None:
        message = "give a place, or lat and lon, not both"
        raise InvalidArguments(f"place: {message}", errors=[{"loc": "place", "msg": message, "type": "value_error"}])
    if name is not None:
        located = await locate(ctx, name)
        return ChosenPlace(located.place, located.full_name, timezone=located.timezone)
    if point is not None:
        return ChosenPlace(point)
    ctx.warn("data", "default_location", "No valid place was given: this is Los Angeles. Give place, or lat and lon.")
    return ChosenPlace(DEFAULT, DEFAULT_NAME, by_default=True)


async def locate(ctx: ToolContext, name: str) -> Located:
    """Return the place with that name.

    Raises:
        InvalidArguments: no place has the name, or several may be meant; the message lists them.
        SourceError: the geocoder did not answer, or finds no place at all.
    """
    city = await anyio.to_thread.run_sync(lambda: find_city(open_gazetteer(), name))
    if city is not None:
        ctx.notes.add([SourceNote(CITIES, SECTION, "cached")])
        return city
    return await _find_small_place(ctx, open_gazetteer(), name)


def find_city(gazetteer: Gazetteer, name: str) -> Located | None:
    """Return the city that is meant, or None if the gazetteer has none of that name there.

    Raises:
        InvalidArguments: several cities may be meant, the area is unknown, or the name is that of a state or country.
    """
    first, *others = read_place(name)
    cities = gazetteer.find_cities(first.name)
    if matching := _narrow_down(gazetteer, cities, first.areas):
        return _choose([*matching, *_list_rivals(gazetteer, first, matching[0])])
    if not first.areas and (areas := gazetteer.find_areas(first.name)):
        raise _refuse(f"{areas[0].name} is a state or country; name a city in it", _list_largest(gazetteer, areas))
    for query in others:
        matching = _narrow_down(gazetteer, gazetteer.find_cities(query.name), query.areas)
        if matching and _are_areas(gazetteer, query.areas):
            return _choose(matching)
    if cities and not _are_areas(gazetteer, first.areas):
        where = ", ".join(first.areas)
        raise _refuse(f"{first.name!r} is in no state or country named {where!r}", [city.located for city in cities])
    return None


def _are_areas(gazetteer: Gazetteer, names: Iterable[str]) -> bool:
    return all(gazetteer.find_areas(name) for name in names)


def _narrow_down(gazetteer: Gazetteer, cities: list[City], areas: Iterable[str]) -> list[City]:
    """Return the cities that lie in every one of the areas, or near a city of that name, the likeliest first."""
    for name in areas:
        known = gazetteer.find_areas(name)
        near = [] if known else [city.located.place for city in gazetteer.find_cities(name)[:1]]
        cities = [
            city
            for city in cities
            if any(city.lies_in(area) for area in known)
            or any(distance_km(*city.located.place, *place) < NEARBY_KM for place in near)
        ]
    return sorted(cities, key=lambda city: -city.weight)


def _list_rivals(gazetteer: Gazetteer, query: PlaceQuery, city: City) -> list[City]:
    """Return the largest cities of states and countries that have the name of a city elsewhere: Ontario, Lebanon."""
    areas = [] if query.areas or len(query.name) < SHORTEST_AREA else gazetteer.find_areas(query.name)
    areas = [area for area in areas if not city.lies_in(area)]
    return [City(located, likeness=OTHER_NAME) for located in _list_largest(gazetteer, areas)[:RIVALS]]


def _list_largest(gazetteer: Gazetteer, areas: Iterable[Territory]) -> list[Located]:
    """Return the largest cities of all these areas together."""
    largest = {located for area in areas for located in gazetteer.list_largest(area, SHOWN)}
    return sorted(largest, key=lambda located: -located.weight)[:SHOWN]


def _choose(cities: Sequence[City]) -> Located:
    """Return the first city if it outweighs every other. Raises InvalidArguments."""
    meant, *others = cities
    for other in others:
        is_same = distance_km(*meant.located.place, *other.located.place) < SAME_PLACE_KM
        has_same_name = other.located.full_name == meant.located.full_name  # no words could tell them apart
        is_rival = meant.weight < LARGER * other.weight or not meant.weight
        if is_rival and not is_same and not has_same_name:
            likeliest = sorted(cities, key=lambda city: -city.weight)
            candidates = [city.located for city in likeliest]
            raise _refuse("several places have this name; add the state or country", candidates)
    return meant.located


async def _find_small_place(ctx: ToolContext, gazetteer: Gazetteer, name: str) -> Located:
    """Ask the geocoder for a place that is too small for the gazetteer. Raises InvalidArguments or SourceError."""
    first, *others = read_place(name)
    queries = [first, *(query for query in others if _are_areas(gazetteer, query.areas))][:2]
    candidates: list[Located] = []
    for query in queries:
        places = await ctx.read(GEOCODING, query.name, section=SECTION)
        matching = [each for each in places if all(_lies_in(gazetteer, each, area) for area in query.areas)]
        named = [each for each in matching if fold(each.name) == fold(query.name)] or matching
        if named:
            return _choose([City(each) for each in sorted(named, key=lambda each: -each.weight)])
        candidates += places
    if not candidates and not await ctx.read(GEOCODING, KNOWN, section=SECTION):
        raise SourceUnproved(f"not even {KNOWN} is known")
    raise _refuse(f"no place named {name!r} is known; give its name in English, or lat and lon", candidates)


def _lies_in(gazetteer: Gazetteer, located: Located, area_name: str) -> bool:
    if fold(area_name) in {fold(part) for part in (located.region, located.country, located.country_code) if part}:
        return True
    return any(
        area.country_code == located.country_code and (area.region is None or area.name == located.region)
        for area in gazetteer.find_areas(area_name)
    )


def _refuse(message: str, candidates: Sequence[Located]) -> InvalidArguments:
    listed = list({each.full_name: each for each in candidates}.values())[:SHOWN]
    names = [each.full_name for each in listed]
    said = f"place: {message}{': ' + '; '.join(names) if names else ''}"
    shown = [{"place": each.full_name, "lat": each.place.lat, "lon": each.place.lon} for each in listed]
    return InvalidArguments(
        said, errors=[{"loc": "place", "msg": message, "type": "value_error"}], candidates=shown, did_you_mean=names
    )
