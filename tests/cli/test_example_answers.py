"""Example answers: which tools have one, how they are shortened, and that they are the same each time."""

import json
from datetime import date

import httpx
import pytest

from tests.catalog.tiny import TINY
from toolserver.cli.example_answers import (
    AT,
    OneCall,
    compose_licence_table,
    example_answers,
    has_example,
    shortened,
    simulated_transport,
)
from toolserver.errors import NotFound
from toolserver.registry.registry import Registry
from toolserver.serving.packaged_texts import read_examples, read_licence_table
from toolserver.settings import Settings
from toolserver.world.providers import load_providers

PROJECT = Registry.load("tools")
SETTINGS = Settings(tools=["tools"])


def test_tools_that_only_read_and_need_no_argument_have_an_example():
    assert [operation.name for operation in TINY if has_example(operation)] == ["digest", "premium_deep"]


def test_an_example_has_two_items_of_every_list_and_one_source():
    answer = {
        "data": {"items": [{"parts": [1, 2, 3]}, {"parts": []}, {}], "count": 3},
        "_meta": {
            "sources": [{"name": "A"}, {"name": "B"}],
            "attribution": ["a", "b", "c"],
            "stale": False,
        },
    }

    assert shortened(answer) == {
        "data": {"items": [{"parts": [1, 2]}, {"parts": []}], "count": 3},
        "_meta": {"sources": [{"name": "A"}], "attribution": ["a", "b"], "stale": False},
    }
    assert len(answer["_meta"]["sources"]) == 2


@pytest.mark.parametrize("name", ["forex", "premium_macro"])
async def test_an_example_is_the_same_each_time_and_dated_at_the_fixed_instant(name):
    registry = Registry([PROJECT[name]])
    first, second = await example_answers(registry, SETTINGS), await example_answers(registry, SETTINGS)
    assert first == second
    assert list(first) == [name]
    assert f'"{AT:%Y-%m-%dT%H:%M}' in json.dumps(first)


async def test_the_examples_in_the_package_are_those_that_are_made():
    made = await example_answers(Registry([PROJECT["forex"]]), SETTINGS)
    assert made["forex"] == read_examples()["forex"]


async def test_the_world_answers_without_a_socket():
    load_providers(["tools"])
    async with httpx.AsyncClient(transport=simulated_transport(), base_url="http://world") as client:
        quakes = await client.get("/u/earthquake.usgs.gov/earthquakes/feed/v1.0/summary/2.5_day.geojson")
        probe = await client.get("/probe/192.0.2.1")
        unknown = await client.get("/u/unknown.example/")
    assert quakes.json()["type"] == "FeatureCollection"
    assert (probe.json(), unknown.status_code) == ({"latency_ms": 20}, 501)


async def test_the_uncharged_call_of_the_examples_agrees_with_its_sums():
    found = await OneCall().no_charge(date(2027, 1, 15))
    (event,) = found["events"]
    assert found["count"] == sum(found["by_reason"].values()) == sum(found["by_endpoint"].values()) == 1
    assert event["ts"].startswith("2027-01-15T")
    assert found["credits_skipped"] == event["credits"]
    with pytest.raises(NotFound):
        await OneCall().verify("a receipt")


async def test_the_table_that_is_shipped_is_what_the_policies_leave():
    table = await compose_licence_table(PROJECT, SETTINGS)

    assert table == read_licence_table()
    assert set(table["any"]) == set(table["commercial"])
    assert not any(table["any"].values())
    for tool, lost in table["no_forbidden"].items():
        assert set(lost) <= set(table["commercial"][tool]), tool
    assert "sections.predictions" in table["commercial"]["premium_briefing"]
