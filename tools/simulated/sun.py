"""Simulate the sun and the earth's magnetic field: one activity that NOAA and GFZ both report.

Pinned values: `kp.index` (0 to 9), `solar_wind.speed` (km/s), `solar_wind.density` (per cm³)
and `xray.flux` (W/m², 0.1 to 0.8 nm: 2.5e-4 is a flare of class X2.5), each for every instant
it covers.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.world.model import World

PERIOD = 3 * 3600
MINUTE = 60
FLARE_SLOT, FLARES_PER_DAY = 1800, 6
HISTORY = 30 * 86400
WARNING_EVERY = 12 * 3600
WARNING_LASTS = 20 * 3600
PROTONS = "Proton 10MeV Integral Flux above 10pfu expected"


OTHERS = (  # product, code, lines
    (
        "EF3A",
        "ALTEF3",
        "ALERT: Electron 2MeV Integral Flux exceeded 1,000pfu ",
        "Threshold Reached: {earlier}",
        "Station: GOES-19",
        "Comment: ",
    ),
    (
        "A20F",
        "WATA20",
        "WATCH: Geomagnetic Storm Category G1 Predicted ",
        "THIS SUPERSEDES ANY/ALL PRIOR WATCHES IN EFFECT",
        "Comment: ",
    ),
    ("BH2S", "SUM10R", "SUMMARY: 10cm Radio Burst", "Begin Time: {earlier}", "Peak Flux: 180 sfu", "Comment: "),
)


class Flare(NamedTuple):
    """A flare: steep rise, slow decay."""

    at: float
    peak: float


class SimBulletin(NamedTuple):
    """A message in the forecasters' words; `product` names the list's entry."""

    product: str
    code: str
    serial: int
    at: float
    lines: tuple[str, ...]


def kp(world: World, at: float) -> float:
    """Return the planetary K index of the three hours that hold an instant: 0 to 7 in thirds."""
    start = at // PERIOD * PERIOD
    pinned = world.pinned("kp.index", min(start + PERIOD - 1, world.now))
    if pinned is not None:
        return pinned
    storm = max(0.0, world.noise("kp.storm", start / 86400)) ** 2
    calm = world.between("kp.calm", int(start // PERIOD), 0.3, 3.0)
    return round(min(7.0, calm + 6 * storm) * 3) / 3


def kp_estimate(world: World, minute: float) -> float:
    """Return the running estimate of a minute: 0 when its three hours begin, the whole index after two of them."""
    part = min(1.0, minute % PERIOD / 7200)
    return round(kp(world, minute) * part * 3) / 3


def wind_speed(world: World, at: float) -> float:
    """Return kilometres per second."""
    pinned = world.pinned("solar_wind.speed", at)
    return round(450 + 150 * world.noise("wind.speed", at / 7200), 1) if pinned is None else pinned


def wind_density(world: World, at: float) -> float:
    """Return protons per cubic centimetre."""
    pinned = world.pinned("solar_wind.density", at)
    return round(6 + 5 * world.noise("wind.density", at / 3600), 2) if pinned is None else pinned


def xray(world: World, minute: float, flares: list[Flare]) -> float:
    """Return the flux of the minute that begins then, in the long band; `flares` are those of `flares_since`."""
    pinned = world.pinned("xray.flux", min(minute + MINUTE - 1, world.now))
    if pinned is not None:
        return pinned
    quiet = 10 ** (-6.6 + 0.3 * world.noise("xray.quiet", minute / 7200))
    return quiet + sum(f.peak * _shape(minute - f.at) for f in flares)


def _shape(since: float) -> float:
    if not 0 <= since < 3 * 3600:
        return 0.0
    return since / 300 if since < 300 else math.exp(-(since - 300) / 1500)


def flares_since(world: World, since: float) -> list[Flare]:
    """Return flares after an instant, of class B to M."""
    slots = world.slots("flare", since=since, slot_s=FLARE_SLOT, rate=FLARES_PER_DAY / 86400)
    return [Flare(at, 10 ** world.between("flare.peak", i, -6.3, -4.6)) for i, at in slots]


def bulletins(world: World) -> list[SimBulletin]:
    """Return the messages of a month, newest first.

    Every half day a proton warning is issued: of three, one is cancelled, one is extended and one expires.
    """
    since = world.now - HISTORY
    first = int(since // WARNING_EVERY)
    issued = [
        bulletin
        for index in range(first, int(world.now // WARNING_EVERY) + 1)
        for bulletin in (*_warning(world, index), *_others(world, index))
        if since < bulletin.at <= world.now
    ]
    return sorted(issued, key=lambda bulletin: bulletin.at, reverse=True)


def _warning(world: World, index: int) -> Iterator[SimBulletin]:
    serial = 2 * (index % 100_000)
    issued = index * WARNING_EVERY + world.between("warning.at", index, 0, 3600)
    until = issued + WARNING_LASTS
    yield SimBulletin(
        "P11W",
        "WARPX1",
        serial,
        issued,
        (
            f"WARNING: {PROTONS} ",
            f"Valid From: {written(issued)}",
            f"Valid To: {written(until)}",
            "Warning Conditions: Onset",
            "Noaa Scale: S1 - Minor",
        ),
    )
    if index % 3 == 0:
        lines = (f"CANCEL WARNING: {PROTONS} ", f"Cancel Serial Number: {serial}")
        gone = (f"Original Issue Time: {written(issued)}", "Conditions for this Warning are no longer present. ")
        yield SimBulletin("P11W", "WARPX1", serial + 1, issued + 7200, lines + gone)
    if index % 3 == 1:
        lines = (
            "EXTENDED WARNING: Proton 10MeV Integral Flux above 10pfu expected",
            f"Extension to Serial Number: {serial}",
        )
        ahead = (f"Valid From: {written(issued)}", f"Now Valid Until: {written(until + 43200)}")
        yield SimBulletin("P11W", "WARPX1", serial + 1, issued + 36000, lines + ahead)


def _others(world: World, index: int) -> Iterator[SimBulletin]:
    at = index * WARNING_EVERY + world.between("bulletin.at", index, 4000, 40000)
    product, code, *lines = world.pick("bulletin.kind", index, OTHERS)
    text = tuple(line.format(earlier=written(at - 600)) for line in lines)
    yield SimBulletin(product, code, index % 100_000, at, text)


def written(at: float) -> str:
    """Return a time in the forecasters' form: 2027 Jan 15 0800 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y %b %d %H%M UTC")
