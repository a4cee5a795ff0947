"""The premium briefing: six sections by choice, an hourly series on demand, each of them alone or missing."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from pydantic import ValidationError

import tools.simulated.binance
import tools.simulated.coinmarketcap
import tools.simulated.compositions
import tools.simulated.corquaid
import tools.simulated.ethereum
import tools.simulated.kalshi
import tools.simulated.kraken
import tools.simulated.okx  # noqa: F401 - they serve
from tests.tools.desk import NOW
from tests.tools.selling import sell
from tools.parsing.earthquakes import QuakeList
from tools.premium.briefing import ALL, BriefingSections, PremiumQuakeSection, premium_briefing, show_earthquakes
from tools.shared import bets, crew, front_page
from tools.shared.candles import HOUR_SOURCES
from tools.shared.mood import FEAR_GREED_SOURCES
from tools.shared.quakes import QUAKE_SOURCES
from tools.shared.spot import BTC_SPOT_SOURCES
from toolserver.errors import InvalidArguments, UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

CHAINS = {
    "btc": BTC_SPOT_SOURCES,
    "fear-greed": FEAR_GREED_SOURCES,
    "earthquakes": QUAKE_SOURCES,
    "tech-news": front_page.SOURCES,
    "humans-in-space": crew.SOURCES,
    "predictions": bets.SOURCES,
}
FIELDS = {name: name.replace("-", "_") for name in CHAINS}


def expected(world, **params):
    return ROUTES.expectations["pro/briefing"](world, params)


def holds(given, wanted):
    """Whether every wanted member is in what was given, with that value."""
    if isinstance(wanted, dict):
        return all(name in given and holds(given[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(holds, given, wanted))
    return given == (pytest.approx(wanted) if isinstance(wanted, int | float) else wanted)


async def test_all_six_sections_are_the_worlds(compose):
    made = await compose(premium_briefing)

    assert list(made.json["sections"]) == list(FIELDS.values())
    assert holds(made.json["sections"], expected(World(1, NOW))["sections"])
    assert "series" not in made.json
    assert made.notes.warnings == []


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("hour", [1.5, 13.25])
async def test_other_worlds_at_other_times_are_told_as_they_are(compose, seed, hour):
    world = World(seed, NOW + 3600 * hour)
    made = await compose(premium_briefing, {"history": "24h"}, world=world)

    assert holds(made.json, expected(world, history="24h"))
    assert made.notes.warnings == []


async def test_every_field_has_the_type_it_is_promised_with(compose):
    sections = (await compose(premium_briefing)).json["sections"]

    assert {type(value) for name, value in sections["btc"].items() if name not in ("venue", "quote")} == {float}
    assert [type(sections["fear_greed"][name]) for name in ("value", "label", "source")] == [int, str, str]
    latest = sections["earthquakes"]["latest"]
    assert [type(latest[name]) for name in ("magnitude", "place", "time")] == [float, str, int]
    assert datetime.fromtimestamp(NOW - 86400, UTC) < datetime.fromtimestamp(latest["time"] / 1000, UTC)
    assert {type(name) for name in sections["humans_in_space"]["names"]} == {str}
    for market in sections["predictions"]["top"]:
        assert [type(market[name]) for name in ("question", "volume_24hr", "outcomes")] == [str, float, list]
        assert [outcome["name"] for outcome in market["outcomes"]] == ["Yes", "No"]
        assert sum(outcome["price"] for outcome in market["outcomes"]) == pytest.approx(1)


@pytest.mark.parametrize("name", CHAINS)
async def test_a_section_asked_for_alone_stands_alone_and_only_its_sources_are_asked(compose, name):
    made = await compose(premium_briefing, {"include": name})

    assert list(made.json["sections"]) == [FIELDS[name]]
    assert {asked for asked, _ in made.desk.asked} <= {source.name for source in CHAINS[name]}


@pytest.mark.parametrize("name", CHAINS)
async def test_a_section_that_fails_alone_is_null_and_warned_of_and_the_others_are_as_before(compose, name):
    usual = (await compose(premium_briefing)).json["sections"]
    made = await compose(premium_briefing, down={source.name for source in CHAINS[name]})

    assert made.json["sections"] == usual | {FIELDS[name]: None}
    assert {(w.section, w.code) for w in made.notes.warnings} == {(f"sections.{FIELDS[name]}", "section_unavailable")}


@pytest.mark.parametrize("name", CHAINS)
async def test_the_first_source_of_a_chain_may_be_down(compose, name):
    first = CHAINS[name][0].name
    made = await compose(premium_briefing, {"include": name}, down={first}, keys={"CMC_API_KEY": "sim-1"})

    assert made.json["sections"][FIELDS[name]] is not None
    assert {w.code for w in made.notes.warnings} <= {"fallback_used", "disagreement", "insufficient_sample"}


async def test_when_everything_asked_for_fails_nothing_is_sold():
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_briefing, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_briefing, {"include": "btc"}, down={source.name for source in BTC_SPOT_SOURCES})


async def test_all_sections_down_is_the_error_of_the_first(compose):
    with pytest.raises(SourceError):
        await compose(premium_briefing, down={"*"})


async def test_it_costs_one_credit_and_a_partial_one_too():
    sale = await sell(premium_briefing)
    partial = await sell(premium_briefing, down={"HackerNews.top_ids", "HackerNewsAlgolia.front_page"})

    assert (sale.paid, partial.paid) == (1, 1)
    assert "warning" not in sale.body
    assert partial.body["sections"]["tech_news"] is None
    assert [w["section"] for w in partial.body["warning"]] == ["sections.tech_news"]


async def test_the_body_has_what_every_premium_answer_has():
    body = (await sell(premium_briefing)).body

    assert list(body)[:3] == ["source", "endpoint", "generated_at"]
    assert body["endpoint"] == "/api/pro/briefing"
    assert body["captured_at"] == "2027-01-15T08:00:00Z"
    assert body["stale"] is False
    assert body["_meta"]["untrusted_text"] is True
    assert all(isinstance(text, str) and text for text in body["notes"].values())


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("btc", "btc"),
        ("fear-greed,btc", "btc,fear-greed"),
        (" BTC , btc,, Predictions", "btc,predictions"),
        (["earthquakes", "btc"], "btc,earthquakes"),
        (ALL, ALL),
    ],
)
def test_the_same_choice_is_the_same_question(given, canonical):
    assert operation_of(premium_briefing).arguments(include=given).include == canonical


@pytest.mark.parametrize("given", ["", ",", "hackernews", "btc,fear_greed", "btc;earthquakes", "*", ["btc", "x"], 7])
def test_an_unknown_section_is_refused_and_the_valid_ones_are_named(given):
    with pytest.raises(ValidationError, match="btc, fear-greed, earthquakes, tech-news, humans-in-space, predictions"):
        operation_of(premium_briefing).arguments(include=given)


@pytest.mark.parametrize("arguments", [{"include": "btc,weather"}, {"history": "30d"}, {"history": ""}])
async def test_a_bad_argument_is_a_bad_request_before_anything_is_reserved(arguments):
    with pytest.raises(InvalidArguments) as caught:
        await sell(premium_briefing, arguments)
    assert caught.value.status == 400
    assert "weather" not in caught.value.detail


def test_the_schema_of_the_arguments_is_plain():
    properties = operation_of(premium_briefing).input_schema["properties"]

    assert properties["include"]["type"] == "string"
    assert properties["include"]["default"] == ALL
    assert properties["history"]["enum"] == ["24h"]
    assert "required" not in operation_of(premium_briefing).input_schema


async def test_history_adds_the_24_hours_that_are_over_with_or_without_bitcoin(compose):
    for arguments in ({"history": "24h"}, {"history": "24h", "include": "fear-greed"}):
        made = await compose(premium_briefing, arguments)
        hours = made.json["series"]["btc_24h"]

        assert hours == expected(World(1, NOW), history="24h")["series"]["btc_24h"]
        assert [b["ts"] - a["ts"] for a, b in pairwise(hours)] == [3_600_000] * 23
        assert hours[-1]["ts"] == int(NOW * 1000) - 3_600_000
        assert made.json["notes"]["history"].startswith("24 of the 24")


async def test_without_history_no_candles_are_asked_for(compose):
    made = await compose(premium_briefing)

    others = {source.name for source in HOUR_SOURCES} - {"Coinbase.candles"}  # these also prove the price
    assert not {asked for asked, _ in made.desk.asked} & others


async def test_a_series_that_nobody_has_is_null_and_the_sections_stand(compose):
    made = await compose(premium_briefing, {"history": "24h"}, down={source.name for source in HOUR_SOURCES})

    assert made.json["series"] == {"btc_24h": None}
    assert made.json["sections"]["btc"]["venue"] == "coinbase"
    assert [w.section for w in made.notes.warnings] == ["series.btc_24h"]
    assert made.json["notes"]["history"].startswith("0 of the 24")


async def test_hours_without_a_candle_are_left_out_and_said_to_be_missing(compose, monkeypatch):
    from tools.premium import briefing

    hours = briefing.candles.btc_hours(24)

    async def with_a_gap(reading):
        found = await hours[0](reading)
        return (*found[:5], *found[7:])

    monkeypatch.setattr(briefing.candles, "btc_hours", lambda count: (with_a_gap,))
    made = await compose(premium_briefing, {"history": "24h", "include": "btc"})

    assert len(made.json["series"]["btc_24h"]) == 22
    assert [(w.section, w.code) for w in made.notes.warnings] == [("series.btc_24h", "incomplete_window")]
    assert made.json["notes"]["history"].startswith("22 of the 24")


async def test_a_price_without_its_day_has_nulls_and_says_so(compose):
    others = {source.name for source in BTC_SPOT_SOURCES} - {"Chainlink.price_feed"}
    made = await compose(premium_briefing, {"include": "btc"}, down=others)

    btc = made.json["sections"]["btc"]
    assert btc["price_usd"] > 0
    assert {name for name, value in btc.items() if value is None} == {
        "change_24h_percent", "volume_24h", "high_24h", "low_24h",
    }  # fmt: skip
    assert "field_missing" in {w.code for w in made.notes.warnings}


async def test_a_price_in_tether_is_marked(compose):
    down = {"Coinbase.product_stats", "Kraken.ticker"}
    made = await compose(premium_briefing, {"include": "btc"}, down=down)

    assert (made.json["sections"]["btc"]["venue"], made.json["sections"]["btc"]["quote"]) == ("binance", "USDT")


async def test_an_injected_earthquake_is_the_latest(compose):
    event = {"kind": "earthquake", "at": NOW - 100, "magnitude": 7.1, "place": "9 km N of Here"}
    world = World(1, NOW, Edits(events=[event]))
    made = await compose(premium_briefing, {"include": "earthquakes"}, world=world)

    latest = made.json["sections"]["earthquakes"]["latest"]
    assert latest == {"magnitude": 7.1, "place": "9 km N of Here", "time": int((NOW - 100) * 1000)}


async def test_lists_of_people_that_differ_are_said_to_differ(compose, monkeypatch):
    from tools.premium import briefing

    people = tuple(crew.Person(name, None) for name in ("Bo", "Ada"))

    async def two_of_three(reading):
        return crew.Crew(people, listed_elsewhere=3)

    monkeypatch.setattr(briefing.roster, "crew", lambda: (two_of_three,))
    made = await compose(premium_briefing, {"include": "humans-in-space"})

    assert made.json["sections"]["humans_in_space"] == {"count": 2, "names": ["Ada", "Bo"]}
    assert [w.code for w in made.notes.warnings] == ["disagreement"]


def test_a_source_that_lists_no_earthquake_counts_none():
    assert show_earthquakes(QuakeList((), None)) == PremiumQuakeSection(count=0, latest=None)


def test_the_operation_is_what_the_price_list_says():
    operation = operation_of(premium_briefing)

    assert (operation.tier, operation.credits, operation.ttl_s, operation.sla_s) == (Tier.PREMIUM, 1, 60, 300)
    assert operation.path == "/api/pro/briefing"
    assert set(BriefingSections.model_fields) == set(FIELDS.values())
