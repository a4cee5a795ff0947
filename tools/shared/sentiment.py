"""Find the tickers that headlines name, score the words around them, and summarise the scores."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tools.parsing.prediction_markets import Bet
from tools.shared.headlines import FINANCE, Item
from tools.shared.lexicon import score
from tools.shared.tickers import find_tickers

Label = Literal["negative", "moderately_negative", "neutral", "moderately_positive", "positive"]
VixLabel = Literal["low_volatility", "normal", "elevated", "high_volatility", "unknown"]
Signal = Literal["+", "-", "neutral"]
Confidence = Literal["low", "medium", "high"]

SAMPLES = 3
FINANCE_WORDS = (
    "bitcoin", "ethereum", "crypto", "fed", "rate cut", "rate hike", "recession", "inflation", "cpi", "s&p", "nasdaq",
    "dow", "tariff", "treasury", "gdp", "jobs", "oil", "gold", "ipo", "etf",
)  # fmt: skip
_FINANCE = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, FINANCE_WORDS))})s?(?!\w)", re.IGNORECASE)


class Mention(NamedTuple):
    """A headline that names a ticker, with the score of its words."""

    item: Item
    score: float


class Talk(NamedTuple):
    """All of a day's headlines that name a ticker, oldest first, and their mean score."""

    symbol: str
    mentions: tuple[Mention, ...]
    score: float

    @property
    def publishers(self) -> dict[str, int]:
        """Mentions by publisher, the most first."""
        return dict(Counter(mention.item.publisher for mention in self.mentions).most_common())


def talk(items: Iterable[Item]) -> list[Talk]:
    """Return every ticker that is named, the most named first, then the one with the clearer score."""
    by_symbol: dict[str, list[Mention]] = {}
    for item in items:
        symbols = find_tickers(item.said, finance=item.publisher in FINANCE)
        worth = score(item.said) if symbols else 0.0
        for symbol in symbols:
            by_symbol.setdefault(symbol, []).append(Mention(item, worth))
    talks = [Talk(symbol, tuple(mentions), mean(mentions)) for symbol, mentions in by_symbol.items()]
    return sorted(talks, key=lambda each: (-len(each.mentions), -abs(each.score), each.symbol))


def mean(mentions: list[Mention]) -> float:
    return round(sum(mention.score for mention in mentions) / len(mentions), 3) + 0.0


def samples(mentions: Iterable[Mention]) -> list[Mention]:
    """Return three samples: the clearest, newer ones first, from as many publishers as possible."""
    best = sorted(mentions, key=lambda mention: (-abs(mention.score), -mention.item.at.timestamp()))
    seen: set[str] = set()
    first: list[Mention] = []
    again: list[Mention] = []
    for mention in best:
        (again if mention.item.publisher in seen else first).append(mention)
        seen.add(mention.item.publisher)
    chosen = [*first, *again][:SAMPLES]
    return sorted(chosen, key=best.index)


def label(value: float) -> Label:
    if value > 0.1:
        return "positive" if value > 0.3 else "moderately_positive"
    if value >= -0.1:
        return "neutral"
    return "moderately_negative" if value >= -0.3 else "negative"


def signal(value: float) -> Signal:
    return "+" if value > 0.1 else "-" if value < -0.1 else "neutral"


def confidence(mentions: int) -> Confidence:
    return "low" if mentions < 3 else "medium" if mentions < 10 else "high"


def vix_label(value: float) -> VixLabel:
    if value < 25:
        return "low_volatility" if value < 15 else "normal"
    return "elevated" if value < 40 else "high_volatility"


def financial(bets: Iterable[Bet]) -> list[Bet]:
    """Return the markets about finance, in their order."""
    return [bet for bet in bets if _FINANCE.search(bet.question)]
