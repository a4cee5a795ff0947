"""`/status` and its feed under a running service: a source that goes down is shown, told to feed readers, and kept."""

import time

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.live.browser.visitor import PHONE, visiting
from tests.live.processes import UNLIMITED, control, started
from tests.live.programs import CLIENTS, NODE, installed, told

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

SOURCE = "USGS.earthquakes_feed"
MOST = 60  # calls until it must be down
PAUSE_S = 0.2  # a question that failed is repeated after a real pause, and a call does not wait for it


def test_a_source_that_goes_down_is_shown_and_told_and_a_restart_forgets_nothing(browser: Browser, tmp_path) -> None:
    installed(NODE, CLIENTS / "node_modules" / "feedsmith" / "package.json")
    with started("world", folder=tmp_path) as world, control(world.url) as sim:
        here = {"TOOLSERVER_UPSTREAM__VIA": world.url, **UNLIMITED}
        with started("serve", folder=tmp_path, **here) as service:
            httpx.get(f"{service.url}/api/earthquake", timeout=30).raise_for_status()
            sim.fault("USGS.earthquakes_*", "status", code=500)
            ended = 0
            while SOURCE not in [change["source"] for change in status(service.url)["changes"]]:
                sim.put("clock", {"advance_s": 120})
                httpx.get(f"{service.url}/api/earthquake?limit=5", timeout=30).raise_for_status()
                ended += 1
                assert ended < MOST, status(service.url)["counts"]
                time.sleep(PAUSE_S)
            with visiting(browser, service.url, width=PHONE) as window:
                page = window.open("/status")
                row = page.locator(f'[id="{SOURCE}"]')
                expect(row).to_contain_text("down: http_500")
                expect(row.locator("svg.strip path.bad, svg.strip path.warn").first).to_be_attached()
                expect(page.locator(".changes li").first).to_contain_text(SOURCE)
                window.check()
            feed = told(NODE, CLIENTS / "read_feed.mjs", f"{service.url}/status.atom")
            assert feed["atom"] is True
            assert f"{SOURCE} is down" in [entry["title"]["value"] for entry in feed["feed"]["entries"]]
            before = status(service.url)
        with started("serve", folder=tmp_path, **here) as service:
            after = status(service.url)
    assert after["changes"] == before["changes"]
    days = [next(one["past_day"] for one in found["sources"] if one["name"] == SOURCE) for found in (before, after)]
    assert days[1]["failed"] >= days[0]["failed"] > 0


def status(url: str):
    return httpx.get(f"{url}/status.json", timeout=30).raise_for_status().json()
