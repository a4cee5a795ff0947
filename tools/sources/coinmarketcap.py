"""Read CoinMarketCap's Fear and Greed index, which differs from alternative.me's (JSON, needs `CMC_API_KEY`).

https://coinmarketcap.com/api/documentation/v1/#tag/fear-and-greed
"""

from typing import Any

from tools.parsing.fear_greed_index import FearGreed, read_score
from tools.parsing.fields import clean, from_iso
from tools.sources.hosts import DAY, MINUTE, other
from toolserver import Get, Keys, Licence, Source, SourceChanged, SourceError, SourceLimited, SourceRefused

LATEST = "https://pro-api.coinmarketcap.com/v3/fear-and-greed/latest"
LICENCE = Licence("no", "CoinMarketCap", "https://coinmarketcap.com/api/")
KEY_ERRORS, LIMIT_ERRORS = range(1001, 1008), range(1008, 1012)


def request(query: None, keys: Keys) -> Get | None:
    key = keys.get("CMC_API_KEY")
    return Get(LATEST, headers={"X-CMC_PRO_API_KEY": key}) if key else None


def parse(body: Any, query: None) -> FearGreed:
    """Return the latest value, if the status block reports success."""
    code = int(body["status"]["error_code"])
    if code:
        raise _failure(code)
    latest = body["data"]
    label = clean(latest["value_classification"], 40)
    return FearGreed(read_score(latest["value"], label), label, from_iso(latest["update_time"]))


def _failure(code: int) -> SourceError:
    if code in KEY_ERRORS:
        return SourceRefused(f"error_code {code}")
    return SourceLimited(f"error_code {code}") if code in LIMIT_ERRORS else SourceChanged(f"error_code {code}")


FEAR_GREED = Source(
    "CoinMarketCap.fear_greed",
    request,
    parse,
    licence=LICENCE,
    hosts=other("coinmarketcap"),
    fresh_s=15 * MINUTE,
    newest_max_s=2 * DAY,
    keep_s=2 * DAY,
    newest=lambda index: index.updated_at,
    untrusted=True,
)
