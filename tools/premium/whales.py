"""GET /api/pro/whales."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from tools.parsing.fields import price
from tools.shared import btc_whales, onchain
from tools.shared.btc_whales import LEAST_SAT, SeenTransaction, WhaleWindow, bitcoin
from tools.shared.onchain import Chain, ScannedBlock, dollars, ether
from tools.shared.wallets import CHECKED_ON, EXCHANGES
from tools.sources.ethereum import Block, EtherTransfer
from toolserver import (
    FREE_SIBLING,
    Fallback,
    Meaning,
    Payload,
    Picture,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    read_sections,
    tool,
    up_to,
)

FOLLOW_S = 30.0
MOST_BTC, MOST_ETH = 25, 50
LEAST_BTC, LEAST_ETH = LEAST_SAT // 10**8, 100
LEAST_WEI = LEAST_ETH * 10**18
BTC, ETH = "btc_whales_unconfirmed", "eth_whales_latest_block"
RATIONALE = (
    "Round figures, worth some hundred thousand to a million dollars: rare enough to list, frequent enough to be seen"
    " within minutes."
)


class SpotPrices(Payload):
    btc_usd: float | None = Field(description="Price of one BTC, USD; null: no source answered")
    eth_usd: float | None = Field(description="Price of one ETH, USD; null: no source answered")


class BtcWhale(Payload):
    tx_hash: str = Field(description="Hash of the transaction")
    value_btc: float = Field(
        ge=LEAST_BTC, description="Paid to others, BTC, change removed unless a warning says otherwise"
    )
    value_btc_total: float = Field(description="All outputs, change included, BTC")
    value_usd: int | None = Field(description="value_btc in USD; null: no price")
    fee_sats: int | None = Field(description="Fee of the whole transaction, satoshi; null: not given")
    vsize: int | None = Field(description="Size, virtual bytes; null: not given")
    fee_sat_per_vb: float | None = Field(
        description="Fee by size, satoshi per virtual byte; null: one of them is not given"
    )
    first_seen: Timestamp = Field(description="When the explorer, the node or we first saw it")
    confirmed: Literal[False] = Field(description="It waited for a block when it was seen")
    explorer_url: str = Field(description="Page of the transaction on mempool.space")


class EthWhale(Payload):
    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    tx_hash: str = Field(description="Hash of the transaction")
    sender: str = Field(alias="from", description="Address that paid")
    to: str | None = Field(description="Address that received; null: a contract was created")
    from_label: str | None = Field(description="Exchange that paid; null: no wallet that is known")
    to_label: str | None = Field(description="Exchange that received; null: no wallet that is known")
    value_eth: float = Field(ge=LEAST_ETH, description="Amount, ETH")
    value_usd: int | None = Field(description="Amount in USD; null: no price")
    block_number: int = Field(description="Number of the block")
    block_time: Timestamp = Field(description="Time of the block")
    confirmed: Literal[True] = Field(description="It is in a block")
    explorer_url: str = Field(description="Page of the transaction on Etherscan")


class NewestBlock(Payload):
    number: int = Field(description="Number of the block")
    time: Timestamp = Field(description="Time of the block")


class WhaleTotals(Payload):
    """Of all that was found, also where the list is cut."""

    btc_whale_count: int | None = Field(description="Large bitcoin transactions found; null: not read")
    btc_whale_total_btc: float | None = Field(description="Their value_btc together; null: not read")
    btc_whale_total_usd: int | None = Field(description="The same in USD; null: not read, or no price")
    eth_whale_count: int | None = Field(description="Large Ether transfers found; null: not read")
    eth_whale_total_eth: float | None = Field(description="Their ETH together; null: not read")
    eth_whale_total_usd: int | None = Field(description="The same in USD; null: not read, or no price")


class Thresholds(Payload):
    btc_min_btc: int = Field(description="Smallest bitcoin transaction listed, BTC")
    eth_min_eth: int = Field(description="Smallest Ether transfer listed, ETH")
    btc_sample_txs: int = Field(ge=0, description="Transactions seen in the window, large or not")
    btc_window_s: int = Field(ge=0, description="Seconds that they have been watched, at most 1800")
    rationale: str = Field(description="Why these smallest amounts")


class PremiumWhales(TopLevel):
    spot_prices: SpotPrices = Field(description="Prices that the dollar values are computed with")
    btc_whales_unconfirmed: list[BtcWhale] | None = Field(
        max_length=MOST_BTC, description="Not in a block when seen, largest first; null: no source answered"
    )
    eth_whales_latest_block: list[EthWhale] | None = Field(
        max_length=MOST_ETH, description="In the blocks scanned, largest first; null: no source answered"
    )
    eth_block: NewestBlock | None = Field(description="Newest block scanned; null: none could be read")
    eth_blocks_scanned: list[ScannedBlock] = Field(description="Blocks that were read, newest first")
    aggregate: WhaleTotals = Field(description="Counts and sums of all that was found, also where a list is cut")
    thresholds: Thresholds = Field(description="What counts, and why")
    notes: dict[str, str] = Field(description="Remarks on sample, change and labels")


class LargeTransfer(NamedTuple):
    """A large transfer and its block."""

    block: Block
    transfer: EtherTransfer


@tool(
    path="/api/pro/whales",
    title="Large transfers",
    search_hint="show whale big large bitcoin BTC ETH transfers happening moved",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=300,
    sla_s=600,
    follow_s=FOLLOW_S,
    toolset="core",
    tags={FREE_SIBLING: "btc_price"},
    sources=(*onchain.PRICE_SOURCES, *btc_whales.UNCONFIRMED_SOURCES, *onchain.CHAIN_SOURCES),
    pictures=(
        Picture(
            "flows",
            "Large transfers of Ether",
            rows="eth_whales_latest_block",
            values=("value_eth",),
            ends=("from_label|from", "to_label|to"),
            unit="ETH",
        ),
        Picture(
            "timeline",
            "Large bitcoin transactions that wait for a block",
            rows="btc_whales_unconfirmed",
            values=("value_btc", "tx_hash"),
            time="first_seen",
            unit="BTC",
        ),
    ),
)
async def premium_whales(ctx: ToolContext, limit: Annotated[int, up_to(MOST_ETH)] = MOST_ETH) -> PremiumWhales:
    """Large transfers on chain right now: unconfirmed bitcoin transactions that pay 10 BTC or more to others, and
    Ether transfers of 100 ETH or more in the newest blocks, with dollar values and exchange labels. For what exchanges
    receive and pay use premium_exchange_flows.

    Shape: bitcoin from a sample of the last half hour, Ether from the five newest blocks. A list is null when nobody
    gave what it takes, empty when there was nothing that large. Dollar values are null without a price.
    Units: fee_sats in satoshi for the whole transaction.
    Chart: `btc_whales_unconfirmed` as bubbles: x `first_seen`, y `value_btc`; `eth_whales_latest_block` by `block_time`
    and `value_eth`, coloured by `from_label` and `to_label`.
    Source: the operator's Bitcoin node, else Blockchain.com, else mempool.space or Blockstream (totals only); a public
    Ethereum node; prices of Coinbase, Kraken or Chainlink. Read every 30 seconds while there are requests.
    Errors: 503 when no source answers. Nothing is charged then, nor when both lists are empty or the chain stalls.
    """
    chains: dict[str, tuple[Fallback[Any], ...]] = {
        "spot_prices.btc_usd": onchain.price_fallbacks("BTC"),
        "spot_prices.eth_usd": onchain.price_fallbacks("ETH"),
        BTC: btc_whales.fallbacks_to_see(ctx),
        ETH: onchain.block_fallbacks(ctx),
    }
    sections = await read_sections(ctx, chains)
    sections.require_any()
    ctx.shorten(FOLLOW_S)
    spot = SpotPrices(**{name: sections.get(f"spot_prices.{name}", price) for name in ("btc_usd", "eth_usd")})
    window = sections.get(BTC, lambda seen: btc_whales.remember(ctx.history, seen, ctx.now))
    chain: Chain | None = sections.get(ETH, lambda blocks: blocks)
    moved = None if chain is None else large(chain)
    judge(ctx, window, chain, moved)
    return PremiumWhales(
        spot_prices=spot,
        btc_whales_unconfirmed=window
        and [btc_whale(seen, spot.btc_usd) for seen in ctx.page(window.whales[:MOST_BTC], limit, BTC)],
        eth_whales_latest_block=None
        if moved is None
        else [eth_whale(each, spot.eth_usd) for each in ctx.page(moved[:MOST_ETH], limit, ETH)],
        eth_block=chain and NewestBlock(number=chain.blocks[0].number, time=chain.blocks[0].time),
        eth_blocks_scanned=onchain.list_scanned(chain),
        aggregate=totals(window, moved, spot),
        thresholds=thresholds(window),
        notes=_notes(),
    )


def large(chain: Chain) -> tuple[LargeTransfer, ...]:
    """Return the transfers of 100 ETH and more, largest first."""
    transfers = [LargeTransfer(block, transfer) for block, transfer in chain.transfers if is_large(transfer.value_wei)]
    return tuple(sorted(transfers, key=lambda moved: (-moved.transfer.value_wei, moved.transfer.hash)))


def is_large(value_wei: int) -> bool:
    """Return True if a transfer of Ether is large enough to list."""
    return value_wei >= LEAST_WEI


WHALES = (
    Meaning(
        "pro/whales.thresholds.eth_min_eth",
        "Transfers of 100 ETH and more, in wei; nobody defines a whale",
        decide=is_large,
        rows=((LEAST_WEI - 1, False), (LEAST_WEI, True)),
    ),
    Meaning(
        "pro/whales.thresholds.btc_min_btc",
        "Transactions that pay 10 BTC and more to others, in satoshi",
        decide=btc_whales.is_large,
        rows=((999_999_999, False), (1_000_000_000, True)),
    ),
)


def judge(
    ctx: ToolContext, window: WhaleWindow | None, chain: Chain | None, moved: Sequence[LargeTransfer] | None
) -> None:
    """Warn about limits of the result, and mark it as empty when it has no transfer."""
    if chain is not None:
        onchain.judge(ctx, ETH, chain)
    if not moved and not (window and window.whales):
        ctx.mark_empty()
    if moved and len(moved) > MOST_ETH:
        ctx.warn(ETH, "truncated", f"{len(moved)} transfers were found, the {MOST_ETH} largest are shown.")
    if window and len(window.whales) > MOST_BTC:
        ctx.warn(BTC, "truncated", f"{len(window.whales)} transactions were found, the {MOST_BTC} largest are shown.")
    if window and (whole := sum(not seen.change_removed for seen in window.whales)):
        text = f"Of {whole} transactions only the total is known: their value_btc includes the sender's own change."
        ctx.warn(BTC, "change_not_removed", text)


def btc_whale(seen: SeenTransaction, usd: float | None) -> BtcWhale:
    return BtcWhale(
        tx_hash=seen.hash,
        value_btc=float(bitcoin(seen.moved_sat)),
        value_btc_total=float(bitcoin(seen.total_sat)),
        value_usd=dollars(bitcoin(seen.moved_sat), usd),
        fee_sats=seen.fee_sat,
        vsize=seen.vsize,
        fee_sat_per_vb=round(seen.fee_sat / seen.vsize, 2) if seen.fee_sat is not None and seen.vsize else None,
        first_seen=seen.first_seen,
        confirmed=False,
        explorer_url=f"https://mempool.space/tx/{seen.hash}",
    )


def eth_whale(moved: LargeTransfer, usd: float | None) -> EthWhale:
    block, transfer = moved
    value = ether(transfer.value_wei)
    return EthWhale(
        tx_hash=transfer.hash,
        sender=transfer.sender,
        to=transfer.to,
        from_label=EXCHANGES.get(transfer.sender),
        to_label=EXCHANGES.get(transfer.to or ""),
        value_eth=onchain.show_amount(value),
        value_usd=dollars(value, usd),
        block_number=block.number,
        block_time=block.time,
        confirmed=True,
        explorer_url=onchain.link(transfer.hash),
    )


def totals(window: WhaleWindow | None, moved: Sequence[LargeTransfer] | None, spot: SpotPrices) -> WhaleTotals:
    """Return counts and sums of everything found; null for parts that could not be read."""
    btc = None if window is None else bitcoin(sum(seen.moved_sat for seen in window.whales))
    eth = None if moved is None else ether(sum(each.transfer.value_wei for each in moved))
    return WhaleTotals(
        btc_whale_count=window and len(window.whales),
        btc_whale_total_btc=None if btc is None else float(btc),
        btc_whale_total_usd=_worth(btc, spot.btc_usd),
        eth_whale_count=None if moved is None else len(moved),
        eth_whale_total_eth=None if eth is None else onchain.show_amount(eth),
        eth_whale_total_usd=_worth(eth, spot.eth_usd),
    )


def _worth(units: Decimal | None, usd: float | None) -> int | None:
    return None if units is None else dollars(units, usd)


def thresholds(window: WhaleWindow | None) -> Thresholds:
    return Thresholds(
        btc_min_btc=LEAST_BTC,
        eth_min_eth=LEAST_ETH,
        btc_sample_txs=window.sampled if window else 0,
        btc_window_s=window.seconds if window else 0,
        rationale=RATIONALE,
    )


def _notes() -> dict[str, str]:
    return {
        "btc_sample": "A hundred new transactions, read every 30 seconds while there are requests: about half"
        " of all at seven per second. One may have entered a block since it was seen.",
        "change": "Outputs that pay an address the transaction spends from are change and not counted; change to a new"
        " address looks like a payment.",
        "eth_scope": "Native Ether moved by transactions themselves; no tokens, no internal calls of contracts.",
        "labels": f"{len(EXCHANGES)} exchange wallets on which two public label lists agree, checked {CHECKED_ON}.",
    }
