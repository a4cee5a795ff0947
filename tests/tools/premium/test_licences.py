"""With licence_policy=commercial the sections that are barred are null, and a warning names the reason."""

import pytest

from tests.requirements import proves
from tests.served import all_tools
from tests.size import a_share
from tests.specified import PREMIUM
from tests.tools.premium.sections import SECTIONS, shown
from tests.tools.premium.store import FUNDS, store
from toolserver.registry.source_list import list_sources
from toolserver.serving.packaged_texts import read_licence_table
from toolserver.settings import SourceSettings
from toolserver.upstream.rights import Rights

WHOLE = {"briefing": "history=24h", "macro": "history=30d", "crypto-deep": "history=30d"}
OWN_NODE = {"ETH_RPC_URL": "https://ethereum.example/sim-key"}
RIGHTS = Rights("commercial", keys=frozenset(OWN_NODE))
KEPT = ("yes", "attribution")
ALLOWED = {source.name for source in all_tools().sources if not RIGHTS.bars(source)}


def barred(name: str) -> set[str]:
    """The sections of which nobody who may be asked has anything."""
    return {section for section, sources in SECTIONS[name].items() if not sources & ALLOWED}


@proves("pro.licence")
@pytest.mark.parametrize("name", a_share(PREMIUM, 3, first=2))
async def test_what_may_not_be_sold_on_is_null_and_says_why(tmp_path, name):
    async with store(tmp_path, sources=SourceSettings(licence_policy="commercial", keys=OWN_NODE)) as s:
        answer = await s.buy(name, WHOLE.get(name, ""))
        balance, credits = await s.balance(), s.service.registry[PREMIUM[name].tool].credits
        asked = {url.partition("/")[0] for url, _, _ in s.upstreams.bodies}
    body = answer.json()

    assert answer.status_code == 200
    told = {w["section"] for w in body.get("warning", []) if w["code"] == "licence_excluded"}
    for section in SECTIONS[name]:
        if section in barred(name):
            assert shown(body, name, section) is None, section
            assert section in told or section.rpartition(".")[0] in told, section
        else:
            assert shown(body, name, section) is not None, section
    licences = {entry["name"]: entry["licence"]["class"] for entry in list_sources(all_tools(), RIGHTS)}
    assert {licences[source["name"]] for source in body["_meta"]["sources"]} <= set(KEPT)
    assert set(read_licence_table().find_lost(PREMIUM[name].tool, RIGHTS)) == {
        section for section in SECTIONS[name] if shown(body, name, section) is None
    }
    assert not asked & {"api.coingecko.com", "www.reddit.com", "api.exchange.coinbase.com", "gamma-api.polymarket.com"}
    empty = name == "whales" and not body["eth_whales_latest_block"]
    assert balance == FUNDS - (0 if empty else credits)


def test_the_policy_bars_something_in_most_payloads():
    spared = {"correlation-matrix", "code-host-velocity", "exchange-flows"}
    assert {name for name in PREMIUM if barred(name)} == PREMIUM.keys() - spared


async def test_what_a_policy_withholds_is_said_before_payment_and_a_gutted_tool_costs_less_or_is_not_listed(tmp_path):
    sources = SourceSettings(
        licence_policy="commercial",
        contracts={"Polymarket": "by mail"},
        keys={"MEMPOOL_URL": "https://mempool.example"},
    )
    async with store(tmp_path, sources=sources) as s:
        refusal = await s.client.get("/api/pro/sentiment")
        sold = {one["tool"]: one for one in (await s.client.get("/api/meta/pro")).json()["endpoints"]}
        page = (await s.client.get("/docs/payments.md")).text
        tool = (await s.client.get("/t/premium_sentiment")).text
        listed = (await s.client.get("/api/llm-tools?format=raw")).text
        classes = {one["name"]: one["licence"] for one in (await s.client.get("/api/sources")).json()["sources"]}
        answer = await s.buy("sentiment")
        balance, names = await s.balance(), {tool.name for tool in s.tools}

    withheld = ["market_indices.stocks_vix"]
    said = f"Always null here, for licence reasons: {', '.join(withheld)}."
    assert (refusal.status_code, sold["premium_sentiment"]["withheld"]) == (402, withheld)
    assert all(said in text for text in (refusal.json()["detail"], listed, tool))
    assert f"- `premium_sentiment`: {', '.join(withheld)}" in page
    assert all(answer.json()[section] for section in ("trending", "prediction_markets_signals"))
    assert "withheld" not in sold["premium_code_host_velocity"]
    assert balance == FUNDS - sold["premium_sentiment"]["credits"]
    assert sold["premium_agent_context"]["credits"] == 1
    assert "premium_exchange_flows" not in names
    assert "premium_whales" in names  # its bitcoin transactions come from the own server
    assert classes["Polymarket.markets_by_volume"]["contract"] == "by mail"
    assert [classes[name]["class"] for name in ("Mempool.network", "Kalshi.open_events")] == ["yes", "no"]
