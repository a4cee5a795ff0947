"""Set the pace and the budget of requests for each group of hosts, in one table."""

from toolserver import HostGroup

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86400, 604800  # seconds

USGS = HostGroup("usgs", 2, 0.5, 60, MINUTE, each_host=True, burst=3)
NOAA = HostGroup("noaa", 2, 0.5, 60, MINUTE, each_host=True, burst=8)
NASA = HostGroup("nasa", 2, 0.5, 60, MINUTE, each_host=True, burst=8)
LL2 = HostGroup("ll2", 1, 5, 12, HOUR, key="LL2_TOKEN", keyed_budget=60, burst=4)
GITHUB = HostGroup("github", 1, 7, 8, MINUTE, key="GITHUB_TOKEN", keyed_budget=25, keyed_gap_s=2, burst=4)
COINGECKO = HostGroup("coingecko", 1, 12, 5, MINUTE, burst=3)
COINPAPRIKA = HostGroup("coinpaprika", 1, 30, 600, DAY, burst=2)
COINLORE = HostGroup("coinlore", 1, 1.5, 40, MINUTE, burst=2)
EXCHANGES = HostGroup("exchanges", 2, 0.3, 60, MINUTE, each_host=True, burst=6)
BTC_EXPLORERS = HostGroup("btc-explorers", 2, 1, 30, MINUTE, each_host=True, burst=6)
BITCOIN_NODE = HostGroup("bitcoin-node", 4, 0, 240, MINUTE, burst=12)  # the operator's own
RPC = HostGroup("rpc", 3, 0.1, 120, MINUTE, each_host=True, burst=12)
CNBC = HostGroup("cnbc", 1, 2, 30, MINUTE, burst=3)
NO_BROWSER = frozenset({429})  # Yahoo's answer to clients that are not browsers, at any pace; we do not imitate one
YAHOO = HostGroup("yahoo", 1, 3, 20, MINUTE, refusing=NO_BROWSER, burst=3)
CBOE = HostGroup("cboe", 1, 0.5, 60, MINUTE, burst=4)
FINNHUB = HostGroup("finnhub", 1, 1.1, 55, MINUTE, burst=4)
MACRO = HostGroup("macro", 1, 2, 60, HOUR, each_host=True, burst=8)
BLS = HostGroup("bls", 1, 5, 8, DAY, burst=2)
OPENMETEO = HostGroup("openmeteo", 4, 0.1, 5000, DAY, reserve=0.2, burst=8)  # all default places need 300 a day
METNO = HostGroup("metno", 2, 0.2, 5, 1.0, burst=4)
HN_FIREBASE = HostGroup("hn-firebase", 5, 0, 300, MINUTE)
HN_ALGOLIA = HostGroup("hn-algolia", 1, 1, 60, MINUTE, burst=3)
REDDIT = HostGroup("reddit", 1, 10, 12, MINUTE, burst=4)
RSS = HostGroup("rss", 1, 2, 30, MINUTE, each_host=True, burst=3)
YAHOO_NEWS = HostGroup("yahoo-news", 1, 2, 30, MINUTE, refusing=NO_BROWSER, burst=2)
ABUSECH = HostGroup("abusech", 1, 5, 12, HOUR, each_host=True, burst=3)
RAW = HostGroup("raw", 2, 1, 60, HOUR, each_host=True, burst=4)
STEAM = HostGroup("steam", 2, 1, 60, HOUR, burst=3)
STEAMSPY = HostGroup("steamspy", 1, 60, 6, HOUR)
GDELT = HostGroup("gdelt", 1, 5, 10, MINUTE)
GDACS = HostGroup("gdacs", 1, 5, 30, HOUR, burst=3)
INTERNETDB = HostGroup("internetdb", 2, 1, 600, HOUR, burst=4)
STATUS = HostGroup("status", 2, 0, 30, MINUTE, each_host=True)


def other(name: str) -> HostGroup:
    """Return the group for a host of no other group: one request at a time, a second apart after three, 60 an hour."""
    return HostGroup(name, 1, 1, 60, HOUR, burst=3)
