"""Find the tickers that headlines name, score the words around them, and summarise the scores.

Names of tickers that are also plain English words need a second word as context. The score
counts words of a list (lexicon 1) and does not consider context.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tools.parsing.prediction_markets import Bet
from tools.shared.headlines import FINANCE, Item
from toolserver import Meaning

AssetClass = Literal["crypto", "equity", "crypto-equity"]

CONTEXT = (
    "price", "token", "coin", "crypto", "blockchain", "stock", "shares", "nasdaq", "nyse", "earnings", "revenue",
    "market", "etf", "rally", "trading", "investors",
)  # fmt: skip
"""Words that show that a title is about markets."""


class TickerRule(NamedTuple):
    """`symbols` and `names` suffice alone; `unclear_*` need a word of CONTEXT in the same title."""

    symbol: str
    asset_class: AssetClass
    symbols: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    unclear_symbols: tuple[str, ...] = ()
    unclear_names: tuple[str, ...] = ()


def _ticker(symbol: str, kind: AssetClass, *names: str, unclear: str = "", also: str = "") -> TickerRule:
    """Build a rule. `!` before the symbol: it needs context. `unclear`: names that need it. `also`: a former symbol."""
    plain, old = symbol.removeprefix("!"), (also,) if also else ()
    needs = symbol != plain
    return TickerRule(
        plain,
        kind,
        old if needs else (plain, *old),
        names,
        (plain,) if needs else (),
        (unclear,) if unclear else (),
    )


TICKERS = (
    _ticker("BTC", "crypto", "Bitcoin"),
    _ticker("ETH", "crypto", "Ethereum", unclear="Ether"),
    _ticker("!SOL", "crypto", "Solana"),
    _ticker("BNB", "crypto", "Binance Coin"),
    _ticker("XRP", "crypto", unclear="Ripple"),
    _ticker("!ADA", "crypto", "Cardano"),
    _ticker("DOGE", "crypto", "Dogecoin"),
    _ticker("!DOT", "crypto", "Polkadot"),
    _ticker("!LINK", "crypto", "Chainlink"),
    _ticker("AVAX", "crypto", unclear="Avalanche"),
    _ticker("!POL", "crypto", unclear="Polygon", also="MATIC"),
    _ticker("!NEAR", "crypto", "NEAR Protocol"),
    _ticker("!SPY", "equity", "S&P 500", "S&P500"),
    _ticker("QQQ", "equity", "Nasdaq 100", "Nasdaq-100"),
    _ticker("NVDA", "equity", "Nvidia"),
    _ticker("AAPL", "equity", unclear="Apple"),
    _ticker("MSFT", "equity", "Microsoft"),
    _ticker("GOOGL", "equity", "Google", unclear="Alphabet"),
    _ticker("AMZN", "equity", unclear="Amazon"),
    _ticker("!META", "equity", "Meta Platforms", "Facebook"),
    _ticker("TSLA", "equity", "Tesla"),
    _ticker("AMD", "equity", "Advanced Micro Devices"),
    _ticker("!COIN", "crypto-equity", "Coinbase"),
    _ticker("MSTR", "crypto-equity", "MicroStrategy", unclear="Strategy"),
    _ticker("!MARA", "crypto-equity", "Marathon Digital", "MARA Holdings"),
    _ticker("!RIOT", "crypto-equity", "Riot Platforms"),
)
BY_SYMBOL = {ticker.symbol: ticker for ticker in TICKERS}

_WORDS = "|".join(word if word.endswith("s") else f"{word}s?" for word in CONTEXT)
_CONTEXT = re.compile(rf"(?<![\w$])(?!COIN\b)(?i:{_WORDS})(?!\w)")  # COIN is a symbol, not the word


def _whole(words: Iterable[str], before: str, after: str) -> re.Pattern[str] | None:
    either = "|".join(re.escape(word) for word in words)
    return re.compile(f"{before}(?:{either}){after}") if either else None


class _Matcher:
    """The patterns that find one ticker in a title."""

    def __init__(self, ticker: TickerRule) -> None:
        cashtags = (f"${symbol}" for symbol in (*ticker.symbols, *ticker.unclear_symbols))
        self._clear = _whole((*cashtags, *ticker.symbols, *ticker.names), r"(?<![\w$])", r"(?!\w)")
        self._name = _whole(ticker.unclear_names, r"(?<![\w$])", r"(?!\w)")
        self._symbol = _whole(ticker.unclear_symbols, r"(?<![\w$./-])", r"(?![\w/-]|\.\w)")  # not the NEAR of NEAR-term

    def __call__(self, title: str, context: bool, finance: bool) -> bool:
        if self._clear is not None and self._clear.search(title):
            return True
        if (context or finance) and self._name is not None and self._name.search(title):
            return True
        return context and self._symbol is not None and self._symbol.search(title) is not None


_OWNER = {w: t.symbol for t in TICKERS for w in (*t.symbols, *t.names, *t.unclear_symbols, *t.unclear_names)}
_ANY = re.compile("|".join(map(re.escape, sorted(_OWNER, key=len, reverse=True))))
_MATCHERS = {ticker.symbol: _Matcher(ticker) for ticker in TICKERS}


@functools.lru_cache(4096)
def find_tickers(title: str, *, finance: bool = False) -> tuple[str, ...]:
    """Return the symbols of the tickers in a title. `finance`: the title is of a finance feed,
    where Apple is the company.
    """
    maybe = {_OWNER[word] for word in _ANY.findall(title)}  # most titles have none, and this is quick to see
    if not maybe:
        return ()
    context = _CONTEXT.search(title) is not None
    return tuple(s for s, matches in _MATCHERS.items() if s in maybe and matches(title, context, finance))


POSITIVE = (
    "surge soar rally jump gain climb rise rebound recover beat outperform upgrade bullish breakout approve approval"
    " adopt adoption inflow profit growth strong boost buyback accumulate expand partnership milestone win optimism"
    " upside record-high all-time-high outpace exceed top raise dividend relief"
)
NEGATIVE = (
    "plunge crash slump tumble drop fall sink slide selloff sell-off dump loss lose miss downgrade bearish breakdown"
    " hack exploit breach lawsuit sue probe investigate fraud scam ban halt delay layoff bankrupt bankruptcy default"
    " outflow liquidate liquidation recession warn weak fear delist tariff outage"
)
IRREGULAR = {"rose": 1, "won": 1, "beaten": 1, "fell": -1, "sank": -1, "lost": -1, "slid": -1, "sold-off": -1}
NEGATORS = frozenset("no not never without fails denies despite ends".split())
REACH = 3  # words before a hit in which a negator reverses it

_VOWELS = "aeiou"
_DOUBLES = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")  # one syllable that ends in one vowel and one consonant
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def forms(word: str) -> frozenset[str]:
    """Return the word with the endings of English verbs and nouns, including forms that do not exist."""
    if "-" in word:
        return frozenset({word, f"{word}s"})
    stem = word.removesuffix("e")
    plural = f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return frozenset({word, f"{word[:-1]}ies", f"{word[:-1]}ied", f"{word}ing"})
    if _DOUBLES.fullmatch(word):
        stem += word[-1]
    return frozenset({word, plural, f"{stem}ed", f"{stem}ing"})


WORTH = (
    {form: 1 for word in POSITIVE.split() for form in forms(word)}
    | {form: -1 for word in NEGATIVE.split() for form in forms(word)}
    | IRREGULAR
)


@functools.lru_cache(4096)
def score(title: str) -> float:
    """Return (positive - negative) / (positive + negative) words, -1 … 1; 0 without any."""
    words = _WORD.findall(title.casefold())
    hits = [at for at, word in enumerate(words) if word in WORTH or "-" in word]  # hits are few, so only they cost time
    signs = [sign for at in hits for sign in _signs(words[at], words[max(0, at - REACH) : at])]
    return sum(signs) / len(signs) if signs else 0.0


def _signs(word: str, before: list[str]) -> list[int]:
    """Return +1 or -1 for the word, or for each part of a compound that is not an entry itself."""
    parts = [word] if word in WORTH else word.split("-")
    turned = -1 if NEGATORS.intersection(before) else 1
    return [turned * WORTH[part] for part in parts if part in WORTH]


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


SENTIMENT = (
    Meaning(
        "pro/sentiment.trending.sentiment_label",
        "Nobody defines words for a tone. Ours: neutral from -0.1 to 0.1 with both ends, moderately_ to 0.3 and -0.3 "
        "with the ends",
        decide=label,
        rows=(
            (-0.301, "negative"),
            (-0.3, "moderately_negative"),
            (-0.101, "moderately_negative"),
            (-0.1, "neutral"),
            (0.1, "neutral"),
            (0.101, "moderately_positive"),
            (0.3, "moderately_positive"),
            (0.301, "positive"),
        ),
    ),
    Meaning(
        "pro/sentiment.trending.sample_headlines.sentiment_signal",
        "+ above 0.1, - below -0.1",
        decide=signal,
        rows=((-0.101, "-"), (-0.1, "neutral"), (0.1, "neutral"), (0.101, "+")),
    ),
    Meaning(
        "pro/sentiment.trending.confidence",
        "By the headlines that name a ticker: low below 3, medium below 10",
        decide=confidence,
        rows=((2, "low"), (3, "medium"), (9, "medium"), (10, "high")),
    ),
    Meaning(
        "pro/sentiment.market_indices.stocks_vix.label",
        "Cboe publishes the VIX without words. Ours: low_volatility below 15, normal below 25, elevated below 40",
        decide=vix_label,
        rows=(
            (14.99, "low_volatility"),
            (15, "normal"),
            (24.99, "normal"),
            (25, "elevated"),
            (39.99, "elevated"),
            (40, "high_volatility"),
        ),
    ),
)


def financial(bets: Iterable[Bet]) -> list[Bet]:
    """Return the markets about finance, in their order."""
    return [bet for bet in bets if _FINANCE.search(bet.question)]
