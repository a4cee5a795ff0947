"""GET /api/chain-network."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import Field

from tools.sources.solana import EPOCH_INFO, PERFORMANCE_SAMPLES, SLOT_TIME, EpochInfo, Sample, SlotTime
from toolserver import CardValue, FallbackReader, Meaning, Payload, SourceFrozen, Timestamp, ToolContext, tool

AVERAGED = 3
FARTHEST_SLOTS = 5000
SKIPPED = 8  # slots are skipped by fours
OLDEST = timedelta(minutes=4)  # samples are a minute long


class ChainNetwork(Payload):
    tps: float = Field(description="User transactions a second in the newest sample of about a minute")
    tpsAvg: float = Field(description="The same over three samples")
    tpsTotal: float = Field(description="All transactions a second in the newest sample, validators' votes included")
    slot: int = Field(description="Number of the current slot")
    slotMs: float = Field(description="Milliseconds a slot took in the newest sample")
    epoch: int = Field(description="Number of the current epoch")
    epochProgress: float = Field(ge=0, le=100, description="Part of the epoch that is over, percent")
    includesVotes: bool = Field(
        description="True if the node did not count votes separately, so that they are included"
    )
    as_of: Timestamp = Field(description="When the newest sample ended")


class Heard(NamedTuple):
    """The answer of one node, and when its newest sample ended."""

    epoch: EpochInfo
    samples: Sequence[Sample]
    at: datetime


@tool(
    path="/api/chain-network",
    title="Solana network",
    search_hint="solana SOL TPS transactions per second how many is congestion",
    ttl_s=30,
    sources=(PERFORMANCE_SAMPLES, EPOCH_INFO, SLOT_TIME),
    headline=CardValue("tps", "tx/s", "slot {slot}"),
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
        for field in ("tps", "tpsAvg"):
            said = f"The node does not tell votes from user transactions; {field} counts both."
            ctx.warn(f"data.{field}", "degraded_fallback", said)
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


async def _node(reading: FallbackReader) -> Heard:
    """Read epoch and samples from nodes that agree on the position of the chain."""
    samples = await reading.read(PERFORMANCE_SAMPLES)
    epoch = await reading.read(EPOCH_INFO)
    if abs(epoch.slot - samples[0].slot) > FARTHEST_SLOTS:
        raise SourceFrozen(f"{PERFORMANCE_SAMPLES.name} ends at slot {samples[0].slot}, the chain is at {epoch.slot}")
    dated_slot = await _any_slot_time(reading, samples[0].slot)
    fetched_at = min(note.fetched_at for note in reading.notes[:2] if note.fetched_at)
    return Heard(epoch, samples[:AVERAGED], _time_of(samples[0], dated_slot, fetched_at))


async def _any_slot_time(reading: FallbackReader, newest: int) -> SlotTime:
    """Return the time of a recent slot, or of an earlier one if that slot was skipped."""
    for slot in (newest, newest - SKIPPED):
        if slot_time := await reading.attempt(SLOT_TIME, slot):
            return slot_time
    return await reading.read(SLOT_TIME, newest - 2 * SKIPPED)


def _time_of(sample: Sample, dated_slot: SlotTime, now: datetime) -> datetime:
    """Return when the newest sample ended, at that sample's pace of slots. Raises SourceFrozen when it is old."""
    at = dated_slot.time + timedelta(seconds=(sample.slot - dated_slot.slot) * sample.period_s / sample.slots)
    if now - at > OLDEST:
        raise SourceFrozen(f"the newest sample is dated {at:%Y-%m-%d %H:%M}")
    return min(at, now)


def rate(samples: Sequence[Sample], *, votes: bool) -> float:
    """Return transactions a second over the samples, with or without votes."""
    counted = sum(s.transactions if votes else s.non_vote_transactions or 0 for s in samples)
    return round(counted / sum(s.period_s for s in samples), 1)


THROUGHPUT = Meaning(
    "chain-network.tps",
    "Transactions without the votes of validators, which are most of those that Solana counts; a choice of ours",
)
