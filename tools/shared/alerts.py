"""Rank the weather alerts in force by gravity, for every tool that shows them, and list the names of events.

The National Weather Service gives the names, in its own spelling:
https://api.weather.gov/alerts/types lists them. New names are added occasionally, so a name in
the data counts as known too.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tools.sources.noaa import WATCH_WARNING_MAP, AlertMap, MappedAlert
from tools.sources.nws import ALERTS, ALL, Alert, AlertList, Certainty, Severity, Urgency
from toolserver import Fallback, InvalidArguments, Meaning, find_similar, find_word, via

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


ALERT_SOURCES = (ALERTS, WATCH_WARNING_MAP)

SEVERITIES: dict[Severity, float] = {"Extreme": 4, "Severe": 3, "Moderate": 2, "Minor": 1, "Unknown": 0.5}
URGENCIES: dict[Urgency, float] = {"Immediate": 4, "Expected": 3, "Future": 2, "Past": 0.5, "Unknown": 0.5}
CERTAINTIES: dict[Certainty, float] = {"Observed": 4, "Likely": 3, "Possible": 2, "Unlikely": 1, "Unknown": 0.5}

CATEGORIES = (
    ("tornado", "tornado"),
    ("tropical", r"hurricane|tropical|storm surge"),
    ("flood", "flood"),
    ("thunderstorm", "thunderstorm"),
    ("winter", r"winter|snow|ice|blizzard|freeze"),
    ("fire", r"fire|red flag"),
    ("heat", "heat"),
    ("wind", "wind"),
    ("marine", r"marine|gale|surf"),
)
_CATEGORIES = [(name, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for name, words in CATEGORIES]
_SIGNIFICANCES = {"W": 0, "A": 1, "Y": 2, "S": 3}  # warning, watch, advisory, statement
_OVER = {"CAN", "EXP", "UPG"}  # cancelled, expired, upgraded to something else


class RankedAlert(NamedTuple):
    """An alert in force and its score."""

    id: str
    event: str
    severity: Severity
    urgency: Urgency
    certainty: Certainty
    score: float
    area: str
    headline: str | None
    effective: datetime
    expires: datetime
    ends: datetime | None
    sender: str | None
    url: str | None


class Ranking(NamedTuple):
    """Alerts in force, gravest first. `classed` is False where the source has no severity, urgency and certainty."""

    alerts: tuple[RankedAlert, ...]
    classed: bool
    truncated: bool = False


def score(severity: Severity, urgency: Urgency, certainty: Certainty) -> float:
    """Return severity x urgency x certainty: from 0.125 to 64."""
    return SEVERITIES[severity] * URGENCIES[urgency] * CERTAINTIES[certainty]


def category(event: str) -> str:
    """Return one word for the kind of weather, by the first category with a word that occurs in the event's name."""
    return next((name for name, words in _CATEGORIES if words.search(event)), "other")


def alert_fallbacks(now: datetime) -> tuple[Fallback[Ranking], ...]:
    """Return the alerts in force in the United States: from the NWS, or from NOAA's map, which does not class them."""
    return via(ALERTS, ALL, lambda listed: ranked(listed, now)), via(
        WATCH_WARNING_MAP, None, lambda mapped: ranked_map(mapped, now)
    )


def in_force(alerts: Iterable[Alert], now: datetime) -> list[Alert]:
    """Return the alerts that have not ended, are not cancelled and are not replaced by another one in force."""
    messages = {alert.id: alert for alert in alerts}.values()
    candidates = [a for a in messages if a.message_type != "Cancel" and (a.ends or a.expires) > now]
    cancels = [a for a in messages if a.message_type == "Cancel"]
    replaced = {gone for alert in (*candidates, *cancels) for gone in alert.references if gone != alert.id}
    return [alert for alert in candidates if alert.id not in replaced]


def ranked(listed: AlertList, now: datetime) -> Ranking:
    """Rank alerts by score, newer ones first among equals."""
    newest_first = sorted(in_force(listed.alerts, now), key=lambda a: a.sent, reverse=True)
    alerts = sorted((_ranked(alert) for alert in newest_first), key=lambda a: -a.score)
    return Ranking(tuple(alerts), classed=True)


def _ranked(alert: Alert) -> RankedAlert:
    return RankedAlert(
        id=alert.id,
        event=alert.event,
        severity=alert.severity,
        urgency=alert.urgency,
        certainty=alert.certainty,
        score=score(alert.severity, alert.urgency, alert.certainty),
        area=alert.area,
        headline=alert.headline,
        effective=alert.effective,
        expires=alert.expires,
        ends=alert.ends,
        sender=alert.sender,
        url=alert.url,
    )


def ranked_map(mapped: AlertMap, now: datetime) -> Ranking:
    """Rank mapped alerts: warnings, watches, advisories, statements; newer ones first within each."""
    current = [a for a in mapped.alerts if a.action not in _OVER and (a.ends or a.expires) > now]
    current = sorted(sorted(current, key=lambda a: a.issued, reverse=True), key=_by_significance)
    return Ranking(tuple(_of_map(alert) for alert in current), classed=False, truncated=mapped.truncated)


def _by_significance(alert: MappedAlert) -> int:
    return _SIGNIFICANCES.get(alert.significance or "", len(_SIGNIFICANCES))


def _of_map(alert: MappedAlert) -> RankedAlert:
    return RankedAlert(
        id=alert.id,
        event=alert.event,
        severity="Unknown",
        urgency="Unknown",
        certainty="Unknown",
        score=score("Unknown", "Unknown", "Unknown"),
        area=f"Area of NWS office {alert.office}",
        headline=None,
        effective=alert.issued,
        expires=alert.expires,
        ends=alert.ends,
        sender=None,
        url=alert.url,
    )


ALERTS_RANKED = (
    Meaning(
        "severe-weather.top.score",
        "The words and their order are CAP's; the weights are ours: 4, 3, 2, 1 in that order, and a half for Unknown "
        "and Past, multiplied",
        decide=lambda words: score(*words),
        rows=(
            (("Extreme", "Immediate", "Observed"), 64),
            (("Severe", "Future", "Possible"), 12),
            (("Moderate", "Expected", "Possible"), 12),
            (("Minor", "Past", "Unlikely"), 0.5),
            (("Unknown", "Unknown", "Unknown"), 0.125),
        ),
    ),
    Meaning(
        "severe-weather.total_active",
        "Warnings, watches, advisories and statements together, from their issue until the weather ends, or without "
        "such a time until the message is void; that those count whose weather has not begun is our choice",
    ),
)
