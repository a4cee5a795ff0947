"""Rank the weather alerts in force by gravity, for every tool that shows them."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tools.sources.noaa import WATCH_WARNING_MAP, AlertMap, MappedAlert
from tools.sources.nws import ALERTS, ALL, Alert, AlertList, Certainty, Severity, Urgency
from toolserver import Fallback, via

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
