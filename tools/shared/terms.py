"""What is known of the terms of the publishers that premium tools read. It is no legal advice, and has to be renewed.

The classes of licence stand at the sources; this says by what evidence. `docs/selling-credits.md` shows it.
"""

from datetime import date

from toolserver import TermsReading

_OURS = date(2026, 11, 25)  # the day of our own reading, also of what others wrote without a date
_PRESS = "Feeds are for personal use"
_STATUS = "No terms about reuse of status pages"
_US = "A work of the United States government, in the public domain; credit is asked for"

READINGS = (
    TermsReading("AlternativeMe", "second hand", _OURS, "Commercial use with credit beside the value"),
    TermsReading("BBC", "second hand", _OURS, _PRESS),
    TermsReading("BLS", "not re-checked", _OURS, _US),
    TermsReading(
        "Binance",
        "second hand",
        date(2026, 10, 4),
        "Commercial use by enterprise licence only; the archive is CC BY-NC-SA since 26 August 2026",
    ),
    TermsReading("BlockchainInfo", "none found", _OURS, "No terms about its data"),
    TermsReading("Blockscout", "none found", _OURS, "No terms about its data"),
    TermsReading("Blockstream", "none found", _OURS, "No terms about its data"),
    TermsReading("CNBC", "not re-checked", _OURS, "No redistribution of quotes; feeds are for personal use"),
    TermsReading("Cboe", "second hand", _OURS, "No automated extraction; delayed values need a data agreement too"),
    TermsReading(
        "Chainlink",
        "none found",
        _OURS,
        "The terms could not be read; the values are public contract state, which is an argument and no grant",
    ),
    TermsReading("CoinDesk", "second hand", _OURS, _PRESS),
    TermsReading(
        "CoinGecko",
        "read in part",
        _OURS,
        "Terms of 5 September 2025: access may not be resold; redistribution needs the Enterprise licence",
    ),
    TermsReading(
        "CoinMarketCap",
        "read in part",
        _OURS,
        "Internal purposes; no display or redistribution, nor of derived works",
    ),
    TermsReading("CoinPaprika", "not re-checked", _OURS, "The free plan is for non-commercial use"),
    TermsReading(
        "Coinbase",
        "second hand",
        _OURS,
        "Market Data Terms of 7 August 2026 bind on access alone: no redistribution, derived works included; no AI",
    ),
    TermsReading("Coinlore", "none found", _OURS, "No terms about its data"),
    TermsReading("Cointelegraph", "second hand", _OURS, _PRESS),
    TermsReading("Corquaid", "read", _OURS, "MIT licence of the repository, which holds the data"),
    TermsReading("CurrencyApi", "not re-checked", _OURS, "CC0, by the repository"),
    TermsReading("DBnomics", "not re-checked", _OURS, "Series of the Bureau of Economic Analysis: a government work"),
    TermsReading(
        "Datahub",
        "not re-checked",
        _OURS,
        "PDDL. The figures are a government work, whose maker names a commercial vendor as its source of spot prices",
    ),
    TermsReading("Decrypt", "second hand", _OURS, _PRESS),
    TermsReading("ECB", "read in part", _OURS, "Free access and reuse with the source named"),
    TermsReading("EMSC", "none found", _OURS, "No clause about commercial use, and no grant"),
    TermsReading(
        "Ethereum",
        "second hand",
        date(2026, 9, 9),
        "Nobody owns the state of a chain, but PublicNode's terms forbid extraction; your own node has none",
    ),
    TermsReading("Etherscan", "not re-checked", _OURS, "No redistribution"),
    TermsReading(
        "FRED",
        "second hand",
        date(2026, 10, 7),
        "Four readers found use with AI systems, and storing, restricted or barred; two others found credit enough",
    ),
    TermsReading("FederalReserve", "not re-checked", _OURS, _US),
    TermsReading("Frankfurter", "read in part", _OURS, "The rates are the ECB's: free reuse with the source named"),
    TermsReading(
        "GDELT",
        "second hand",
        _OURS,
        "Any use, also commercial, with credit and a link; titles stay their publishers', so no text is passed on",
    ),
    TermsReading("GitHub", "not re-checked", _OURS, "Facts about public repositories, within the limits of the API"),
    TermsReading("GoldApi", "none found", _OURS, "No terms about its data"),
    TermsReading("GoogleNews", "second hand", _OURS, _PRESS),
    TermsReading(
        "HackerNews", "read", _OURS, "The API's repository is MIT and calls the data public; no grant over content"
    ),
    TermsReading("HackerNewsAlgolia", "none found", _OURS, "No grant over content"),
    TermsReading("Kalshi", "second hand", _OURS, "Data Terms: personal, non-business use; no AI; no sharing"),
    TermsReading("Kraken", "second hand", date(2026, 10, 4), "Commercial use of public endpoints needs permission"),
    TermsReading("LaunchLibrary", "read", _OURS, "Free to use, supporters pay for more requests; no data licence"),
    TermsReading("MarketWatch", "second hand", _OURS, _PRESS),
    TermsReading(
        "Mempool",
        "second hand",
        date(2026, 9, 26),
        "Terms of 10 September 2026 do not mention reuse; limits, bans and paid plans exist",
    ),
    TermsReading("NYFed", "not re-checked", _OURS, "Reuse with credit"),
    TermsReading(
        "OKX",
        "read in part",
        _OURS,
        "API Agreement of 28 July 2026: own account; no redistribution, display or signals; binds without a key too",
    ),
    TermsReading("Polymarket", "second hand", _OURS, "Three audits of 2026 found no clause about data and no grant"),
    TermsReading("Reddit", "not re-checked", _OURS, "Feeds are for non-commercial use"),
    TermsReading("RocketLaunchLive", "none found", _OURS, "No clause about commercial use, and no grant"),
    TermsReading("Statuspage", "none found", _OURS, _STATUS),
    TermsReading("Treasury", "not re-checked", _OURS, _US),
    TermsReading("USGS", "not re-checked", _OURS, _US),
    TermsReading("Yahoo", "not re-checked", _OURS, "No redistribution"),
    TermsReading("YahooFinance", "second hand", _OURS, _PRESS),
)
