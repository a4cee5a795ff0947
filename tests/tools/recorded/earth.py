"""Recorded bodies about hazards, weather and space."""

from datetime import date

from tests.tools.recorded.rows import Read, Refused, inside
from tools.parsing.places import Place
from tools.sources import (
    eonet,
    firms,
    gdacs,
    launch_library,
    nws,
    open_meteo,
    rocketlaunch_live,
    smithsonian,
    swpc,
    usgs,
    usgs_volcanoes,
)
from toolserver.upstream.source import SourceChanged, SourceLimited, SourceRefused

EVERY = nws.ALL
GRAVE = gdacs.EventQuery("EQ;TC;FL;VO;WF;DR", "Orange;Red", date(2026, 7, 1), date(2026, 7, 31))

ROWS = (
    Read(
        "gdacs/geteventlist-EQ-2026-07.json",
        gdacs.EVENT_LIST,
        100,
        {"0.id": 1554511, "0.name": "Earthquake in China", "0.lat": 35.3866},
        GRAVE,
    ),
    Read(
        "gdacs/geteventlist-MAP-2026-07-trimmed.json",
        gdacs.EVENT_LIST,
        11,
        {"0.id": 1103888, "0.name": "Flood in United States", "0.lat": 38.3401205, "0.lon": -111.544867},
        GRAVE,
        wrapped="the sister path that repeats events by class of geometry: 11 events in 25 features",
    ),
    Read(
        "gdacs/geteventlist-VO-2026-07.json",
        gdacs.EVENT_LIST,
        25,
        {"0.id": 1000144, "0.name": "Eruption Mayon", "0.lat": 13.257, "0.lon": 123.685},
        GRAVE,
    ),
    Read("gdacs/rss.xml", gdacs.RSS, 16, {"0.id": 1000643, "0.country": "Mauritius", "0.kind": "TC"}),
    Read("gdacs/rss_24h.xml", gdacs.RSS, 21, {"0.id": 1012728, "0.kind": "DR"}),
    Read(
        "gvp-volcano/WeeklyVolcanoRSS-2026-09-trimmed.xml",
        smithsonian.WEEKLY_REPORT,
        3,
        {"0.name": "Ambrym", "0.country": "Vanuatu", "0.category": "New Eruptive Activity"},
    ),
    Read(
        "nasa-eonet/events-v3-2026-07.json",
        eonet.EVENTS,
        26,
        {"0.id": "EONET_21399", "0.title": "Tropical Storm Fausto", "0.seen_at": "2026-07-20T06:00:00Z"},
    ),
    Refused("nasa-firms/error-400-invalid-map-key.txt", firms.FIRES_AREA, SourceRefused, None, "Invalid MAP_KEY."),
    *(
        Read(f"nasa-firms/{name}.csv", firms.FIRES_AREA, count, facts)
        for name, count, facts in (
            ("modis-6.0-world-1day-2018-trimmed", 299, {"0.lat": -13.505, "0.frp_mw": 39.7}),
            ("modis-global-24h-2025-11-trimmed", 499, {"0.lat": 1.49107, "0.frp_mw": 6.05}),
            ("viirs-area-excerpt-2026-06", 6, {"0.lat": 63.00197, "0.lon": 78.7598, "0.frp_mw": 183.89}),
        )
    ),
    Read(
        "nws-alerts/active-point-hilo-2026-08.json",
        nws.ALERTS,
        5,
        {"alerts.0.event": "Flash Flood Warning", "alerts.0.severity": "Severe", "updated": "2026-08-16T01:48:00Z"},
        EVERY,
        of="alerts",
    ),
    Read(
        "nws-alerts/active-status-actual-guam-2026-05-trimmed-TIMES-TEMPLATED.json",
        nws.ALERTS,
        60,
        {"alerts.0.event": "Air Quality Alert", "alerts.0.ends": None, "alerts.0.sent": "2027-01-15T07:53:37Z"},
        EVERY,
        of="alerts",
    ),
    Read(
        "nws-alerts/active-status-actual-weathergov-TIMES-TEMPLATED.json",
        nws.ALERTS,
        38,
        {"alerts.0.event": "Wind Advisory", "alerts.0.severity": "Moderate", "alerts.0.ends": "2027-01-15T08:10:00Z"},
        EVERY,
        of="alerts",
    ),
    Read(
        "nws-alerts/active-zone-legacy-id.json",
        nws.ALERTS,
        1,
        {"alerts.0.id": "NWS-IDP-PROD-3965873-3369046", "alerts.0.event": "Flood Watch", "alerts.0.references#": 4},
        EVERY,
        of="alerts",
    ),
    *(
        Refused(f"nws-alerts/error-{name}.json", nws.ALERTS, SourceChanged, EVERY, "problems/")
        for name in (
            "400-invalid-parameter",
            "404-invalid-point",
            "500-unexpected-problem",
            "503-service-unavailable",
        )
    ),
    Refused(
        "usgs-earthquakes/2.5_day-2017-07-JSONP-callback.txt",
        usgs.QUAKES_DAY,
        SourceChanged,
        usgs.QuakeQuery("2.5", "day"),
    ),
    *(
        Read(f"usgs-earthquakes/{name}.json", usgs.QUAKES[query.period], count, facts, query, of="quakes")
        for name, query, count, facts in (
            (
                "2.5_day-2026-07",
                usgs.QuakeQuery("2.5", "day"),
                52,
                {"quakes.0.id": "hv75005267", "quakes.0.magnitude": 2.81, "quakes.0.place": "3 km S of Pāhala, Hawaii"},
            ),
            (
                "all_hour-2017-12",
                usgs.QuakeQuery("all", "hour"),
                8,
                {"quakes.0.magnitude": 1.93, "quakes.0.depth_km": 7.93, "quakes.0.time": "2017-12-03T23:13:10Z"},
            ),
            ("all_hour-2026-07", usgs.QuakeQuery("all", "hour"), 4, {"quakes.0.magnitude": 1.76}),
            ("significant_month-2022-04", usgs.QuakeQuery("significant", "month"), 12, {"quakes.0.lat": -22.7317}),
            ("significant_week-2017-12", usgs.QuakeQuery("significant", "week"), 4, {"quakes.0.depth_km": 20.27}),
        )
    ),
    Refused(
        "usgs-earthquakes/event-detail-2026-07.json",
        usgs.QUAKES_DAY,
        SourceChanged,
        usgs.QuakeQuery("2.5", "day"),
        "Feature",
    ),
    Read(
        "usgs-hans/getElevatedVolcanoes-2026-07.json",
        usgs_volcanoes.ELEVATED_VOLCANOES,
        5,
        {"0.name": "Great Sitkin", "0.vnum": "311120", "0.color": "ORANGE", "0.sent_at": "2026-07-27T19:44:38Z"},
    ),
    Read(
        "noaa-swpc/alerts-2026-09.json",
        swpc.ALERTS,
        12,
        {"0.product_id": "EF3A", "0.code": "ALTEF3", "0.serial": 3736, "0.issued_at": "2026-09-06T18:24:48Z"},
    ),
    Read(
        "noaa-swpc/goes-xrays-1-day-2026-trimmed.json",
        swpc.XRAY_FLUX,
        None,
        {"flux_wm2": 2.7542930070012517e-07, "newest": "2026-08-07T23:51:00Z"},
        "primary",
    ),
    Read(
        "noaa-swpc/kp-forecast-listform-2026-02.json",
        swpc.KP_INDEX,
        81,
        {"0.kp": 2.33, "0.time": "2026-02-02T00:00:00Z"},
        wrapped="the forecast, whose rows have the form of the index; its coming times make the engine refuse it",
    ),
    Read(
        "noaa-swpc/kp-index-listform-2026-02.json",
        swpc.KP_INDEX,
        62,
        {"0.kp": 2.33, "1.kp": 2.67, "1.time": "2026-02-02T03:00:00Z"},
    ),
    Read(
        "noaa-swpc/kp-index-objectform-2026-10.json",
        swpc.KP_INDEX,
        59,
        {"0.kp": 3.67, "0.time": "2026-09-25T00:00:00Z"},
    ),
    Read(
        "noaa-swpc/planetary_k_index_1m-2026-07.json",
        swpc.KP_ESTIMATE,
        None,
        {"newest.kp": 0.33, "newest.time": "2026-07-29T14:36:00Z", "before.kp": 1.67},
    ),
    Read("noaa-swpc/plasma-1-day-2026-03.json", swpc.SOLAR_WIND, None, {"speed_kms": 408.9, "density_cm3": 0.22}),
    Read(
        "noaa-swpc/propagated-solar-wind-1-hour-2026-09-trimmed.json",
        swpc.PROPAGATED_WIND,
        None,
        {"speed_kms": 350.0, "density_cm3": 6.37, "time": "2026-09-06T19:33:00Z"},
    ),
    Read(
        "noaa-swpc/rtsw_wind_1m-one-active-row-2026-09.json",
        swpc.SOLAR_WIND,
        None,
        {"speed_kms": 340.9, "density_cm3": 4.82, "time": "2026-09-06T17:20:00Z"},
    ),
    Refused("noaa-swpc/ovation-excerpt-live-2026.json", swpc.KP_INDEX, SourceChanged, None, "not a list"),
    Read(
        "open-meteo/air-quality-current-berlin-2024-02.json",
        open_meteo.AIR_QUALITY,
        None,
        {"us_aqi": 41, "pm2_5": 8.8, "sulphur_dioxide": 1.3, "time": "2024-02-21T15:00:00Z"},
        Place(52.52, 13.41),
    ),
    Refused(
        "open-meteo/air-quality-hourly-lahore-2026-10.json",
        open_meteo.AIR_QUALITY,
        SourceChanged,
        Place(31.55, 74.34),
        "current",
    ),
    Refused("open-meteo/error-429-minutely.json", open_meteo.FORECAST, SourceLimited, Place(1, 1), "Minutely API"),
    Read(
        "open-meteo/forecast-fahrenheit-mph-2026-03.json",
        open_meteo.FORECAST,
        192,
        {"current.temperature_f": 32.6, "current.wind_speed_mph": 13.2, "current.time": "2026-03-06T02:00:00Z"},
        Place(43.7, -79.4),
        of="hourly",
        given=lambda body: body.replace(b'"current":{', b'"current":{"relative_humidity_2m":71,'),
        wrapped="recorded from a question that did not ask for the humidity, as ours does",
    ),
    Read(
        "rocketlaunch-live/next5-result-array-2022-05.json",
        rocketlaunch_live.NEXT_LAUNCHES,
        3,
        {
            "0.name": "Starlink-45 (4-13)",
            "0.provider": "SpaceX",
            "0.vehicle": "Falcon 9",
            "0.net": "2022-05-10T18:50:00Z",
        },
        given=inside('{"valid_auth":false,"result":', "}"),
        wrapped="only the list was recorded",
    ),
    Read(
        "thespacedevs/astronaut-2.2.0-one-list-element.json",
        launch_library.ASTRONAUTS,
        1,
        {"0.id": 276, "0.name": "Franz Viehböck"},
        given=inside('{"count":1,"results":[', "]}"),
        wrapped="one element of the list was recorded",
        cut=True,
    ),
    Read(
        "thespacedevs/launch-upcoming-2.0.0-normal-2026-06.json",
        launch_library.LAUNCHES,
        10,
        {"0.name": "Falcon 9 Block 5 | NROL-179", "0.provider": "SpaceX", "0.status": "Go", "0.status_code": None},
    ),
    Read(
        "thespacedevs/launch-upcoming-2.2.0-detailed-2026-07.json",
        launch_library.LAUNCHES,
        5,
        {"0.vehicle": "Falcon 9 Block 5", "0.mission": "Starlink Group 17-52", "0.status_code": "Go"},
    ),
    Read(
        "thespacedevs/launch-upcoming-list-2026-07.json",
        launch_library.LAUNCHES,
        10,
        {"0.name": "Falcon 9 Block 5 | Starlink Group 17-39", "0.provider": "SpaceX", "0.vehicle": None},
    ),
)
