"""Define presets, each a named set of fault rules, pinned values and injected events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PRIMARIES = (  # the first source of each endpoint's chain, without any API keys
    "Coinbase.*",
    "CNBC.quotes",
    "CoinGecko.markets",
    "AlternativeMe.fear_greed",
    "Frankfurter.usd_timeseries",
    "NYFed.effr",
    "BLS.timeseries",
    "Treasury.par_yield_curve",
    "DBnomics.us_real_gdp_growth",
    "FreddieMac.pmms_30y",
    "GoldApi.xau_spot",
    "USGS.earthquakes_*",
    "GDACS.event_list",
    "HackerNewsAlgolia.front_page",
    "Polymarket.markets_by_volume",
    "OpenMeteo.*",
    "LaunchLibrary.*",
    "GitHub.search_repositories",
    "www.cisa.gov",
    "Steam.concurrent_players",
    "Ethereum.fee_history",
    "SWPC.planetary_k",
    "SWPC.solar_wind_1m",
    "services.swpc.noaa.gov/json/goes/primary/",
    "NASA.firms_area",
    "NWS.alerts_active",
    "BinanceFutures.*",
    "Bybit.linear_tickers",
    "Binance.*",
    "SmithsonianGVP.weekly_report",
    "Mempool.*",
    "BlockchainInfo.unconfirmed_txs",
)
CRASHED_BTC = 85_400.0  # 12 % below the price around which the simulated price moves
GEO_BLOCKED = ("Binance.*", "BinanceFutures.*", "Bybit.*", "Reddit.*", "www.cisa.gov")
CLOUD = (*GEO_BLOCKED, "Yahoo.*", "YahooFinance.*", "Dydx.*")  # sources that refuse data centres
QUIET = ("quakes", "launches", "stories", "bets", "eth", "btc")
BUSY: tuple[dict[str, Any], ...] = (
    {"kind": "earthquake", "magnitude": 7.1, "place": "120 km E of Hachinohe, Japan", "lat": 40.6, "lon": 143.1}
    | {"depth": 24.0, "tsunami": 1, "alert": "red"},
    {
        "kind": "alert",
        "event": "Tornado Warning",
        "severity": "Extreme",
        "urgency": "Immediate",
        "certainty": "Observed",
    },
    {"kind": "alert", "event": "Tropical Cyclone", "level": "red", "type": "TC", "country": "Philippines"},
    {"kind": "market_move", "market": 0, "move": 0.2},
    {"kind": "incident", "page": "GitHub", "impact": "critical", "title": "Incident with Git Operations"},
    {"kind": "incident", "page": "Cloudflare", "impact": "major", "title": "Elevated errors in several regions"},
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The changes that `PUT /_sim/scenario` makes. `text` describes them in a sentence."""

    text: str
    rules: tuple[dict[str, Any], ...] = ()
    pins: Mapping[str, float] = field(default_factory=dict)  # at every instant
    pins_from_now: Mapping[str, float] = field(default_factory=dict)
    events: tuple[dict[str, Any], ...] = ()
    weekend: bool = False  # moves the clock to the next Saturday afternoon


def _everywhere(kind: str, **parameters: Any) -> tuple[dict[str, Any], ...]:
    return ({"id": kind, "match": "*", "kind": kind} | parameters,)


def scenarios(primaries: Sequence[str] = PRIMARIES) -> dict[str, Scenario]:
    """Return all presets by name. `primaries` are the sources that `primary_down` disables."""
    down = tuple({"match": name, "kind": "status", "code": 503} for name in primaries)
    refusing = tuple({"match": name, "kind": "geo"} for name in GEO_BLOCKED)
    cloud = tuple({"match": name, "kind": "geo"} for name in CLOUD)
    quiet = {f"{what}.quiet": 1.0 for what in QUIET}
    return {
        "normal": Scenario("Everything answers; no rules, pins or injected events."),
        "quiet": Scenario("No earthquake of M4 or more, no launch, no move of a market: empty answers.", pins=quiet),
        "busy": Scenario(
            "M7.1 with tsunami flag, red alerts, an X-class flare, bitcoin down 12 %, two outages.",
            pins_from_now={"xray.flux": 2.5e-4, "price.BTC": CRASHED_BTC},
            events=BUSY,
        ),
        "all_down": Scenario("Every source accepts the request and never answers.", _everywhere("timeout")),
        "primary_down": Scenario("The first source of every chain answers 503: fallbacks take over.", down),
        "geo_blocked": Scenario("Binance, Bybit, Reddit and CISA refuse this region.", refusing),
        "cloud": Scenario("Every host that refuses data centres does so: also Yahoo and dYdX.", cloud),
        "rate_limited": Scenario("Every source says: too many requests.", _everywhere("rate_limit", n=0, window_s=60)),
        "drifted": Scenario("Every source answers in its alternative known form.", _everywhere("drift")),
        "frozen_world": Scenario("Every source keeps returning its body of this moment.", _everywhere("frozen")),
        "html_storm": Scenario("Every source answers 200 with a page for browsers.", _everywhere("html200")),
        "weekend": Scenario("The clock moves to Saturday 15:00 UTC: markets closed, no fixing.", weekend=True),
        "cold_start_offline": Scenario("No name resolves; set this before the first request.", _everywhere("dns")),
        "keys_present": Scenario("As normal; requests with keys that start with sim- are answered as keyed."),
    }
