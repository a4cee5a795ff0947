"""GET /api/space-weather: the levels of space weather (storm levels, flare classes), and the bulletins in force."""

import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from anyio import gather
from pydantic import Field

from tools.parsing.kp_index import KpReading
from tools.sources import gfz
from tools.sources.gfz import KpWindow
from tools.sources.swpc import (
    ALERTS,
    KP_ESTIMATE,
    KP_INDEX,
    PROPAGATED_WIND,
    SOLAR_WIND,
    XRAY_FLUX,
    Bulletin,
    Kind,
    KpEstimate,
    SolarWind,
    XrayPeak,
)
from toolserver import (
    CardValue,
    DayLine,
    Definition,
    Fallback,
    Meaning,
    Payload,
    SourceDown,
    Timestamp,
    ToolContext,
    tool,
    up_to,
    via,
)

StormLevel = Literal["quiet", "minor", "moderate", "strong", "severe", "extreme"]
FlareLetter = Literal["A", "B", "C", "M", "X"]

STORMS: tuple[tuple[int, StormLevel], ...] = (  # least thirds of Kp: each class begins a third below its whole number
    (27, "extreme"),  # but G5, which a 9- does not reach
    (23, "severe"),
    (20, "strong"),
    (17, "moderate"),
    (14, "minor"),
)
FLARES: tuple[tuple[float, FlareLetter], ...] = ((1e-4, "X"), (1e-5, "M"), (1e-6, "C"), (1e-7, "B"))
LASTING = timedelta(hours=24)  # of a bulletin without an end


def storm_level(kp: float) -> StormLevel:
    """Return the level of a planetary K index, which is published in thirds of two or three decimals."""
    thirds = round(3 * kp)
    return next((level for least, level in STORMS if thirds >= least), "quiet")


STORM_LEVEL = Meaning(
    "space-weather.storm_level",
    "NOAA's G scale by thirds of Kp: G1 minor from 5-, G2 moderate 6-, G3 strong 7-, G4 severe 8- to 9-, G5 extreme "
    "9o. quiet is our word for all that is below G1",
    decide=storm_level,
    rows=(
        (4.33, "quiet"),
        (4.67, "minor"),  # this and the next three as SWPC classified them in May and September 2024
        (5.67, "moderate"),
        (6.67, "strong"),
        (7.67, "severe"),
        (8.67, "severe"),
        (9, "extreme"),
        (4.667, "minor"),  # GFZ Potsdam publishes three decimals
        (5.333, "minor"),
        (8.667, "severe"),
    ),
    definition=Definition(
        publisher="NOAA SWPC",
        link="https://services.swpc.noaa.gov/text/3-day-forecast.txt",
        words="7.67 (G4) … 5.67 (G2) … 4.67 (G1)",
        read_on=date(2026, 11, 25),
    ),
)
KP_ESTIMATED = Meaning(
    "space-weather.kp_estimated",
    "SWPC's estimate runs within the present three hours (from 00, 03, … UTC) and begins each at 0; the answer has the "
    "larger of the newest minute and the last one of the three hours before, with its minute",
)


def flare_letter(flux_wm2: float) -> FlareLetter:
    """Return the class of a flux in the band from 0.1 to 0.8 nm."""
    return next((letter for least, letter in FLARES if flux_wm2 >= least), "A")


def flare_class(flux_wm2: float) -> str:
    """Return class and tenths, rounded down: C3.4. X is the highest class, so it may have two digits."""
    letter = flare_letter(flux_wm2)
    decade = next((least for least, name in FLARES if name == letter), 1e-8)
    tenths = math.floor(round(flux_wm2 / decade * 10, 6))
    if letter != "X":
        tenths = min(tenths, 99)
    return f"{letter}{tenths / 10:.1f}"


FLARE_PEAK = (
    Meaning(
        "space-weather.flare_peak_class_24h",
        "NOAA's classes by peak flux of 0.1 to 0.8 nm: B from 1e-7 W/m², C 1e-6, M 1e-5, X 1e-4; tenths are cut. The "
        "highest minute of 24 hours is classed, whether or not SWPC lists a flare then: that is our choice",
        decide=flare_class,
        rows=(
            (9.9e-8, "A9.9"),
            (1e-7, "B1.0"),
            (9.99e-7, "B9.9"),
            (1e-6, "C1.0"),
            (9.99e-6, "C9.9"),
            (1e-5, "M1.0"),
            (1.59e-5, "M1.5"),
            (9.99e-5, "M9.9"),
            (1e-4, "X1.0"),
            (1.04e-3, "X10.4"),
        ),
        definition=Definition(
            publisher="NOAA",
            link="https://ngdc.noaa.gov/stp/space-weather/solar-data/solar-features/solar-flares/x-rays/documentation/"
            "miscellaneous/xray.fmt.rev",
            words="classified according to the order of magnitude of the peak burst intensity",
            read_on=date(2026, 11, 28),
        ),
    ),
    Meaning("space-weather.active_alerts", "A bulletin without an end counts for 24 hours from its issue: our choice"),
)


def in_force(bulletins: Iterable[Bulletin], now: datetime) -> list[Bulletin]:
    """Return bulletins that are not cancelled, extended by another one or expired, newest first."""
    bulletins = list(bulletins)
    ended = {(b.code, b.ends) for b in bulletins if b.ends is not None}
    standing = [b for b in bulletins if not b.cancels and (b.code, b.serial) not in ended]
    valid = [b for b in standing if (b.valid_to or b.issued_at + LASTING) >= now]
    return sorted(valid, key=lambda b: b.issued_at, reverse=True)


SHOWN = 5


def larger(estimate: KpEstimate) -> KpReading:
    """Return the newest estimate, or the last of the window before when that is larger: a window begins at 0."""
    before = estimate.before
    return before if before is not None and before.kp > estimate.newest.kp else estimate.newest


def _last(readings: tuple[KpReading, ...]) -> KpReading:
    return readings[-1]


KP: Fallback[KpReading] = via(KP_INDEX, None, _last)
KP_DAYS = (
    DayLine(KP_INDEX, None, lambda readings: readings),
    DayLine(gfz.KP_INDEX, KpWindow, lambda readings: readings),
)
ESTIMATE: Fallback[KpReading] = via(KP_ESTIMATE, None, larger)
WIND: tuple[Fallback[SolarWind], ...] = (via(SOLAR_WIND), via(PROPAGATED_WIND))
FLARE: tuple[Fallback[XrayPeak], ...] = (via(XRAY_FLUX, "primary"), via(XRAY_FLUX, "secondary"))
BULLETINS: Fallback[tuple[Bulletin, ...]] = via(ALERTS)


def _gfz(now: datetime) -> Fallback[KpReading]:
    return via(gfz.KP_INDEX, KpWindow(now), _last)


class SpaceAlert(Payload):
    product_id: str = Field(description="SWPC's id of the kind of product")
    code: str | None = Field(examples=["WARK05"], description="SWPC's message code; null: none")
    kind: Kind = Field(description="Kind of bulletin: alert, warning, watch or summary")
    title: str = Field(description="First line of the bulletin")
    issued_at: Timestamp = Field(description="When it was issued")
    valid_to: Timestamp | None = Field(
        description="Until when it is valid; null: not given, then it counts for 24 hours"
    )
    message: str = Field(max_length=1000, description="Text of the bulletin, cut at 1,000 characters")


class SpaceWeather(Payload):
    kp_index: float | None = Field(description="Planetary K, 0-9, of the newest three hours; null: not read")
    kp_time: Timestamp | None = Field(description="Start of those three hours, UTC; null: not read")
    kp_estimated: float | None = Field(
        description="SWPC's running estimate of Kp: the newest minute, or the last one of the three hours before, "
        "if larger, since each three hours begin at 0; null: not read"
    )
    kp_estimated_time: Timestamp | None = Field(description="Minute of that estimate; null: not read")
    storm_level: StormLevel | None = Field(
        description="NOAA's G scale by kp_index: minor from 4.67, moderate 5.67, strong 6.67, severe 7.67, extreme 9; "
        "quiet, our word, is below G1; null: not read"
    )
    solar_wind_speed_kms: float | None = Field(description="Speed of the solar wind, km/s; null: not read")
    solar_wind_density_cm3: float | None = Field(
        description="Protons per cubic centimetre of the solar wind; null: not read"
    )
    solar_wind_time: Timestamp | None = Field(description="Time of the solar wind's measurement; null: not read")
    flare_peak_class_24h: str | None = Field(
        examples=["C3.4"],
        description="Class of the highest X-ray flux (0.1-0.8 nm) of 24 hours, flare or not; null: not read",
    )
    flare_class_letter: FlareLetter | None = Field(description="Letter of that class; null: not read")
    flare_peak_time: Timestamp | None = Field(description="Minute of that flux; null: not read")
    active_alerts: list[SpaceAlert] | None = Field(
        max_length=SHOWN, description="Bulletins in force, newest first; null: not read"
    )


@tool(
    path="/api/space-weather",
    title="Space weather",
    search_hint="aurora northern lights visible tonight can see solar flare geomagnetic storm",
    ttl_s=300,
    sources=(KP_INDEX, gfz.KP_INDEX, KP_ESTIMATE, SOLAR_WIND, PROPAGATED_WIND, XRAY_FLUX, ALERTS),
    headline=CardValue("kp_index", "Kp", "{storm_level}, solar wind {solar_wind_speed_kms} km/s", days=KP_DAYS),
)
async def space_weather(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> SpaceWeather:
    """Space weather now: geomagnetic activity (Kp and storm level), solar wind speed and density, the strongest solar
    flare of the past 24 hours, alerts in force. Use it for auroras, radio blackouts, satellites.

    Shape: a group that could not be read is null, with a warning; an empty `active_alerts` means there are none.
    Cancelled, extended and expired alerts are left out; one without an end counts for 24 hours.
    Source: NOAA SWPC, refreshed every 2 to 5 minutes; Kp of GFZ Potsdam when NOAA's is missing.
    """
    kp, estimate, wind, flare, bulletins = await gather(
        ctx.section("data.kp", KP, _gfz(ctx.now)),
        ctx.section("data.kp_estimated", ESTIMATE),
        ctx.section("data.solar_wind", *WIND),
        ctx.section("data.flare", *FLARE),
        ctx.section("data.alerts", BULLETINS),
    )
    if all(group is None for group in (kp, estimate, wind, flare, bulletins)):
        raise SourceDown("no group could be read")
    alerts = None if bulletins is None else in_force(bulletins, ctx.now)[:SHOWN]
    return _shown(kp, estimate, wind, flare, alerts and ctx.page(alerts, limit, "data.active_alerts"))


def _shown(
    kp: KpReading | None,
    estimate: KpReading | None,
    wind: SolarWind | None,
    flare: XrayPeak | None,
    alerts: list[Bulletin] | None,
) -> SpaceWeather:
    return SpaceWeather(
        kp_index=kp and round(kp.kp, 2),
        kp_time=kp and kp.time,
        kp_estimated=estimate and round(estimate.kp, 2),
        kp_estimated_time=estimate and estimate.time,
        storm_level=kp and storm_level(kp.kp),
        solar_wind_speed_kms=wind and round(wind.speed_kms, 1),
        solar_wind_density_cm3=wind and round(wind.density_cm3, 2),
        solar_wind_time=wind and wind.time,
        flare_peak_class_24h=flare and flare_class(flare.flux_wm2),
        flare_class_letter=flare and flare_letter(flare.flux_wm2),
        flare_peak_time=flare and flare.time,
        active_alerts=None if alerts is None else [_alert(b) for b in alerts],
    )


def _alert(bulletin: Bulletin) -> SpaceAlert:
    return SpaceAlert(
        product_id=bulletin.product_id,
        code=bulletin.code,
        kind=bulletin.kind,
        title=bulletin.title,
        issued_at=bulletin.issued_at,
        valid_to=bulletin.valid_to,
        message=bulletin.message,
    )
