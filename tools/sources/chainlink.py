"""Read Chainlink price feeds from the Ethereum chain: contract storage, from your own node or public ones (no key).

Past rounds lie in the storage of the newest block, so no archive node is needed. They are read
two hundred at a time, in one call of the contract Multicall3.

https://docs.chain.link/data-feeds/price-feeds/addresses
https://docs.chain.link/data-feeds/historical-data
https://www.multicall3.com
"""

from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from tools.parsing.ethereum_rpc import KEY, ask, result
from tools.parsing.fields import PRICE_JUMP, from_epoch, positive, traded_price
from tools.sources.hosts import DAY, RPC
from toolserver import MIB, Gauge, Keys, KeyTerms, Licence, Post, Source, SourceChanged, read_rows

LATEST_ROUND_DATA = "0xfeaf968c"
GET_ROUND_DATA = bytes.fromhex("9a6fc8f5")
AGGREGATE = bytes.fromhex("82ad56cb")
MULTICALL = "0xcA11bde05977b3631167028862bE2a173976CA11"
WORD, ANSWER = 32, 160  # bytes of a word, and of the five that describe a round
ROUNDS_A_CALL = 200
PHASE = 2**64  # the number of a round is that of its phase, times this, plus its number in the phase
HEARTBEAT_S = 3900  # BTC and ETH are written hourly, or when the price moves
FEEDS = {
    "BTC-USD": "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c",
    "ETH-USD": "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
    "XAU-USD": "0x214eD9Da11D2fbe465a6fc601a91E62EbEc1a0D6",
}
# The grounds are public contract state, not a grant: chain.link/terms cannot be read without a browser. The public
# nodes have terms of their own, as in tools/sources/ethereum.py.
LICENCE = Licence("unclear", "Chainlink (on-chain)", "https://chain.link/terms")
TERMS = {KEY: KeyTerms(Licence("yes", "Chainlink (on-chain)", "https://chain.link/terms"))}

Pair: TypeAlias = Literal["BTC-USD", "ETH-USD", "XAU-USD"]


class Round(NamedTuple):
    """An answer of a feed, in USD, when it was written, and its number."""

    pair: str
    price: float
    updated_at: datetime
    number: int


class RoundSpan(NamedTuple):
    """Consecutive rounds of one phase, both ends among them; at most 200."""

    pair: Pair
    first: int
    last: int


def span_of(latest: Round, pair: Pair, back: int) -> RoundSpan | None:
    """Return the span that holds the latest round, or one further `back`; None before the first round of its phase.

    Spans begin at the same rounds whatever the latest is, so those that are full are read once.
    """
    phase, number = divmod(latest.number, PHASE)
    start = ((number - 1) // ROUNDS_A_CALL - back) * ROUNDS_A_CALL + 1
    if start < 1:
        return None
    return RoundSpan(pair, phase * PHASE + start, phase * PHASE + min(start + ROUNDS_A_CALL - 1, number))


def request(pair: Pair, keys: Keys) -> list[Post]:
    return ask(keys, "eth_call", {"to": FEEDS[pair], "data": LATEST_ROUND_DATA}, "latest")


def parse(body: Any, pair: Pair) -> Round:
    """Parse the five words of latestRoundData; the second is the price in 10⁻⁸ USD, the fourth the time."""
    return _read_round(_words(result(body)), pair)


def _read_round(words: list[int], pair: str) -> Round:
    return Round(pair, traded_price(words[1] / 10**8), from_epoch(positive(words[3])), words[0])


def span_request(span: RoundSpan, keys: Keys) -> list[Post]:
    """Ask Multicall3 for aggregate3((address,bool,bytes)[]): one getRoundData(uint80) a round, which may fail."""
    feed = bytes.fromhex(FEEDS[span.pair].removeprefix("0x")).rjust(WORD, b"\0")
    calls = [
        feed + _word(1) + _word(3 * WORD) + _word(len(GET_ROUND_DATA) + WORD)
        + (GET_ROUND_DATA + _word(number)).ljust(2 * WORD, b"\0")
        for number in range(span.first, span.last + 1)
    ]  # fmt: skip
    offsets = [_word((len(calls) + i * len(calls[0]) // WORD) * WORD) for i in range(len(calls))]
    data = AGGREGATE + _word(WORD) + _word(len(calls)) + b"".join([*offsets, *calls])
    return ask(keys, "eth_call", {"to": MULTICALL, "data": "0x" + data.hex()}, "latest")


def parse_span(body: Any, span: RoundSpan) -> tuple[Round, ...]:
    """Return the rounds, oldest first. One that the contract refuses, or that was never answered, is left out."""
    raw = bytes.fromhex(result(body).removeprefix("0x"))
    count = _int(raw, WORD)
    if _int(raw, 0) != WORD or count != span.last - span.first + 1:
        raise SourceChanged(f"{count} results")
    heads = 2 * WORD
    starts = [heads + _int(raw, heads + i * WORD) for i in range(count)]
    rows = [(raw[start : start + 3 * WORD + ANSWER], span.first + i) for i, start in enumerate(starts)]
    return read_rows(rows, lambda row: _read_result(*row, span.pair))


def _read_result(raw: bytes, number: int, pair: str) -> Round | None:
    if not _int(raw, 0):
        return None
    words = _words(raw[3 * WORD :].hex())
    if not words[3]:
        return None
    if words[0] != number:
        raise ValueError(f"round {words[0]} for {number}")
    return _read_round(words, pair)


def _word(value: int) -> bytes:
    return value.to_bytes(WORD)


def _int(raw: bytes, at: int) -> int:
    """Return the word at an offset. Raises ValueError where the bytes have ended."""
    word = raw[at : at + WORD]
    if len(word) < WORD:
        raise ValueError("too short")
    return int.from_bytes(word)


def _words(text: str) -> list[int]:
    """Return the 256-bit words, signed. Raises SourceChanged for fewer than five."""
    raw = bytes.fromhex(text.removeprefix("0x"))
    if len(raw) < ANSWER:
        raise SourceChanged(f"{len(raw)} bytes")
    return [int.from_bytes(raw[at : at + WORD], signed=True) for at in range(0, ANSWER, WORD)]


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


PRICE_FEED = feed(HEARTBEAT_S)
GOLD_FEED = feed(90_000)  # XAU: daily

ROUND_HISTORY: Source[RoundSpan, tuple[Round, ...]] = Source(
    "Chainlink.round_history",
    span_request,
    parse_span,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=DAY,
    ageless="a round that was written does not change",
    timeout_s=8,
    max_bytes=MIB,
    newest=lambda rounds: rounds[-1].updated_at if rounds else None,
    user_input=True,  # no caller's input, but keeps spans off the disk: they are many, and soon useless
    probe=RoundSpan("BTC-USD", 7 * PHASE + 1, 7 * PHASE + 2),
)
