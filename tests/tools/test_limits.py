"""Every tool with a list takes `limit`, and says what it leaves out."""

import json

import pytest

from tests.registry.test_response_schema import SOURCED, composed_with
from tests.requirements import proves
from tests.size import a_share
from toolserver.registry.registry import Registry

PROJECT = Registry.load("tools")
FEW: dict[str, str] = {
    "premium_briefing": "five markets at most, and the names of those in space",
    "premium_macro": "series are asked for by history, and have 30 values",
    "premium_agent_context": "three to five of each, as the specification says",
    "premium_correlation_matrix": "the pairs of four series",
    "forex": "a map of currencies",
    "economic_data": "eight figures",
    "weather": "the 24 hours to come",
    "air_quality": "figures of one place",
    "exposure_lookup": "one address, or the curated ones of the hour",
}
"""Tools whose lists are short by what they are."""
LISTS = {
    **dict.fromkeys("crypto_movers predictions tech_news launches volcanoes model_hub_trending".split(), "data"),
    **dict.fromkeys("service_status disaster_alerts game_platform_top code_host_trending".split(), "data"),
    **dict.fromkeys("cyber_threats climate_earthquakes climate_weather_alerts".split(), "data"),
    "earthquakes": "data.earthquakes",
    "severe_weather": "data.top",
    "funding_rates": "data.top",
    "stocks": "data.quotes",
    "humans_in_space": "data.people",
    "wildfires": "data.top",
    "premium_world_deltas": "events",
    "premium_crypto_deep": "coins_top50",
    "premium_exchange_flows": "recent_transfers",
    "premium_code_host_velocity": "trending_repos",
}


@pytest.mark.parametrize("operation", SOURCED, ids=lambda operation: operation.name)
def test_a_tool_that_has_a_list_takes_a_limit(operation):
    has_list = '"array"' in json.dumps(operation.data_schema)
    assert ("limit" in operation.input_schema["properties"]) == (has_list and operation.name not in FEW)


@proves("answers.truncated")
@pytest.mark.parametrize("name", a_share(LISTS, 3))
async def test_a_list_is_cut_to_the_limit_and_a_warning_says_of_how_many(name):
    uncut = {"text": "whole"} if "text" in PROJECT[name].input_schema["properties"] else {}
    whole, cut = await composed_with(PROJECT[name], uncut), await composed_with(PROJECT[name], {"limit": 1})
    warnings = cut["warning"]
    for member in LISTS[name].split("."):
        whole, cut = whole[member], cut[member]

    (warning,) = [w for w in warnings if w["code"] == "truncated" and w["section"] == LISTS[name]]
    assert cut == whole[:1]
    assert warning["total"] >= len(whole) > 1
    assert f"1 of {warning['total']:,} are listed" in warning["message"]


@proves("answers.cursor")
@pytest.mark.parametrize("name", ["climate_earthquakes", "climate_weather_alerts"])
async def test_the_pages_of_a_long_list_make_the_whole(name):
    whole = await composed_with(PROJECT[name], {"limit": 100})
    seen, cursor = [], None
    while len(seen) < 90:
        page = await composed_with(PROJECT[name], {"limit": 30} | ({"cursor": cursor} if cursor else {}))
        seen, cursor = [*seen, *page["data"]], page["next_cursor"]
    assert [item["id"] for item in seen] == [item["id"] for item in whole["data"][:90]]
