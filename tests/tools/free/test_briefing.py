"""The free briefing: six sections, a summary, and what happens when some of them are missing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.alternative_me
import tools.simulated.coinbase
import tools.simulated.ethereum
import tools.simulated.hackernews
import tools.simulated.polymarket
import tools.simulated.statuspages
import tools.simulated.usgs  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.briefing import (
    Briefing,
    CryptoSection,
    FreeBriefingSections,
    LatestQuake,
    MoodSection,
    QuakeSection,
    briefing,
    summary,
)
from tools.shared import bets, front_page
from tools.shared.bets import BetItem
from tools.shared.front_page import StoryItem
from tools.shared.mood import FEAR_GREED_SOURCES
from tools.shared.quakes import QUAKE_SOURCES
from tools.shared.spot import BTC_SPOT_SOURCES
from tools.shared.status import MAJOR_SOURCES, ServiceItem
from tools.simulated.incidents import incidents
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

CHAINS = {
    "crypto": (BTC_SPOT_SOURCES, "Bitcoin price unavailable."),
    "fear_greed": (FEAR_GREED_SOURCES, "Fear & greed unavailable."),
    "earthquakes": (QUAKE_SOURCES, "Earthquakes unavailable."),
    "predictions": (bets.SOURCES, "Prediction markets unavailable."),
    "news": (front_page.SOURCES, "Top story unavailable."),
    "services": (MAJOR_SOURCES, "Service status unavailable."),
}
AT = datetime(2027, 1, 15, 8, tzinfo=UTC)


async def test_the_briefing_tells_all_six_topics_as_the_world_has_them(compose):
    made = await compose(briefing)

    world = World(1, NOW)
    sections = made.json["sections"]
    assert made.json["generated_at"] == "2027-01-15T08:00:00Z"
    assert sections["earthquakes"]["count"] == ROUTES.expectations["earthquake"](world, {})["count"]
    assert sections["earthquakes"]["latest"]["magnitude"] >= 2.5
    assert sections["crypto"]["quote"] == "USD"
    assert 0 <= sections["fear_greed"]["value"] <= 100
    assert [len(sections[name]) for name in ("predictions", "news", "services")] == [5, 5, 4]
    assert [s["rank"] for s in sections["news"]] == [1, 2, 3, 4, 5]
    told = [{"name": s["name"], "status": s["status"]} for s in sections["services"]]
    assert told == ROUTES.expectations["service-status"](world, {})[:4]
    assert made.notes.warnings == []
    assert {n.section for n in made.notes.sources} >= {"sections.crypto", "sections.news", "sections.services.GitHub"}


async def test_the_summary_says_the_numbers_of_the_sections_in_a_fixed_order(compose):
    made = await compose(briefing)

    text, sections = made.json["summary"], made.json["sections"]
    assert len(text) <= 400
    assert "unavailable" not in text
    price = f"{sections['crypto']['price_usd']:,.0f}".replace(",", " ")
    expected = [
        f"Bitcoin {price} USD ({sections['crypto']['change_24h_percent']:+.2f} % in 24 h).",
        f"Fear & greed {sections['fear_greed']['value']} ({sections['fear_greed']['label']}).",
        f"{sections['earthquakes']['count']} earthquakes of M2.5+ in 24 h, latest M",
        "Most traded market: ",
        "Top story: ",
        "4 of 4 services operational.",
    ]
    assert [text.find(part) for part in expected] == sorted(text.find(part) for part in expected)
    assert all(part in text for part in expected)


@pytest.mark.parametrize("name", CHAINS)
async def test_a_section_that_fails_alone_is_null_warned_of_and_said_to_be_missing(compose, name):
    chain, words = CHAINS[name]

    made = await compose(briefing, down={source.name for source in chain})

    assert [n for n, section in made.json["sections"].items() if section is None] == [name]
    assert words in made.json["summary"]
    assert made.json["summary"].count("unavailable") == 1
    assert {w.code for w in made.notes.warnings} == {"section_unavailable"}
    assert {w.section.split(".")[1] for w in made.notes.warnings} == {name}


async def test_when_everything_fails_there_is_no_briefing(compose):
    with pytest.raises(SourceError):
        await compose(briefing, down={"*"})


async def test_one_page_that_does_not_answer_is_unknown_and_not_counted_as_operational(compose):
    made = await compose(briefing, down={"Statuspage.OpenAI"})

    assert [s["status"] for s in made.json["sections"]["services"]].count("unknown") == 1
    assert made.json["summary"].endswith("3 of 4 services operational, OpenAI unknown.")


async def test_an_incident_is_named_in_the_summary(compose):
    world = World(1, NOW)
    during = world.at(incidents(world, "GitHub", NOW - 2 * 86400)[0].began + 60)

    made = await compose(briefing, world=during)

    assert ", GitHub " in made.json["summary"]
    assert "4 of 4" not in made.json["summary"]


async def test_a_price_without_a_change_is_said_to_lack_it(compose):
    others = {source.name for source in BTC_SPOT_SOURCES} - {"Chainlink.price_feed"}

    made = await compose(briefing, down=others)

    assert made.json["sections"]["crypto"]["change_24h_percent"] is None
    assert "(24 h change unavailable)." in made.json["summary"]
    assert "field_missing" in [w.code for w in made.notes.warnings]


def sections(text="x", price=97208.4, change=-12.34, services=4, status="partial_outage"):
    story = StoryItem(rank=1, id=1, title=text, url="u", score=1, comments=1, author=None, time=AT, discussion_url="u")
    bet = BetItem(
        question=text,
        yes_percent=99.5,
        no_percent=0.5,
        volume_usd=1,
        source="s",
        url=None,
        ends_at=None,
        change_1h_points=None,
        change_24h_points=None,
        liquidity_usd=None,
    )
    names = ["GitHub", "Cloudflare", "OpenAI", "Anthropic"][:services]
    return FreeBriefingSections(
        crypto=CryptoSection(price_usd=price, change_24h_percent=change, volume_24h_usd=1, quote="USDT"),
        fear_greed=MoodSection(value=100, label=text),
        earthquakes=QuakeSection(count=99999, latest=LatestQuake(magnitude=7.1, location=text, time=AT)),
        predictions=[bet],
        news=[story],
        services=[ServiceItem(name=n, status=status, description="", url="u", checked_at=None) for n in names],
    )


@given(st.text(max_size=300), st.floats(0.01, 1e9), st.floats(-1e5, 1e5))
def test_a_summary_is_never_longer_than_400_characters_and_always_ends_with_the_services(text, price, change):
    said = summary(sections(text, price, change))
    assert len(said) <= 400
    assert said.endswith("Anthropic partial outage.")


def test_text_of_others_stands_in_quotes_and_is_cut_where_it_must_be():
    said = summary(sections("word " * 40))
    assert '"word word' in said
    assert '…"' in said


def test_no_earthquake_and_one_earthquake_read_right():
    none = sections().model_copy(update={"earthquakes": QuakeSection(count=0, latest=None)})
    assert "0 earthquakes of M2.5+ in 24 h." in summary(none)
    latest = LatestQuake(magnitude=2.8, location="3 km S of Here", time=AT)
    one = sections().model_copy(update={"earthquakes": QuakeSection(count=1, latest=latest)})
    assert "1 earthquake of M2.5+ in 24 h, latest M2.8 3 km S of Here." in summary(one)


def test_the_summary_of_nothing_claims_nothing():
    empty = FreeBriefingSections(
        crypto=None, fear_greed=None, earthquakes=None, predictions=None, news=None, services=None
    )
    assert summary(empty) == " ".join(words for _, words in CHAINS.values())


def test_the_briefing_stands_beside_source_and_meta_not_inside_data():
    operation = operation_of(briefing)
    assert (operation.enveloped, operation.toolset, operation.ttl_s) == (False, "core", 60)
    assert set(Briefing.model_fields) == {"generated_at", "summary", "sections"}
