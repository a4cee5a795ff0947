"""Read the state of the Bitcoin network: height, fees, mining power, mempool. Each part has fallbacks."""

import math
from typing import Any

from pydantic import Field

from tools.parsing.bitcoin import Backlog, Fees, MiningPower
from tools.sources import bitcoin_core, blockstream, mempool
from tools.sources.blockchain_info import STATS
from toolserver import Fallback, Payload, Sections, delay_second, via

PATIENCE_S = 3.0  # after a burst the requests to one host are a second apart again

NETWORK_SOURCES = (
    bitcoin_core.STATE,
    bitcoin_core.FEES,
    mempool.HEIGHT,
    mempool.FEES,
    mempool.POWER,
    mempool.BACKLOG,
    blockstream.HEIGHT,
    blockstream.FEES,
    blockstream.BACKLOG,
    STATS,
)


class FeeRates(Payload):
    fastest: int = Field(ge=1, description="For the next block")
    half_hour: int = Field(description="For a block within about half an hour")
    hour: int = Field(description="For a block within about an hour")
    economy: int = Field(description="For a block within about a day")
    minimum: int = Field(
        description="Least that enters the mempool of mempool.space or our node; of Blockstream the estimate for a week"
    )


class Hashrate(Payload):
    current_eh_s: float = Field(
        gt=0, description="Exahashes a second: mean of a week at mempool.space, of a day elsewhere"
    )
    current_difficulty: float = Field(description="Difficulty of the network")


class WaitingTransactions(Payload):
    count: int = Field(description="Transactions that wait for a block")
    vsize: int = Field(description="Their size, virtual bytes")
    total_fee_sat: int = Field(description="Their fees, satoshi")


class BitcoinNetwork(Payload):
    block_height: int | None = Field(description="Number of the newest block; null: no source answered")
    fees_sat_per_vb: FeeRates | None = Field(
        description="Recommended fees, satoshi per virtual byte, rounded up to at least 1; null: no source answered"
    )
    hashrate: Hashrate | None = Field(description="Mining power; null: no source answered")
    mempool: WaitingTransactions | None = Field(description="What waits for a block; null: no source answered")


def network_chains(section: str) -> dict[str, tuple[Fallback[Any], ...]]:
    """Return the four parts by their paths: your own node, then mempool.space, then Blockstream, or Blockchain.com
    for mining power.
    """
    return {
        f"{section}.block_height": (
            via(bitcoin_core.STATE, then=lambda state: state.height),
            *delay_second(via(mempool.HEIGHT), via(blockstream.HEIGHT), PATIENCE_S),
        ),
        f"{section}.fees_sat_per_vb": (
            via(bitcoin_core.FEES),
            *delay_second(via(mempool.FEES), via(blockstream.FEES), PATIENCE_S),
        ),
        f"{section}.hashrate": (
            via(bitcoin_core.STATE, then=lambda state: state.power),
            *delay_second(via(mempool.POWER), via(STATS, None, lambda stats: stats.power), PATIENCE_S),
        ),
        f"{section}.mempool": (
            via(bitcoin_core.STATE, then=lambda state: state.backlog),
            *delay_second(via(mempool.BACKLOG), via(blockstream.BACKLOG), PATIENCE_S),
        ),
    }


def network(sections: Sections, section: str) -> BitcoinNetwork | None:
    """Return the parts that are known, or None when all are missing."""
    parts = BitcoinNetwork(
        block_height=sections.get(f"{section}.block_height", int),
        fees_sat_per_vb=sections.get(f"{section}.fees_sat_per_vb", fee_rates),
        hashrate=sections.get(f"{section}.hashrate", hashrate),
        mempool=sections.get(f"{section}.mempool", waiting),
    )
    return parts if any(part is not None for _, part in parts) else None


def fee_rates(fees: Fees) -> FeeRates:
    """Round fee rates up to whole satoshi, at least one."""
    return FeeRates(**{name: max(1, math.ceil(rate)) for name, rate in fees._asdict().items()})


def hashrate(power: MiningPower) -> Hashrate:
    return Hashrate(current_eh_s=round(power.hashrate_eh_s, 2), current_difficulty=power.difficulty)


def waiting(backlog: Backlog) -> WaitingTransactions:
    return WaitingTransactions(count=backlog.waiting, vsize=backlog.vsize, total_fee_sat=backlog.total_fee_sat)
