"""GET /api/pro/crypto-deep."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tools.parsing.candles import Candle
from tools.parsing.coins import Coin
from tools.parsing.fields import percent, price, significant
from tools.shared import bitcoin_network, candles, exchange_list
from tools.shared.bitcoin_network import BitcoinNetwork, network, network_chains
from tools.shared.exchange_list import Pair, PairFigures
from tools.shared.gas import GAS_SOURCES, GasPrice, gas_fallbacks
from tools.sources.coingecko import COINS_MARKETS
from tools.sources.coinlore import TICKERS as COINLORE
from tools.sources.coinpaprika import TICKERS as COINPAPRIKA
from toolserver import (
    FREE_SIBLING,
    Fallback,
    Payload,
    Picture,
    Sections,
    Sparse,
    Tier,
    ToolContext,
    TopLevel,
    read_sections,
    tool,
    up_to,
    via,
)

COINS, PAIRS, DAYS, MOST = 50, 20, 30, 20
SYMBOL = re.compile(r"[A-Z0-9][A-Z0-9.$*+_\-]{0,19}")
_ONE = " *[A-Za-z0-9][A-Za-z0-9.$*+_-]{0,19} *"
SYMBOLS = f"^{_ONE}(,{_ONE}){{0,{MOST - 1}}}$"
COIN_SOURCES = (COINS_MARKETS, COINLORE, COINPAPRIKA)


def canonical(value: Any) -> str | None:
    """Return symbols in upper case, each once and in order; None for none. Raises ValueError."""
    listed = value if isinstance(value, list | tuple) else str(value or "").split(",")
    names = sorted({str(name).strip().upper() for name in listed} - {""})
    if len(names) > MOST or not all(SYMBOL.fullmatch(name) for name in names):
        raise ValueError(f"give at most {MOST} symbols separated by commas, like BTC,ETH")
    return ",".join(names) or None


Coins = Annotated[
    str | None,
    BeforeValidator(canonical),
    Field(
        description="Only these symbols, separated by commas, at most 20",
        examples=["BTC,ETH,SOL"],
        json_schema_extra={"pattern": SYMBOLS},
    ),
]


class CoinFigures(Payload):
    symbol: str = Field(description="Symbol of the coin")
    name: str = Field(description="Name of the coin")
    price_usd: float = Field(gt=0, description="Price in USD, over all venues")
    change_1h_percent: float | None = Field(description="Change of the price in an hour, percent; null: not published")
    change_24h_percent: float | None = Field(
        description="Change of the price in 24 hours, percent; null: not published"
    )
    change_7d_percent: float | None = Field(description="Change of the price in 7 days, percent; null: not published")
    market_cap: float | None = Field(description="Price of all coins in circulation, USD; null: not published")
    volume_24h: float | None = Field(description="Traded in 24 hours at all venues, USD; null: not published")
    rank: int = Field(ge=1, description="Rank by market value, from 1")


class GasFigures(Payload):
    low_gwei: int = Field(ge=1, description="low_gwei_exact rounded up to whole gwei, at least 1")
    standard_gwei: int = Field(description="standard_gwei_exact rounded up to whole gwei")
    fast_gwei: int = Field(description="fast_gwei_exact rounded up to whole gwei")
    base_fee_gwei: float | None = Field(
        description="Base fee of the next block, gwei; null: the explorer does not give it"
    )
    last_block: int | None = Field(description="Newest block considered; null: the explorer does not give it")
    low_gwei_exact: float = Field(
        gt=0, description="Base fee plus a low tip (10th percentile of 20 blocks), or an explorer's slow price, gwei"
    )
    standard_gwei_exact: float = Field(
        description="The same with a usual tip (median), or an explorer's average price, gwei"
    )
    fast_gwei_exact: float = Field(
        description="The same with a high tip (90th percentile), or an explorer's fast price, gwei"
    )


class DayCandle(Payload):
    ts: int = Field(description="Start of the UTC day, Unix ms")
    low: float = Field(description="Lowest price of the day, USD")
    high: float = Field(description="Highest price of the day, USD")
    open: float = Field(description="First price of the day, USD")
    close: float = Field(description="Last price of the day, USD")
    volume: float | None = Field(description="Traded on that day, BTC; null: prices of an oracle, which have none")


class DaySeries(Payload):
    btc_30d: list[DayCandle] | None = Field(
        max_length=DAYS, description="Bitcoin by day, days that are over, oldest first; null: no source answered"
    )


class PremiumCryptoDeep(TopLevel, Sparse):
    coins_top50: list[CoinFigures] | None = Field(
        max_length=COINS, description="Coins by market value, largest first; null: no source answered"
    )
    exchange_top20_usdt: list[PairFigures] | None = Field(
        max_length=PAIRS, description="Pairs of one exchange, most traded first; null: no source answered"
    )
    network_btc: BitcoinNetwork | None = Field(
        description="State of the Bitcoin network; null: no source answered, or `coins` found none"
    )
    eth_gas: GasFigures | None = Field(
        description="Price of gas on Ethereum; null: no source answered, or `coins` found none"
    )
    series: DaySeries | None = Field(default=None, description="Candles by day; absent without history=30d")
    notes: dict[str, str] = Field(description="Remarks on venue, rounding and units")


@tool(
    path="/api/pro/crypto-deep",
    title="Crypto in depth",
    search_hint="top 50 coins weekly week change market cap hashrate mempool",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=60,
    sla_s=300,
    toolset="core",
    tags={FREE_SIBLING: "crypto_movers"},
    sources=(
        *COIN_SOURCES,
        *exchange_list.LIST_SOURCES,
        *bitcoin_network.NETWORK_SOURCES,
        *GAS_SOURCES,
        *candles.DAY_SOURCES,
    ),
    pictures=(
        Picture(
            "series",
            "Bitcoin in 30 days",
            rows="series.btc_30d",
            values=("close",),
            time="ts",
            unit="$",
            arguments={"history": "30d"},
        ),
        Picture(
            "bars", "Change in 24 hours", rows="coins_top50", values=("change_24h_percent",), label="symbol", unit="%"
        ),
    ),
)
async def premium_crypto_deep(
    ctx: ToolContext,
    coins: Coins = None,
    history: Annotated[Literal["30d"] | None, Field(description="30d adds daily bitcoin candles")] = None,
    limit: Annotated[int, up_to(COINS)] = COINS,
) -> PremiumCryptoDeep:
    """Crypto in one call: the 50 largest coins with 1 h, 24 h and 7 d changes, an exchange's 20 most traded USDT pairs,
    Bitcoin's height, fees, hashrate and mempool, and Ethereum gas; `coins` picks symbols, history=30d adds daily
    bitcoin candles. For single figures use btc_price, crypto_movers or gas.

    Shape: with `coins` both lists hold those symbols only, out of the 100 largest coins and all pairs of the exchange.
    Part of a payload that no source gave is null, with a warning; a day without a candle is left out, never filled.
    Chart: with history=30d `series.btc_30d` as candles: x `ts` (Unix ms, a UTC day), `open`, `high`, `low`, `close` in
    USD, `volume` in BTC; `coins_top50` as bars of `change_24h_percent` by `symbol`, or as a map sized by `market_cap`.
    Source: CoinGecko, Coinlore or CoinPaprika; Binance, Kraken or OKX; the operator's Bitcoin node, mempool.space,
    Blockstream or Blockchain.com; an Ethereum node, Blockscout or Etherscan; candles of Coinbase, Kraken or Binance.
    Errors: 400 for more than 20 symbols; 503 when no source answers. Nothing is charged then, nor when `coins` finds
    none, which leaves the rest null too.
    """
    sections = await read_sections(ctx, _chains(history))
    sections.require_any()
    symbols = frozenset(coins.split(",")) if coins else frozenset()
    changes = sections.get(
        "coins_top50", lambda listed: {coin.symbol: coin.change_24h_percent for _, coin in listed[::-1]}
    )
    top = sections.get("coins_top50", coin_rows(symbols))
    pairs = sections.get("exchange_top20_usdt", pair_rows(ctx, symbols, changes or {}))
    nothing = bool(symbols) and not _any_matches(ctx, symbols, top, pairs)
    days = None if nothing or not history else sections.get("series.btc_30d", _days(ctx))
    payload = PremiumCryptoDeep(
        coins_top50=top and ctx.page(top, limit, "coins_top50"),
        exchange_top20_usdt=pairs and ctx.page(pairs, limit, "exchange_top20_usdt"),
        network_btc=None if nothing else network(sections, "network_btc"),
        eth_gas=None if nothing else sections.get("eth_gas", gas_figures),
        notes=_notes(sections, history),
    )
    return payload.model_copy(update={"series": DaySeries(btc_30d=days)}) if history else payload


def _chains(history: str | None) -> dict[str, tuple[Fallback[Any], ...]]:
    """Return every section by its path; daily candles only when requested."""
    chains: dict[str, tuple[Fallback[Any], ...]] = {
        "coins_top50": tuple(via(source, None, ranked) for source in COIN_SOURCES),
        "exchange_top20_usdt": exchange_list.list_fallbacks(),
        **network_chains("network_btc"),
        "eth_gas": gas_fallbacks("base_fee_gwei", "last_block"),
    }
    if history:
        chains["series.btc_30d"] = candles.btc_days(DAYS)
    return chains


def ranked(listed: Sequence[Coin]) -> list[tuple[int, Coin]]:
    """Return the coins with a rank, the largest first. Raises LookupError when none has one."""
    with_rank = [(coin.rank, coin) for coin in listed if coin.rank is not None]
    if not with_rank:
        raise LookupError("no coin has a rank")
    return sorted(with_rank, key=lambda pair: pair[0])


def coin_rows(symbols: frozenset[str]) -> Callable[[list[tuple[int, Coin]]], list[CoinFigures]]:
    """Return a function that picks the largest of the requested coins, or of all when none is requested."""

    def rows(listed: list[tuple[int, Coin]]) -> list[CoinFigures]:
        return [coin_row(coin, rank) for rank, coin in listed if not symbols or coin.symbol in symbols][:COINS]

    return rows


def coin_row(coin: Coin, rank: int) -> CoinFigures:
    changes = (coin.change_1h_percent, coin.change_24h_percent, coin.change_7d_percent)
    hour, day, week = (None if change is None else percent(change) for change in changes)
    return CoinFigures(
        symbol=coin.symbol,
        name=coin.name,
        price_usd=price(coin.price_usd),
        change_1h_percent=hour,
        change_24h_percent=day,
        change_7d_percent=week,
        market_cap=None if coin.market_cap_usd is None else float(round(coin.market_cap_usd)),
        volume_24h=None if coin.volume_24h_usd is None else float(round(coin.volume_24h_usd)),
        rank=rank,
    )


def pair_rows(
    ctx: ToolContext, symbols: frozenset[str], changes: Mapping[str, float | None]
) -> Callable[[tuple[Pair, ...]], list[PairFigures]]:
    """Return a function that picks the most traded requested pairs, or of all, and warns about missing fields.

    Where no venue publishes a pair's change, `changes` has that of the coin over all venues.
    """

    def rows(listed: tuple[Pair, ...]) -> list[PairFigures]:
        chosen = [pair for pair in listed if not symbols or pair.base in symbols][:PAIRS]
        shown = exchange_list.fill_changes(chosen, changes)
        if missing := exchange_list.missing(shown):
            text = f"{', '.join(missing)}: not known from {shown[0].venue}."
            ctx.warn("exchange_top20_usdt", "field_missing", text)
        if usd := exchange_list.pairs_in_usd(shown):
            text = f"{len(usd)} pairs are quoted in USD, for want of one in USDT: {', '.join(usd[:8])}."
            ctx.warn("exchange_top20_usdt", "degraded_fallback", text)
        if left_out := exchange_list.count_left_out(shown):
            text = f"{left_out} pairs against other coins, or in money without a price in USD, are in no volume."
            ctx.warn("exchange_top20_usdt", "degraded_fallback", text)
        return [exchange_list.show_pair(pair) for pair in shown]

    return rows


def _any_matches(
    ctx: ToolContext,
    symbols: frozenset[str],
    top: list[CoinFigures] | None,
    pairs: list[PairFigures] | None,
) -> bool:
    """Return True if any symbol was found, and warn about the others. An answer without any is not charged."""
    seen = {row.symbol for row in top or ()} | {row.pair.rpartition("-")[0] for row in pairs or ()}
    if absent := sorted(symbols - seen):
        ctx.warn("coins_top50", "missing_symbols", f"In neither list: {', '.join(absent)}.")
    if not seen:
        ctx.mark_empty()
    return bool(seen)


def gas_figures(gas: GasPrice) -> GasFigures:
    """Return whole gwei that suffice, with the exact figures."""
    return GasFigures(
        low_gwei=math.ceil(gas.low_gwei),
        standard_gwei=math.ceil(gas.standard_gwei),
        fast_gwei=math.ceil(gas.fast_gwei),
        base_fee_gwei=None if gas.base_fee_gwei is None else exact(gas.base_fee_gwei),
        last_block=gas.block,
        low_gwei_exact=exact(gas.low_gwei),
        standard_gwei_exact=exact(gas.standard_gwei),
        fast_gwei_exact=exact(gas.fast_gwei),
    )


def exact(gwei: float) -> float:
    """Round to four decimals, or to two digits where that would be 0."""
    return round(gwei, 4) or significant(gwei, 2)


def _days(ctx: ToolContext) -> Callable[[tuple[Candle, ...]], list[DayCandle]]:
    def shown(past: tuple[Candle, ...]) -> list[DayCandle]:
        if len(past) < DAYS:
            ctx.warn("series.btc_30d", "incomplete_window", f"{DAYS - len(past)} of {DAYS} days have no candle.")
        if any(candle.volume is None for candle in past):
            ctx.warn("series.btc_30d", "field_missing", "volume: not known from chainlink.")
        return [day_candle(candle) for candle in past]

    return shown


def day_candle(candle: Candle) -> DayCandle:
    return DayCandle(
        ts=int(candle.start.timestamp() * 1000),
        low=price(candle.low),
        high=price(candle.high),
        open=price(candle.open),
        close=price(candle.close),
        volume=None if candle.volume is None else round(candle.volume, 4),
    )


def _notes(sections: Sections, history: str | None) -> dict[str, str]:
    venue = sections.get("exchange_top20_usdt", lambda pairs: pairs[0].venue) or "unavailable"
    notes = {
        "exchange_list": f"Venue: {venue}. Coins against USDT by quote volume; pairs of stable coins or currencies and"
        " leveraged tokens are left out. Kraken publishes no changes: they are those of OKX or of all venues.",
        "gas_rounding": "Whole gwei are rounded up, at least 1; gas is often below that: see the exact figures.",
        "fee_rounding": "Fees are rounded up to whole satoshi per virtual byte, at least 1.",
        "volume_units": "coins_top50 USD, all venues; exchange_top20_usdt in the pair's second currency, one venue"
        " (Kraken: USD, over all currencies of the coin); btc_30d BTC.",
    }
    if history:
        count = sections.get("series.btc_30d", len)
        notes["history"] = f"{count or 0} of the {DAYS} newest complete UTC days, oldest first."
    return notes
