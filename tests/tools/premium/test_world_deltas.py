"""World deltas: what counts as an event, which of them a caller has not seen, and what is remembered to tell."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import tools.simulated.hackernews
import tools.simulated.kalshi
import tools.simulated.launch_library
import tools.simulated.polymarket
import tools.simulated.rocketlaunch_live
import tools.simulated.usgs  # noqa: F401 - they serve
from tests.tools.desk import NOW
from tests.tools.selling import sell
from tools.parsing.earthquakes import Quake, QuakeList
from tools.parsing.prediction_markets import Bet
from tools.parsing.stories import Story
from tools.premium.world_deltas import TYPES, premium_world_deltas, whole_second, window
from tools.shared import deltas
from tools.shared.deltas import HOUR, LOOKS, STORIES, FrontPageState, Prices, find_new_stories, moves
from tools.simulated import hackernews, kalshi, polymarket, spaceflight, usgs
from tools.simulated.usgs import _blast
from toolserver.context.context import TimeSeriesStore
from toolserver.errors import InvalidArguments, UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import Edits, World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)
CHAINS = {
    "earthquake": {"USGS.earthquakes_feed", "EMSC.earthquakes_query"},
    "tech_news_story": {"HackerNewsAlgolia.front_page", "HackerNews.top_ids"},
    "prediction_market_update": {"Polymarket.markets_by_volume", "Kalshi.open_events"},
    "space_launch": {"LaunchLibrary.upcoming_launches", "RocketLaunchLive.next_launches"},
}
QUIET = {f"{name}.quiet": [(0, NOW * 2, 1)] for name in ("quakes", "stories", "bets", "launches")}
NOTES = {"window", "types", "severity", "markets", "story_coverage", "poll_recommendation"}


def world_with(*events, now=NOW, seed=1, pins=None):
    return World(seed, now, Edits(pins=pins or {}, events=list(events)))


def iso(at):
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def of(made, name):
    return [event for event in made.json["events"] if event["type"] == name]


def graded(value, moderate, major):
    return "major" if value >= major else "moderate" if value >= moderate else "minor"


FIRST_LOOK = ("prediction_market_update", "incomplete_window")
"""Most of Polymarket's rows say no change, and at the first look we have no price of our own of an hour ago."""


def codes(made):
    return {(warning.section, warning.code) for warning in made.notes.warnings}


async def watched(compose, world, minutes=3, **more):
    """The answer after the world has been looked at for some minutes."""
    history = TimeSeriesStore()
    for minute in range(minutes, 0, -1):
        await compose(premium_world_deltas, world=world.at(world.now - 60 * minute), history=history, **more)
    return await compose(premium_world_deltas, world=world, history=history, **more)


# What is an event


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_earthquakes_are_those_of_the_hour_from_m4(compose, seed):
    world = World(seed, NOW)
    found = of(await compose(premium_world_deltas, world=world), "earthquake")
    real = [q for q in usgs.quakes(world, NOW - 3600) if q.magnitude >= 4 and not _blast(world, q)]
    assert len(real) >= 1
    assert {e["data"]["id"]: [e["timestamp"], e["severity"], e["data"]["magnitude"]] for e in found} == {
        f"ussim{q.name}": [iso(q.at), graded(q.magnitude, 5, 6), q.magnitude] for q in real
    }


@pytest.mark.parametrize(("magnitude", "severity"), [(3.9, None), (4.0, "minor"), (5.0, "moderate"), (6.0, "major")])
async def test_severity_of_an_earthquake_is_by_its_magnitude(compose, magnitude, severity):
    event = {"kind": "earthquake", "at": NOW - 600, "magnitude": magnitude, "lat": 1, "lon": 2, "depth": 3}
    made = await compose(premium_world_deltas, world=world_with(event, pins=QUIET))
    assert [e["severity"] for e in of(made, "earthquake")] == ([severity] if severity else [])


async def test_an_earthquake_in_both_lists_comes_once_and_in_its_latest_version():
    def listed(magnitude, updated):
        quake = Quake("a", magnitude, "x", AT - HOUR / 2, 1, 1, 1, "earthquake", None, updated=updated)
        return QuakeList((quake,), None)

    older, newer = listed(4.4, AT - HOUR / 3), listed(4.9, AT)
    for lists in ((older, newer), (newer, older)):
        assert [magnitude for _, magnitude in deltas.quakes(lists, AT)] == [4.9]


async def test_launches_are_those_of_the_window_whose_time_is_known_to_the_hour(compose):
    events = [
        {"kind": "launch", "at": NOW + 600, "crewed": True},
        {"kind": "launch", "at": NOW - 1200, "status": "Failure"},
    ]
    world = world_with(*events)
    found = of(await compose(premium_world_deltas, world=world), "space_launch")
    real = [
        x
        for x in spaceflight.launches(world)[:15]
        if -3600 < x.net - NOW <= 12 * 3600 and x.precision in ("SEC", "MIN", "HR")
    ]
    grave = {x.id for x in real if x.kind == "Human Exploration" or "Failure" in x.code}
    assert len(grave) >= 2
    assert {e["data"]["id"]: [e["timestamp"], e["data"]["window"], e["severity"]] for e in found} == {
        x.id: [iso(x.net), "upcoming" if x.net > NOW else "recent", "major" if x.id in grave else "moderate"]
        for x in real
    }


async def test_a_launch_exactly_twelve_hours_ahead_is_listed_and_a_second_later_not(compose):
    for ahead, count in ((12 * 3600, 1), (12 * 3600 + 1, 0)):
        world = world_with({"kind": "launch", "at": NOW + ahead, "mission": "Edge"})
        found = of(await compose(premium_world_deltas, world=world), "space_launch")
        assert len([e for e in found if e["data"]["mission"] == "Edge"]) == count


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_markets_are_the_traded_ones_that_moved_by_what_the_venue_says(compose, seed):
    world = World(seed, NOW)
    found = of(await compose(premium_world_deltas, world=world), "prediction_market_update")
    real = {}
    for bet in polymarket.list_bets(world)[:100]:
        change = None if polymarket.is_reticent(world, bet) else polymarket.price_change(world, bet, 3600)
        counts = bet.outcomes == ("Yes", "No") and polymarket.volume(world, bet) >= 10_000
        if counts and (NOW - bet.created < 3600 or abs(change or 0) >= 0.01):
            real[str(bet.id)] = [polymarket.price(world, bet), change, graded(abs(change or 0), 0.05, 0.1), iso(NOW)]
    assert len(real) >= 1
    assert {
        e["data"]["id"]: [e["data"]["yes_probability"], e["data"]["change_1h"], e["severity"], e["timestamp"]]
        for e in found
    } == real


async def test_on_kalshi_a_move_is_known_from_our_own_price_of_an_hour_ago(compose):
    history, down = TimeSeriesStore(), {"Polymarket.markets_by_volume"}
    first = await compose(premium_world_deltas, world=WORLD.at(NOW - 3600), history=history, down=down)
    alone = await compose(premium_world_deltas, down=down)
    made = await compose(premium_world_deltas, history=history, down=down)

    def changes(made):
        return {e["data"]["id"]: e["data"]["change_1h"] for e in of(made, "prediction_market_update")}

    assert all(change is None for change in {**changes(first), **changes(alone)}.values())
    by_ticker = {f"KXSIM-{bet.id}-{bet.number}": bet for bet in polymarket.bets(WORLD)}
    known = {i: c for i, c in changes(made).items() if i in by_ticker and c is not None}
    assert len(known) >= 1
    for ticker, change in known.items():
        now, before = (kalshi.yes_price(WORLD, by_ticker[ticker], at) for at in (NOW, NOW - 3600))
        assert change == pytest.approx(now - before, abs=1e-6)
        assert abs(change) >= 0.01


@pytest.mark.slow("half an hour of looks, minute by minute")
async def test_a_story_counts_from_when_it_was_seen_to_enter(compose):
    made = await watched(compose, WORLD, 30)
    before = {s.id for s in hackernews.front_page(WORLD.at(NOW - 1800))}
    first = {}
    for minute in range(29, -1, -1):
        for s in hackernews.front_page(WORLD.at(NOW - 60 * minute)):
            first.setdefault(s.id, NOW - 60 * minute)
    there = [s for s in hackernews.front_page(WORLD) if s.kind == "story"]
    seen_entering = {s.id: iso(first[s.id]) for s in there if s.id not in before}
    just_submitted = {s.id: iso(NOW - 1800) for s in there if s.id in before and s.born > NOW - 3600}
    assert seen_entering
    found = of(made, "tech_news_story")
    assert {e["data"]["id"]: e["timestamp"] for e in found} == seen_entering | just_submitted
    assert all(e["data"]["first_seen_at"] == e["timestamp"] for e in found)
    assert all(e["severity"] == graded(e["data"]["points"], 25, 100) for e in found)


async def test_at_the_first_look_stories_are_those_submitted_within_the_hour(compose):
    found = of(await compose(premium_world_deltas), "tech_news_story")
    real = {s.id for s in hackernews.front_page(WORLD) if s.kind == "story" and s.born > NOW - 3600}
    assert {e["data"]["id"] for e in found} == real


def page(at, *ids, age=timedelta(hours=9)):
    return FrontPageState(tuple(Story(i, f"Story {i}", None, 30, 1, "a", AT - age) for i in ids), at)


def test_after_nobody_looked_for_more_than_an_hour_nobody_knows_when_a_story_came():
    history = TimeSeriesStore()
    assert find_new_stories(history, page(AT - 3 * HOUR, 1), AT - 3 * HOUR) == []
    assert find_new_stories(history, page(AT - HOUR / 2, 1, 2), AT - HOUR / 2) == []
    assert [seen.story.id for seen in find_new_stories(history, page(AT, 1, 2, 3), AT)] == [3]


def test_a_page_of_yesterday_is_no_look_at_the_page():
    history = TimeSeriesStore()
    find_new_stories(history, page(AT - 24 * HOUR, 1), AT)
    assert find_new_stories(history, page(AT, 1, 2), AT) == []
    assert history.last(LOOKS, "").at == AT


def test_a_page_fetched_after_the_composition_began_is_of_its_moment():
    history = TimeSeriesStore()
    find_new_stories(history, page(AT - HOUR / 2, 1), AT - HOUR / 2)
    found = find_new_stories(history, page(AT + timedelta(seconds=2), 1, 2), AT)
    assert [(seen.story.id, seen.at) for seen in found] == [(2, AT)]
    assert history.first(STORIES, "2").at == AT


def bet(price=0.5, volume=20_000.0, **more):
    times = {"updated_at": AT, "created_at": AT - 50 * HOUR}
    return Bet("7", "Will it?", ("Yes", "No"), (price, 1 - price), volume, "Here", **(times | more))


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (bet(change_1h=0.01), True),
        (bet(change_1h=-0.01), True),
        (bet(change_1h=0.0099), False),
        (bet(), False),
        (bet(change_1h=0.3, volume=9_999.0), False),
        (bet(change_1h=0.3, volume=10_000.0), True),
        (bet(change_1h=0.3, updated_at=AT - HOUR), False),
        (bet(change_1h=0.3, updated_at=None), False),
        (bet(created_at=AT - HOUR / 2), True),
        (bet(created_at=AT - HOUR), False),
    ],
)
def test_a_market_must_be_traded_fresh_and_moving_or_new(found, kept):
    assert len(moves(TimeSeriesStore(), Prices((found,), AT), AT).moved) == kept


@pytest.mark.parametrize(("minutes", "known"), [(54, False), (55, True), (60, True), (65, True), (66, False)])
def test_our_own_price_is_compared_when_it_is_about_an_hour_old(minutes, known):
    history = TimeSeriesStore()
    before = AT - timedelta(minutes=minutes)
    moves(history, Prices((bet(0.3, updated_at=before),), before), before)
    found = moves(history, Prices((bet(0.36),), AT), AT).moved
    assert [moved.change for moved in found] == ([0.06] if known else [])


def test_prices_that_could_not_be_refreshed_for_an_hour_are_no_news():
    assert moves(TimeSeriesStore(), Prices((bet(change_1h=0.3),), AT - HOUR), AT) == ([], 0, 0)


@pytest.mark.slow("an hour of the simulated world")
async def test_a_fallback_without_an_hour_of_history_is_not_told_as_no_update(compose):
    history = TimeSeriesStore()
    polymarket = {"Polymarket.markets_by_volume"}
    first = await compose(premium_world_deltas, down=polymarket, history=history)
    for minutes in range(5, 61, 5):
        world = WORLD.at(NOW + 60 * minutes)
        later = await compose(premium_world_deltas, {"limit": 200}, down=polymarket, history=history, world=world)

    assert FIRST_LOOK in codes(first)
    assert "prediction_market_update" not in first.json["counts"]
    assert FIRST_LOOK not in codes(later)
    assert later.json["counts"]["prediction_market_update"] == len(of(later, "prediction_market_update"))


async def test_markets_that_say_no_change_are_known_after_an_hour_from_our_own_prices(compose):
    history, said = TimeSeriesStore(), polymarket.is_reticent
    await compose(premium_world_deltas, world=WORLD.at(NOW - 3600), history=history)
    made = await compose(premium_world_deltas, {"limit": 200}, history=history)
    silent = {str(bet.id): bet for bet in polymarket.list_bets(WORLD)[:100] if said(WORLD, bet)}
    known = {e["data"]["id"]: e["data"]["change_1h"] for e in of(made, "prediction_market_update")}

    assert FIRST_LOOK not in codes(made)
    assert silent.keys() & known.keys()
    for name in silent.keys() & known.keys():
        assert known[name] == pytest.approx(polymarket.price_change(WORLD, silent[name], 3600), abs=1e-6)


# One stream


async def test_events_come_latest_first_each_once_and_are_counted(compose):
    made = await watched(compose, WORLD)
    times = [e["timestamp"] for e in made.json["events"]]
    assert times == sorted(times, reverse=True)
    identities = [(e["type"], e["data"]["id"]) for e in made.json["events"]]
    assert len(set(identities)) == len(identities)
    assert made.json["counts"] == {name: len(of(made, name)) for name in TYPES}
    assert all(made.json["counts"].values())
    assert made.json["sample_size"] == {
        "events_in_rolling_hour": len(times),
        "events_after_since_filter": len(times),
        "sources_ok": 5,
        "sources_failed": 0,
    }
    assert (made.json["since"], made.json["since_clamped"]) == (iso(NOW - 3600), False)
    assert set(made.json["notes"]) == NOTES
    assert codes(made) == {FIRST_LOOK}


async def test_since_filters_the_same_hour(compose):
    whole = (await compose(premium_world_deltas)).json
    for minutes in (59, 30, 10, 0):
        since = iso(NOW - 60 * minutes)
        part = (await compose(premium_world_deltas, {"since": since})).json
        assert part["events"] == [e for e in whole["events"] if e["timestamp"] > since]
        assert (part["since"], part["since_clamped"]) == (since, False)
        assert part["sample_size"]["events_in_rolling_hour"] == len(whole["events"])
        assert part["sample_size"]["events_after_since_filter"] == len(part["events"])


@pytest.mark.parametrize(
    ("given", "since", "clamped"),
    [
        (iso(NOW - 3600), NOW - 3600, False),
        (iso(NOW - 3601), NOW - 3600, True),
        ("1970-01-01T00:00:00Z", NOW - 3600, True),
        ("0001-01-02T00:00:00+00:00", NOW - 3600, True),
        (iso(NOW + 60), NOW, False),
        ("2027-01-15T09:30:00.9+02:00", NOW - 1800, False),
        ("2027-01-15T09:30:00 02:00", NOW - 1800, False),
        ("2027-01-15 09:30:00+0200", NOW - 1800, False),
        ("2027-01-15T07:30:00", NOW - 1800, False),
        ("2027-01-15 07:30", NOW - 1800, False),
        ("2027-01-15", NOW - 3600, True),
    ],
)
async def test_since_is_taken_in_every_zone_and_never_reaches_back_more_than_an_hour(compose, given, since, clamped):
    made = await compose(premium_world_deltas, {"since": given})
    assert (made.json["since"], made.json["since_clamped"]) == (iso(since), clamped)


@pytest.mark.parametrize(
    "given",
    [
        *("2027-01-15T08:30:00", "2027-01-16", "2027-01-15 08:30", "yesterday", "", "1800000000", 1_800_000_000, True),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2027-13-01T00:00:00Z", iso(NOW + 61)),
    ],
)
async def test_a_since_that_is_no_time_or_in_the_future_is_refused_and_costs_nothing(given):
    with pytest.raises(InvalidArguments) as refused:
        await sell(premium_world_deltas, {"since": given})
    assert [error["loc"] for error in refused.value.extra["errors"]] == ["since"]


@given(st.datetimes(timezones=st.timezones()))
def test_the_same_instant_is_the_same_question_in_every_zone(time):
    try:
        expected = time.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        with pytest.raises(ValueError, match="ISO 8601"):
            whole_second(time)
        return
    assert whole_second(time) == expected
    assert whole_second(expected.isoformat()) == expected


@given(st.text(max_size=40))
def test_any_text_is_a_time_with_zone_or_refused(text):
    arguments = operation_of(premium_world_deltas).arguments
    try:
        assert arguments.model_validate({"since": text}).since.tzinfo is not None
    except ValidationError:
        pass


@given(st.integers(-10_000, 60))
def test_the_window_is_never_longer_than_an_hour_nor_in_the_future(offset):
    start, clamped = window(AT + timedelta(seconds=offset), AT)
    assert AT - HOUR <= start <= AT
    assert clamped is (offset < -3600)


# What is missing


@pytest.mark.parametrize("lost", TYPES)
async def test_a_type_whose_sources_are_down_is_absent_and_the_others_stay(compose, lost):
    whole = await compose(premium_world_deltas)
    made = await compose(premium_world_deltas, down=CHAINS[lost])
    assert made.json["events"] == [e for e in whole.json["events"] if e["type"] != lost]
    assert made.json["counts"] == {n: c for n, c in whole.json["counts"].items() if n != lost}
    seen_first = set() if lost == FIRST_LOOK[0] else {FIRST_LOOK}
    assert codes(made) == {(lost, "section_unavailable")} | seen_first
    noted = {status: {n.source.name for n in made.notes.sources if n.used is status} for status in (True, False)}
    assert made.json["sample_size"]["sources_ok"] == len(noted[True])
    assert made.json["sample_size"]["sources_failed"] == len(noted[False]) >= 1


@pytest.mark.parametrize("left", TYPES)
async def test_one_type_is_enough(compose, left):
    down = set().union(*(sources for name, sources in CHAINS.items() if name != left))
    made = await compose(premium_world_deltas, down=down)
    assert list(made.json["counts"]) == [left]
    assert {e["type"] for e in made.json["events"]} <= {left}


@pytest.mark.parametrize(
    ("lost", "name", "used"),
    [
        ("EMSC.earthquakes_query", "earthquake", "USGS.earthquakes_feed"),
        ("USGS.earthquakes_feed", "earthquake", "EMSC.earthquakes_query"),
        ("Polymarket.markets_by_volume", "prediction_market_update", "Kalshi.open_events"),
        ("LaunchLibrary.upcoming_launches", "space_launch", "RocketLaunchLive.next_launches"),
    ],
)
async def test_the_next_source_answers_for_the_one_that_is_down(compose, lost, name, used):
    made = await compose(premium_world_deltas, down={lost})
    told = {w.section for w in made.notes.warnings if w.code == "incomplete_window"}
    assert name in {*made.json["counts"], *told}
    assert {n.source.name for n in made.notes.sources if n.section == name and n.used} == {used}


async def test_without_usgs_the_earthquakes_are_those_of_emsc(compose):
    made = await compose(premium_world_deltas, down={"USGS.earthquakes_feed"})
    assert codes(made) == {("earthquake", "fallback_used"), FIRST_LOOK}
    assert all(e["data"]["url"].startswith("https://www.seismicportal.eu/") for e in of(made, "earthquake"))
    assert all(e["data"]["tsunami"] is None for e in of(made, "earthquake"))


async def test_nobody_answers(compose):
    with pytest.raises(SourceError):
        await compose(premium_world_deltas, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_world_deltas, down={"*"})


# What it costs


async def test_events_cost_two_credits_and_live_a_minute():
    sale = await sell(premium_world_deltas)
    assert sale.paid == 2
    assert sale.outcome.rendered.expires_at - sale.outcome.rendered.generated_at == 60
    assert sale.body["captured_at"] == iso(NOW)
    assert sale.body["_meta"]["untrusted_text"] is True


async def test_an_incomplete_answer_is_composed_anew_after_fifteen_seconds():
    rendered = (await sell(premium_world_deltas, down=CHAINS["tech_news_story"])).outcome.rendered
    assert rendered.expires_at - rendered.generated_at == 15


@pytest.mark.parametrize("down", [set(), CHAINS["earthquake"], CHAINS["space_launch"] | CHAINS["tech_news_story"]])
async def test_no_event_costs_nothing_also_when_sources_failed(down):
    sale = await sell(premium_world_deltas, world=world_with(pins=QUIET), down=down)
    assert sale.body["events"] == []
    assert set(sale.body["counts"].values()) == {0}
    assert (sale.paid, sale.outcome.no_charge) == (0, "empty_result")


async def test_nothing_since_the_last_look_costs_nothing():
    sale = await sell(premium_world_deltas, {"since": iso(NOW)}, down=CHAINS["space_launch"])
    assert sale.body["sample_size"]["events_in_rolling_hour"] > 0
    assert (sale.body["events"], sale.paid, sale.outcome.no_charge) == ([], 0, "empty_result")


def test_the_operation_is_as_documented():
    operation = operation_of(premium_world_deltas)
    assert (operation.path, operation.tier, operation.credits) == ("/api/pro/world-deltas", Tier.PREMIUM, 2)
    assert (operation.longest_ttl, operation.sla_s, operation.follow_s) == (60, 300, 60)
    assert {source.name for source in operation.sources} == set().union(*CHAINS.values())
    assert operation.input_schema["properties"]["since"]["format"] == "date-time"
    assert "required" not in operation.input_schema
