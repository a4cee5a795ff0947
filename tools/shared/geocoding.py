"""Turn a place's name into coordinates: the only match, one far larger than the rest, or a refusal that lists all."""

import unicodedata
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from tools.parsing.places import DEFAULT, Place
from tools.sources.open_meteo_geocoding import GEOCODING, Located
from toolserver import InvalidArguments, SourceUnproved, ToolContext

LARGER = 5  # times the population of the next one: a smaller place is then not meant
SHOWN = 5
KNOWN = "London"  # a name that every working geocoder knows

PlaceName = Annotated[
    str,
    AfterValidator(lambda name: " ".join(name.split())),
    Field(
        min_length=2,
        max_length=80,
        description="A city's name instead of coordinates, with region or country after a comma where several have it",
        examples=["Paris"],
    ),
]


class ChosenPlace(NamedTuple):
    """The place that an answer is about; `name` if it was found by name, `by_default` if none was given."""

    place: Place
    name: str | None = None
    by_default: bool = False


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
        return ChosenPlace(located.place, located.full_name)
    if point is not None:
        return ChosenPlace(point)
    ctx.warn("data", "default_location", "No valid place was given: this is Los Angeles. Give place, or lat and lon.")
    return ChosenPlace(DEFAULT, by_default=True)


async def locate(ctx: ToolContext, name: str) -> Located:
    """Return the place with that name.

    Raises:
        InvalidArguments: no place has the name, or several may be meant; the message lists them.
        SourceError: the geocoder did not answer, or finds no place at all.
    """
    city, *qualifiers = (part.strip() for part in name.split(","))
    places = await ctx.read(GEOCODING, city, section="data.place")
    if not places and not await ctx.read(GEOCODING, KNOWN, section="data.place"):
        raise SourceUnproved(f"not even {KNOWN} is known")
    matching = [each for each in places if all(_lies_in(each, qualifier) for qualifier in qualifiers if qualifier)]
    named = [each for each in matching if fold(each.name) == fold(city)] or matching
    if not named:
        raise _refuse(f"no place named {name!r} is known; give its name in English, or lat and lon", places)
    largest, *others = sorted(named, key=lambda each: -each.population)
    if any(largest.population < LARGER * other.population or not largest.population for other in others):
        raise _refuse("several places have this name; add the region or country after a comma", named)
    return largest


def _lies_in(located: Located, qualifier: str) -> bool:
    return fold(qualifier) in {fold(part) for part in (located.region, located.country, located.country_code) if part}


def fold(name: str) -> str:
    """Return a name without case and accents: São Paulo becomes sao paulo."""
    plain = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()


def _refuse(message: str, candidates: Sequence[Located]) -> InvalidArguments:
    listed = sorted(candidates, key=lambda each: -each.population)[:SHOWN]
    names = list(dict.fromkeys(each.full_name for each in listed))
    said = f"place: {message}{': ' + '; '.join(names) if names else ''}"
    shown = [{"place": each.full_name, "lat": each.place.lat, "lon": each.place.lon} for each in listed]
    return InvalidArguments(
        said, errors=[{"loc": "place", "msg": message, "type": "value_error"}], candidates=shown, did_you_mean=names
    )
