"""Simulate Polymarket's market lists on the wire: JSON inside strings, one timestamp for all rows.

The bare list announces that it is deprecated; its successor wraps the same rows and names the next page.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.bets import DAY, HOUR, LIVELY, SimBet, bets, price, price_change, volume
from toolserver.world.model import Ask, Reply, World, expects, serves

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
