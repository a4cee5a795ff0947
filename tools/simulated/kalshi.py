"""Simulate Kalshi's open events on the wire: dollars and counts in strings, markets nested in events.

There are more events than a page holds, most of them hardly traded; the cursor leads to the next page.
"""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.polymarket import DAY, SimBet, bets, price, volume
from toolserver.world.model import Ask, Reply, World, serves

HOSTS = ("api.elections.kalshi.com", "external-api.kalshi.com")
PATH = "/trade-api/v2/events"
QUIET, QUIET_FROM = 300, 9000  # events, and the number of the first one's market

FORMS = {
    "empty": Reply.json({"cursor": "", "events": []}),
    "geo": Reply.json({"error": {"code": "forbidden", "message": "forbidden"}}, 403),
}


@serves("Kalshi.open_events", HOSTS[0], PATH, forms=FORMS)
def events(world: World, ask: Ask) -> Reply:
    return Reply.json(_page(world, ask) | {"milestones": []})


@serves("Kalshi.open_events", HOSTS[1], PATH, forms=FORMS)
def same_events(world: World, ask: Ask) -> Reply:
    """Answer as the other host of the same service."""
    return events.handler(world, ask)


@events.form("drift")
@same_events.form("drift")
def cents(world: World, ask: Ask) -> Reply:
    """Return the wire format of 2025: whole cents beside the strings."""
    page = _page(world, ask)
    for market in (m for e in page["events"] for m in e["markets"]):
        market["last_price"] = round(float(market["last_price_dollars"]) * 100)
    return Reply.json(page)


def _page(world: World, ask: Ask) -> dict[str, Any]:
    size, start = int(ask.params.get("limit", "100")), int(ask.params.get("cursor") or 0)
    listed = [*_events(world), *(_quiet_event(world, n) for n in range(QUIET))]
    rest = start + size < len(listed)
    return {"cursor": str(start + size) if rest else "", "events": listed[start : start + size]}


def _quiet_event(world: World, number: int) -> dict[str, Any]:
    """Return an event without trade."""
    day = world.now - world.now % DAY
    question = f"Will it rain in Freedonia on day {number + 1} from now?"
    bet = SimBet(QUIET_FROM + number, 0, "Climate", question, ("Yes", "No"), day - 30 * DAY, day + (number + 1) * DAY)
    ticker = f"KXQUIET-{number}"
    market = _market(world, bet, ticker, f"{ticker}-{bet.number}", question, "Yes", 0.5)
    return _head(bet, ticker, question[:-1]) | {"markets": [market | {"volume_24h_fp": "0.00"}]}


def _events(world: World) -> list[dict[str, Any]]:
    """Return events: elections have a market per candidate, games one per team, the rest a single market."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    heads: dict[str, dict[str, Any]] = {}
    for bet in bets(world):
        ticker, title = _event_of(bet)
        heads.setdefault(ticker, _head(bet, ticker, title))
        grouped.setdefault(ticker, []).extend(_markets(world, bet, ticker, title))
    return [head | {"markets": grouped[ticker]} for ticker, head in heads.items()]


def _event_of(bet: SimBet) -> tuple[str, str]:
    if bet.category != "Politics":
        return f"KXSIM-{bet.id}", bet.question.removesuffix("?")
    country = bet.question.split(" in ")[-1].split(" ")[0]
    return f"KXELECTION-{country.upper()}", f"Who will win the next election in {country}?"


def _head(bet: SimBet, ticker: str, title: str) -> dict[str, Any]:
    return {
        "available_on_brokers": True,
        "category": bet.category,
        "collateral_return_type": "",
        "event_ticker": ticker,
        "last_updated_ts": _iso(bet.created),
        "mutually_exclusive": bet.category in ("Politics", "Sports"),
        "series_ticker": ticker.split("-", 1)[0],
        "settlement_sources": [{"name": "The Simulated Times", "url": "https://times.example"}],
        "strike_period": "",
        "sub_title": f"Before {_iso(bet.ends)[:4]}",
        "title": title,
    }


def _markets(world: World, bet: SimBet, ticker: str, title: str) -> list[dict[str, Any]]:
    own = f"{ticker}-{bet.number}"
    if bet.category == "Sports":
        one, two = bet.outcomes
        winner = f"{title} Winner?"
        return [
            _market(world, bet, ticker, f"{own}A", winner, one, yes_price(world, bet)),
            _market(world, bet, ticker, f"{own}B", winner, two, round(1 - yes_price(world, bet), 2)),
        ]
    if bet.category == "Politics":
        who = bet.question.removeprefix("Will ").split(" win ")[0]
        return [_market(world, bet, ticker, own, title, f"{who} ({bet.number})", yes_price(world, bet))]
    return [_market(world, bet, ticker, own, bet.question, "Yes", yes_price(world, bet))]


def yes_price(world: World, bet: SimBet, at: float | None = None) -> float:
    """Return the last price here: whole cents, a little different from the other venue."""
    at = world.now if at is None else at
    off = 0.01 * world.noise(f"kalshi.{bet.number}", at / 900)
    return min(0.99, max(0.01, round(price(world, bet, at) + off, 2)))


def _market(world: World, bet: SimBet, event: str, ticker: str, title: str, yes: str, last: float) -> dict[str, Any]:
    before = yes_price(world, bet, world.now - DAY) if world.now - bet.created > DAY else 0.0
    done = world.u("kalshi.done", f"{bet.number}.{bet.life}") < 0.03
    return {
        "can_close_early": True,
        "close_time": _iso(bet.ends),
        "created_time": _iso(bet.created),
        "event_ticker": event,
        "expected_expiration_time": _iso(bet.ends),
        "expiration_time": _iso(bet.ends),
        "expiration_value": "",
        "fractional_trading_enabled": True,
        "last_price_dollars": f"{last:.4f}",
        "latest_expiration_time": _iso(bet.ends),
        "liquidity_dollars": "0.0000",
        "market_type": "binary",
        "no_ask_dollars": f"{1 - last + 0.01:.4f}",
        "no_bid_dollars": f"{1 - last - 0.01:.4f}",
        "no_sub_title": yes,
        "notional_value_dollars": "1.0000",
        "open_interest_fp": f"{volume(world, bet) * 3:.2f}",
        "open_time": _iso(bet.created),
        "previous_yes_ask_dollars": f"{before and before + 0.01:.4f}",
        "previous_yes_bid_dollars": f"{before and before - 0.01:.4f}",
        "response_price_units": "usd_cent",
        "result": "yes" if done else "",
        "rules_primary": "If it happens in the simulated world, then the market resolves to Yes.",
        "rules_secondary": "",
        "status": "finalized" if done else "active",
        "ticker": ticker,
        "title": title,
        "updated_time": _iso(world.now - 600 * world.u("kalshi.updated", bet.number)),
        "volume_24h_fp": f"{volume(world, bet) / last:.2f}",
        "volume_fp": f"{volume(world, bet) / last * 9:.2f}",
        "yes_ask_dollars": f"{last + 0.01:.4f}",
        "yes_bid_dollars": f"{last - 0.01:.4f}",
        "yes_sub_title": yes,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
