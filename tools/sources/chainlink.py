"""Read Chainlink price feeds from the Ethereum chain: contract storage, from your own node or public ones (no key).

https://docs.chain.link/data-feeds/price-feeds/addresses
"""

from datetime import datetime
from typing import Any, Literal, NamedTuple

from tools.parsing.ethereum_rpc import KEY, ask, result
from tools.parsing.fields import PRICE_JUMP, from_epoch, positive, traded_price
from tools.sources.hosts import RPC
from toolserver import Gauge, Keys, KeyTerms, Licence, Post, Source, SourceChanged

LATEST_ROUND_DATA = "0xfeaf968c"
FEEDS = {
    "BTC-USD": "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c",
    "ETH-USD": "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
    "XAU-USD": "0x214eD9Da11D2fbe465a6fc601a91E62EbEc1a0D6",
}
# The grounds are public contract state, not a grant: chain.link/terms cannot be read without a browser. The public
# nodes have terms of their own, as in tools/sources/ethereum.py.
LICENCE = Licence("unclear", "Chainlink (on-chain)", "https://chain.link/terms")
TERMS = {KEY: KeyTerms(Licence("yes", "Chainlink (on-chain)", "https://chain.link/terms"))}

Pair = Literal["BTC-USD", "ETH-USD", "XAU-USD"]


class Round(NamedTuple):
    """A feed's latest answer, in USD, and when it was written."""

    pair: str
    price: float
    updated_at: datetime


def request(pair: Pair, keys: Keys) -> list[Post]:
    return ask(keys, "eth_call", {"to": FEEDS[pair], "data": LATEST_ROUND_DATA}, "latest")


def parse(body: Any, pair: Pair) -> Round:
    """Parse the five words of latestRoundData; the second is the price in 10⁻⁸ USD, the fourth the time."""
    words = _words(result(body))
    return Round(pair, traded_price(words[1] / 10**8), from_epoch(positive(words[3])))


def _words(text: str) -> list[int]:
    """Return the 256-bit words, signed. Raises SourceChanged for fewer than five."""
    raw = bytes.fromhex(text.removeprefix("0x"))
    if len(raw) < 160:
        raise SourceChanged(f"{len(raw)} bytes")
    return [int.from_bytes(raw[at : at + 32], signed=True) for at in range(0, 160, 32)]


def feed(newest_max_s: float) -> Source[Pair, Round]:
    """Return the source of the feeds that are updated at least this often; all sources share a public name."""
    return Source(
        "Chainlink.price_feed",
        request,
        parse,
        licence=LICENCE,
        terms=TERMS,
        hosts=RPC,
        fresh_s=60,
        timeout_s=6,
        newest=lambda answer: answer.updated_at,
        newest_max_s=newest_max_s,
        gauge=Gauge(lambda answer: {answer.pair: answer.price}, PRICE_JUMP),
        probe="BTC-USD" if newest_max_s < 86400 else "XAU-USD",
    )


PRICE_FEED = feed(3900)  # BTC and ETH: hourly, or when the price moves
GOLD_FEED = feed(90_000)  # XAU: daily
