"""Simulate the prediction markets, and Polymarket's lists of them: JSON inside strings, one timestamp for all rows.

One price function serves both venues, which report it with small differences. The bare list
announces that it is deprecated; its successor wraps the same rows and names the next page."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, expects, serves

COUNT = 120
HOUR, DAY = 3600.0, 86400.0
LIVELY = 10  # one market in ten swings, so that some have always moved within the hour
SPORTS = 7  # of every ten, this one is between two teams

TOPICS = [
    (
        "Politics",
        "Will {} win the next election in {}?",
        ["Ada Brandt", "Bo Okafor", "Cy Ilves"],
        ["Lutha", "Freedonia"],
    ),
    ("Economics", "Will the Fed announce a {} at the meeting of {}?", ["rate cut", "rate hike"], ["March", "June"]),
    ("Crypto", "Will {} trade above ${}?", ["Bitcoin", "Ethereum", "Solana"], ["100K", "150K", "250K"]),
    ("Science", "Will {} be announced by {}?", ["a fusion record", "a new prime", "an AI proof"], ["May", "October"]),
    ("Companies", "Will {} hold an IPO before {}?", ["Acme", "Initech", "Globex"], ["summer", "the end of the year"]),
]
TEAMS = ["Rovers", "Comets", "Harbour City", "Steel Owls", "Old Town", "Meridian"]


class SimBet(NamedTuple):
    """One market in one of its lives: when a market ends, the next life begins under another id."""

    number: int
    life: int
    category: str
    question: str
    outcomes: tuple[str, str]
    created: float
    ends: float

    @property
    def id(self) -> int:
        return 500_000 + self.life * 1000 + self.number

    @property
    def slug(self) -> str:
        words = "".join(c if c.isalnum() else " " for c in self.question.lower()).split()
        return "-".join([*words, str(self.id)])


def bets(world: World) -> list[SimBet]:
    """Return the open markets. With `bets.quiet` pinned to 1 all of them are at least a day old."""
    markets = [_bet(world, index) for index in range(COUNT)]
    quiet = world.pinned("bets.quiet") == 1
    return [b for b in markets if not quiet or world.now - b.created > DAY]


def _bet(world: World, index: int) -> SimBet:
    length = math.floor(world.between("bet.days", index, 20, 200)) * DAY
    offset = world.u("bet.offset", index) * length
    life = math.floor((world.now - offset) / length)
    created = life * length + offset
    if index % 10 == SPORTS:
        one = world.pick("bet.team", f"{index}.{life}", TEAMS)
        two = world.pick("bet.rival", f"{index}.{life}", [t for t in TEAMS if t != one])
        return SimBet(index, life, "Sports", f"{one} vs. {two}", (one, two), created, created + length)
    category, template, who, what = TOPICS[index % len(TOPICS)]
    key = f"{index}.{life}"
    question = template.format(world.pick("bet.who", key, who), world.pick("bet.what", key, what))
    return SimBet(index, life, category, f"{question[:-1]} ({index})?", ("Yes", "No"), created, created + length)


def price(world: World, bet: SimBet, at: float | None = None) -> float:
    """Return the probability of the first outcome, in steps of 0.001.

    Pin `bet.<index>`, or inject `market_move` with `market` (an index) and `move` (a lasting
    difference). With `bets.quiet` pinned to 1 it is always the first price.
    """
    at = world.now if at is None else at
    if (pinned := world.pinned(f"bet.{bet.number}", at)) is not None:
        return pinned
    then = bet.created if world.pinned("bets.quiet", at) == 1 else at
    key = f"bet.{bet.number}.{bet.life}"
    if bet.number % LIVELY == 0:
        value = _swing(world, bet, then)
    else:
        start = world.between("bet.start", f"{bet.number}.{bet.life}", -6, 6)
        value = 1 / (1 + math.exp(-(start + 0.5 * world.noise(f"{key}.day", then / DAY))))
        value += 0.004 * world.noise(f"{key}.hour", then / HOUR)
    moves = (e for e in world.at(at).injected("market_move") if int(e.get("market", 0)) == bet.number)
    value += sum(float(e.get("move", 0.1)) for e in moves)
    return min(0.9995, max(0.0005, round(value, 3)))


def _swing(world: World, bet: SimBet, at: float) -> float:
    """Swing up and down in five hours, each market a sixth of a turn later: some are always moving."""
    turn = 2 * math.pi * (at / (5 * HOUR) + bet.number / LIVELY / 6)
    middle = world.between("bet.middle", f"{bet.number}.{bet.life}", 0.25, 0.75)
    return middle + 0.05 * math.sin(turn)


def price_change(world: World, bet: SimBet, over_s: float) -> float | None:
    """Return the price change over a span; None for a market younger than that."""
    if world.now - bet.created < over_s:
        return None
    return round(price(world, bet) - price(world, bet, world.now - over_s), 4)


def volume(world: World, bet: SimBet) -> float:
    """Return the dollars traded in the past 24 hours; the lively markets trade most."""
    low, high = (5.5, 6.7) if bet.number % LIVELY == 0 else (3.2, 6.5)
    exponent = world.between("bet.volume", bet.number, low, high)
    return 10**exponent * (1 + 0.3 * world.noise(f"bet.{bet.number}.volume", world.now / DAY))


NAME, HOST = "Polymarket.markets_by_volume", "gamma-api.polymarket.com"
JSON = "application/json; charset=utf-8"
ENDING = {
    "deprecation": "true",
    "sunset": "Fri, 01 May 2026 00:00:00 GMT",
    "warning": '299 - "use /markets/keyset"',
}
RETICENT = 0.6  # of the markets with little trade omit their changes
BATCH_S = 120.0  # all rows are rewritten that often
SAME = {  # in every row
    "resolutionSource": "",
    "active": True,
    "closed": False,
    "marketMakerAddress": "",
    "new": False,
    "featured": False,
    "archived": False,
    "restricted": True,
    "groupItemThreshold": "0",
    "enableOrderBook": True,
    "orderPriceMinTickSize": 0.001,
    "orderMinSize": 5,
    "hasReviewedDates": True,
    "acceptingOrders": True,
    "negRisk": False,
    "ready": False,
    "funded": False,
    "cyom": False,
    "spread": 0.001,
    "umaResolutionStatuses": "[]",
}


def _page(rows: list[dict[str, Any]]) -> Reply:
    schema = f"https://{HOST}/schemas/MarketsKeysetListResponse.json"
    cursor = {"next_cursor": "c2ltdWxhdGVkIGN1cnNvcg"} if rows else {}  # the last page has none
    return Reply.json({"$schema": schema, "markets": rows} | cursor, content_type=JSON)


FORMS = {
    "geo": Reply.text("<html><title>Access denied</title><h1>You have been blocked</h1></html>", 403, "text/html"),
}


@serves(NAME, HOST, "/markets/keyset", forms=FORMS | {"empty": _page([])})
def keyset(world: World, ask: Ask) -> Reply:
    return _page(_rows(world, ask))


@serves(NAME, HOST, "/markets", forms=FORMS | {"empty": Reply.json([])})
def markets(world: World, ask: Ask) -> Reply:
    return Reply.json(_rows(world, ask), content_type=JSON, headers=ENDING)


@keyset.form("drift")
def page_of_real_lists(world: World, ask: Ask) -> Reply:
    return _page(_with_real_lists(world))


@markets.form("drift")
def real_lists(world: World, ask: Ask) -> Reply:
    return Reply.json(_with_real_lists(world))


def _rows(world: World, ask: Ask) -> list[dict[str, Any]]:
    size = min(100, int(ask.params.get("limit", "20")))
    return [_row(world, bet) for bet in list_bets(world)[:size]]


def _with_real_lists(world: World) -> list[dict[str, Any]]:
    """Return lists in place of JSON in strings, the volume as a string, and an additional member."""
    rows = []
    for row in (_row(world, bet) for bet in list_bets(world)[:100]):
        inner = {name: json.loads(row[name]) for name in ("outcomes", "outcomePrices", "clobTokenIds")}
        rows.append(dict(reversed(row.items())) | inner | {"volume24hr": str(row["volume24hr"]), "liveVolume": None})
    return rows


def list_bets(world: World) -> list[SimBet]:
    """Return open markets, the most traded first."""
    return sorted(bets(world), key=lambda bet: volume(world, bet), reverse=True)


def _row(world: World, bet: SimBet) -> dict[str, Any]:
    yes, traded = price(world, bet), volume(world, bet)
    liquidity = round(traded * 1.7, 5)
    stamp = world.now - world.now % BATCH_S
    row: dict[str, Any] = {
        "id": str(bet.id),
        "question": bet.question,
        "conditionId": f"0x{bet.id:064x}",
        "slug": bet.slug,
        "endDate": _iso(bet.ends, 0),
        "liquidity": str(liquidity),
        "startDate": _iso(bet.created + 60, 3),
        "image": f"https://polymarket-upload.s3.us-east-2.amazonaws.com/{bet.slug}.png",
        "icon": f"https://polymarket-upload.s3.us-east-2.amazonaws.com/{bet.slug}.png",
        "description": "This market resolves according to the simulated world.\n\nOtherwise to “Other”.",
        "outcomes": json.dumps(list(bet.outcomes)),
        "outcomePrices": json.dumps([f"{yes:g}", f"{1 - yes:g}"]),
        "volume": str(traded * 21),
        "createdAt": _iso(bet.created, 5),
        "updatedAt": _iso(stamp, 6),
        "volumeNum": traded * 21,
        "liquidityNum": liquidity,
        "endDateIso": _iso(bet.ends, 0)[:10],
        "startDateIso": _iso(bet.created, 0)[:10],
        "volume24hr": traded,
        "volume1wk": traded * 4,
        "volume1mo": traded * 13,
        "volume1yr": traded * 21,
        "clobTokenIds": json.dumps([str(10**30 + bet.id), str(2 * 10**30 + bet.id)]),
        "events": [_event(bet, stamp)],
        "competitive": round(1 - (yes - 0.5) ** 2, 6),
        "lastTradePrice": round(yes, 3),
        "bestBid": round(yes - 0.0005, 4),
        "bestAsk": round(yes + 0.0005, 4),
    }
    changes = {"oneHourPriceChange": price_change(world, bet, HOUR), "oneDayPriceChange": price_change(world, bet, DAY)}
    said = {name: change for name, change in changes.items() if change}  # the member is absent when nothing moved
    return SAME | row | ({} if is_reticent(world, bet) else said)


def is_reticent(world: World, bet: SimBet) -> bool:
    """Return True if a market's row lacks its changes although it moved, as most rows do upstream."""
    return bool(bet.number % LIVELY) and world.u("polymarket.reticent", bet.number) < RETICENT


def _event(bet: SimBet, stamp: float) -> dict[str, Any]:
    return {
        "id": str(bet.id + 1),
        "ticker": bet.slug,
        "slug": f"event-{bet.slug}",
        "title": f"{bet.question} ",
        "startDate": _iso(bet.created + 60, 3),
        "endDate": _iso(bet.ends, 0),
        "active": True,
        "closed": False,
        "archived": False,
        "createdAt": _iso(bet.created, 6),
        "updatedAt": _iso(stamp + 20, 6),
    }


def _iso(at: float, digits: int) -> str:
    text = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return (text[: 20 + digits] if digits else text[:19]) + "Z"


@expects("predictions")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the markets that `/api/predictions` must list at this instant when Polymarket answers."""
    answers = [b for b in list_bets(world)[:100] if b.outcomes == ("Yes", "No") and 0.005 < price(world, b) < 0.995]
    return [
        {
            "question": b.question,
            "yes_percent": round(100 * price(world, b), 1),
            "volume_usd": round(volume(world, b), 2),
            "source": "Polymarket",
        }
        for b in answers[:15]
    ]
