"""Read Blockchain.com: Bitcoin's mining power and newest transactions with their outputs (JSON, no key; terms unclear).

https://www.blockchain.com/explorer/api/charts_api
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.bitcoin import MiningPower, satoshi, txid
from tools.parsing.fields import clean_or_none, from_epoch, from_epoch_ms, optional, positive, within
from tools.sources.hosts import BTC_EXPLORERS, HOUR, MINUTE
from toolserver import MIB, Get, Licence, Source, read_rows

LICENCE = Licence("unclear", "Blockchain.com", "https://www.blockchain.com/legal/terms")
GIGAHASHES_AN_EXAHASH = 10**9
MEAN_DAYS = 1
ADDRESS = 100  # characters; the longest real one has 90


class Stats(NamedTuple):
    """The mining power at a time."""

    power: MiningPower
    at: datetime


class Output(NamedTuple):
    """An output of a transaction: its value and its recipient; some scripts have no address."""

    address: str | None
    value_sat: int


class UnconfirmedTx(NamedTuple):
    """A transaction that waits for a block. `inputs` are the addresses that it spends from."""

    hash: str
    at: datetime
    fee_sat: int | None
    weight: int | None
    inputs: frozenset[str]
    outputs: tuple[Output, ...]


def parse_stats(body: Any, query: None) -> Stats:
    """Return the statistics of a day. Hashes are in GH/s; fees may be negative and are not used."""
    hashrate = positive(body["hash_rate"]) / GIGAHASHES_AN_EXAHASH
    power = MiningPower(within(hashrate, 1e-6, 1e6), positive(body["difficulty"]), MEAN_DAYS)
    return Stats(power, from_epoch_ms(body["timestamp"]))


def parse_unconfirmed(body: Any, query: None) -> tuple[UnconfirmedTx, ...]:
    """Return the hundred newest transactions."""
    return read_rows(body["txs"], _transaction)


def _transaction(row: dict[str, Any]) -> UnconfirmedTx:
    spent = [each["prev_out"] for each in row["inputs"]]
    return UnconfirmedTx(
        hash=txid(row["hash"]),
        at=from_epoch(row["time"]),
        fee_sat=optional(satoshi, row.get("fee")),
        weight=optional(lambda value: int(positive(value)), row.get("weight")),
        inputs=frozenset(address for each in spent if (address := clean_or_none(each.get("addr"), ADDRESS))),
        outputs=tuple(Output(clean_or_none(each.get("addr"), ADDRESS), satoshi(each["value"])) for each in row["out"]),
    )


def newest(listed: tuple[UnconfirmedTx, ...]) -> datetime | None:
    return max((each.at for each in listed), default=None)


STATS = Source(
    "BlockchainInfo.stats",
    Get("https://api.blockchain.info/stats"),
    parse_stats,
    licence=LICENCE,
    hosts=BTC_EXPLORERS,
    fresh_s=10 * MINUTE,
    newest_max_s=6 * HOUR,
    newest=lambda stats: stats.at,
)

UNCONFIRMED_TXS = Source(
    "BlockchainInfo.unconfirmed_txs",
    Get("https://blockchain.info/unconfirmed-transactions", params={"format": "json"}),
    parse_unconfirmed,
    licence=LICENCE,
    hosts=BTC_EXPLORERS,
    fresh_s=20,
    keep_s=30 * MINUTE,
    max_bytes=4 * MIB,
    newest=newest,
    newest_max_s=5 * MINUTE,
    least=20,
)
