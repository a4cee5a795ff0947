"""Simulate AirNow's file of reporting areas on the wire: columns without a header, local times, three types of rows."""

from datetime import UTC, datetime
from typing import NamedTuple

from tools.simulated.sky import air
from toolserver.world.model import Ask, Reply, World, serves

ZONES = {"EST": -5, "CST": -6, "MST": -7, "PST": -8, "AKST": -9, "HST": -10, "ChST": 10}
ABROAD = {"CN": 8, "QA": 3, "PK": 5}  # the zones of posts abroad, whose abbreviations are ambiguous
AREAS = """
Central LA CO|CA|34.0661|-118.2266|PST
San Francisco|CA|37.7500|-122.4300|PST
Sacramento|CA|38.5600|-121.4900|PST
Fresno|CA|36.7800|-119.7700|PST
San Diego|CA|32.7150|-117.1600|PST
Portland|OR|45.5300|-122.6700|PST
Medford|OR|42.3300|-122.8700|PST
Seattle-Bellevue-Kent Valley|WA|47.5600|-122.3400|PST
Spokane|WA|47.6700|-117.3600|PST
Las Vegas|NV|36.2000|-115.1200|PST
Reno|NV|39.5300|-119.8100|PST
Boise|ID|43.6100|-116.2000|MST
Missoula|MT|46.8700|-114.0000|MST
Billings|MT|45.7900|-108.5000|MST
Salt Lake City|UT|40.7600|-111.8900|MST
Phoenix|AZ|33.4500|-112.0700|MST
Tucson|AZ|32.2200|-110.9300|MST
Denver-Boulder|CO|39.7700|-104.9900|MST
Cheyenne|WY|41.1400|-104.8200|MST
Albuquerque|NM|35.0800|-106.6500|MST
El Paso|TX|31.7600|-106.4800|MST
Houston-Galveston-Brazoria|TX|29.7510|-95.3510|CST
Dallas-Fort Worth|TX|32.7800|-96.8000|CST
San Antonio|TX|29.4200|-98.5000|CST
Austin|TX|30.2700|-97.7400|CST
Tyler-Longview-Marshall|TX|32.3500|-95.3000|CST
Oklahoma City|OK|35.4700|-97.5200|CST
Tulsa|OK|36.1500|-95.9900|CST
Wichita|KS|37.6900|-97.3400|CST
Kansas City|MO|39.1000|-94.5800|CST
St. Louis|MO|38.6300|-90.2000|CST
Omaha|NE|41.2600|-95.9400|CST
Sioux Falls|SD|43.5500|-96.7300|CST
Aberdeen|SD|45.4680|-98.4940|CST
Fargo|ND|46.8800|-96.7900|CST
Minneapolis-St. Paul|MN|44.9800|-93.2600|CST
Des Moines|IA|41.5900|-93.6200|CST
Milwaukee|WI|43.0400|-87.9100|CST
Chicago|IL|41.8800|-87.6300|CST
Little Rock|AR|34.7500|-92.2900|CST
New Orleans|LA|29.9500|-90.0700|CST
Baton Rouge|LA|30.4500|-91.1500|CST
Jackson|MS|32.3000|-90.1800|CST
Memphis|TN|35.1500|-90.0500|CST
Nashville|TN|36.1600|-86.7800|CST
Birmingham|AL|33.5200|-86.8000|CST
Mobile|AL|30.6900|-88.0400|CST
Indianapolis|IN|39.7700|-86.1600|EST
Louisville|KY|38.2500|-85.7600|EST
Cincinnati|OH|39.1000|-84.5100|EST
Cleveland-Akron|OH|41.5000|-81.6900|EST
Detroit|MI|42.3300|-83.0500|EST
Grand Rapids|MI|42.9600|-85.6700|EST
Pittsburgh|PA|40.4400|-80.0000|EST
Philadelphia|PA|39.9500|-75.1700|EST
New York City Region|NY|40.7100|-74.0000|EST
Buffalo|NY|42.8900|-78.8800|EST
Boston|MA|42.3600|-71.0600|EST
Hartford|CT|41.7600|-72.6700|EST
Providence|RI|41.8200|-71.4100|EST
Burlington|VT|44.4800|-73.2100|EST
Portland|ME|43.6600|-70.2600|EST
Baltimore|MD|39.2900|-76.6100|EST
Washington, D.C.|DC|38.9100|-77.0400|EST
Richmond|VA|37.5400|-77.4400|EST
Charleston|WV|38.3500|-81.6300|EST
Charlotte|NC|35.2300|-80.8400|EST
Columbia|SC|34.0000|-81.0300|EST
Atlanta|GA|33.7500|-84.3900|EST
Miami|FL|25.7600|-80.1900|EST
Anchorage|AK|61.2200|-149.9000|AKST
Honolulu|HI|21.3100|-157.8600|HST
Guam|GU|13.4400|144.7900|ChST
Beijing|CN|39.9500|116.4700|CST
Doha|QA|25.3000|51.5200|AST
Islamabad|PK|33.7200|73.1100|PKT
""".strip().splitlines()
POLLUTANTS = {"OZONE": 0.7, "PM2.5": 1.0, "PM10": 0.5}  # each pollutant's share of the area's index
CATEGORIES = (
    (50, "Good"),
    (100, "Moderate"),
    (150, "Unhealthy for Sensitive Groups"),
    (200, "Unhealthy"),
    (300, "Very Unhealthy"),
)
ROWS = {"O": "observed", "F": "forecast", "Y": "of yesterday"}


class SimArea(NamedTuple):
    """A reporting area; `aqi` is its air quality index of the last full hour."""

    name: str
    state: str
    lat: str
    lon: str
    zone: str
    aqi: int


def areas(world: World) -> list[SimArea]:
    """Return every area as measured in the last full hour."""
    hour = world.now - world.now % 3600
    rows = [line.split("|") for line in AREAS]
    return [
        SimArea(name, state, lat, lon, zone, round(air(world, float(lat), float(lon), hour).us_aqi))
        for name, state, lat, lon, zone in rows
    ]


@serves(
    "AirNow.reporting_areas",
    "files.airnowtech.org",
    "/airnow/today/reportingarea.dat",
    forms={
        "error200": Reply.text(
            '<?xml version="1.0" encoding="UTF-8"?>'
            "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
            200,
            "application/xml",
        )
    },
)
def reporting_areas(world: World, ask: Ask) -> Reply:
    hour = world.now - world.now % 3600
    rows = [_row(area, hour, kind, pollutant) for area in areas(world) for kind in ROWS for pollutant in POLLUTANTS]
    return _file(rows, hour)


@reporting_areas.form("empty")
def forecasts_only(world: World, ask: Ask) -> Reply:
    hour = world.now - world.now % 3600
    return _file([_row(area, hour, "F", "OZONE") for area in areas(world)], hour)


def _file(rows: list[str], made_at: float) -> Reply:
    text = "".join(f"{row}\r\n" for row in rows)
    return Reply(text.encode("cp1252"), 200, "application/octet-stream", last_modified=made_at)


def _row(area: SimArea, hour: float, kind: str, pollutant: str) -> str:
    ahead = ABROAD[area.state] if area.state in ABROAD else ZONES[area.zone]
    local = datetime.fromtimestamp(hour + 3600 * ahead, UTC)
    index = round(area.aqi * POLLUTANTS[pollutant])
    category = next((name for most, name in CATEGORIES if index <= most), "Hazardous")
    measured = kind == "O"
    cells = [
        f"{local:%m/%d/%y}",
        f"{local:%m/%d/%y}",
        f"{local:%H:%M}" if measured else "",
        area.zone,
        {"O": "0", "F": "1", "Y": "-1"}[kind],
        kind,
        "Y" if pollutant == "PM2.5" else "N",
        area.name,
        area.state,
        area.lat,
        area.lon,
        pollutant,
        "" if kind == "F" else str(index),
        category,
        "No",
        "",
        f"{area.state} Department of Environmental Quality",
    ]
    return "|".join(cells)
