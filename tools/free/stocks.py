"""GET /api/stocks."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.parsing import numbers
from tools.shared.quotes import DEFAULTS, QUOTE_SOURCES, SHARES, QuoteBoard, read_board
from tools.sources.cnbc import INDICES
from toolserver import CardValue, Payload, Picture, Timestamp, ToolContext, tool, up_to

MOST, SHOWN = 35, 5
SYMBOL = re.compile(r"[A-Z][A-Z0-9.\-]{0,9}")
_ONE = " *[A-Za-z][A-Za-z0-9.-]{0,9} *"
SYMBOLS = f"^{_ONE}(,{_ONE}){{0,{MOST - 1}}}$"


def canonical(text: str) -> str:
    """Return symbols in upper case, each once and sorted, so that equal queries share an answer. Raises ValueError."""
    names = sorted({name.strip().upper() for name in text.split(",")})
    if len(names) > MOST or not all(SYMBOL.fullmatch(name) for name in names):
        raise ValueError(f"give 1 to {MOST} tickers separated by commas, like AAPL,MSFT")
    return ",".join(names)


class Quote(Payload):
    symbol: str
    price: float
    change_percent: float = Field(description="Against previous_close")
    change: float
    previous_close: float
    name: str | None
    as_of: Timestamp | None = Field(description="Time of the price, where the provider gives it")
    delayed: bool | None
    stale: bool = Field(description="Older than 12 minutes in market hours")


class Stocks(Payload):
    gainers: list[Quote] = Field(description="Risen, most first; at most 5 unless symbols are given")
    losers: list[Quote] = Field(description="Fallen, most first; at most 5 unless symbols are given")
    indices: list[Quote] = Field(description="S&P 500, Dow, Nasdaq Composite, Russell 2000, VIX")
    quotes: list[Quote] = Field(description="All, by symbol")
    unknown_symbols: list[str] = Field(description="Requested, and no source has them")


@tool(
    path="/api/stocks",
    title="U.S. stock quotes",
    ttl_s=15,
    toolset="all",
    stale_share=0.25,
    sources=QUOTE_SOURCES,
    distinct=(("symbols",), 60, 3600),
    headline=CardValue("indices.0.price", "", "{indices.0.name}, {indices.0.change_percent} %"),
    pictures=(
        Picture(
            "bars", "Change since the last close", rows="quotes", values=("change_percent",), label="symbol", unit="%"
        ),
    ),
)
async def stocks(
    ctx: ToolContext,
    symbols: Annotated[
        str | None,
        Field(
            pattern=SYMBOLS,
            description="Tickers separated by commas, 1-35; default: 31 widely held ones",
            examples=["AAPL,BRK.B"],
        ),
        AfterValidator(lambda text: None if text is None else canonical(text)),
    ] = None,
    limit: Annotated[int, up_to(MOST)] = MOST,
) -> Stocks:
    """U.S. share prices with change against the previous close: top gainers and losers, all quotes, and the main
    indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular tickers.

    Shape: a missing quote is left out, with a warning; it is never 0. After hours, prices stand at the last close.
    Source: CNBC for all at once; what it lacks from Yahoo, Cboe (delayed) and, with a key, Finnhub.
    """
    universe = tuple(symbols.split(",")) if symbols else tuple(sorted(SHARES))
    board = await read_board(ctx, "data", universe if symbols else ())
    missing = board.missing(dict.fromkeys((*universe, *INDICES)))
    unknown = [name for name in missing if name in board.denied and name not in DEFAULTS]
    lost = [name for name in missing if name not in unknown]
    if lost:
        ctx.warn("data.quotes", "missing_symbols", f"{len(lost)} without a quote: {', '.join(lost)}.")
    quotes = shown(board, universe, ctx.now)
    most = limit if symbols else min(limit, SHOWN)
    return Stocks(
        gainers=sorted((q for q in quotes if q.change_percent > 0), key=lambda q: -q.change_percent)[:most],
        losers=sorted((q for q in quotes if q.change_percent < 0), key=lambda q: q.change_percent)[:most],
        indices=shown(board, INDICES, ctx.now),
        quotes=ctx.page(quotes, limit, "data.quotes"),
        unknown_symbols=unknown,
    )


def shown(board: QuoteBoard, symbols: tuple[str, ...], now: datetime) -> list[Quote]:
    """Return the available quotes, in the order of the symbols."""
    return [quoted(board, symbol, now) for symbol in symbols if symbol in board.quotes]


def quoted(board: QuoteBoard, symbol: str, now: datetime) -> Quote:
    """Return a quote with a computed change: the change that providers publish sometimes contradicts their prices."""
    quote = board.quotes[symbol]
    change = quote.price - quote.previous_close
    return Quote(
        symbol=symbol,
        price=numbers.price(quote.price),
        change_percent=numbers.change_percent(quote.price, quote.previous_close),
        change=round(change, 2) + 0.0 if quote.price >= 1 else numbers.significant(change),
        previous_close=numbers.price(quote.previous_close),
        name=quote.name,
        as_of=quote.as_of,
        delayed=quote.delayed,
        stale=board.old(symbol, now),
    )
