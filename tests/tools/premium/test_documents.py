"""What is told of the premium payloads: /api/meta/pro, and a page for each with an example and what to draw."""

import json
import re
from pathlib import Path

import pytest

from tests.json_schemas import validate
from tests.requirements import proves
from tests.served import all_tools
from tests.specified import ENDPOINTS, PREMIUM
from tests.tools.premium.store import store
from toolserver.registry.field_table import payload_rows
from toolserver.registry.response_schema import answer_schema
from toolserver.registry.site_facts import paragraphs

DOCS = Path(__file__).resolve().parents[3] / "docs" / "tools"
QUOTED = re.compile(r"`([a-z_.*0-9]+)`")


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


@proves("discovery.meta-pro")
async def test_the_facts_of_what_is_sold_are_those_of_the_table(shop):
    answer = await shop.client.get("/api/meta/pro")
    told = answer.json()
    listed = {each["path"].removeprefix("/api/pro/"): each for each in told["endpoints"]}

    assert answer.headers["content-type"] == "application/json"
    assert (told["count"], listed.keys()) == (10, PREMIUM.keys())
    for name, row in PREMIUM.items():
        each = listed[name]
        assert (each["tool"], each["credits"], each["sla_s"]) == (row.tool, row.credits, row.sla_s)
        assert (each["cache_ttl_s"], each["method"]) == (row.ttl_s, "GET")
        assert tuple(p["name"] for p in each["params"] if p["name"] != "limit") == row.parameters
        assert each["free_sibling"]["path"].removeprefix("/api/") in ENDPOINTS
        assert each["url"] == f"https://data.example/api/pro/{name}"
        page = await shop.client.get(each["docs"])
        assert (page.status_code, f"/t/{row.tool}" in each["docs"]) == (200, True)
        assert f"<code>{row.tool}</code>" in page.text
    assert told["pricing"] == {"1 USD": "50 credits"}
    assert (await shop.client.get(told["payments"])).status_code == 200


@proves("discovery.meta-pro")
async def test_the_facts_are_listed_where_documents_are(shop):
    assert "/api/meta/pro" in (await shop.client.get("/api/meta")).json()["discovery"]
    assert (await shop.client.head("/api/meta/pro")).status_code == 200


@proves("discovery.premium-pages")
@pytest.mark.parametrize("name", PREMIUM)
def test_a_page_shows_a_real_example_that_is_what_the_schema_says(name):
    operation = all_tools()[PREMIUM[name].tool]
    page = (DOCS / f"{operation.name}.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"## Example.*?```json\n(.*?)```", page, re.DOTALL)
    example = json.loads(shown)

    validate(example, answer_schema(operation, full=True))
    assert (example["endpoint"], example["stale"]) == (f"/api/pro/{name}", False)
    assert example["_meta"]["sources"]
    assert f"{PREMIUM[name].credits} credit" in page


@proves("discovery.premium-pages")
@pytest.mark.parametrize("name", PREMIUM)
def test_a_page_says_what_to_draw_by_members_that_are_there(name):
    operation = all_tools()[PREMIUM[name].tool]
    [chart] = [text for text in paragraphs(operation) if text.startswith("Chart: ")]
    paths = {row.path.replace("[]", "") for row in payload_rows(operation)}
    members = {part for path in paths for part in path.split(".")}

    assert "Chart: " in (DOCS / f"{operation.name}.md").read_text(encoding="utf-8")
    quoted = QUOTED.findall(chart)
    assert quoted
    for text in quoted:
        pattern = re.compile(text.replace(".", r"\.").replace("*", "[a-z0-9_*]+"))
        assert any(pattern.fullmatch(known) or pattern.match(f"{known}.") for known in paths | members), text
