"""`toolserver docs`: which files it writes, removes and leaves alone."""

import json
from datetime import date
from pathlib import Path

import httpx
import pytest

from tests.catalog.tiny import TINY
from toolserver.cli.docs import (
    AT,
    SHOWN,
    OneCall,
    Trial,
    compose_licence_table,
    example_answers,
    generate,
    has_example,
    readme_answer,
    shortened,
    simulated_transport,
    update_files,
)
from toolserver.errors import NotFound
from toolserver.registry.licence_table import POLICIES, LicenceTable, list_premium
from toolserver.registry.registry import Registry
from toolserver.serving.packaged_texts import read_examples, read_licence_table
from toolserver.settings import Settings
from toolserver.upstream.rights import Rights
from toolserver.world.providers import load_providers

EXAMPLE = {
    "endpoint": "btc-price",
    "data": {"usd": 1},
    "_meta": {
        "sources": [{"name": "A", "status": "live", "fetched_at": "2027-01-15T08:00:00Z", "latency_ms": 3}],
        "attribution": ["A <é>"],
        "stale": False,
    },
}
LICENCES = LicenceTable(
    {"premium_deep": ["a", "b"]},
    {policy: {"premium_deep": {"a": []}} for policy in ("any", "no_forbidden", "commercial")},
)
SELLING = (
    "# Selling\n<!-- licences: of what is sold -->\nold\n<!-- /licences -->\nafter\n"
    "<!-- routes: of it -->\nold\n<!-- /routes -->\n"
)
README = "# Title\n<!-- answer: of btc_price -->\nold\n<!-- /answer -->\nafter\n"


@pytest.fixture
def checkout(tmp_path):
    """A checkout without generated files."""
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "selling-credits.md").write_text(SELLING)
    return tmp_path


def update(checkout, *, check=False):
    """Bring the files of a checkout up to date whose only tools are the sample ones, with an example for two."""
    documents = generate(TINY, {SHOWN: EXAMPLE, "digest": EXAMPLE}, LICENCES, checkout)
    return update_files(documents, check=check, root=checkout)


def test_the_answer_in_the_readme_is_valid_json_with_a_line_for_each_member():
    text = readme_answer(EXAMPLE)
    block = text.split("```json\n")[1].split("```")[0]
    assert json.loads(block) == {
        "endpoint": "btc-price",
        "data": {"usd": 1},
        "_meta": {
            "sources": [{"name": "A", "status": "live", "fetched_at": "2027-01-15T08:00:00Z"}],
            "attribution": ["A <é>"],
        },
    }
    assert len(block.splitlines()) == len(EXAMPLE) + 2
    assert text.startswith("`GET /api/btc-price`")


def test_only_the_part_between_the_marks_of_the_readme_is_written(checkout):
    text = generate(TINY, {SHOWN: EXAMPLE}, LICENCES, checkout)[Path("README.md")]
    assert text.startswith("# Title\n<!-- answer: of btc_price -->\n`GET")
    assert text.endswith("<!-- /answer -->\nafter\n")
    assert "old" not in text


def test_what_policies_leave_is_written_between_the_marks_of_the_page_on_selling_and_as_data(checkout):
    made = generate(TINY, {SHOWN: EXAMPLE}, LICENCES, checkout)
    assert "| `premium_deep` | a | a |" in made[Path("docs/selling-credits.md")]
    before, after = made[Path("docs/selling-credits.md")].split("after\n")
    assert before.endswith("<!-- /licences -->\n")
    assert after.startswith("<!-- routes: of it -->\n\n| Tool, price |")
    assert after.endswith("| `premium_deep` | `a` | – | – | – |\n\n<!-- /routes -->\n")
    assert LicenceTable(**json.loads(made[Path("catalog/licences.json")])) == LICENCES


def test_every_tool_gets_a_page_and_every_example_a_file(checkout):
    made = generate(TINY, {SHOWN: EXAMPLE, "digest": EXAMPLE}, LICENCES, checkout)
    assert {path.stem for path in made if path.parent == Path("docs/tools")} == {o.name for o in TINY}
    assert {path.stem for path in made if path.parent == Path("catalog/examples")} == {SHOWN, "digest"}
    assert {Path("docs/tools.md"), Path("docs/sources.md"), Path("docs/errors.md")} <= made.keys()
    assert "## Example" in made[Path("docs/tools/digest.md")]
    assert "## Example" not in made[Path("docs/tools/sights.md")]


def test_a_check_writes_nothing_and_names_what_is_out_of_date(checkout):
    outdated = update(checkout, check=True)
    assert Path("docs/tools/sights.md") in outdated
    assert sorted(path.name for path in checkout.iterdir()) == ["README.md", "docs"]
    assert (checkout / "README.md").read_text() == README


def test_what_was_written_is_up_to_date_the_next_time(checkout):
    written = update(checkout)
    assert all((checkout / path).is_file() for path in written)
    assert update(checkout, check=True) == []
    assert update(checkout) == []


def test_a_page_that_was_changed_by_hand_is_the_only_one_written_again(checkout):
    update(checkout)
    (checkout / "docs/tools/sights.md").write_text("by hand")
    assert update(checkout) == [Path("docs/tools/sights.md")]


def test_pages_and_examples_of_tools_that_are_gone_are_removed(checkout):
    update(checkout)
    gone = [Path("catalog/examples/gone.json"), Path("docs/tools/gone.md")]
    for path in gone:
        (checkout / path).write_text("")
    assert update(checkout, check=True) == gone
    assert (checkout / gone[0]).exists()
    assert update(checkout) == gone
    assert not any((checkout / path).exists() for path in gone)


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
    table, shipped = await compose_licence_table(PROJECT, SETTINGS, routes=False), read_licence_table()

    assert table.sections == shipped.sections
    for policy in POLICIES:
        assert table.list_lost(Rights(policy)) == shipped.list_lost(Rights(policy))
    assert not shipped.list_lost(Rights())
    for tool, lost in shipped.lost["no_forbidden"].items():
        assert lost.keys() <= shipped.lost["commercial"][tool].keys(), tool
    assert "sections.predictions" in shipped.lost["commercial"]["premium_briefing"]


async def test_the_routes_that_are_shipped_bring_back_what_they_are_for(tmp_path):
    lost = read_licence_table().lost["commercial"]
    for operation in list_premium(PROJECT):
        trial = Trial(operation, SETTINGS, tmp_path)
        last = [name for routes in lost[operation.name].values() for name in routes[-1]]
        assert await trial.find_lost("commercial", last) == [], operation.name
    exchange_flows = Trial(PROJECT["premium_exchange_flows"], SETTINGS, tmp_path)
    assert await exchange_flows.find_routes("commercial", ["blocks_scanned"]) == {"blocks_scanned": [["ETH_RPC_URL"]]}
