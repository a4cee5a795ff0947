"""Simulate NOAA's space weather service on the wire: lists of objects and lists of lists, newest first or last."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.sun import (
    PERIOD,
    SimBulletin,
    bulletins,
    flares_since,
    kp,
    kp_estimate,
    wind_density,
    wind_speed,
    xray,
)
from toolserver.world.model import Ask, Reply, World, expects, serves

HOST = "services.swpc.noaa.gov"
KP_PERIODS, KP_MINUTES, WIND_MINUTES = 60, 360, 180
A_OF_KP = (0, 3, 7, 15, 27, 48, 80, 140, 240, 400)  # the linear index for whole numbers of K


@serves("SWPC.planetary_k", HOST, "/products/noaa-planetary-k-index.json")
def planetary_k(world: World, ask: Ask) -> Reply:
    rows = [
        {"time_tag": _time(at), "Kp": round(value, 2), "a_running": A_OF_KP[int(value)], "station_count": 8}
        for at, value in _periods(world)
    ]
    return Reply.json(rows, last_modified=world.now // 60 * 60)


@planetary_k.form("drift")
def planetary_k_as_lists(world: World, ask: Ask) -> Reply:
    """Return the form from before 2026: a header row, everything a string, the name in lower case."""
    rows = [[_time(at, " ") + ".000", f"{value:.2f}", str(A_OF_KP[int(value)]), "8"] for at, value in _periods(world)]
    return Reply.json([["time_tag", "kp", "a_running", "station_count"], *rows])


def _periods(world: World) -> list[tuple[float, float]]:
    """Return closed periods and the current one, oldest first."""
    last = world.now // PERIOD * PERIOD
    return [(at, kp(world, at)) for at in (last - PERIOD * i for i in reversed(range(KP_PERIODS)))]


@serves("SWPC.planetary_k_1m", HOST, "/json/planetary_k_index_1m.json")
def planetary_k_1m(world: World, ask: Ask) -> Reply:
    rows = []
    for minute in _minutes(world, KP_MINUTES):
        value = kp_estimate(world, minute)
        near = round(value)
        sign = "Z" if abs(value - near) < 0.1 else "P" if value > near else "M"
        rows.append(
            {"time_tag": _time(minute), "kp_index": near, "estimated_kp": round(value, 2), "kp": f"{near}{sign}"}
        )
    return Reply.json(rows, last_modified=world.now // 60 * 60)


@serves("SWPC.solar_wind_1m", HOST, "/json/rtsw/rtsw_wind_1m.json")
def solar_wind(world: World, ask: Ask) -> Reply:
    """Return newest first, for two spacecraft; the newest minute is incomplete."""
    rows = []
    for minute in reversed(_minutes(world, WIND_MINUTES)):
        late = minute > world.now - 60
        speed = None if late else wind_speed(world, minute)
        rows.append(_craft("SOLAR1", minute, speed, -9999.0 if late else wind_density(world, minute), active=True))
        rows.append(_craft("ACE", minute, 999.9, 0.1, active=False))
    return Reply.json(rows, last_modified=world.now // 60 * 60)


def _craft(name: str, minute: float, speed: float | None, density: float, *, active: bool) -> dict[str, Any]:
    vectors = {f"proton_v{axis}_{frame}": None for frame in ("gse", "gsm") for axis in "xyz"}
    alphas = {f"alpha_{name}": None for name in ("speed", "temperature", "density", "sample_size")}
    flags = {
        f"max_{name}_flag": 0 for name in ("convergence", "data", "error_count", "processing", "range", "telemetry")
    }
    head = {"time_tag": _time(minute), "active": active, "source": name, "proton_speed": speed}
    return (
        head
        | {"proton_temperature": 114733, "proton_density": density}
        | vectors
        | {"proton_sample_size": 1}
        | alphas
        | flags
        | {"overall_quality": 0}
    )


@solar_wind.form("drift")
def solar_wind_as_lists(world: World, ask: Ask) -> Reply:
    """Return the retired product: a header row, strings, null for missing values, oldest first."""
    rows: list[list[str | None]] = [["time_tag", "density", "speed", "temperature"]]
    for minute in _minutes(world, WIND_MINUTES):
        late = minute > world.now - 60
        density, speed = (None, None) if late else (str(wind_density(world, minute)), str(wind_speed(world, minute)))
        rows.append([_time(minute, " ") + ".000", density, speed, "118581"])
    return Reply.json(rows)


@serves("SWPC.propagated_solar_wind", HOST, "/products/geospace/propagated-solar-wind-1-hour.json")
def propagated(world: World, ask: Ask) -> Reply:
    header = ["time_tag", "speed", "density", "temperature", "bx", "by", "bz", "bt", "vx", "vy", "vz"]
    field = [4.22, -5.26, -2.67, 7.25, -335.8, 3.9, 4.5]
    rows = [
        [_time(at) + "Z", wind_speed(world, at), wind_density(world, at), 77090.0, *field, _time(at + 3600) + "Z"]
        for at in _minutes(world, 60)[:-1]
    ]
    return Reply.json([[*header, "propagated_time_tag"], *rows], last_modified=world.now // 60 * 60)


@serves("SWPC.goes_xray_1d", HOST, "/json/goes/{satellite}/xrays-1-day.json")
def goes_xray(world: World, ask: Ask) -> Reply:
    """Return two rows a minute: the short band is a fraction of the long one."""
    number = {"primary": 19, "secondary": 18}.get(ask.parts["satellite"])
    if number is None:
        return Reply.text("<html><head><title>404 Not Found</title></head></html>", 404, "text/html")
    flares = flares_since(world, world.now - 27 * 3600)
    rows = []
    for minute in _minutes(world, 1440):
        long = xray(world, minute, flares)
        rows += [_band(number, minute, long / 40, "0.05-0.4nm"), _band(number, minute, long, "0.1-0.8nm")]
    return Reply.json(rows, last_modified=world.now // 60 * 60)


def _band(satellite: int, minute: float, flux: float, energy: str) -> dict[str, Any]:
    return {
        "time_tag": _time(minute) + "Z",
        "satellite": satellite,
        "flux": flux,
        "observed_flux": flux * 1.05,
        "electron_correction": flux * 0.05,
        "electron_contaminaton": energy == "0.05-0.4nm",
        "energy": energy,
    }


@serves("SWPC.alerts", HOST, "/products/alerts.json")
def alerts(world: World, ask: Ask) -> Reply:
    return Reply.json([_message(bulletin) for bulletin in bulletins(world)], last_modified=world.now // 60 * 60)


def _message(bulletin: SimBulletin) -> dict[str, str]:
    issued = datetime.fromtimestamp(bulletin.at, UTC)
    head = (
        f"Space Weather Message Code: {bulletin.code}\r\nSerial Number: {bulletin.serial}\r\n"
        f"Issue Time: {issued:%Y %b %d %H%M} UTC\r\n\r\n"
    )
    return {
        "product_id": bulletin.product,
        "issue_datetime": f"{issued:%Y-%m-%d %H:%M:%S}.893",
        "message": head + "\n".join(bulletin.lines),
    }


def _minutes(world: World, count: int) -> list[float]:
    """Return the last full minutes, oldest first."""
    last = world.now // 60 * 60
    return [last - 60 * i for i in reversed(range(count))]


def _time(at: float, between: str = "T") -> str:
    return datetime.fromtimestamp(at, UTC).strftime(f"%Y-%m-%d{between}%H:%M:%S")


@expects("space-weather")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/space-weather` must have at this instant when NOAA answers."""
    flares = flares_since(world, world.now - 27 * 3600)
    flux, minute = max((xray(world, at, flares), at) for at in _minutes(world, 1440))
    wind = max(at for at in _minutes(world, 3) if at <= world.now - 60)
    value, newest = kp(world, world.now), world.now // 60 * 60
    ends = (newest, newest // PERIOD * PERIOD - 60)  # the newest minute, and the last of the three hours before
    estimate, minute_of_estimate = max((round(kp_estimate(world, at), 2), at) for at in ends)
    return {
        "kp_index": round(value, 2),
        "kp_time": _time(world.now // PERIOD * PERIOD) + "Z",
        "kp_estimated": estimate,
        "kp_estimated_time": _time(minute_of_estimate) + "Z",
        "solar_wind_speed_kms": wind_speed(world, wind),
        "solar_wind_density_cm3": wind_density(world, wind),
        "flare_class_letter": next(
            c for c, least in zip("XMCBA", (1e-4, 1e-5, 1e-6, 1e-7, 0), strict=True) if flux >= least
        ),
        "flare_peak_time": _time(minute) + "Z",
    }
