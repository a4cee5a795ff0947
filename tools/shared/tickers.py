"""Match twenty-six tickers in titles. Names that are also plain English words need a second word as context."""

import functools
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

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
    """Return the symbols of the tickers in a title. `finance`: the title is of a finance feed, where Apple is the
    company.
    """
    maybe = {_OWNER[word] for word in _ANY.findall(title)}  # most titles have none, and this is quick to see
    if not maybe:
        return ()
    context = _CONTEXT.search(title) is not None
    return tuple(s for s, matches in _MATCHERS.items() if s in maybe and matches(title, context, finance))
