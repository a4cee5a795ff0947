"""Recorded bodies on their whole way: a recording that is replayed over HTTP, the engine, and the REST face.

Their times are moved, so that the newest item is a minute old, as `toolserver world --samples` does.
"""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.arranged import arrange_service, client_of
from tests.extras import find_samples
from tests.served import all_tools
from tests.tools.recorded import earth, exchanges, money, services
from tests.tools.recorded.rows import Read
from tests.truth.readings import verified_results
from toolserver.clock import ManualClock
from toolserver.core.recorded_exchange import FORMAT, SUMMARY, RecordedExchange, write_exchange
from toolserver.settings import UpstreamSettings
from toolserver.upstream.source import Get, Post
from toolserver.world.recorded_routes import RecordedRoutes
from toolserver.world.replay import shifted
from toolserver.world.server import serve_world
from toolserver.world.state import SimClock, WorldState

AT = 1_800_000_000.0
NEWEST = (
    "alternative-me/fng-limit2.json",
    "usgs-earthquakes/2.5_day-2026-07.json",
    "gvp-volcano/WeeklyVolcanoRSS-2026-09-trimmed.xml",
    "usgs-hans/getElevatedVolcanoes-2026-07.json",
    "noaa-swpc/kp-index-objectform-2026-10.json",
    "noaa-swpc/alerts-2026-09.json",
    "hn/algolia-search-30.json",
    "harnesses/aider-polyglot_leaderboard.yml",
    "harnesses/swebench-leaderboards-2025-11.json",
    "aws-health/currentevents-2026-09-trimmed-DERIVED-utf16be-bom.json",
    "slack-status/current-ok-2021-06.json",
    "statuspage/github-status-ok-2023-09.json",
    "statuspage/claude-status-2026-08.json",
    "coingecko/markets-top20-24h-7d.json",
    "polymarket/gamma-markets-by-volume24hr.json",
    "gold/goldapi-XAU.json",
)
"""The recordings of one moment each that tools take as they are; others are cut, or of a place that nobody asks for."""
ROWS = {row.file: row for row in (*exchanges.ROWS, *money.ROWS, *earth.ROWS, *services.ROWS) if isinstance(row, Read)}


def write_recording(folder: Path) -> RecordedRoutes:
    """Write the bodies as `doctor --record` would have, each as the answer to what its source asks."""
    for number, file in enumerate(NEWEST, 1):
        source = ROWS[file].source
        plan = source.plan(source.make_probe(datetime.fromtimestamp(AT, UTC)), {})
        for request in [plan] if isinstance(plan, Get) else plan or ():
            url = str(httpx.URL(request.url, params=dict(request.params) or None))
            asked = {"sent_json": request.json, "method": "POST"} if isinstance(request, Post) else {"method": "GET"}
            kind = "application/xml" if file.endswith("xml") else "application/json"
            body = shifted((find_samples() / file).read_bytes(), AT)
            exchange = RecordedExchange(
                source.name, url=url, sent_at=AT, status=200, headers=[("content-type", kind)], body=body, **asked
            )
            write_exchange(folder, number, exchange)
    (folder / SUMMARY).write_text(json.dumps({"format": FORMAT, "recorded_at": AT}))
    return RecordedRoutes(folder)


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the REST face, on a service whose upstreams are the replayed recording."""
    state, routes = WorldState(clock=SimClock(AT, frozen=True)), write_recording(tmp_path)
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(serve_world, state, routes)
        upstream = UpstreamSettings(via=f"http://127.0.0.1:{port}")
        clock = ManualClock(datetime.fromtimestamp(AT, UTC))
        async with arrange_service(all_tools(), clock, upstream=upstream) as service:
            async with client_of(service.web_app()) as client:
                yield client
        tasks.cancel_scope.cancel()


async def get(rest: httpx.AsyncClient, path: str) -> Any:
    answer = await rest.get(path)
    assert answer.status_code == 200
    return answer.json()


async def test_recorded_bodies_are_served_as_what_stands_in_them(rest, sample):
    def recorded(file: str) -> Any:
        return json.loads(sample(file))

    mood = recorded("alternative-me/fng-limit2.json")["data"]
    said = (await get(rest, "/api/fear-greed"))["data"]
    assert [said["value"], said["label"], said["previous_value"]] == [
        int(mood[0]["value"]),
        mood[0]["value_classification"],
        int(mood[1]["value"]),
    ]

    quakes = [quake["properties"] for quake in recorded("usgs-earthquakes/2.5_day-2026-07.json")["features"]]
    said = (await get(rest, "/api/earthquake"))["data"]
    true = sorted((round(quake["mag"], 1), quake["place"]) for quake in quakes if quake["type"] == "earthquake")
    assert sorted((row["magnitude"], row["location"]) for row in said["earthquakes"]) == true
    assert said["count"] == len(true) == 52

    stories = recorded("hn/algolia-search-30.json")["hits"]
    said = (await get(rest, "/api/tech-news"))["data"]
    true = {int(story["objectID"]): (story["points"], story["num_comments"]) for story in stories}
    assert {row["id"]: (row["score"], row["comments"]) for row in said} == true

    said = (await get(rest, "/api/space-weather"))["data"]
    periods = recorded("noaa-swpc/kp-index-objectform-2026-10.json")
    assert (said["kp_index"], said["storm_level"], said["kp_estimated"]) == (periods[-1]["Kp"], "quiet", None)
    alerts = {alert["product_id"] for alert in recorded("noaa-swpc/alerts-2026-09.json")}
    assert {row["product_id"] for row in said["active_alerts"]} <= alerts

    levels = {row["vnum"]: row["alert_level"] for row in recorded("usgs-hans/getElevatedVolcanoes-2026-07.json")}
    said = (await get(rest, "/api/volcanoes"))["data"]
    assert {row["vnum"]: row["us_alert_level"] for row in said if row["us_alert_level"]} == levels
    report = sample("gvp-volcano/WeeklyVolcanoRSS-2026-09-trimmed.xml").decode("iso-8859-1")
    named = {row["name"] for row in said if row["source"] == "Smithsonian GVP"}
    assert named == set(re.findall(r"<title>(.+?) \(.+?\) - Report for", report))

    boards = {
        board["id"]: board["results"] for board in (await get(rest, "/api/harnesses?limit=200"))["data"]["benchmarks"]
    }
    verified = sample("harnesses/swebench-leaderboards-2025-11.json")
    assert [row["score"] for row in boards["swe_bench_verified"]] == verified_results(verified)


async def test_what_was_not_recorded_or_is_cut_short_is_missing_and_says_why(rest, sample):
    sample(NEWEST[0])
    services_ = {row["name"]: row["status"] for row in (await get(rest, "/api/service-status"))["data"]}
    assert {name for name, state in services_.items() if state != "unknown"} == {"GitHub", "Anthropic", "Slack", "AWS"}
    assert services_["AWS"] == "partial_outage"
    for path, source, why in (
        ("crypto-movers", "CoinGecko.markets", "empty: 20 items"),
        ("predictions", "Polymarket.markets_by_volume", "empty: 10 items"),
        ("gas", "Blockscout.gas_prices", "http_501"),
    ):
        said = await get(rest, f"/api/{path}")
        assert said["data"] is None
        assert {each["name"]: each["reason"] for each in said["_meta"]["sources"]}[source] == why
