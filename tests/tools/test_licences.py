"""What each licence policy leaves: which answers are lost, which are made of less, and that nobody barred is asked."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from rest_bridge.discovery import meta
from tests.calls.parts import RICH, engine
from tests.size import a_share
from tests.specified import SPECIFIED
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import SourceSettings, UpstreamSettings
from toolserver.upstream.rights import BARRED, Rights
from toolserver.world.model import ROUTES, Ask
from toolserver.world.providers import load_providers

pytestmark = pytest.mark.usefixtures("simulated_time")

load_providers()
TOOLS = Registry(
    operation
    for operation in Registry.load("tools")
    if operation.function.__module__.startswith(("tools.free.", "tools.premium."))
)
FREE = [operation for operation in TOOLS if operation.tier is Tier.FREE]
T = 1_800_000_000
OWN_NODES = {"ETH_RPC_URL": "https://ethereum.example/sim-key", "SOLANA_RPC_URL": "https://solana.example/sim-key"}
"""What every seller needs: the public nodes' terms do not allow it."""
RIGHTS = {policy: Rights(policy, keys=frozenset(OWN_NODES)) for policy in BARRED}
POLICIES = ("no_forbidden", "commercial")

LOST = {
    "no_forbidden": {"stocks"},
    "commercial": {
        "stocks",
        "crypto-movers",
        "tech-news",
        "predictions",
        "service-status",
        "launches",
        "game-platform-top",
        "model-hub-trending",
        "funding-rates",
        "exposure-lookup",
    },
}
"""Free endpoints of which nothing is left. So it is for each added one whose sources are all barred."""

SHIPPED = "Bundled.terminal_bench"
GAZETTEER = "Bundled.geonames_cities"  # read by places, not by a tool
MADE_OF: dict[str, dict[str, set[str]]] = {
    "no_forbidden": {
        "btc-price": {"Coinlore.tickers"},
        "crypto-movers": {"Coinlore.tickers"},
        "funding-rates": {"Hyperliquid.asset_contexts", "Hyperliquid.predicted_fundings", "Dydx.perpetual_markets"},
        "predictions": {"Polymarket.markets_by_volume"},
        "briefing": {
            "Coinlore.tickers",
            "AlternativeMe.fear_greed",
            "USGS.earthquakes_feed",
            "Polymarket.markets_by_volume",
            "HackerNewsAlgolia.front_page",
            "HackerNews.top_ids",
            *(f"Statuspage.{page}" for page in ("GitHub", "Cloudflare", "OpenAI", "Anthropic")),
        },
    },
    "commercial": {
        "btc-price": {"Chainlink.price_feed", "Chainlink.round_history"},
        "disaster-alerts": {"NASA.eonet_events"},
        "humans-in-space": {"Corquaid.people_in_space"},
        "weather": {"METNorway.locationforecast"},
        "air-quality": {"AirNow.reporting_areas"},
        "cyber-threats": {"CISA.known_exploited"},
        "harnesses": {"Aider.polyglot_leaderboard", SHIPPED},
        "volcanoes": {"USGS.elevated_volcanoes", "NASA.eonet_events"},
        "economic-data": {
            "NYFed.effr",
            "BLS.timeseries",
            "DBnomics.us_real_gdp_growth",
            "Treasury.par_yield_curve",
        },
        "briefing": {
            "Chainlink.price_feed",
            "Chainlink.round_history",
            "AlternativeMe.fear_greed",
            "USGS.earthquakes_feed",
        },
    },
}
"""Free endpoints that are made of less, and what they are made of then. What is in neither table is as ever."""

SECTIONS = {
    "no_forbidden": {
        "premium_macro": {"markets"},
        "premium_crypto_deep": {"exchange_top20_usdt"},
        "premium_sentiment": {"market_indices.stocks_vix"},
        "premium_agent_context": {"context.markets.vix"},
    },
    "commercial": {
        "premium_macro": {"markets"},
        "premium_crypto_deep": {"exchange_top20_usdt", "coins_top50", "network_btc"},
        "premium_sentiment": {"market_indices.stocks_vix", "prediction_markets_signals"},
        "premium_agent_context": {"context.markets.vix", "context.infrastructure", "context.world_events"},
        "premium_briefing": {"sections.predictions", "sections.tech_news"},
        "premium_whales": {"btc_whales_unconfirmed"},
        "premium_world_deltas": {"prediction_market_update", "space_launch", "tech_news_story"},
    },
}
"""Sections of premium payloads that are barred. What is not in the table loses none."""


class Made(NamedTuple):
    answer: dict[str, Any]
    asked: set[str]

    @property
    def used(self) -> set[str]:
        return {entry["name"] for entry in self.answer["_meta"]["sources"] if entry["status"] != "error"}

    @property
    def barred(self) -> set[str]:
        """The sections that a warning says are barred."""
        return {w["section"] for w in self.answer.get("warning", []) if w["code"] == "licence_excluded"}


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


async def answer(pages: Pages, operation: Operation, policy: str, down: tuple[str, ...] = (), **sources: Any) -> Made:
    """An answer under a policy, and the public names of all that were asked for it."""
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Upstreams(clock, pages)
    for name in down:
        upstreams.fault(name, "dns")
    how = {
        "upstream": UpstreamSettings(via=VIA),
        "sources": SourceSettings(**{"licence_policy": policy, "keys": OWN_NODES} | sources),
    }
    async with engine(TOOLS, internet=upstreams, clock=clock, **how) as e:
        outcome = await e.call(operation.name, token=RICH)
    asked = {name for request in upstreams.asked if (name := named(request))}
    return Made(json.loads(outcome.rendered.payload), asked)


def named(request: Any) -> str | None:
    host, _, path = request.url.path.removeprefix("/u/").partition("/")
    headers = {name.lower(): value for name, value in request.headers.items()}
    query = request.url.query.decode()
    found = ROUTES.find(Ask(request.method, host, f"/{path}", query, headers, request.content))
    return found[0].source if found else None


LICENCES = {source.name: source.licence for source in TOOLS.sources}
FORBIDDEN = {
    policy: {source.name for source in TOOLS.sources if rights.bars(source)} for policy, rights in RIGHTS.items()
}


def is_all_barred(operation: Operation, policy: str) -> bool:
    """Whether an endpoint that we added to the specification's reads nothing but sources that the policy bars."""
    if operation.endpoint in SPECIFIED or not operation.sources:
        return False
    return all(source.name in FORBIDDEN[policy] for source in operation.sources)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("operation", a_share(FREE, 3), ids=lambda operation: operation.endpoint)
async def test_a_free_endpoint_keeps_what_the_policy_leaves_it(pages, operation, policy):
    usual, made = await answer(pages, operation, "any"), await answer(pages, operation, policy)
    endpoint, data = operation.endpoint, made.answer.get("data", made.answer.get("sections"))

    if endpoint in LOST[policy] or is_all_barred(operation, policy):
        assert data is None
        assert (made.answer["stale"], made.used) == (True, set())
        assert {warning["code"] for warning in made.answer["warning"]} == {"licence_excluded"}
    elif endpoint in MADE_OF[policy]:
        assert made.used == MADE_OF[policy][endpoint]
        assert data is not None
    else:
        assert data == usual.answer.get("data", usual.answer.get("sections")) or endpoint in ("health", "ai-stats")
        assert made.answer.get("warning") == usual.answer.get("warning")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("operation", a_share(list(TOOLS), 3, first=1), ids=lambda operation: operation.name)
async def test_nobody_barred_is_asked_used_or_listed_and_a_warning_says_what_is_lost(pages, operation, policy):
    made = await answer(pages, operation, policy)

    assert not (made.asked | made.used) & FORBIDDEN[policy]
    for entry in made.answer["_meta"]["sources"]:
        assert entry["name"] not in FORBIDDEN[policy], entry
    for section in made.barred:
        assert {e["status"] for e in made.answer["_meta"]["sources"] if e["section"] == section} <= {"error"}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "operation", [o for o in TOOLS if o.tier is Tier.PREMIUM], ids=lambda operation: operation.name
)
async def test_a_premium_payload_lacks_the_sections_that_are_barred_and_no_others(pages, operation, policy):
    made = await answer(pages, operation, policy)
    barred = SECTIONS[policy].get(operation.name, set())

    assert {s for s in barred if not any(s == one or one.startswith(f"{s}.") for one in made.barred)} == set()
    assert [one for one in made.barred if not any(one == s or one.startswith(f"{s}.") for s in barred)] == []


async def test_without_coinlore_the_price_is_the_chains_where_exchanges_are_barred(pages):
    made = await answer(pages, TOOLS["btc_price"], "no_forbidden", ("Coinlore.tickers",))
    assert made.used == {"Chainlink.price_feed", "Chainlink.round_history"}
    known = {name for name, value in made.answer["data"].items() if value is not None}
    assert set(made.answer["data"]) - known == {"volume_24h_usd"}


async def test_where_kalshi_is_barred_nobody_stands_in_for_polymarket(pages):
    made = await answer(pages, TOOLS["predictions"], "no_forbidden", ("Polymarket.markets_by_volume",))
    assert made.answer["data"] is None
    assert {w["code"] for w in made.answer["warning"]} == {"section_unavailable"}


async def test_without_an_own_node_no_public_one_is_asked_where_it_is_barred(pages):
    for name in ("btc_price", "gas", "chain_network"):
        made = await answer(pages, TOOLS[name], "commercial", keys={})
        assert (made.answer["data"], made.asked) == (None, set())


async def test_a_contract_brings_back_what_the_policy_bars_and_nothing_else(pages):
    contracts = {"CNBC": "distribution over the API", "Polymarket.markets_by_volume": "by mail of 1 October 2026"}
    made = await answer(pages, TOOLS["premium_macro"], "commercial", contracts=contracts)
    assert set(made.answer["markets"]) == {"spy", "dia", "qqq", "vix"}
    assert all(made.answer["markets"].values())
    assert made.asked & FORBIDDEN["commercial"] == {"CNBC.quotes"}
    made = await answer(pages, TOOLS["predictions"], "commercial", contracts=contracts)
    assert made.used == {"Polymarket.markets_by_volume"}


async def test_an_answer_names_the_licence_and_credit_of_each_source_it_used(pages):
    made = await answer(pages, TOOLS["earthquakes"], "any")
    licence = LICENCES["USGS.earthquakes_feed"]
    (entry,) = made.answer["_meta"]["sources"]
    assert entry["name"] == "USGS.earthquakes_feed"
    assert made.answer["_meta"]["attribution"] == [licence.attribution]


def test_the_service_facts_name_every_source_with_its_licence_and_credit():
    said = {
        source["name"]: source["licence"]
        for source in meta(TOOLS, SiteFacts("https://data.example", "data.example"))["sources"]
    }
    assert said.keys() == LICENCES.keys() | {SHIPPED, GAZETTEER}
    for name, licence in LICENCES.items():
        assert (said[name]["class"], said[name]["attribution"]) == (licence.kind, licence.attribution)
        assert said[name].get("terms_url") == licence.terms_url
    assert {block["class"] for block in said.values()} == {"yes", "attribution", "non_commercial", "unclear", "no"}
