"""Read the state of the Bitcoin network: height, fees, mining power, mempool. Each part has fallbacks."""

import math
from typing import Any

from pydantic import Field

from tools.parsing.bitcoin import Backlog, Fees, MiningPower
from tools.sources import bitcoin_core, blockstream, mempool
from tools.sources.blockchain_info import STATS
from toolserver import (
    Definition,
    Fallback,
    FallbackReader,
    Meaning,
    Payload,
    Sections,
    SourceChanged,
    delay_second,
    via,
)

PATIENCE_S = 3.0  # after a burst the requests to one host are a second apart again

NETWORK_SOURCES = (
    bitcoin_core.STATE,
    bitcoin_core.FEES,
    mempool.HEIGHT,
    mempool.FEES,
    mempool.WHOLE_FEES,
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
    fastest_exact: float | None = Field(
        description="`fastest` before it is rounded up, often below 1; null: only whole numbers are published"
    )
    half_hour_exact: float | None = Field(description="`half_hour` before it is rounded up; null: as above")
    hour_exact: float | None = Field(description="`hour` before it is rounded up; null: as above")
    economy_exact: float | None = Field(description="`economy` before it is rounded up; null: as above")
    minimum_exact: float | None = Field(description="`minimum` before it is rounded up; null: as above")


class Hashrate(Payload):
    current_eh_s: float = Field(gt=0, description="Exahashes a second, mean of the past `mean_days`")
    current_difficulty: float = Field(description="Difficulty of the network")
    mean_days: int = Field(ge=1, description="Days of the mean: 7 at mempool.space, 1 elsewhere")


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
    """Return the four parts by their paths: your own node, then mempool.space, then
    Blockstream, or Blockchain.com for mining power.
    """
    return {
        f"{section}.block_height": (
            via(bitcoin_core.STATE, then=lambda state: state.height),
            *delay_second(via(mempool.HEIGHT), via(blockstream.HEIGHT), PATIENCE_S),
        ),
        f"{section}.fees_sat_per_vb": (
            via(bitcoin_core.FEES),
            *delay_second(_mempool_fees, via(blockstream.FEES), PATIENCE_S),
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


async def _mempool_fees(reading: FallbackReader) -> Fees:
    """Return the precise fees, or the whole ones of an instance that is too old to have others."""
    try:
        return await reading.read(mempool.FEES)
    except SourceChanged as error:
        if error.word != "http_404":
            raise
    return await reading.read(mempool.WHOLE_FEES)


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
    """Return fee rates as whole satoshi, with the exact ones beside them where they are known."""
    rates = {name: rate for name, rate in fees._asdict().items() if name != "is_whole"}
    exact = {f"{name}_exact": None if fees.is_whole else round(rate, 3) for name, rate in rates.items()}
    return FeeRates.model_validate({name: whole_fee(rate) for name, rate in rates.items()} | exact)


def whole_fee(rate: float) -> int:
    """Round a fee rate up to whole satoshi, at least one."""
    return max(1, math.ceil(rate))


def hashrate(power: MiningPower) -> Hashrate:
    return Hashrate(
        current_eh_s=round(power.hashrate_eh_s, 2), current_difficulty=power.difficulty, mean_days=power.mean_days
    )


BITCOIN_NETWORK = (
    Meaning(
        "pro/crypto-deep.network_btc.fees_sat_per_vb",
        "Whole numbers are rounded up, at least 1, as wallets take them; exact rates (mempool.space's precise fees, "
        "estimates of a node or of Blockstream) are beside them. An old instance of mempool has whole ones alone",
        decide=whole_fee,
        rows=((0.441, 1), (1.0, 1), (1.001, 2), (2, 2), (12.01, 13)),
        definition=Definition(publisher="mempool.space", link="https://mempool.space/docs/api/rest"),
    ),
    Meaning(
        "pro/crypto-deep.network_btc.fees_sat_per_vb.minimum",
        "Of mempool.space and a node the least that enters its mempool; of Blockstream, which publishes no such floor, "
        "the estimate for 1008 blocks, a week",
    ),
    Meaning(
        "pro/crypto-deep.network_btc.hashrate",
        "A mean, as nobody can measure the present rate: of 1008 blocks, about 7 days, at mempool.space, of a day at "
        "Blockchain.com and our own node; mean_days says which",
        definition=Definition(publisher="mempool.space", link="https://mempool.space/docs/api/rest"),
    ),
)


def waiting(backlog: Backlog) -> WaitingTransactions:
    return WaitingTransactions(count=backlog.waiting, vsize=backlog.vsize, total_fee_sat=backlog.total_fee_sat)
