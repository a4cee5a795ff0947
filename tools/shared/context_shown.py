"""Turn source values into the parts of the agent context. The tool itself warns of missing parts."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from tools.parsing.fields import percent, price, significant
from tools.parsing.prediction_markets import Bet
from tools.parsing.series import Series, newest
from tools.parsing.spaceflight import Launch
from tools.shared.context_parts import (
    BtcNow,
    ContextMoment,
    FedRateNow,
    ForexNow,
    Infrastructure,
    LaunchNews,
    MarketNews,
    MoodNow,
    QuakeNews,
    ServiceDetails,
    StoryNews,
    VixNow,
    Word,
)
from tools.shared.front_page import StoryItem
from tools.shared.fx import FxRates
from tools.shared.large_quakes import LargeQuakes
from tools.shared.macro import Sourced
from tools.shared.markets import IndexQuote
from tools.shared.mood import Mood
from tools.shared.spot import Spot
from tools.shared.status import MAJORS, ServiceItem, Status
from tools.sources.nyfed import FundsRate

WORDS: dict[Status, Word] = {
    "operational": "operational",
    "degraded": "minor issues",
    "partial_outage": "major issues",
    "major_outage": "critical",
    "maintenance": "maintenance",
    "unknown": "unknown",
}


def moment(now: dt.datetime) -> ContextMoment:
    day = now.strftime("%A")
    return ContextMoment(
        iso=now,
        unix_ms=int(now.timestamp() * 1000),
        human_readable_utc=f"{day}, {now.day} {now:%B %Y, %H:%M} UTC",
        weekday=day,
    )


def btc(spot: Spot, as_of: dt.datetime) -> BtcNow:
    change, volume = spot.change_24h_percent, spot.volume_24h_usd
    return BtcNow(
        price_usd=price(spot.price_usd),
        change_24h_percent=None if change is None else percent(change),
        volume_24h=None if volume is None else float(round(volume)),
        quote=spot.quote,
        as_of=as_of,
    )


def mood(index: Mood) -> MoodNow:
    return MoodNow(value=index.value, label=index.label, source=index.index_name, as_of=index.as_of)


def vix(quote: IndexQuote) -> VixNow:
    return VixNow(
        value=quote.price,
        change_percent=quote.change_percent,
        source=quote.source,
        freshness=quote.freshness,
        as_of=quote.as_of,
    )


def fed_rate(funds: FundsRate) -> FedRateNow:
    """Return the effective rate and the range that the Fed targets."""
    rate = _rate(funds.percent)
    return rate.model_copy(update={"target_from": funds.target_from_percent, "target_to": funds.target_to_percent})


def other_fed_rate(sourced: Sourced) -> FedRateNow:
    """Return the effective rate from a provider that does not publish the range."""
    return _rate(sourced.series)


def _rate(observations: Series) -> FedRateNow:
    last = newest(observations)
    return FedRateNow(value=significant(last.value), as_of=last.date, target_from=None, target_to=None)


def forex(rates: FxRates) -> ForexNow:
    """Return the four currencies of the newest day. Raises LookupError when none of them is quoted."""
    per_usd = {code: rates.newest.per_usd.get(code) for code in ("EUR", "JPY", "GBP", "CHF")}
    if not any(per_usd.values()):
        raise LookupError("none of the four currencies")
    shown = {code: None if rate is None else significant(rate) for code, rate in per_usd.items()}
    return ForexNow(**shown, date=rates.newest.date, kind=rates.kind)


def quakes(large: LargeQuakes) -> list[QuakeNews]:
    return [
        QuakeNews(magnitude=round(magnitude, 1), place=quake.place, time=quake.time, url=quake.url)
        for quake, magnitude in large.quakes[:3]
    ]


def launches(upcoming: Sequence[Launch]) -> list[LaunchNews]:
    return [
        LaunchNews(
            mission=launch.mission or launch.name,
            vehicle=launch.vehicle,
            provider=launch.provider,
            net=launch.net,
            time_precision=launch.precision,
            status=launch.status,
        )
        for launch in upcoming[:3]
    ]


def stories(items: tuple[StoryItem, ...]) -> list[StoryNews]:
    return [StoryNews(title=s.title, points=s.score, comments=s.comments, url=s.url) for s in items[:5]]


def markets(bets: tuple[Bet, ...]) -> list[MarketNews]:
    return [
        MarketNews(
            question=bet.question,
            yes_probability=round(bet.prices[0], 4),
            volume_24h=round(bet.volume_24h_usd, 2),
            url=bet.url,
        )
        for bet in bets[:3]
    ]


def infrastructure(items: Iterable[ServiceItem]) -> Infrastructure:
    """Return the four services in our words; all unknown when none of their pages answered."""
    said = {item.name: WORDS[item.status] for item in items}
    words: dict[str, Word] = {page.name: said.get(page.name, "unknown") for page in MAJORS}
    fine = [name for name, word in words.items() if word == "operational"]
    return Infrastructure(
        summary=_summary(words, fine),
        details=ServiceDetails(**words),
        all_operational=len(fine) == len(words),
    )


def _summary(words: Mapping[str, Word], fine: Sequence[str]) -> str:
    """Summarise the services by name, those that are not operational first."""
    if len(fine) == len(words):
        return f"All operational: {', '.join(fine)}."
    others = [
        f"status of {name} unknown" if word == "unknown" else f"{name} {word}"
        for name, word in words.items()
        if name not in fine
    ]
    text = "; ".join([*others, *([f"operational: {', '.join(fine)}"] if fine else [])])
    return f"{text[0].upper()}{text[1:]}."
