"""A feed that lost most of its rows, and is alive by every other sign, is not believed over the wire either."""

import json
from datetime import UTC, datetime

import anyio
import httpx
import pytest

from tests.calls.parts import RICH, engine
from tests.served import all_tools
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from tests.truth.stage import T1, edits_of, simulated_time
from toolserver.settings import UpstreamSettings
from toolserver.upstream.outlier_guard import EVERY_S, LEAST


class Shortening(Upstreams):
    """The world, in which the lists of some hosts have so many rows: everything else of a body is as it is."""

    host = ""
    rows = 0

    async def _delivered(self, found, received):
        response = await super()._delivered(found, received)
        if not self.host or self.host not in received.target:
            return response
        body = json.loads(await response.aread())
        body["features"] = body["features"][: self.rows]
        kept = {name: value for name, value in response.headers.items() if name not in ("content-length", "etag")}
        return httpx.Response(response.status_code, headers=kept, content=json.dumps(body).encode())


async def answers(tool: str, host: str, rows: int) -> tuple[dict, dict]:
    """The last good answer after a day, and the one when the host's lists have so many rows."""
    clock = LoopClock(datetime.fromtimestamp(T1, UTC))
    internet = Shortening(clock, Pages())
    internet.state.edits = edits_of("normal")
    async with engine(all_tools(), internet=internet, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
        for _ in range(LEAST):
            good = await e.call(tool, {}, token=RICH)
            await clock.sleep(EVERY_S)
        await e.call(tool, {}, token=RICH)
        internet.host, internet.rows = host, rows
        await clock.sleep(3600)
        short = await e.call(tool, {}, token=RICH)
    return json.loads(good.rendered.payload), json.loads(short.rendered.payload)


def lived(*arguments):
    with simulated_time():
        return anyio.run(answers, *arguments, backend_options={"loop_factory": SkippingLoop})


@pytest.mark.parametrize("rows", [3, 20])
def test_three_alerts_in_a_country_that_usually_has_hundreds_are_not_the_answer(rows):
    good, short = lived("climate_weather_alerts", "api.weather.gov", rows)

    assert good["stale"] is False
    assert short["stale"] is True
    told = {warning["code"] for warning in short["warning"]}
    assert told & {"unproved_empty", "stale_data"}
    assert any(f"{rows} items of usually" in entry.get("reason", "") for entry in short["_meta"]["sources"])


def test_the_other_catalogue_is_asked_where_one_lists_few_earthquakes():
    good, short = lived("earthquakes", "earthquake.usgs.gov", 12)

    assert {entry["name"] for entry in good["_meta"]["sources"]} == {"USGS.earthquakes_feed"}
    used = {entry["name"]: entry["status"] for entry in short["_meta"]["sources"]}
    assert used["USGS.earthquakes_feed"] == "error"
    assert used["EMSC.earthquakes_query"] in ("live", "fallback")
    assert short["stale"] is False
