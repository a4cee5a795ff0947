"""GET /api/chain-network."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from tools.sources.solana import EPOCH_INFO, PERFORMANCE_SAMPLES, EpochInfo, Sample
from toolserver.context import Reading, ToolContext
from toolserver.errors import SourceFrozen
from toolserver.payloads import Payload, Timestamp
from toolserver.registry import tool

AVERAGED = 3
FARTHEST_SLOTS = 5000


class ChainNetwork(Payload):
    tps: float = Field(description="User transactions a second in the newest sample of about a minute")
    tpsAvg: float = Field(description="The same over three samples")
    tpsTotal: float = Field(description="All transactions a second in the newest sample, validators' votes included")
    slot: int
    slotMs: float = Field(description="Milliseconds a slot took in the newest sample")
    epoch: int
    epochProgress: float = Field(ge=0, le=100, description="Percent")
    includesVotes: bool = Field(
        description="Whether the node told votes from other transactions: true means it did not"
    )
    as_of: Timestamp


class Heard(NamedTuple):
    """What one node says, and when the older half of it was obtained."""

    epoch: EpochInfo
    samples: Sequence[Sample]
    at: datetime


@tool(
    path="/api/chain-network",
    title="Solana network",
    ttl_s=30,
    sources=(PERFORMANCE_SAMPLES, EPOCH_INFO),
)
async def chain_network(ctx: ToolContext) -> ChainNetwork:
    """Solana's throughput right now: transactions a second, slot time, current slot, epoch and how far it is.
    Use it for "how busy is Solana?"; for Ethereum fees use gas.

    Shape: `tps` counts what users did; `tpsTotal` adds the votes of validators, most of all transactions.
    Source: a public Solana node, asked at most every 20 seconds.
    """
    heard = await ctx.first("data", _node)
    newest = heard.samples[0]
    votes = any(sample.non_vote_transactions is None for sample in heard.samples)
    if votes:
        ctx.warn(
            "data.tps", "degraded_fallback", "The node does not tell votes from user transactions; tps counts both."
        )
    return ChainNetwork(
        tps=rate([newest], votes=votes),
        tpsAvg=rate(heard.samples, votes=votes),
        tpsTotal=rate([newest], votes=True),
        slot=heard.epoch.slot,
        slotMs=round(newest.period_s * 1000 / newest.slots, 1),
        epoch=heard.epoch.epoch,
        epochProgress=round(100 * heard.epoch.slot_index / heard.epoch.slots_in_epoch, 1),
        includesVotes=votes,
        as_of=heard.at,
    )


async def _node(reading: Reading) -> Heard:
    """Both answers, of nodes that agree on where the chain is."""
    samples = await reading.read(PERFORMANCE_SAMPLES)
    epoch = await reading.read(EPOCH_INFO)
    if abs(epoch.slot - samples[0].slot) > FARTHEST_SLOTS:
        raise SourceFrozen(f"{PERFORMANCE_SAMPLES.name} ends at slot {samples[0].slot}, the chain is at {epoch.slot}")
    return Heard(epoch, samples[:AVERAGED], min(note.fetched_at for note in reading.notes if note.fetched_at))


def rate(samples: Sequence[Sample], *, votes: bool) -> float:
    """Transactions a second over the samples, with or without votes."""
    counted = sum(s.transactions if votes else s.non_vote_transactions or 0 for s in samples)
    return round(counted / sum(s.period_s for s in samples), 1)
