"""The earthquakes that are news, as the agent context tells them."""

from datetime import UTC, datetime

import pytest

import tools.simulated.compositions  # noqa: F401 - serves most of it
from tests.tools.desk import NOW, SimDesk
from tools.premium.agent_context import premium_agent_context
from tools.shared.large_quakes import large_quake_fallbacks
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceUnproved
from toolserver.world.model import Edits, World

OTHERS = {
    "CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Cboe.vix_history", "NYFed.effr",
}  # fmt: skip
"""Sources that are of no interest here."""


async def test_a_quiet_day_is_called_quiet_only_because_usgs_says_so(compose):
    quiet = World(1, NOW, Edits(pins={"quakes.quiet": [(0, 1e12, 1.0)]}))
    made = await compose(premium_agent_context, world=quiet, down=OTHERS)

    assert made.json["context"]["world_events"]["significant_earthquakes_24h"] == []
    assert "No earthquake of M6+ or flagged significant in the last 24 h." in made.json["system_prompt"]


async def test_emsc_flags_nothing_and_that_is_said(compose):
    quiet = World(1, NOW, Edits(pins={"quakes.quiet": [(0, 1e12, 1.0)]}))
    made = await compose(premium_agent_context, world=quiet, down={*OTHERS, "USGS.earthquakes_feed"})

    assert made.json["context"]["world_events"]["significant_earthquakes_24h"] == []
    assert "No earthquake of M6+ in the last 24 h." in made.json["system_prompt"]
    assert ("degraded_fallback", "EMSC.earthquakes_query") in {(w.code, w.source) for w in made.notes.warnings}


async def test_large_earthquakes_are_those_of_both_feeds_each_once_the_largest_first(compose):
    shown = [{"kind": "earthquake", "at": NOW - n * 600, "magnitude": m, "place": f"Place {m}"} for n, m in
             [(1, 6.1), (2, 7.9), (3, 6.6), (4, 5.9)]]  # fmt: skip
    made = await compose(premium_agent_context, world=World(1, NOW, Edits(events=shown)), down=OTHERS)

    listed = made.json["context"]["world_events"]["significant_earthquakes_24h"]
    assert listed[0] == {
        "magnitude": 7.9,
        "place": "Place 7.9",
        "time": datetime.fromtimestamp(NOW - 1200, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "url": listed[0]["url"],
    }
    assert [q["magnitude"] for q in listed] == sorted((q["magnitude"] for q in listed), reverse=True)
    assert len({(q["place"], q["time"]) for q in listed}) == len(listed) == 3


async def test_a_list_of_the_day_without_proof_is_not_called_quiet():
    """An empty list of USGS is no quiet day, and EMSC's has to be of the past minutes."""
    world = World(1, NOW)
    desk = SimDesk(world, forms={"USGS.earthquakes_feed": "empty"})
    ctx = ToolContext(desk, now=lambda: world.time, sla_s=600)
    found = await ctx.first("quakes", *large_quake_fallbacks(world.time))
    assert found.flagged is False
    assert all(magnitude >= 6 for _, magnitude in found.quakes)

    desk.forms["EMSC.earthquakes_query"] = "empty"
    with pytest.raises(SourceUnproved):
        await ctx.first("quakes", *large_quake_fallbacks(world.time))
    assert ctx.notes.caveats()[-1].code == "unproved_empty"
