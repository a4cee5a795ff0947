"""GET /api/gas."""

from typing import Literal

from pydantic import Field

from tools.parsing.fields import significant
from tools.shared.gas import GAS_SOURCES, Method, gas_fallbacks
from toolserver import CardValue, MarketQuote, Payload, Timestamp, ToolContext, tool

DECIMALS = 4


class Gas(Payload):
    low: float = Field(
        gt=0,
        description="Base fee of the next block plus a low tip (10th percentile), or an explorer's slow price, gwei",
    )
    standard: float = Field(
        gt=0, description="The same with a usual tip (median), or an explorer's average price, gwei"
    )
    fast: float = Field(
        gt=0, description="The same with a high tip (90th percentile), or an explorer's fast price, gwei"
    )
    base_fee: float | None = Field(description="Base fee of the next block, gwei; null: the explorer does not give it")
    unit: Literal["gwei"] = Field(description="Unit of the prices, for one unit of gas")
    block: int | None = Field(description="Newest block considered; null: the explorer does not give it")
    as_of: Timestamp = Field(description="Time of that block, or of the explorer's estimate")
    method: Method = Field(
        description="fee_history: from fees paid in the last 20 blocks; explorer: an explorer's estimate"
    )


@tool(
    path="/api/gas",
    title="Ethereum gas",
    search_hint="what is the gas price fee on ethereum ETH gwei transaction",
    ttl_s=15,
    sources=GAS_SOURCES,
    headline=CardValue(
        "standard",
        "gwei",
        "slow {low}, fast {fast}",
        quotes=(MarketQuote("Ethereum gas", "standard", "gwei"),),
    ),
)
async def gas(ctx: ToolContext) -> Gas:
    """What a unit of gas costs on Ethereum now, in gwei: low, standard, fast and the base fee. Use it for "are fees
    high?" or before sending a transaction; for Solana use chain_network.

    Units: gwei with four decimals; prices far below 1 gwei are usual.
    Source: fees of the 20 newest blocks from a public node, refreshed every 15 seconds; Blockscout, then Etherscan
    with a key, when no node answers.
    """
    price = await ctx.first("data", *gas_fallbacks("base_fee", "block"))
    return Gas(
        low=gwei(price.low_gwei),
        standard=gwei(price.standard_gwei),
        fast=gwei(price.fast_gwei),
        base_fee=None if price.base_fee_gwei is None else gwei(price.base_fee_gwei),
        unit="gwei",
        block=price.block,
        as_of=price.as_of,
        method=price.method,
    )


def gwei(price: float) -> float:
    """Round to four decimals, or to two digits where that would be 0."""
    return round(price, DECIMALS) or significant(price, 2)
