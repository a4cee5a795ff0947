"""Recorded bodies that no source of ours reads, and why."""

from tests.tools.recorded.rows import Unread

OTHER = "another request of a host that we ask something else"
UNUSED = "a provider that we do not use"

ROWS = (
    Unread("adsb-lol/lat-lon-dist-2026-07-trimmed.json", "aircraft: no endpoint shows them"),
    *(
        Unread(f"binance/fundingRate-{name}.json", OTHER + ": the history of funding")
        for name in ("BTCUSDT", "BTCUSDT-docs")
    ),
    Unread("coincap/v2-assets-top3.json", UNUSED + ": its keyless version was switched off"),
    Unread("coingecko/global.json", OTHER + ": totals of the market"),
    Unread("coingecko/simple-price-2.json", OTHER + ": prices alone"),
    Unread("faa-nas-status/airport-status-2026-07.xml", "airports: no endpoint shows them"),
    Unread("gdelt/error-429.txt", UNUSED + ": one request in five seconds for everybody together"),
    Unread("mempool/prices-docs.json", OTHER + ": prices come from exchanges"),
    Unread("mempool/v1-blocks-2025.json", OTHER + ": blocks"),
    Unread("nhc/CurrentStorms-2026-08.json", "storms come from GDACS and EONET"),
    *(
        Unread(f"nvd/cve-2.0-{name}.json", UNUSED + ": CISA lists what is exploited")
        for name in ("page-47-2023-03", "single-2023-01", "single-2026-01")
    ),
    *(
        Unread(f"open-notify/astros-2021-{month}.json", UNUSED + ": its list of people was not kept up")
        for month in ("08", "12")
    ),
    *(
        Unread(f"osv/querybatch-{name}.json", UNUSED + ": packages are not looked up")
        for name in ("empty", "mixed-2026")
    ),
    Unread("reddit/listing-hot-LocalLLaMA.json", OTHER + ": JSON listings need a registered client"),
    Unread("reddit/praw-subreddit-rising.json", OTHER + ": needs a registered client"),
    *(
        Unread(f"stooq/{name}", UNUSED + ": it answers scripts with a puzzle for browsers")
        for name in ("error-200-js-challenge.html", "quote-NVR.csv", "quote-not-available.csv")
    ),
    Unread("tsunami-gov/PHEBAtom-2026-09.xml", "tsunami warnings come from GDACS, and the flag from USGS"),
    *(
        Unread(f"wikipedia-feed/{name}.json", "no endpoint shows them")
        for name in ("featured-aggregate", "onthisday-02-06-trimmed")
    ),
    *(
        Unread(f"yahoo/quote-v7-{name}.json", OTHER + ": this one needs a browser's cookie")
        for name in ("AAPL", "AAPL-BABA")
    ),
    Unread(
        "harnesses/terminal-bench-4-extract.json", "an extract of the table that comes with the service as a data file"
    ),
)
