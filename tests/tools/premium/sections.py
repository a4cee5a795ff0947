"""The sections of premium payloads, as `_meta.sources[].section` names them, and all who may serve each."""

from typing import Any

_STATUS_PAGES = "context.infrastructure."

_BTC = {
    "Coinbase.candles",
    "Coinbase.product_stats",
    "Kraken.ohlc",
    "Kraken.ticker",
    "Binance.ticker_24h",
    "OKX.spot_tickers",
    "CoinGecko.markets",
    "Coinlore.tickers",
    "Chainlink.price_feed",
    "Chainlink.round_history",
}
_CANDLES = {
    "Coinbase.candles",
    "Kraken.ohlc",
    "Binance.klines",
    "Chainlink.price_feed",
    "Chainlink.round_history",
}
SECTIONS: dict[str, dict[str, set[str]]] = {
    "agent-context": {
        "context.infrastructure.Anthropic": {"Statuspage.Anthropic"},
        "context.infrastructure.Cloudflare": {"Statuspage.Cloudflare"},
        "context.infrastructure.GitHub": {"Statuspage.GitHub"},
        "context.infrastructure.OpenAI": {"Statuspage.OpenAI"},
        "context.markets.btc": _BTC,
        "context.markets.crypto_fear_greed": {"AlternativeMe.fear_greed"},
        "context.markets.fed_funds_rate": {"NYFed.effr", "FRED.graph_csv"},
        "context.markets.forex_usd_base": {
            "Frankfurter.usd_timeseries",
            "ECB.reference_rates_90d",
            "CurrencyApi.usd_rates",
        },
        "context.markets.vix": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Cboe.vix_history"},
        "context.world_events.news_front_page_top5": {"HackerNews.top_ids", "HackerNewsAlgolia.front_page"},
        "context.world_events.prediction_markets_top3": {"Polymarket.markets_by_volume", "Kalshi.open_events"},
        "context.world_events.significant_earthquakes_24h": {"USGS.earthquakes_feed", "EMSC.earthquakes_query"},
        "context.world_events.upcoming_space_launches": {
            "LaunchLibrary.upcoming_launches",
            "RocketLaunchLive.next_launches",
        },
    },
    "briefing": {
        "sections.btc": _BTC,
        "sections.earthquakes": {"USGS.earthquakes_feed", "EMSC.earthquakes_query"},
        "sections.fear_greed": {"AlternativeMe.fear_greed"},
        "sections.humans_in_space": {"Corquaid.people_in_space", "LaunchLibrary.astronauts_in_space"},
        "sections.predictions": {"Polymarket.markets_by_volume", "Kalshi.open_events"},
        "sections.tech_news": {"HackerNews.top_ids", "HackerNewsAlgolia.front_page"},
        "series.btc_24h": _CANDLES,
    },
    "correlation-matrix": {
        "assets.OIL_WTI": {"FRED.graph_csv", "Datahub.wti_daily"},
        "assets.TREASURY_10Y": {"Treasury.par_yield_curve", "FRED.graph_csv"},
        "assets.TREASURY_2Y": {"Treasury.par_yield_curve", "FRED.graph_csv"},
        "assets.USD_INDEX": {"FRED.graph_csv", "FederalReserve.broad_dollar_index"},
    },
    "crypto-deep": {
        "coins_top50": {"CoinGecko.markets", "Coinlore.tickers", "CoinPaprika.tickers"},
        "eth_gas": {"Ethereum.full_block", "Ethereum.fee_history", "Blockscout.gas_prices"},
        "exchange_top20_usdt": {"Binance.ticker_24h", "Kraken.asset_pairs", "Kraken.ticker_all", "OKX.spot_tickers"},
        "network_btc.block_height": {"Mempool.network", "Blockstream.network"},
        "network_btc.fees_sat_per_vb": {"Mempool.network", "Blockstream.network"},
        "network_btc.hashrate": {"Mempool.network", "BlockchainInfo.stats"},
        "network_btc.mempool": {"Mempool.network", "Blockstream.network"},
        "series.btc_30d": _CANDLES,
    },
    "exchange-flows": {
        "blocks_scanned": {"Ethereum.block_number", "Ethereum.full_block"},
        "spot_eth_usd": {"Coinbase.product_stats", "Kraken.ticker", "Chainlink.price_feed"},
    },
    "macro": {
        "commodities.gold": {"GoldApi.xau_spot", "Kraken.ticker", "Chainlink.price_feed", "Yahoo.chart"},
        "commodities.nat_gas": {"FRED.graph_csv", "Datahub.henry_hub_daily", "Yahoo.chart"},
        "commodities.oil": {"FRED.graph_csv", "Datahub.wti_daily", "Yahoo.chart"},
        "economic.cpi": {"BLS.timeseries", "FRED.graph_csv"},
        "economic.fed_rate": {"NYFed.effr", "FRED.graph_csv"},
        "economic.gdp_growth": {"DBnomics.us_real_gdp_growth", "FRED.graph_csv"},
        "economic.treasury_10y": {"Treasury.par_yield_curve", "FRED.graph_csv"},
        "economic.unemployment": {"BLS.timeseries", "FRED.graph_csv"},
        "forex": {"Frankfurter.usd_timeseries", "ECB.reference_rates_90d", "CurrencyApi.usd_rates"},
        "markets.dia": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
        "markets.qqq": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
        "markets.spy": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote"},
        "markets.vix": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Cboe.vix_history"},
    },
    "sentiment": {
        "market_indices.crypto_fear_greed": {"AlternativeMe.fear_greed"},
        "market_indices.stocks_vix": {"CNBC.quotes", "Yahoo.spark", "Cboe.delayed_quote", "Cboe.vix_history"},
        "prediction_markets_signals": {"Polymarket.markets_by_volume", "Kalshi.open_events"},
        "trending": {
            "BBC.business_rss",
            "CNBC.top_news_rss",
            "CoinDesk.rss",
            "Cointelegraph.rss",
            "Decrypt.rss",
            "FederalReserve.press_rss",
            "GDELT.articles",
            "HackerNewsAlgolia.stories_24h",
            "MarketWatch.top_stories_rss",
            "Reddit.CryptoCurrency_rss",
            "Reddit.wallstreetbets_rss",
            "Reddit.stocks_rss",
            "Reddit.investing_rss",
            "YahooFinance.news_rss",
        },
    },
    "whales": {
        "btc_whales_unconfirmed": {"BlockchainInfo.unconfirmed_txs", "Mempool.network", "Blockstream.network"},
        "eth_whales_latest_block": {"Ethereum.block_number", "Ethereum.full_block"},
        "spot_prices.btc_usd": {"Coinbase.product_stats", "Kraken.ticker", "Chainlink.price_feed"},
        "spot_prices.eth_usd": {"Coinbase.product_stats", "Kraken.ticker", "Chainlink.price_feed"},
    },
    "world-deltas": {
        "earthquake": {"USGS.earthquakes_feed", "EMSC.earthquakes_query"},
        "prediction_market_update": {"Polymarket.markets_by_volume", "Kalshi.open_events"},
        "space_launch": {"LaunchLibrary.upcoming_launches", "RocketLaunchLive.next_launches"},
        "tech_news_story": {"HackerNewsAlgolia.front_page", "HackerNews.top_ids"},
    },
    "code-host-velocity": {
        "ai_ml_repos_active_30d": {"GitHub.search_repositories"},
        "trending_repos": {"GitHub.search_repositories"},
    },
}
"""Where two sections share a source, that source failing takes both."""


def shown(body: Any, name: str, section: str) -> Any:
    """What a payload says of a section; None when it says nothing."""
    if name == "correlation-matrix":
        return next(a["observations"] for a in body["assets"] if f"assets.{a['symbol']}" == section) or None
    if name == "world-deltas":
        return body["counts"].get(section)
    if section.startswith(_STATUS_PAGES):
        word = body["context"]["infrastructure"]["details"][section.removeprefix(_STATUS_PAGES)]
        return None if word == "unknown" else word
    found = body
    for part in section.split("."):
        found = None if found is None else found[part]
    return found


def beside(name: str, section: str) -> list[str]:
    """The sections of the payload that share no source with this one."""
    lost = SECTIONS[name][section]
    return [other for other, sources in SECTIONS[name].items() if not sources & lost]
