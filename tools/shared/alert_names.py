"""List the names that the National Weather Service gives to events, in its own spelling.

https://api.weather.gov/alerts/types lists them. New names are added occasionally, so a name in the data counts as
known too.
"""

from collections.abc import Iterable

from toolserver import InvalidArguments, find_similar, find_word

SHOWN = 3
_KINDS = {"W": "Warning", "A": "Watch", "Y": "Advisory", "S": "Statement"}  # the letters of VTEC
_HAZARDS = {
    "W": "Blizzard, Civil Danger, Dust Storm, Earthquake, Excessive Heat, Extreme Wind, Fire, Hazardous Materials,"
    " Ice Storm, Law Enforcement, Nuclear Power Plant, Radiological Hazard, Red Flag, Shelter In Place, Snow Squall,"
    " Special Marine, Volcano",
    "A": "Excessive Heat, Fire Weather",
    "Y": "Air Stagnation, Arroyo And Small Stream Flood, Brisk Wind, Cold Weather, Dense Fog, Dense Smoke, Dust,"
    " Flood, Freezing Fog, Freezing Spray, Frost, Heat, Lake Wind, Low Water, Small Craft, Small Stream Flood,"
    " Urban And Small Stream Flood, Wind, Winter Weather",
    "S": "Beach Hazards, Flash Flood, Flood, Hurricane Local, Marine Weather, Rip Current, Severe Weather,"
    " Special Weather, Tropical Cyclone, Tropical Cyclone Local, Tropical Depression Local, Tropical Storm Local,"
    " Typhoon Local",
    "WA": "Extreme Cold, Extreme Heat, Flash Flood, Flood, Freeze, Gale, Hard Freeze, Hazardous Seas,"
    " Heavy Freezing Spray, High Wind, Hurricane, Hurricane Force Wind, Severe Thunderstorm, Storm, Storm Surge,"
    " Tornado, Tropical Storm, Typhoon, Winter Storm",
    "WY": "Ashfall, Blowing Dust, High Surf",
    "WAY": "Avalanche, Lake Effect Snow, Tsunami, Wind Chill",
    "WAYS": "Coastal Flood, Lakeshore Flood",
}
_OTHERS = (
    "911 Telephone Outage, 911 Telephone Outage Emergency, Administrative Message, Air Quality Alert, Blue Alert,"
    " Child Abduction Emergency, Civil Emergency Message, Evacuation - Immediate, Extreme Fire Danger,"
    " Hazardous Weather Outlook, Hydrologic Outlook, Local Area Emergency, Missing Endangered Persons,"
    " Short Term Forecast, Small Craft Advisory For Hazardous Seas, Small Craft Advisory For Rough Bar,"
    " Small Craft Advisory For Winds, Test, Test Message"
)
EVENTS = frozenset(
    f"{hazard} {_KINDS[letter]}"
    for letters, names in _HAZARDS.items()
    for letter in letters
    for hazard in names.split(", ")
) | frozenset(_OTHERS.split(", "))


def spell_event(event: str) -> str:
    """Return the event's name as the service spells it; an unknown name as given, without superfluous blanks."""
    plain = " ".join(event.split())
    return find_word(plain, EVENTS) or plain


def find_event(event: str, in_data: Iterable[str]) -> str:
    """Return a name as it is spelled in the data, or in the list.

    Raises:
        InvalidArguments: neither has it; the message lists the nearest names.
    """
    named = set(in_data)
    name = find_word(event, named) or find_word(event, EVENTS)
    if name is not None:
        return name
    plain = {name.casefold(): name for name in EVENTS | named}
    near = [plain[name] for name in find_similar(event.casefold(), list(plain), most=SHOWN, least=0.0)]
    message = f"no event of the National Weather Service has this name; the nearest are {', '.join(near)}"
    error = {"loc": "event", "msg": message, "type": "unknown_event"}
    raise InvalidArguments(f"event: {message}.", errors=[error], did_you_mean=near)
