"""Hold the specification of the endpoints (SPEC 2.1, 4.1 and 4.2) as data: nothing here is read from the code."""

import json
from pathlib import Path
from typing import Any, NamedTuple

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
TEXT: Schema = {"type": "string", "minLength": 1}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
TIME_OR_NULL: Schema = {"type": ["string", "null"], "pattern": TIME["pattern"]}
DATE: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}
URL: Schema = {"type": "string", "pattern": "^https?://"}
PERCENT: Schema = {"type": "number", "minimum": 0, "maximum": 100}
COUNT: Schema = {"type": "integer", "minimum": 0}


def record(**members: Schema) -> Schema:
    """An object with at least these members; new ones may come at any time."""
    return {"type": "object", "required": list(members), "properties": members}


def rows(item: Schema, *, least: int = 1, most: int | None = None) -> Schema:
    """An array of such items."""
    return {"type": "array", "items": item, "minItems": least, **({} if most is None else {"maxItems": most})}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


class Endpoint(NamedTuple):
    """One row of the table: arguments that are taken and not taken, and for how many seconds an answer is the same.

    `ttl_s` is None where the specification lists none. `example` gets a whole answer.
    """

    ttl_s: int | None
    parameters: tuple[str, ...] = ()
    example: str = ""
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


_MAGNITUDES = ("significant", "4.5", "2.5", "1.0", "all")
_PERIODS = ("hour", "day", "week", "month")
_ALERTS = {
    "severity": ("Extreme", "Severe", "Moderate", "Minor", "Unknown"),
    "urgency": ("Immediate", "Expected", "Future", "Past", "Unknown"),
    "status": ("Actual", "Exercise", "System", "Test", "Draft"),
}

SPECIFIED: dict[str, Endpoint] = {
    "health": Endpoint(0),
    "briefing": Endpoint(60),
    "btc-price": Endpoint(30),
    "stocks": Endpoint(15, ("symbols",), good=("symbols=AAPL,MSFT",), bad=("symbols=A%20B%3F",)),
    "crypto-movers": Endpoint(30),
    "fear-greed": Endpoint(300),
    "forex": Endpoint(300),
    "economic-data": Endpoint(3600),
    "earthquake": Endpoint(120),
    "disaster-alerts": Endpoint(300),
    "tech-news": Endpoint(60),
    "predictions": Endpoint(60),
    "service-status": Endpoint(60),
    "weather": Endpoint(
        600, ("lat", "lon"), good=("lat=40.71&lon=-74.01",), bad=("lat=91&lon=0", "lat=0&lon=181", "lat=40.71", "lon=0")
    ),
    "launches": Endpoint(600),
    "humans-in-space": Endpoint(3600),
    "code-host-trending": Endpoint(300),
    "cyber-threats": Endpoint(60),
    "game-platform-top": Endpoint(600),
    "internet-pulse": Endpoint(60),
    "ai-stats": Endpoint(30),
    "gas": Endpoint(None),
    "model-hub-trending": Endpoint(None),
    "harnesses": Endpoint(
        43_200, ("view",), good=tuple(f"view={v}" for v in ("raw", "summary", "gaps", "combined")), bad=("view=all",)
    ),
    "space-weather": Endpoint(300),
    "wildfires": Endpoint(600),
    "severe-weather": Endpoint(60),
    "funding-rates": Endpoint(60),
    "climate/earthquakes": Endpoint(
        60,
        ("magnitude", "period"),
        example="period=hour",
        good=(*(f"magnitude={m}" for m in _MAGNITUDES), *(f"period={p}" for p in _PERIODS)),
        bad=("magnitude=3.0", "period=year"),
    ),
    "climate/weather-alerts": Endpoint(
        60,
        ("area", "event", "severity", "urgency", "status", "limit"),
        good=(
            *("area=TX", "event=Flood%20Warning", "limit=1", "limit=100"),
            *(f"{name}={value}" for name, values in _ALERTS.items() for value in values),
        ),
        bad=("area=Texas", "limit=0", "limit=101", *(f"{name}=Dire" for name in _ALERTS)),
    ),
    "air-quality": Endpoint(1800, ("lat", "lon"), good=("lat=-33.87&lon=151.21", "lat=91", "lon=east")),
    "exposure-lookup": Endpoint(
        3600,
        ("ip",),
        example="ip=1.1.1.1",
        good=("ip=8.8.8.8",),
        bad=tuple(
            f"ip={ip}" for ip in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "::1", "x")
        ),
    ),
    "volcanoes": Endpoint(3600),
    "chain-network": Endpoint(None),
}
"""The endpoints of the specification."""

CONTRACTS = Path(__file__).parent / "contracts"
ABOUT_CALLS = {"payment/no-charge-stats", "receipt/verify"}  # free too, but about the service's own calls


ON_MCP_ALONE = {"call"}


def read_added() -> dict[str, Endpoint]:
    """The rows of free endpoints that we added to those of the specification, as their reviewed contracts say."""
    contracts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONTRACTS.glob("*.json"))]
    added = {
        each["rest"].partition("/api/")[2]: Endpoint(
            each["ttl_s"], tuple(name for name in each["inputSchema"]["properties"] if name not in ON_MCP_ALONE)
        )
        for each in contracts
        if each["tier"] == "free"
    }
    return {name: row for name, row in added.items() if name not in SPECIFIED and name not in ABOUT_CALLS}


ENDPOINTS = SPECIFIED | read_added()
"""Every free endpoint of data."""

_QUOTE = record(symbol=TEXT, price=NUMBER, change_percent=NUMBER)

SHAPES: dict[str, Schema] = {
    "btc-price": record(
        price_usd=NUMBER, change_24h_percent=NUMBER, high_24h=NUMBER, low_24h=NUMBER, volume_24h_usd=NUMBER
    ),
    "stocks": record(gainers=rows(_QUOTE), losers=rows(_QUOTE), indices=rows(_QUOTE)),
    "fear-greed": record(value={"type": "integer", "minimum": 0, "maximum": 100}, label=TEXT),
    "forex": record(
        base={"const": "USD"},
        date=DATE,
        rates={
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^[A-Z]{3}$"},
            "additionalProperties": NUMBER,
        },
    ),
    "earthquake": record(
        count=COUNT, earthquakes=rows(record(magnitude=NUMBER, location=TEXT, time=TIME, depth_km=NUMBER))
    ),
    "predictions": rows(record(question=TEXT, yes_percent=PERCENT, no_percent=PERCENT, volume_usd=NUMBER)),
    "service-status": rows(record(name=TEXT, status=TEXT, description=TEXT)),
    "humans-in-space": record(count=COUNT, people=rows(record(name=TEXT, craft=TEXT))),
    "internet-pulse": rows(record(name=TEXT, latency_ms={"type": "integer", "minimum": -1}), least=6, most=6),
    "health": record(status=TEXT, version=TEXT, uptime=COUNT, ts=INTEGER),
    "weather": record(
        current=record(temperature_f=NUMBER, weather_code=INTEGER, wind_speed_mph=NUMBER, humidity_percent=PERCENT),
        hourly=rows(record(time=TIME, temperature_f=NUMBER)),
    ),
    "model-hub-trending": rows(
        record(
            id=TEXT,
            author=TEXT_OR_NULL,
            name=TEXT,
            likes=COUNT,
            downloads=COUNT,
            pipeline=TEXT_OR_NULL,
            url=URL,
            updated=TIME,
        ),
        most=15,
    ),
    "chain-network": record(
        tps=NUMBER, tpsAvg=NUMBER, slot=INTEGER, slotMs=NUMBER, epoch=INTEGER, epochProgress=PERCENT
    ),
    "climate/earthquakes": rows(
        record(
            id=TEXT,
            magnitude=NUMBER,
            place=TEXT,
            time=TIME,
            depth_km=NUMBER,
            lat=NUMBER,
            lon=NUMBER,
            tsunami={"type": "boolean"},
            url=URL,
        )
    ),
    "climate/weather-alerts": rows(
        record(
            id=TEXT,
            event=TEXT,
            severity=one_of(*_ALERTS["severity"]),
            urgency=one_of(*_ALERTS["urgency"]),
            certainty=TEXT,
            headline=TEXT_OR_NULL,
            description=TEXT_OR_NULL,
            areaDesc=TEXT,
            sent=TIME,
            effective=TIME,
            expires=TIME,
            ends=TIME_OR_NULL,
            sender_name=TEXT_OR_NULL,
            web={"type": ["string", "null"]},
        ),
        most=50,
    ),
    "gas": record(low=NUMBER, standard=NUMBER, fast=NUMBER, unit={"const": "gwei"}),
    "space-weather": record(
        kp_index=NUMBER,
        solar_wind_speed_kms=NUMBER,
        solar_wind_density_cm3=NUMBER,
        flare_peak_class_24h={"type": "string", "pattern": r"^[ABCMX]\d"},
        active_alerts=rows({"type": "object"}, least=0, most=5),
    ),
    "wildfires": record(
        top=rows(
            record(lat=NUMBER, lon=NUMBER, frp_mw=NUMBER, approx_state=TEXT_OR_NULL, satellite=TEXT, confidence=TEXT),
            most=25,
        )
    ),
    "severe-weather": record(
        top=rows(record(event=TEXT, severity=TEXT, urgency=TEXT, certainty=TEXT, score=NUMBER), most=15)
    ),
    "funding-rates": record(
        top=rows(
            record(venue=TEXT, symbol=TEXT, period_rate=NUMBER, annualized_percent=NUMBER, mark_price=NUMBER), most=20
        )
    ),
    "air-quality": record(
        us_aqi_band=TEXT,
        european_aqi=NUMBER,
        pm2_5=NUMBER,
        pm10=NUMBER,
        ozone=NUMBER,
        nitrogen_dioxide=NUMBER,
        sulphur_dioxide=NUMBER,
        carbon_monoxide=NUMBER,
    ),
    "exposure-lookup": record(
        results=rows(
            record(
                ip=TEXT,
                ports=rows(INTEGER, least=0),
                cves=rows(TEXT, least=0),
                hostnames=rows(TEXT, least=0),
                tags=rows(TEXT, least=0),
                cpes=rows(TEXT, least=0),
            )
        )
    ),
    "volcanoes": rows(record(name=TEXT, country=TEXT_OR_NULL, summary=TEXT_OR_NULL, link=URL)),
    "harnesses": record(view=one_of("raw", "summary", "gaps", "combined"), benchmarks=rows({"type": "object"})),
}


class Sold(NamedTuple):
    """One row of the table of premium endpoints. From `sla_s` on a value counts as stale, and the call is free."""

    tool: str
    credits: int
    ttl_s: int
    sla_s: int
    parameters: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


PREMIUM: dict[str, Sold] = {
    "briefing": Sold(
        *("premium_briefing", 1, 60, 300, ("include", "history")),
        good=("include=btc", "include=fear-greed,earthquakes,tech-news,humans-in-space,predictions", "history=24h"),
        bad=("include=weather", "include=btc,gold", "history=30d"),
    ),
    "macro": Sold(
        "premium_macro", 2, 300, 1800, ("history",), good=("history=30d",), bad=("history=24h", "history=1y")
    ),
    "crypto-deep": Sold(
        *("premium_crypto_deep", 2, 60, 300, ("coins", "history")),
        good=("coins=BTC,eth", "history=30d"),
        bad=("coins=B%20C", f"coins={','.join(f'C{n}' for n in range(21))}", "history=24h"),
    ),
    "sentiment": Sold("premium_sentiment", 2, 300, 900),
    "world-deltas": Sold(
        *("premium_world_deltas", 2, 60, 300, ("since",)),
        good=("since=2027-01-15T07:45:00Z", "since=2027-01-15T09:45:00%2B02:00"),
        bad=("since=2027-01-15T08:45:00", "since=yesterday", "since=2027-01-15T09:00:00Z", "since=1800000000"),
    ),
    "agent-context": Sold("premium_agent_context", 2, 300, 600),
    "correlation-matrix": Sold("premium_correlation_matrix", 2, 1800, 3600),
    "whales": Sold("premium_whales", 2, 300, 600),
    "exchange-flows": Sold("premium_exchange_flows", 2, 300, 600),
    "code-host-velocity": Sold("premium_code_host_velocity", 2, 1800, 3600),
}
