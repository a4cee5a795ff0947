"""GET /api/stocks: one board of quotes from several providers, each queried only for the missing quotes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

import anyio
from pydantic import AfterValidator, Field

from tools.parsing import fields
from tools.parsing.market_hours import in_session
from tools.parsing.stock_quotes import Quotes, StockQuote, Symbols
from tools.shared.companies import UnknownCompany, find_name, find_symbol, show_company
from tools.sources import cboe, yahoo
from tools.sources.cboe import DELAYED_QUOTE
from tools.sources.cnbc import INDICES, QUOTES, QUOTES_ON_DEMAND
from tools.sources.finnhub import QUOTE
from tools.sources.yahoo import SPARK
from toolserver import (
    CardValue,
    FallbackReader,
    InvalidArguments,
    MarketQuote,
    Meaning,
    Payload,
    Picture,
    Source,
    SourceEmpty,
    SourceError,
    SourceNote,
    SourceUnusable,
    Timestamp,
    ToolContext,
    tool,
    up_to,
)

SHARES = (
    "SPY", "QQQ", "DIA", "IWM", "NVDA", "AAPL", "MSFT", "GOOGL", "AMZN", "META", "TSLA", "AMD", "COIN", "CRCL", "PLTR",
    "MSTR", "SMCI", "AVGO", "CRM", "NFLX", "XYZ", "SHOP", "HOOD", "SOFI", "MARA", "RIOT", "UBER", "ARM", "SNOW", "RBLX",
    "RIVN",
)  # fmt: skip
DEFAULTS = (*INDICES, *SHARES)  # indices first: the last providers are queried for the first few only
QUOTE_SOURCES = (QUOTES, SPARK, DELAYED_QUOTE, QUOTE)
SINGLY = 10  # symbols that one refresh requests one by one from a provider,
PATIENCE_S = 4.0  # and for how long; slower providers answer the next refresh
REFUSALS = 2  # of a provider queried one by one, after which it is skipped
LACKS = {DELAYED_QUOTE: frozenset(INDICES) - set(cboe.INDICES), QUOTE: frozenset(INDICES)}
OLD = timedelta(minutes=12)
DELAY = timedelta(minutes=20)  # of quotes that are delayed by design


@dataclass(slots=True)
class QuoteBoard:
    """Quotes by symbol and when they were fetched, the symbols that a provider denied, and failed providers."""

    quotes: dict[str, StockQuote] = field(default_factory=dict)
    fetched_at: dict[str, datetime] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    failures: list[tuple[Source[Any, Any], SourceError]] = field(default_factory=list)
    singly: Counter[str] = field(default_factory=Counter)  # symbols requested one by one, by source name

    def missing(self, symbols: Iterable[str]) -> list[str]:
        return [symbol for symbol in symbols if symbol not in self.quotes]

    def old(self, symbol: str, now: datetime) -> bool:
        """Return True if a quote is too old for trading hours: fetched long ago, or unchanged while others trade."""
        quote = self.quotes[symbol]
        late = in_session(now) and now - self.fetched_at[symbol] > OLD
        limit = OLD + DELAY if quote.delayed else OLD
        return late or bool(quote.trading and quote.as_of and now - quote.as_of > limit)


async def read_board(ctx: ToolContext, section: str, symbols: tuple[str, ...] = ()) -> QuoteBoard:
    """Return the indices and the symbols (by default the usual shares) that any provider has.

    The section names the provider that answers for all; those that fill gaps are listed under its `.quotes`.
    Raises SourceError when none answers.
    """
    wanted = tuple(dict.fromkeys((*symbols, *INDICES))) if symbols else DEFAULTS
    board = await ctx.first(
        section,
        _from_cnbc,
        _from_yahoo,
        lambda reading: _from_one_by_one(reading, DELAYED_QUOTE, wanted),
        lambda reading: _from_one_by_one(reading, QUOTE, wanted),
    )
    gaps = f"{section}.quotes"
    await ctx.first(gaps, lambda reading: _fill(board, reading, wanted))
    failures = [(source, error) for source, error in board.failures if not isinstance(error, SourceUnusable)]
    ctx.notes.add(SourceNote(source, gaps, "error", reason=error.reason) for source, error in failures)
    return board


async def _from_cnbc(reading: FallbackReader) -> QuoteBoard:
    board = QuoteBoard()
    _take(board, reading, DEFAULTS, await reading.read(QUOTES, Symbols(DEFAULTS)))
    return board


async def _from_yahoo(reading: FallbackReader) -> QuoteBoard:
    board, batch = QuoteBoard(), DEFAULTS[: yahoo.BATCH]
    _take(board, reading, batch, await reading.read(SPARK, Symbols(batch)))
    return board


async def _from_one_by_one(
    reading: FallbackReader, source: Source[str, StockQuote | None], wanted: tuple[str, ...]
) -> QuoteBoard:
    board = QuoteBoard()
    await _fill_singly(board, reading, source, wanted)
    if not board.quotes:
        raise board.failures[0][1] if board.failures else SourceEmpty("no quote")
    return board


async def _fill(board: QuoteBoard, reading: FallbackReader, wanted: tuple[str, ...]) -> None:
    """Request the missing quotes. Failures are only noted."""
    named = tuple(symbol for symbol in wanted if symbol not in DEFAULTS)
    if named:
        await _ask(board, reading, QUOTES_ON_DEMAND, Symbols(named, must_exist=False))
    missing = board.missing(wanted)
    for start in range(0, len(missing), yahoo.BATCH):
        await _ask(board, reading, SPARK, Symbols(tuple(missing[start : start + yahoo.BATCH]), must_exist=False))
    for source in LACKS:
        await _fill_singly(board, reading, source, wanted)


async def _fill_singly(
    board: QuoteBoard, reading: FallbackReader, source: Source[str, StockQuote | None], symbols: tuple[str, ...]
) -> None:
    left = SINGLY - board.singly[source.name]
    with anyio.move_on_after(PATIENCE_S):
        for symbol in [s for s in board.missing(symbols) if s not in LACKS[source]][:left]:
            if sum(failed is source for failed, _ in board.failures) >= REFUSALS:
                return
            await _ask_for_one(board, reading, source, symbol)


async def _ask(board: QuoteBoard, reading: FallbackReader, source: Source[Symbols, Quotes], query: Symbols) -> None:
    try:
        _take(board, reading, query.names, await reading.read(source, query))
    except SourceError as error:
        board.failures.append((source, error))


async def _ask_for_one(
    board: QuoteBoard, reading: FallbackReader, source: Source[str, StockQuote | None], symbol: str
) -> None:
    board.singly[source.name] += 1
    try:
        quote = await reading.read(source, symbol)
    except SourceError as error:
        board.failures.append((source, error))
    else:
        _take(board, reading, (symbol,), {symbol: quote} if quote else {})


def _take(
    board: QuoteBoard, reading: FallbackReader, symbols: tuple[str, ...], quotes: Mapping[str, StockQuote]
) -> None:
    """Put quotes on the board, with the time of the latest answer."""
    fetched_at = reading.notes[-1].fetched_at
    assert fetched_at is not None
    board.quotes.update(quotes)
    board.fetched_at.update(dict.fromkeys(quotes, fetched_at))
    board.denied.update(symbol for symbol in symbols if symbol not in quotes)


MOST, SHOWN = 35, 5
SYMBOLS = f"^[^,]{{1,40}}(,[^,]{{1,40}}){{0,{MOST - 1}}}$"


def canonical(text: str) -> str:
    """Return tickers, each once and sorted, so that equal queries share an answer. What is unknown stays as it is.

    Raises ValueError if a name is blank.
    """
    if not all(name.strip() for name in text.split(",")):
        raise ValueError("give tickers or names separated by commas, like AAPL,MSFT")
    found = (find_symbol(name) for name in text.split(","))
    return ",".join(sorted({each.text if isinstance(each, UnknownCompany) else each for each in found}))


def _refuse(unknown: UnknownCompany) -> InvalidArguments:
    meant = f"; did you mean {' or '.join(map(show_company, unknown.similar))}?" if unknown.similar else ""
    message = f"{unknown.text!r} is no ticker, and no company of this name is known{meant}"
    errors = [{"loc": "symbols", "msg": message, "type": "unknown_company"}]
    return InvalidArguments(f"symbols: {message}", errors=errors, did_you_mean=unknown.similar)


class Quote(Payload):
    symbol: str = Field(description="Ticker of the share, fund or index")
    price: float = Field(description="Last price, USD; points for an index")
    change_percent: float = Field(description="Change against previous_close, percent")
    change: float = Field(description="price less previous_close")
    previous_close: float = Field(description="Close of the session before")
    name: str | None = Field(description="Name, the provider's or else our list's; null: neither has it")
    as_of: Timestamp | None = Field(description="Time of the price; null: the provider does not give it")
    delayed: bool | None = Field(description="Whether the provider calls the price delayed; null: it does not say")
    stale: bool = Field(description="Older than 12 minutes (delayed ones 32) in market hours")


class Stocks(Payload):
    gainers: list[Quote] = Field(
        description="Of the symbols listed, risen, most first; at most 5 unless symbols are given"
    )
    losers: list[Quote] = Field(
        description="Of the symbols listed, fallen, most first; at most 5 unless symbols are given"
    )
    indices: list[Quote] = Field(description="S&P 500, Dow, Nasdaq Composite, Russell 2000, VIX")
    quotes: list[Quote] = Field(description="All, by symbol")
    unknown_symbols: list[str] = Field(description="Requested, and no source has them")


@tool(
    path="/api/stocks",
    title="U.S. stock quotes",
    search_hint="stock share price Apple Google Tesla S&P top gainers losers advancers decliners",
    toolset="core",
    ttl_s=15,
    stale_share=0.25,
    sources=QUOTE_SOURCES,
    distinct=(("symbols",), 60, 3600),
    headline=CardValue(
        "indices.0.price",
        "",
        "{indices.0.name}",
        change="indices.0.change_percent",
        quotes=tuple(
            MarketQuote(f"{{indices.{index}.name}}", f"indices.{index}.price", "", f"indices.{index}.change_percent")
            for index in range(3)
        ),
    ),
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
            description="Tickers or names, separated by commas, 1-35; default: 31 widely held ones",
            examples=["AAPL,BRK.B"],
        ),
        AfterValidator(lambda text: None if text is None else canonical(text)),
    ] = None,
    limit: Annotated[int, up_to(MOST)] = MOST,
) -> Stocks:
    """U.S. share prices with change since the last close: gainers and losers of those listed, quotes, and the main
    indices (S&P 500, Dow, Nasdaq, Russell 2000, VIX). Give `symbols` for particular shares: AAPL or Apple.

    Shape: a missing quote is left out, with a warning; it is never 0. After hours, prices stand at the last close.
    Source: CNBC for all at once; what it lacks from Yahoo, Cboe (delayed) and, with a key, Finnhub.
    """
    for each in map(find_symbol, symbols.split(",") if symbols else ()):
        if isinstance(each, UnknownCompany):
            raise _refuse(each)
    universe = tuple(symbols.split(",")) if symbols else tuple(sorted(SHARES))
    board = await read_board(ctx, "data", universe if symbols else ())
    missing = board.missing(dict.fromkeys((*universe, *INDICES)))
    unknown = [name for name in missing if name in board.denied and name not in DEFAULTS]
    lost = [name for name in missing if name not in unknown]
    if lost:
        ctx.warn("data.quotes", "missing_symbols", f"{len(lost)} without a quote: {', '.join(lost)}.")
    quotes, indices = shown(board, universe, ctx.now), shown(board, INDICES, ctx.now)
    warn_lacking(ctx, [*indices, *quotes])
    most = limit if symbols else min(limit, SHOWN)
    return Stocks(
        gainers=sorted((q for q in quotes if q.change_percent > 0), key=lambda q: -q.change_percent)[:most],
        losers=sorted((q for q in quotes if q.change_percent < 0), key=lambda q: q.change_percent)[:most],
        indices=indices,
        quotes=ctx.page(quotes, limit, "data.quotes"),
        unknown_symbols=unknown,
    )


def warn_lacking(ctx: ToolContext, quotes: list[Quote]) -> None:
    """Warn of what the first provider gives and those that stand in for it do not."""
    members = ("as_of", "name", "delayed")
    lacking = {name: sum(getattr(each, name) is None for each in quotes) for name in members}
    told = [f"{name} of {count} of {len(quotes)} quotes" for name, count in lacking.items() if count]
    if told:
        ctx.warn("data.quotes", "field_missing", f"Not known from the providers that answered: {', '.join(told)}.")


def shown(board: QuoteBoard, symbols: tuple[str, ...], now: datetime) -> list[Quote]:
    """Return the available quotes, in the order of the symbols."""
    return [quoted(board, symbol, now) for symbol in symbols if symbol in board.quotes]


def quoted(board: QuoteBoard, symbol: str, now: datetime) -> Quote:
    """Return a quote with a computed change: the change that providers publish sometimes contradicts their prices."""
    quote = board.quotes[symbol]
    change = quote.price - quote.previous_close
    return Quote(
        symbol=symbol,
        price=fields.price(quote.price),
        change_percent=fields.change_percent(quote.price, quote.previous_close),
        change=round(change, 2) + 0.0 if quote.price >= 1 else fields.significant(change),
        previous_close=fields.price(quote.previous_close),
        name=quote.name or find_name(symbol),
        as_of=quote.as_of,
        delayed=quote.delayed,
        stale=board.old(symbol, now),
    )


GAINERS = Meaning(
    "stocks.gainers",
    "Exchanges rank the whole market; ours ranks the symbols listed, 31 unless symbols are given, by the change "
    "against the close of the last regular session",
)
