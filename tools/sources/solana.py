"""Read throughput and epoch of Solana over JSON-RPC, from public nodes or your own (SOLANA_RPC_URL).

Chain data is public.

https://solana.com/docs/rpc/http/getrecentperformancesamples
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import from_epoch, number, number_or_none, positive, within
from tools.sources.hosts import HOUR, MINUTE, RPC
from toolserver import (
    Keys,
    KeyTerms,
    Licence,
    Post,
    Source,
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceLimited,
    SourceRefused,
    read_rows,
)

HOSTS = (
    "https://solana-rpc.publicnode.com/",
    "https://api.mainnet-beta.solana.com/",
    "https://solana.drpc.org/",
)
KEY = "SOLANA_RPC_URL"
# The state of a chain has no owner, but the public nodes that serve it bar extraction or are not for production.
LICENCE = Licence("unclear", "Solana (public chain data)")
TERMS = {KEY: KeyTerms(Licence("yes", "Solana (public chain data)"))}
ID = 1
SAMPLES = 3
LIMITED, UNHEALTHY = {429, -32429}, {-32005, -32004, -32014}  # behind the cluster, or the data not available yet


class Sample(NamedTuple):
    """The cluster's activity in a minute that ended at `slot`. Most transactions are votes of validators."""

    slot: int
    slots: int
    transactions: int
    non_vote_transactions: int | None
    period_s: float


class EpochInfo(NamedTuple):
    """The position of the chain: `slot_index` counts within the epoch."""

    slot: int
    epoch: int
    slot_index: int
    slots_in_epoch: int


def ask(keys: Keys, method: str, *params: Any) -> list[Post]:
    """Return the same call for every host, in the order in which the hosts are tried."""
    call = {"jsonrpc": "2.0", "id": ID, "method": method, "params": list(params)}
    own = [Post(keys[KEY], json=call, under=KEY)] if KEY in keys else []
    return [*own, *(Post(url, json=call) for url in HOSTS)]


def result(body: Any) -> Any:
    """Return the `result` of our own call. Raises SourceError if `error` is set (an object or a text), or for null."""
    if error := body.get("error"):
        raise _refusal(error)
    if body["id"] != ID:
        raise SourceChanged(f"id is {body['id']!r:.20}")
    if body["result"] is None:
        raise SourceEmpty("null")
    return body["result"]


def _refusal(error: Any) -> SourceError:
    """Describe an error without quoting its text: a node may quote the key of its URL."""
    code = error.get("code") if isinstance(error, dict) else None
    text = str(error).lower()
    if code in LIMITED or "too many" in text or "rate limit" in text:
        return SourceLimited(f"RPC error {code}")
    if code in UNHEALTHY:
        return SourceDown(f"RPC error {code}", word="refused")
    return SourceRefused(f"RPC error {code}")


def samples_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "getRecentPerformanceSamples", SAMPLES)


def parse_samples(body: Any, query: None) -> tuple[Sample, ...]:
    """Return the samples, newest first, each of another slot."""
    read = sorted(read_rows(result(body), _sample), key=lambda sample: sample.slot, reverse=True)
    if len({sample.slot for sample in read}) < len(read):
        raise SourceChanged("two samples of one slot")
    return tuple(read)


def _sample(row: dict[str, Any]) -> Sample:
    total = int(positive(row["numTransactions"]))
    own = number_or_none(row.get("numNonVoteTransactions"))
    return Sample(
        slot=int(positive(row["slot"])),
        slots=int(positive(row["numSlots"])),
        transactions=total,
        non_vote_transactions=None if own is None else int(within(own, 0, total)),
        period_s=positive(row["samplePeriodSecs"]),
    )


def epoch_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "getEpochInfo")


def parse_epoch(body: Any, query: None) -> EpochInfo:
    """Return the position of the newest slot in its epoch."""
    info = result(body)
    length = int(positive(info["slotsInEpoch"]))
    return EpochInfo(
        slot=int(positive(info["absoluteSlot"])),
        epoch=int(within(number(info["epoch"]), 0, 1e9)),
        slot_index=int(within(number(info["slotIndex"]), 0, length)),
        slots_in_epoch=length,
    )


class SlotTime(NamedTuple):
    """The time of a slot."""

    slot: int
    time: datetime


def time_request(slot: int, keys: Keys) -> list[Post]:
    return ask(keys, "getBlockTime", slot)


def parse_time(body: Any, slot: int) -> SlotTime:
    """Return the time of the requested slot. A skipped slot has none, and the node answers with an error."""
    return SlotTime(slot, from_epoch(positive(result(body))))


def _find_recent_slot(now: datetime) -> int:
    """Raise LookupError: tools take a recent slot from the epoch. Neither a fixed slot nor the clock gives one."""
    raise LookupError("a recent slot")


SLOT_TIME = Source(
    "Solana.block_time",
    time_request,
    parse_time,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=10 * MINUTE,  # the time of one slot determines that of the others
    keep_s=HOUR,
    timeout_s=6,
    newest=lambda block: block.time,
    newest_max_s=13 * MINUTE,
    key=lambda slot: None,  # any recent slot is good enough
    probe=_find_recent_slot,
)

PERFORMANCE_SAMPLES = Source(
    "Solana.performance_samples",
    samples_request,
    parse_samples,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=20,
    moves=lambda samples: samples[0].slot,
    keep_s=HOUR,
    timeout_s=6,
    least=SAMPLES,
)

EPOCH_INFO = Source(
    "Solana.epoch_info",
    epoch_request,
    parse_epoch,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=20,
    moves=lambda epoch: epoch.slot,
    keep_s=HOUR,
    timeout_s=6,
)
