"""Simulate the weather alerts: hazards over zones, each announced, updated, and expired or called off."""

import hashlib
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from toolserver.world.model import World

LONGEST_S = 60 * 3600.0
SLOT_S = 120.0
PER_HOUR = 13.0
LINGERS_S = 900.0  # how long a message stays listed after it is replaced, has expired or has called off a hazard


class Hazard(NamedTuple):
    """A kind of alert. `phenomenon` and `significance` come from VTEC; kinds outside VTEC have neither."""

    event: str
    phenomenon: str | None
    significance: str | None
    severity: str
    urgency: str
    certainty: str
    hours: float
    product: str


HAZARDS = [
    Hazard("Tornado Warning", "TO", "W", "Extreme", "Immediate", "Observed", 0.75, "TOR"),
    Hazard("Blizzard Warning", "BZ", "W", "Extreme", "Expected", "Likely", 20, "WSW"),
    Hazard("Severe Thunderstorm Warning", "SV", "W", "Severe", "Immediate", "Observed", 1, "SVR"),
    Hazard("Flash Flood Warning", "FF", "W", "Severe", "Immediate", "Likely", 3, "FFW"),
    Hazard("Flood Warning", "FL", "W", "Severe", "Immediate", "Observed", 40, "FLW"),
    Hazard("Winter Storm Warning", "WS", "W", "Severe", "Expected", "Likely", 24, "WSW"),
    Hazard("Red Flag Warning", "FW", "W", "Severe", "Expected", "Likely", 12, "RFW"),
    Hazard("High Wind Watch", "HW", "A", "Severe", "Future", "Possible", 20, "NPW"),
    Hazard("Flood Watch", "FA", "A", "Severe", "Future", "Possible", 30, "FFA"),
    Hazard("Wind Advisory", "WI", "Y", "Moderate", "Expected", "Likely", 12, "NPW"),
    Hazard("Winter Weather Advisory", "WW", "Y", "Moderate", "Expected", "Likely", 18, "WSW"),
    Hazard("Heat Advisory", "HT", "Y", "Moderate", "Expected", "Likely", 10, "NPW"),
    Hazard("Gale Warning", "GL", "W", "Moderate", "Expected", "Likely", 18, "MWW"),
    Hazard("Special Weather Statement", None, None, "Moderate", "Expected", "Observed", 1, "SPS"),
    Hazard("Small Craft Advisory", "SC", "Y", "Minor", "Expected", "Likely", 24, "MWW"),
    Hazard("Flood Advisory", "FA", "Y", "Minor", "Expected", "Likely", 6, "FLS"),
    Hazard("Frost Advisory", "FR", "Y", "Minor", "Expected", "Likely", 9, "NPW"),
    Hazard("High Surf Advisory", "SU", "Y", "Minor", "Past", "Unlikely", 30, "CFW"),
    Hazard("Air Quality Alert", None, None, "Unknown", "Unknown", "Unknown", 24, "AQA"),
]
TEST = Hazard("Test Message", None, None, "Unknown", "Unknown", "Unknown", 1, "TST")


class Office(NamedTuple):
    """A forecast office, its state and its location. `offset_h` is the local time's offset."""

    code: str
    city: str
    state: str
    region: str
    fips: str
    offset_h: int
    lat: float
    lon: float


OFFICES = [
    Office("OUN", "Norman OK", "OK", "Oklahoma", "040", -6, 35.2, -97.4),
    Office("LOX", "Los Angeles/Oxnard CA", "CA", "California", "006", -8, 34.2, -119.2),
    Office("HGX", "Houston/Galveston TX", "TX", "Texas", "048", -6, 29.5, -95.1),
    Office("MFL", "Miami FL", "FL", "Florida", "012", -5, 25.8, -80.4),
    Office("OKX", "New York NY", "NY", "New York", "036", -5, 40.9, -72.9),
    Office("BOU", "Denver CO", "CO", "Colorado", "008", -7, 40.0, -105.3),
    Office("PSR", "Phoenix AZ", "AZ", "Arizona", "004", -7, 33.4, -112.0),
    Office("SEW", "Seattle WA", "WA", "Washington", "053", -8, 47.7, -122.3),
    Office("MPX", "Twin Cities/Chanhassen MN", "MN", "Minnesota", "027", -6, 44.8, -93.6),
    Office("OHX", "Nashville TN", "TN", "Tennessee", "047", -6, 36.2, -86.6),
    Office("GRR", "Grand Rapids MI", "MI", "Michigan", "026", -5, 42.9, -85.5),
    Office("BYZ", "Billings MT", "MT", "Montana", "030", -7, 45.8, -108.5),
    Office("AFC", "Anchorage AK", "AK", "Alaska", "002", -9, 61.2, -149.9),
    Office("HFO", "Honolulu HI", "HI", "Hawaii", "015", -10, 21.3, -157.9),
    Office("SJU", "San Juan PR", "PR", "Puerto Rico", "072", -4, 18.4, -66.1),
    Office("GYX", "Gray ME", "ME", "Maine", "023", -5, 43.9, -70.3),
]
SIDES = ["Northern", "Southern", "Eastern", "Western", "Central", "Northwest", "Northeast", "Southeast", "Coastal"]


class SimAlert(NamedTuple):
    """One message about a hazard. `action` is VTEC's NEW, CON or CAN; `serial` counts the messages of a hazard."""

    id: str
    hazard: Hazard
    office: Office
    zones: tuple[tuple[str, str], ...]
    serial: int
    number: int
    action: str
    sent: float
    began: float
    ends: float
    status: str
    references: tuple[tuple[str, float], ...]

    @property
    def kind(self) -> str:
        """The message type of CAP."""
        return {"NEW": "Alert", "CON": "Update", "CAN": "Cancel"}[self.action]

    @property
    def expires(self) -> float:
        """When the message itself expires: hazards that last are announced again before that."""
        return self.ends if self.action != "CON" else min(self.ends, self.sent + 12 * 3600)


def alerts(world: World) -> list[SimAlert]:
    """Return the messages listed at this instant, newest first, at whole seconds.

    There is always one Tornado Warning in force and one alert of each severity, unless
    `alerts.quiet` is pinned to 1, which leaves nothing more severe than Moderate.
    """
    messages = [message for hazard in _hazards(world) for message in _listed(world, *hazard)]
    messages += [_injected(e) for e in world.injected("alert", world.now - 24 * 3600) if _of_weather(e)]
    if world.pinned("alerts.quiet") == 1:
        messages = [
            a for a in messages if a.hazard.severity not in ("Extreme", "Severe") or a.id.startswith(PREFIX + "x")
        ]
    return sorted(messages, key=lambda a: a.sent, reverse=True)


def in_force(world: World, status: str = "actual") -> list[SimAlert]:
    """Return the listed messages of a status that are not expired, called off or replaced."""
    listed = [a for a in alerts(world) if a.status.lower() == status]
    now_gone = {gone for a in listed for gone, _ in a.references}
    return [a for a in listed if a.kind != "Cancel" and _until(a) > world.now and a.id not in now_gone]


def _until(alert: SimAlert) -> float:
    return alert.expires if alert.hazard.event in ENDLESS else alert.ends


ENDLESS = {"Air Quality Alert", "Special Weather Statement", "Test Message"}  # they expire, but have no end
PREFIX = "urn:oid:2.49.0.1.840.0."


def _hazards(world: World) -> Iterator[tuple[str, Hazard, float]]:
    """Yield every hazard that may still be listed: its name, kind and beginning."""
    since = world.now - LONGEST_S
    for index, at in world.slots("alert", since=since, slot_s=SLOT_S, rate=PER_HOUR / 3600):
        yield f"{index}", world.pick("alert.hazard", index, HAZARDS), at
    for index, at in _regular(world, "tornado", 1800):
        yield f"tornado{index}", HAZARDS[0], at
    for index, at in _regular(world, "alert.test", 3600):
        yield f"test{index}", TEST, at
    for severity in ("Extreme", "Severe", "Moderate", "Minor", "Unknown"):
        of_it = [h for h in HAZARDS if h.severity == severity and h.hours > 8]
        for index, at in _regular(world, f"alert.{severity}", 4 * 3600):
            yield f"{severity}{index}", world.pick(f"alert.{severity}.hazard", index, of_it), at


def _regular(world: World, kind: str, every_s: float) -> list[tuple[int, float]]:
    """Return one beginning per period, in its first half."""
    first, last = math.floor((world.now - LONGEST_S) / every_s), math.floor(world.now / every_s)
    moments = [(i, (i + 0.5 * world.u(kind, i)) * every_s) for i in range(first, last + 1)]
    return [(i, at) for i, at in moments if at <= world.now]


def _listed(world: World, name: str, hazard: Hazard, at: float) -> list[SimAlert]:
    """Return the messages of one hazard that the service lists now: the newest, and for a while those before it."""
    began = float(math.floor(at))
    forced = not name.isdigit()
    lasts = hazard.hours * 3600 * (1 if forced else world.between("alert.lasts", name, 0.6, 1.4))
    ends = float(math.floor(began + lasts))
    off = not forced and world.u("alert.off", name) < 0.08
    over = began + 0.7 * lasts if off else ends
    if over + LINGERS_S < world.now:
        return []
    sent = [math.floor(began + k * lasts / 3) + 0.0 for k in range(1 if hazard is TEST else 3)]
    sent = [t for t in sent if t < over and t <= world.now]
    if off and over <= world.now:
        sent.append(float(math.floor(over)))
    messages = _messages(world, name, hazard, began, ends, sent, off and over <= world.now)
    lingering = [a for a, after in pairwise(messages) if after.sent + LINGERS_S > world.now]
    return [*lingering, messages[-1]]


def _messages(
    world: World, name: str, hazard: Hazard, began: float, ends: float, sent: list[float], called_off: bool
) -> list[SimAlert]:
    office = world.pick("alert.office", name, OFFICES)
    zones = _zones(world, name, office)
    messages: list[SimAlert] = []
    for serial, at in enumerate(sent):
        last = serial == len(sent) - 1
        messages.append(
            SimAlert(
                id=_identifier(world, name, serial),
                hazard=hazard,
                office=office,
                zones=zones,
                serial=serial,
                number=1 + int(world.u("alert.number", name) * 200),
                action="CAN" if called_off and last else "NEW" if serial == 0 else "CON",
                sent=at,
                began=began,
                ends=ends,
                status="Test" if hazard is TEST else "Actual",
                references=tuple((a.id, a.sent) for a in messages),
            )
        )
    return messages


def _zones(world: World, name: str, office: Office) -> tuple[tuple[str, str], ...]:
    """Return one to four zones of the office: their codes and names."""
    many, first = 1 + int(world.u("alert.zones", name) * 4), int(world.u("alert.zone", name) * len(SIDES))
    numbers = [(first + k) % len(SIDES) for k in range(many)]
    return tuple((f"{office.state}Z{10 + n:03d}", f"{SIDES[n]} {office.region}") for n in numbers)


def _identifier(world: World, name: str, serial: int) -> str:
    digest = hashlib.sha1(f"{world.seed}|{name}|{serial}".encode(), usedforsecurity=False).hexdigest()
    return f"{PREFIX}{digest}.{serial + 1:03d}.1"


def _of_weather(event: dict[str, Any]) -> bool:
    """Return True for injected weather alerts. Injected alerts with a type are disasters."""
    return "type" not in event


def _injected(event: dict[str, Any]) -> SimAlert:
    at, hours = float(math.floor(event["at"])), float(event.get("hours", 6))
    kind = Hazard(
        str(event.get("event", "Severe Thunderstorm Warning")),
        None,
        None,
        str(event.get("severity", "Severe")),
        str(event.get("urgency", "Immediate")),
        str(event.get("certainty", "Observed")),
        hours,
        "SPS",
    )
    office = next((o for o in OFFICES if o.state == event.get("area")), OFFICES[0])
    zones = ((f"{office.state}Z010", f"{SIDES[0]} {office.region}"),)
    ends = at + hours * 3600
    return SimAlert(f"{PREFIX}x{int(at)}.001.1", kind, office, zones, 0, 1, "NEW", at, at, ends, "Actual", ())
