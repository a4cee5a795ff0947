"""Find events of the past hour in the world and the launches around it: the chains, and what counts as an event.

An event is kept by the rule of its type, and only within the rolling hour. This module does
not know which of them a caller has seen.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from tools.parsing.earthquakes import Quake, QuakeList
from tools.parsing.prediction_markets import Bet
from tools.parsing.spaceflight import Launch
from tools.parsing.stories import Story
from tools.shared import launches as flights
from tools.shared.front_page import proved_page
from tools.shared.quakes import QUAKE_SOURCES, earthquakes_of, quake_day_fallbacks
from tools.sources.hackernews import TOP_IDS
from tools.sources.hackernews_algolia import FRONT_PAGE
from tools.sources.kalshi import EVENTS
from tools.sources.polymarket import MARKETS
from toolserver import (
    Fallback,
    FallbackReader,
    Meaning,
    SourceEmpty,
    SourceUnproved,
    TimeSeriesStore,
    convert_fallback,
    lacking,
)

Severity = Literal["minor", "moderate", "major"]

HOUR, AHEAD = timedelta(hours=1), timedelta(hours=12)
NEWEST = timedelta(minutes=60)
QUAKE_FLOOR = 4.0
VOLUME_USD = 10_000
MOVE = 0.01
PRICED_WITHIN_S = 300  # of an hour ago: our own price counts as the price of an hour ago within this distance
STORIES, LOOKS, PRICES = "deltas.stories", "deltas.looks", "deltas.prices"
STORIES_S, PRICES_S = 2 * 86400, 2 * 3600
ENTERED, THERE = 1.0, 0.0  # how a story was first seen: it appeared while we watched; it was there when we began
SOURCES = (*QUAKE_SOURCES, FRONT_PAGE, TOP_IDS, MARKETS, EVENTS, *flights.SOURCES)


class FrontPageState(NamedTuple):
    """The front page as it was at a time."""

    stories: tuple[Story, ...]
    at: datetime


class SeenStory(NamedTuple):
    """A story that came to the front page, and when we first saw it there."""

    story: Story
    at: datetime


class Prices(NamedTuple):
    """Open yes/no markets as they were at a time."""

    bets: tuple[Bet, ...]
    at: datetime


class MovedMarket(NamedTuple):
    """A market that moved, or is new; `change` is that of the past hour, None where it is not known."""

    bet: Bet
    change: float | None
    at: datetime


# Earthquakes


def quake_fallbacks(now: datetime) -> tuple[Fallback[tuple[QuakeList, ...]], ...]:
    """Return the fallbacks for the day's list, from which the hour is cut later: an hour may be empty, a day never is.

    EMSC's list has no timestamp, so its newest event has to be of this hour.
    """

    def of_the_hour(listed: QuakeList) -> tuple[QuakeList, ...]:
        if not any(quake.time > now - NEWEST for quake in listed.quakes):
            raise SourceUnproved("no earthquake of the past hour")
        return (listed,)

    usgs, emsc = quake_day_fallbacks(now)
    return convert_fallback(usgs, lambda listed: (listed,)), lacking(convert_fallback(emsc, of_the_hour), "tsunami")


def quakes(lists: Iterable[QuakeList], now: datetime) -> list[tuple[Quake, float]]:
    """Return earthquakes of M4 and above in the past hour, each once, in its latest version."""
    once: dict[str, tuple[Quake, float]] = {}
    for quake, magnitude in (pair for listed in lists for pair in earthquakes_of(listed, QUAKE_FLOOR)):
        other = once.get(quake.id)
        if now - HOUR < quake.time <= now and (other is None or _newer(quake, other[0])):
            once[quake.id] = (quake, magnitude)
    return list(once.values())


def _newer(quake: Quake, than: Quake) -> bool:
    return quake.updated is not None and (than.updated is None or quake.updated > than.updated)


def quake_severity(magnitude: float) -> Severity:
    return "major" if magnitude >= 6 else "moderate" if magnitude >= 5 else "minor"


# Stories


async def page_fallback(reading: FallbackReader) -> FrontPageState:
    """Return the front page and when it was fetched."""
    stories = await proved_page(reading)
    return FrontPageState(stories, min(note.fetched_at for note in reading.notes if note.used and note.fetched_at))


def find_new_stories(history: TimeSeriesStore, page: FrontPageState, now: datetime) -> list[SeenStory]:
    """Return the stories known to have come to the page within the past hour.

    A story that was absent at the previous look has come since. If that look is more than an
    hour ago, or there was none, the time of arrival is unknown, and the story counts when it
    was submitted within the hour.
    """
    at = min(page.at, now)  # it may have been fetched a moment after the composition began
    last = history.last(LOOKS, "")
    watched = last is not None and at - last.at <= HOUR
    new = []
    for story in page.stories:
        key = str(story.id)
        if history.first(STORIES, key) is None:
            history.note(STORIES, key, ENTERED if watched else THERE, at, keep_s=STORIES_S)
        first = history.first(STORIES, key)
        came = first is not None and (first.value == ENTERED or story.created_at > now - HOUR)
        if first is not None and came and now - HOUR < first.at <= now:
            new.append(SeenStory(story, first.at))
    history.note(LOOKS, "", len(page.stories), at, keep_s=3600)
    return new


def story_severity(points: int) -> Severity:
    return "major" if points >= 100 else "moderate" if points >= 25 else "minor"


# Prediction markets


def price_fallbacks() -> tuple[Fallback[Prices], ...]:
    """Return the fallbacks for open yes/no markets, with the time when their prices were fetched."""

    async def polymarket(reading: FallbackReader) -> Prices:
        bets = await reading.read(MARKETS)
        return yes_or_no(bets, _fetched_at(reading))

    async def kalshi(reading: FallbackReader) -> Prices:
        page = await reading.read(EVENTS)
        return yes_or_no(page.bets, _fetched_at(reading))

    return polymarket, kalshi


def yes_or_no(bets: Iterable[Bet], at: datetime) -> Prices:
    """Keep yes/no questions with prices. Raises SourceEmpty when there are none, which does not happen in practice."""
    binary = tuple(bet for bet in bets if tuple(name.lower() for name in bet.outcomes) == ("yes", "no") and bet.prices)
    if not binary:
        raise SourceEmpty("no open yes/no market")
    return Prices(binary, at)


class Moves(NamedTuple):
    """The markets that moved or opened; how many of all traded ones have no known change over the hour."""

    moved: list[MovedMarket]
    unknown: int
    traded: int

    @property
    def is_incomplete(self) -> bool:
        """True if the change of more than half of the traded markets is unknown."""
        return self.unknown * 2 > self.traded


def moves(history: TimeSeriesStore, prices: Prices, now: datetime) -> Moves:
    """Return the traded markets whose price moved within the past hour, or that opened in it."""
    since, at = now - HOUR, min(prices.at, now)
    if at <= since:
        return Moves([], 0, 0)
    moved, unknown, traded = [], 0, 0
    for bet in prices.bets:
        if bet.volume_24h_usd < VOLUME_USD:
            continue
        change = _change(history, bet, at)
        history.note(PRICES, _key(bet), bet.prices[0], at, keep_s=PRICES_S)
        updated = bet.updated_at is not None and bet.updated_at > since
        opened = bet.created_at is not None and since < bet.created_at <= now
        traded += 1
        unknown += change is None and not opened
        if updated and (opened or (change is not None and abs(change) >= MOVE)):
            moved.append(MovedMarket(bet, change, at))
    return Moves(moved, unknown, traded)


def _change(history: TimeSeriesStore, bet: Bet, at: datetime) -> float | None:
    """Return the venue's change, or else ours against our own price of about an hour ago, rounded to 4 decimals."""
    if bet.change_1h is not None:
        return round(bet.change_1h, 4)
    before = history.near(PRICES, _key(bet), at - HOUR, within_s=PRICED_WITHIN_S)
    return None if before is None else round(bet.prices[0] - before.value, 4)


def _key(bet: Bet) -> str:
    return f"{bet.source}:{bet.id}"


def move_severity(change: float | None) -> Severity:
    size = abs(change or 0)
    return "major" if size >= 0.10 else "moderate" if size >= 0.05 else "minor"


# Launches


def launches(listed: Iterable[Launch], now: datetime) -> list[tuple[Launch, datetime]]:
    """Return the launches from an hour ago to twelve hours ahead whose time is known to the hour or better."""
    timed = {launch.id: (launch, launch.net) for launch in listed if launch.net and _timed(launch)}
    return [(launch, net) for launch, net in timed.values() if now - HOUR <= net <= now + AHEAD]


def _timed(launch: Launch) -> bool:
    return launch.precision in ("second", "minute", "hour")


def launch_severity(launch: Launch) -> Severity:
    return "major" if flights.has_failed(launch) or flights.is_crewed(launch) else "moderate"


def _fetched_at(reading: FallbackReader) -> datetime:
    fetched_at = reading.notes[-1].fetched_at
    assert fetched_at is not None
    return fetched_at


DELTAS = (
    Meaning(
        "pro/world-deltas.events.severity",
        "Of earthquakes: moderate from M5, major from M6",
        decide=quake_severity,
        rows=((4.99, "minor"), (5.0, "moderate"), (5.99, "moderate"), (6.0, "major")),
    ),
    Meaning(
        "pro/world-deltas.events.severity",
        "Of stories: moderate from 25 points, major from 100",
        decide=story_severity,
        rows=((24, "minor"), (25, "moderate"), (99, "moderate"), (100, "major")),
    ),
    Meaning(
        "pro/world-deltas.events.severity",
        "Of prediction markets, by the move of an hour: moderate from 0.05, major from 0.10; launches are moderate, "
        "and major when crewed or failed",
        decide=move_severity,
        rows=(
            (0.0499, "minor"),
            (0.05, "moderate"),
            (-0.0999, "moderate"),
            (-0.10, "major"),
            (None, "minor"),
        ),
    ),
)
