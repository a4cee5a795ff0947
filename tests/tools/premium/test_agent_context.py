"""The agent context: what it holds, what it says, and what it says when sources are missing."""

from datetime import date

import pytest

import tools.simulated.binance
import tools.simulated.cboe
import tools.simulated.coingecko
import tools.simulated.coinlore
import tools.simulated.coinmarketcap
import tools.simulated.compositions
import tools.simulated.currency_api
import tools.simulated.ecb
import tools.simulated.ethereum
import tools.simulated.kalshi
import tools.simulated.kraken
import tools.simulated.okx
import tools.simulated.rocketlaunch_live
import tools.simulated.stocks
import tools.simulated.us_statistics
import tools.simulated.yahoo  # noqa: F401 - they serve
from tests.size import a_share
from tests.tools.desk import NOW
from tests.tools.selling import sell
from tools.parsing.token_count import estimate_tokens
from tools.premium.agent_context import premium_agent_context
from tools.shared import bets, front_page, fx, launches
from tools.shared.large_quakes import SOURCES as QUAKE_SOURCES
from tools.shared.markets import VIX_SOURCES
from tools.shared.mood import FEAR_GREED_SOURCES
from tools.shared.spot import BTC_SPOT_SOURCES
from tools.shared.status import MAJOR_SOURCES
from tools.simulated.incidents import incidents
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

WORLD = World(1, NOW)
MARKETS, EVENTS = "context.markets.", "context.world_events."


def names(sources):
    return {source.name for source in sources}


CHAINS = {
    f"{MARKETS}btc": (names(BTC_SPOT_SOURCES), "Unavailable: bitcoin."),
    f"{MARKETS}crypto_fear_greed": (names(FEAR_GREED_SOURCES), "Unavailable: crypto fear & greed."),
    f"{MARKETS}vix": (names(VIX_SOURCES), "Unavailable: VIX."),
    f"{MARKETS}fed_funds_rate": ({"NYFed.effr", "FRED.graph_csv"}, "Unavailable: Fed funds rate."),
    f"{MARKETS}forex_usd_base": (names(fx.SOURCES), "Unavailable: exchange rates."),
    f"{EVENTS}significant_earthquakes_24h": (names(QUAKE_SOURCES), "Earthquake data unavailable."),
    f"{EVENTS}upcoming_space_launches": (names(launches.SOURCES), "Launch data unavailable."),
    f"{EVENTS}news_front_page_top5": (names(front_page.SOURCES), "News unavailable."),
    f"{EVENTS}prediction_markets_top3": (names(bets.SOURCES), "Prediction market data unavailable."),
}
PARTS = sorted(set.union(*(sources for sources, _ in CHAINS.values())) | names(MAJOR_SOURCES))


def flat(payload):
    context = payload["context"]
    found = {f"{MARKETS}{name}": value for name, value in context["markets"].items()}
    return found | {f"{EVENTS}{name}": value for name, value in context["world_events"].items()}


def holds(given, wanted):
    if isinstance(wanted, dict):
        return all(name in given and holds(given[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(holds, given, wanted))
    return given == (pytest.approx(wanted, rel=1e-6) if isinstance(wanted, float) else wanted)


@pytest.fixture(scope="module")
def undisturbed():
    """What the tool says when nothing is down: composed once."""
    known = []

    async def read(compose):
        if not known:
            known.append((await compose(premium_agent_context)).json)
        return known[0]

    return read


@pytest.mark.parametrize(("seed", "hours"), [(1, 0), (2, 7.5), (5, 61)])
async def test_the_context_is_the_world(compose, seed, hours):
    world = World(seed, NOW + 3600 * hours)
    made = await compose(premium_agent_context, world=world)
    expected = ROUTES.expectations["pro/agent-context"](world, {})

    assert holds(made.json["context"]["markets"], expected["markets"])
    assert holds(made.json["context"]["world_events"], expected["world_events"])
    assert made.json["context"]["infrastructure"]["all_operational"] == expected["all_operational"]
    assert made.notes.warnings == []


async def test_the_moment_is_told_in_four_ways(compose, undisturbed):
    assert (await undisturbed(compose))["context"]["datetime"] == {
        "iso": "2027-01-15T08:00:00Z",
        "unix_ms": 1_800_000_000_000,
        "human_readable_utc": "Friday, 15 January 2027, 08:00 UTC",
        "weekday": "Friday",
    }


async def test_every_member_is_there_with_its_type(compose, undisturbed):
    made = await undisturbed(compose)
    context = made["context"]

    assert list(context) == ["datetime", "markets", "world_events", "infrastructure"]
    markets, events = context["markets"], context["world_events"]
    assert {type(markets["btc"][name]) for name in ("price_usd", "change_24h_percent", "volume_24h")} == {float}
    assert [type(markets["crypto_fear_greed"][name]) for name in ("value", "label")] == [int, str]
    assert [type(markets["vix"][n]) for n in ("value", "change_percent", "source", "freshness")] == [
        float, float, str, str,
    ]  # fmt: skip
    assert {type(markets["fed_funds_rate"][name]) for name in ("value", "target_from", "target_to")} == {float}
    assert {type(markets["forex_usd_base"][code]) for code in ("EUR", "JPY", "GBP", "CHF")} == {float}
    assert len(events["news_front_page_top5"]) == 5
    assert len(events["prediction_markets_top3"]) == 3
    assert 1 <= len(events["significant_earthquakes_24h"]) <= 3
    assert len(events["upcoming_space_launches"]) == 3
    assert all(0 <= market["yes_probability"] <= 1 for market in events["prediction_markets_top3"])
    assert list(context["infrastructure"]["details"]) == ["GitHub", "Cloudflare", "OpenAI", "Anthropic"]
    assert set(made["notes"]) == {
        "intended_use", "freshness", "composition", "approx_tokens", "untrusted_text",
    }  # fmt: skip
    assert made["notes"]["approx_tokens"] == str(estimate_tokens(made["system_prompt"]))


async def test_the_text_says_what_the_context_holds(compose, undisturbed):
    made = await undisturbed(compose)
    text, context = made["system_prompt"], made["context"]

    assert text.startswith("# Context Friday, 15 January 2027, 08:00 UTC\n\n## Markets\nBitcoin ")
    assert f"Bitcoin {context['markets']['btc']['price_usd']:,.0f} USD" in text
    assert f"VIX {context['markets']['vix']['value']:.2f}" in text
    for quake in context["world_events"]["significant_earthquakes_24h"][:1]:
        assert f'Earthquake M{quake["magnitude"]:.1f} "{quake["place"]}"' in text
    for story in context["world_events"]["news_front_page_top5"][:2]:
        assert f'"{story["title"]}" ({story["points"]} points)' in text
    for market in context["world_events"]["prediction_markets_top3"][:1]:
        assert f'"{market["question"]}" {100 * market["yes_probability"]:.1f} % yes' in text
    assert context["infrastructure"]["summary"] in text.split("\n")
    assert text.split("\n")[-1].startswith("Sources: Coinbase, alternative.me, CNBC, NY Fed, ECB, USGS, LL2, HN,")
    assert "navailable" not in text
    assert all(len(line) <= 160 for line in text.split("\n"))
    assert 300 <= int(made["notes"]["approx_tokens"]) <= 400


@pytest.mark.parametrize("path", CHAINS)
async def test_a_part_that_fails_alone_is_null_named_as_unavailable_and_changes_no_other(compose, undisturbed, path):
    down, sentence = CHAINS[path]
    usual = await undisturbed(compose)
    made = await compose(premium_agent_context, down=down)

    found = flat(made.json)
    assert [name for name, value in found.items() if value is None] == [path]
    assert {name: value for name, value in found.items() if name != path} == {
        name: value for name, value in flat(usual).items() if name != path
    }
    assert made.json["context"]["infrastructure"] == usual["context"]["infrastructure"]
    lines = made.json["system_prompt"].split("\n")
    assert sentence in lines
    assert sum("navailable" in line for line in lines) == 1
    assert {(w.section, w.code) for w in made.notes.warnings} == {(path, "section_unavailable")}


@pytest.mark.parametrize("name", a_share(PARTS, 3))
async def test_one_source_down_never_shifts_the_values_of_others(compose, undisturbed, name):
    usual = flat(await undisturbed(compose))
    made = await compose(premium_agent_context, down={name})

    found = flat(made.json)
    for path, (sources, _) in CHAINS.items():
        if name not in sources:
            assert found[path] == usual[path], path
    assert [path for path, value in found.items() if value is None] == (
        [f"{MARKETS}crypto_fear_greed"] if name == "AlternativeMe.fear_greed" else []
    )  # the other index needs a key
    beside = {"EMSC.earthquakes_query", "Kalshi.open_events"}  # in whose place another answers, which covers less
    assert {w.source for w in made.notes.warnings} <= {name, *beside}


async def test_when_all_are_down_nothing_is_composed_and_nothing_sold(compose):
    with pytest.raises(SourceError):
        await compose(premium_agent_context, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_agent_context, down={"*"})


async def test_status_pages_alone_are_nothing_to_pay_for():
    sale = await sell(premium_agent_context, down=set(PARTS) - names(MAJOR_SOURCES))

    assert (sale.paid, sale.outcome.no_charge) == (0, "empty_result")
    assert sale.body["context"]["infrastructure"]["all_operational"] is True
    assert "Sources: status pages;" in sale.body["system_prompt"]
    assert len(sale.body["warning"]) == len(CHAINS)


async def test_a_part_of_it_is_sold_with_a_warning_for_each_thing_that_is_missing():
    lost = [f"{MARKETS}vix", f"{EVENTS}news_front_page_top5"]
    sale = await sell(premium_agent_context, down=set.union(*(CHAINS[path][0] for path in lost)))

    assert sale.paid == 2
    assert sorted(w["section"] for w in sale.body["warning"]) == lost


async def test_a_complete_one_costs_two_credits_and_warns_of_nothing():
    sale = await sell(premium_agent_context)

    assert sale.paid == 2
    assert "warning" not in sale.body
    assert sale.body["_meta"]["untrusted_text"] is True
    assert sale.body["endpoint"] == "/api/pro/agent-context"


async def test_without_any_status_page_all_are_unknown_and_not_all_operational(compose):
    made = await compose(premium_agent_context, down=names(MAJOR_SOURCES))

    infrastructure = made.json["context"]["infrastructure"]
    assert set(infrastructure["details"].values()) == {"unknown"}
    assert infrastructure["all_operational"] is False
    assert infrastructure["summary"].startswith("Status of GitHub unknown; ")
    assert {w.section.rsplit(".", 1)[0] for w in made.notes.warnings} == {"context.infrastructure"}


async def test_one_page_that_does_not_answer_is_unknown(compose):
    made = await compose(premium_agent_context, down={"Statuspage.OpenAI"})

    infrastructure = made.json["context"]["infrastructure"]
    assert infrastructure["details"]["OpenAI"] == "unknown"
    assert infrastructure["all_operational"] is False
    assert "Status of OpenAI unknown" in made.json["system_prompt"]


async def test_an_incident_is_named(compose):
    during = WORLD.at(incidents(WORLD, "GitHub", NOW - 2 * 86400)[0].began + 60)
    made = await compose(premium_agent_context, world=during)

    infrastructure = made.json["context"]["infrastructure"]
    assert infrastructure["details"]["GitHub"] in ("minor issues", "major issues", "critical", "maintenance")
    assert f"GitHub {infrastructure['details']['GitHub']}" in made.json["system_prompt"]


async def test_the_fed_rate_of_fred_has_no_target(compose):
    made = await compose(premium_agent_context, down={"NYFed.effr"})

    rate = made.json["context"]["markets"]["fed_funds_rate"]
    assert (rate["target_from"], rate["target_to"]) == (None, None)
    assert "(target" not in made.json["system_prompt"]


async def test_a_price_without_its_day_says_so(compose):
    others = names(BTC_SPOT_SOURCES) - {"Chainlink.price_feed"}
    made = await compose(premium_agent_context, down=others)

    assert made.json["context"]["markets"]["btc"]["change_24h_percent"] is None
    assert "(24 h change unavailable)" in made.json["system_prompt"]
    assert "field_missing" in {w.code for w in made.notes.warnings}


async def test_a_currency_that_is_not_quoted_is_null_and_said_to_be_missing(compose, monkeypatch):
    async def without_yen(reading):
        day = fx.FxDay(date(2027, 1, 14), {"EUR": 0.87, "GBP": 0.75, "CHF": 0.8})
        await reading.read(fx.REFERENCE_RATES_90D)
        return fx.FxRates((day,), "ecb_reference")

    monkeypatch.setattr(fx, "usd_fallbacks", lambda today: (without_yen,))
    made = await compose(premium_agent_context)

    assert made.json["context"]["markets"]["forex_usd_base"]["JPY"] is None
    assert "1 USD = 0.87 EUR, 0.75 GBP, 0.8 CHF, as of 14 Jan" in made.json["system_prompt"].split("\n")
    assert [(w.section, w.code) for w in made.notes.warnings] == [(f"{MARKETS}forex_usd_base", "field_missing")]


async def test_the_other_index_is_named(compose):
    made = await compose(premium_agent_context, down={"AlternativeMe.fear_greed"}, keys={"CMC_API_KEY": "sim-1"})

    assert made.json["context"]["markets"]["crypto_fear_greed"]["source"] == "coinmarketcap"


def test_the_operation_is_what_the_price_list_says():
    operation = operation_of(premium_agent_context)

    assert (operation.tier, operation.credits, operation.ttl_s, operation.sla_s) == (Tier.PREMIUM, 2, 300, 600)
    assert operation.path == "/api/pro/agent-context"
    assert operation.input_schema["properties"] == {}
