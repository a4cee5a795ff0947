"""No answer asserts without a flag what is not true of the simulated world."""

from datetime import timedelta
from functools import cache
from itertools import groupby

import pytest

from tests.served import all_tools
from tests.size import sized
from tests.truth.judge import run_judge
from tests.truth.matrix import all_cases, named_cases, seeded_cases
from tests.truth.stage import Case, Fault
from tests.truth.weeks import run_week
from toolserver.registry.registry import Tier

SHARE = sized(0.005, fast=0.005, long=0.1)  # `python -m tests.truth` judges a tenth, or all
PARTS = 2  # of this share, each within its time
STEP = sized(2, fast=2, long=1)  # of the six forms of a named case every other one: other ones for each
SEED = 20261122
GRAVE_OLD = Fault("GDACS.event_list", "old", (("seconds", 20 * 86400), ("count", 1)))  # the first of its two questions


def name_of(case: Case) -> str:
    """What was asked and what was wrong; a name holds for every scenario, with and without a kept answer."""
    return str(case._replace(warm=False, scenario="")).removesuffix(" · cold · ")


NAMED = {name: list(cases) for name, cases in groupby(sorted(dict.fromkeys(named_cases()), key=name_of), name_of)}


def test_a_few_of_the_named_cases_hold_no_falsehood():
    cases = sorted(case for case in dict.fromkeys(named_cases()) if case.scenario == "normal")[::8]
    verdict = run_judge(cases)
    assert verdict.cases == len(cases) >= 20
    assert verdict.false == []


@pytest.mark.slow("each named case in half of its scenarios, with and without a kept answer")
@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMED)))
def test_a_named_case_holds_no_falsehood(number, name):
    cases = NAMED[name][number % STEP :: STEP]
    verdict = run_judge(cases)
    assert verdict.cases == len(cases) == 6 / STEP
    assert verdict.false == []


@pytest.mark.slow("each source of each tool is off in turn")
def test_with_any_one_source_off_no_answer_is_wrong():
    cases = [
        Case(operation.name, (), (Fault(name, "dns"),))
        for operation in all_tools()
        if operation.tier in (Tier.FREE, Tier.PREMIUM)
        for name in dict.fromkeys(source.name for source in operation.sources)
        if name != "Probe.tcp_connect"  # it measures what is off
    ]
    verdict = run_judge(cases)
    assert verdict.cases == len(cases) >= 280
    assert verdict.false == []


@pytest.mark.slow("a seeded share of the matrix of tools, sources and faults")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_seeded_share_of_the_matrix_holds_no_falsehood(part):
    cases = unnamed_cases()
    share = len(cases) // PARTS + 1
    verdict = run_judge(cases[part * share : (part + 1) * share])
    assert len(cases) >= 55_000 * SHARE
    assert 50_000 * SHARE / PARTS < verdict.cases <= share
    assert verdict.false == []


@pytest.mark.slow("a simulated day of every tool without any fault")
@pytest.mark.timeout(600)
def test_without_faults_no_section_is_null():
    day = run_week("normal", 1)
    assert day.answers >= 80
    assert dict(+day.empty) == {}


@cache
def unnamed_cases() -> list[Case]:
    """Return the share without the named cases, by tool: the memory of a warm engine is made once for them."""
    cases = seeded_cases(SEED, SHARE)[len(dict.fromkeys(named_cases())) :]
    return sorted(cases, key=lambda case: (case.tool, case.arguments, case.scenario))


def test_the_matrix_is_as_large_as_it_is_said_to_be():
    cases = set(all_cases())
    assert len(cases) >= 20_000
    assert {case.scenario for case in cases} == {"normal", "quiet", "busy"}
    assert {len(case.faults) for case in cases} >= {1, 2, 3}


@pytest.mark.parametrize(
    "wanted",
    [
        "premium_world_deltas() · USGS.earthquakes_* old 7200",
        "premium_world_deltas() · USGS.earthquakes_* old 86400",
        "premium_world_deltas() · USGS.earthquakes_* zeros",
        "premium_world_deltas() · USGS.earthquakes_* empty",
        "premium_world_deltas() · USGS.earthquakes_* frozen for 75600 s",
        "premium_world_deltas() · USGS.earthquakes_* jump 0.1",
        "premium_world_deltas() · HackerNewsAlgolia.* old 86400",
        "launches() · LaunchLibrary.* old 1728000",
        "launches() · LaunchLibrary.* old 2592000",
        "premium_agent_context() · USGS.earthquakes_* status 503 + EMSC.earthquakes_query zeros",
        "premium_agent_context() · USGS.earthquakes_* status 503 + EMSC.earthquakes_query empty",
        "premium_agent_context() · USGS.earthquakes_* status 503 + EMSC.earthquakes_query old 259200",
        "climate_weather_alerts(area=OK) · NWS.alerts_active old 259200",
        "climate_weather_alerts(severity=Extreme) · NWS.alerts_active old 259200",
        "climate_weather_alerts(event=Tornado Warning) · NWS.alerts_active old 259200",
        "climate_weather_alerts(area=OK) · NWS.alerts_active empty",
        "climate_weather_alerts(severity=Extreme) · NWS.alerts_active empty",
        "climate_weather_alerts(event=Tornado Warning) · NWS.alerts_active empty",
        "climate_earthquakes(magnitude=4.5) · USGS.earthquakes_* empty",
        "climate_earthquakes(magnitude=4.5) · USGS.earthquakes_* jump 0.1",
        "climate_earthquakes(magnitude=significant) · USGS.earthquakes_* empty",
        "climate_earthquakes(magnitude=significant) · USGS.earthquakes_* jump 0.1",
        "model_hub_trending() · HuggingFace.* frozen for 75600 s",
        "gas() · Ethereum.* frozen for 75600 s",
        "chain_network() · Solana.* frozen for 75600 s",
        "btc_price() · Coinbase.* frozen for 75600 s",
        "volcanoes() · SmithsonianGVP.* dns",
    ],
)
def test_what_was_found_once_has_a_test_of_its_name(wanted):
    assert len(NAMED[wanted]) == 6


def test_the_oracle_sees_a_grave_disaster_that_is_left_out(monkeypatch):
    monkeypatch.setattr("tools.shared.disasters.GRAVE_SEEN", timedelta(days=99))
    verdict = run_judge([Case("disaster_alerts", (), (GRAVE_OLD,))])
    assert any("left out" in sentence for sentence in verdict.false)
    monkeypatch.undo()
    assert run_judge([Case("disaster_alerts", (), (GRAVE_OLD,))]).false == []


def test_the_oracle_sees_a_price_that_is_false_by_a_tenth():
    """A factor too small for the guard against jumps on a cold engine: every venue tells the same false price."""
    venues = ("Coinbase.*", "Kraken.*", "Binance.*", "OKX.*", "CoinGecko.*", "Coinlore.*", "Chainlink.*")
    wrong = tuple(Fault(venue, "jump", (("factor", 1.1),)) for venue in venues)
    verdict = run_judge([Case("btc_price", (), wrong)])
    assert any("where" in sentence for sentence in verdict.false)
