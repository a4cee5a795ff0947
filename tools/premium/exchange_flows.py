"""GET /api/pro/exchange-flows."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

from anyio import gather
from pydantic import Field

from tools.parsing.fields import price
from tools.shared import onchain
from tools.shared.onchain import Chain, ScannedBlock, dollars, ether
from tools.shared.wallets import CHECKED_ON, EXCHANGES
from tools.sources.ethereum import Block, EtherTransfer
from toolserver import (
    FREE_SIBLING,
    Meaning,
    Payload,
    Picture,
    SourceError,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    limit_time,
    tool,
    up_to,
)

FOLLOW_S = 30.0
MOST = 20
PLACES = 4
WEI = 10**18  # wei per ETH
LEAST_ETH, BALANCED_ETH = 5, 10
BLOCKS = "blocks_scanned"
NAMES = sorted(set(EXCHANGES.values()))

BALANCED_RULE = "balanced when |net_flow_eth| is below the larger of 10 ETH and a tenth of inflow plus outflow"
RATIONALE = "Leaves out the many small payments of customers and keeps what weighs on an exchange's stock."
NOTES = {
    "scope": "The blocks scanned, 12 seconds of chain each; native Ether, hot wallets only: deposit addresses, of which"
    " each customer has one, are not known, so inflows are seen when they are collected.",
    "labels": f"{len(EXCHANGES)} wallets on which two public label lists agree, checked {CHECKED_ON}.",
    "inter_exchange": "Transfers between two exchanges are in recent_transfers and inter_exchange_count only; inside"
    " one exchange they are left out.",
}

Direction = Literal["inflow", "outflow", "inter_exchange", "internal"]
Bias = Literal["inflow_dominant", "outflow_dominant", "balanced"]


class ExchangeFlow(Payload):
    exchange: str = Field(description="Exchange, by the label of its wallets")
    inflow_eth: float = Field(description="Received from others, ETH")
    outflow_eth: float = Field(description="Paid to others, ETH")
    net_eth: float = Field(description="Inflow less outflow, ETH")
    inflow_count: int = Field(description="Transfers received from others")
    outflow_count: int = Field(description="Transfers paid to others")
    inflow_usd: int | None = Field(description="inflow_eth in USD; null: no price")
    outflow_usd: int | None = Field(description="outflow_eth in USD; null: no price")
    net_usd: int | None = Field(description="net_eth in USD; null: no price")


class FlowTransfer(Payload):
    tx_hash: str = Field(description="Hash of the transaction")
    direction: Direction = Field(description="As seen from `exchange`; internal ones are not listed")
    exchange: str = Field(description="The one that receives or pays; between two, the one that pays")
    counterparty: str | None = Field(description="The other address; null: a contract was created")
    counterparty_exchange: str | None = Field(
        description="Exchange of the other address; null: it is none that is known"
    )
    value_eth: float = Field(ge=LEAST_ETH, description="Amount, ETH")
    value_usd: int | None = Field(description="Amount in USD; null: no price")
    block_number: int = Field(description="Number of the block")
    block_time: Timestamp = Field(description="Time of the block")
    explorer_url: str = Field(description="Page of the transaction on Etherscan")


class FlowTotals(Payload):
    transfer_count: int = Field(description="Inflows and outflows of all exchanges")
    inter_exchange_count: int = Field(description="Transfers between two exchanges, which are in no other sum")
    total_inflow_eth: float = Field(description="Inflow of all exchanges, ETH")
    total_outflow_eth: float = Field(description="Outflow of all exchanges, ETH")
    net_flow_eth: float = Field(description="Inflow less outflow, ETH")
    net_flow_usd: int | None = Field(description="net_flow_eth in USD; null: no price")
    bias: Bias = Field(description="Which way the net flow leans, by our rule in `threshold`")


class FlowThreshold(Payload):
    min_eth: int = Field(description="Smallest transfer that counts, ETH")
    balanced_rule: str = Field(description="When the bias is called balanced")
    rationale: str = Field(description="Why this smallest transfer")


class PremiumExchangeFlows(TopLevel):
    spot_eth_usd: float | None = Field(description="Price of one ETH, USD; null: no source answered")
    blocks_scanned: list[ScannedBlock] = Field(description="Blocks that were read, newest first")
    flows_by_exchange: list[ExchangeFlow] = Field(description="All tracked, largest net flow first")
    recent_transfers: list[FlowTransfer] = Field(
        max_length=MOST, description="Newest block first, the largest of a block first"
    )
    aggregate: FlowTotals = Field(description="Sums over all exchanges")
    threshold: FlowThreshold = Field(description="What counts, and why")
    exchanges_tracked: list[str] = Field(description="Exchanges whose wallets are known")
    notes: dict[str, str] = Field(description="Remarks on scope and labels")


class Flow(NamedTuple):
    """A transfer to or from a known wallet."""

    direction: Direction
    exchange: str
    counterparty: str | None
    counterparty_exchange: str | None
    block: Block
    transfer: EtherTransfer


class Sides(NamedTuple):
    """The incoming and outgoing transfers, in wei."""

    inflows: tuple[int, ...]
    outflows: tuple[int, ...]

    @property
    def net(self) -> int:
        return sum(self.inflows) - sum(self.outflows)


@tool(
    path="/api/pro/exchange-flows",
    title="Exchange flows",
    search_hint="ETH ethereum flowing into out of exchanges inflow outflow is it",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=300,
    sla_s=600,
    follow_s=FOLLOW_S,
    toolset="core",
    tags={FREE_SIBLING: "gas"},
    sources=(*onchain.PRICE_SOURCES, *onchain.CHAIN_SOURCES),
    pictures=(
        Picture(
            "bars",
            "Into and out of exchanges",
            rows="flows_by_exchange",
            values=("inflow_eth", "outflow_eth"),
            label="exchange",
            unit="ETH",
        ),
        Picture(
            "flows",
            "Transfers",
            rows="recent_transfers",
            values=("value_eth",),
            ends=("exchange", "counterparty_exchange|counterparty"),
            label="direction",
            unit="ETH",
        ),
    ),
)
async def premium_exchange_flows(ctx: ToolContext, limit: Annotated[int, up_to(MOST)] = MOST) -> PremiumExchangeFlows:
    """Ether that moves to and from the hot wallets of eight exchanges in the newest blocks: inflow, outflow and net by
    exchange, the transfers themselves, and which way it leans. For any large transfer use premium_whales.

    Shape: transfers of 5 ETH or more in about a minute of chain. An exchange without any has measured zeros. Transfers
    between two exchanges are listed and counted apart, those within one are left out.
    Units: ETH with four decimals; dollar values are null without a price.
    Chart: `flows_by_exchange` as bars to both sides: x `exchange`, up `inflow_eth`, down `outflow_eth`, a mark at
    `net_eth`.
    Source: a public Ethereum node, wallets on which two public label lists agree; price of Coinbase, Kraken or
    Chainlink. Read every 30 seconds while there are requests.
    Errors: 503 without blocks. Nothing is charged then, nor when no transfer was seen or the chain stands still.
    """
    spot_usd, chain = await gather(
        ctx.section("spot_eth_usd", *limit_time(onchain.price_fallbacks("ETH"))),
        ctx.attempt(BLOCKS, *limit_time(onchain.block_fallbacks(ctx))),
    )
    if isinstance(chain, SourceError):
        raise chain
    ctx.shorten(FOLLOW_S)
    onchain.judge(ctx, BLOCKS, chain)
    spot = None if spot_usd is None else price(spot_usd)
    flows = flows_in(chain)
    if not flows:
        ctx.mark_empty()
    return PremiumExchangeFlows(
        spot_eth_usd=spot,
        blocks_scanned=onchain.list_scanned(chain),
        flows_by_exchange=by_exchange(flows, spot),
        recent_transfers=[flow_transfer(flow, spot) for flow in ctx.page(flows[:MOST], limit, "recent_transfers")],
        aggregate=totals(flows, spot),
        threshold=FlowThreshold(min_eth=LEAST_ETH, balanced_rule=BALANCED_RULE, rationale=RATIONALE),
        exchanges_tracked=NAMES,
        notes=NOTES,
    )


def flows_in(chain: Chain) -> tuple[Flow, ...]:
    """Return transfers of 5 ETH and more to or from an exchange, newest block first, the largest of a block first."""
    flows = [flow for block, transfer in chain.transfers if (flow := flow_of(block, transfer)) is not None]
    crossing = [flow for flow in flows if flow.direction != "internal"]
    return tuple(sorted(crossing, key=lambda f: (-f.block.number, -f.transfer.value_wei, f.transfer.hash)))


def flow_of(block: Block, transfer: EtherTransfer) -> Flow | None:
    """Return a transfer as a flow of an exchange; None when it is too small or involves no exchange."""
    sender, receiver = transfer.sender, transfer.to
    paying, paid = EXCHANGES.get(sender), EXCHANGES.get(receiver or "")
    if not is_counted(transfer.value_wei) or not (paying or paid):
        return None
    if paying is None and paid is not None:
        return Flow("inflow", paid, sender, None, block, transfer)
    assert paying is not None
    if paid is None:
        return Flow("outflow", paying, receiver, None, block, transfer)
    direction: Direction = "internal" if paying == paid else "inter_exchange"
    return Flow(direction, paying, receiver, paid, block, transfer)


def sides(flows: Iterable[Flow]) -> Sides:
    """Return the amounts that came from and went to addresses other than exchanges."""
    listed = list(flows)
    inflows, outflows = (
        tuple(flow.transfer.value_wei for flow in listed if flow.direction == direction)
        for direction in ("inflow", "outflow")
    )
    return Sides(inflows, outflows)


def by_exchange(flows: Sequence[Flow], usd: float | None) -> list[ExchangeFlow]:
    """Return every exchange, including those without transfers; the largest net flow first, in either direction."""
    listed = [(name, sides(flow for flow in flows if flow.exchange == name)) for name in NAMES]
    return [
        exchange_flow(name, both, usd) for name, both in sorted(listed, key=lambda pair: (-abs(pair[1].net), pair[0]))
    ]


def exchange_flow(name: str, both: Sides, usd: float | None) -> ExchangeFlow:
    inflow, outflow, net = (ether(wei) for wei in (sum(both.inflows), sum(both.outflows), both.net))
    return ExchangeFlow(
        exchange=name,
        inflow_eth=onchain.show_amount(inflow, PLACES),
        outflow_eth=onchain.show_amount(outflow, PLACES),
        net_eth=onchain.show_amount(net, PLACES),
        inflow_count=len(both.inflows),
        outflow_count=len(both.outflows),
        inflow_usd=dollars(inflow, usd),
        outflow_usd=dollars(outflow, usd),
        net_usd=dollars(net, usd),
    )


def flow_transfer(flow: Flow, usd: float | None) -> FlowTransfer:
    value = ether(flow.transfer.value_wei)
    return FlowTransfer(
        tx_hash=flow.transfer.hash,
        direction=flow.direction,
        exchange=flow.exchange,
        counterparty=flow.counterparty,
        counterparty_exchange=flow.counterparty_exchange,
        value_eth=onchain.show_amount(value, PLACES),
        value_usd=dollars(value, usd),
        block_number=flow.block.number,
        block_time=flow.block.time,
        explorer_url=onchain.link(flow.transfer.hash),
    )


def totals(flows: Sequence[Flow], usd: float | None) -> FlowTotals:
    """Return sums over all exchanges; a transfer between two of them is neither inflow nor outflow."""
    both = sides(flows)
    return FlowTotals(
        transfer_count=len(both.inflows) + len(both.outflows),
        inter_exchange_count=sum(flow.direction == "inter_exchange" for flow in flows),
        total_inflow_eth=onchain.show_amount(ether(sum(both.inflows)), PLACES),
        total_outflow_eth=onchain.show_amount(ether(sum(both.outflows)), PLACES),
        net_flow_eth=onchain.show_amount(ether(both.net), PLACES),
        net_flow_usd=dollars(ether(both.net), usd),
        bias=bias(both),
    )


def bias(both: Sides) -> Bias:
    """Return the direction of the net flow: balanced within 10 ETH, or within a tenth of the total."""
    moved = sum(both.inflows) + sum(both.outflows)
    if 10 * abs(both.net) < max(10 * BALANCED_ETH * WEI, moved):
        return "balanced"
    return "inflow_dominant" if both.net > 0 else "outflow_dominant"


def is_counted(value_wei: int) -> bool:
    """Return True if a transfer is large enough to count."""
    return value_wei >= LEAST_ETH * WEI


FLOWS = (
    Meaning(
        "pro/exchange-flows.threshold.min_eth",
        "Transfers from 5 ETH on count",
        decide=is_counted,
        rows=((5 * WEI - 1, False), (5 * WEI, True)),
    ),
    Meaning(
        "pro/exchange-flows.flows_by_exchange.bias",
        "Balanced when the net flow is below the larger of 10 ETH and a tenth of inflow plus outflow; pairs of ETH in "
        "and out",
        decide=lambda row: bias(Sides((row[0] * WEI,), (row[1] * WEI,))),
        rows=(
            ((9, 0), "balanced"),
            ((10, 0), "inflow_dominant"),
            ((20, 30), "outflow_dominant"),
            ((30, 20), "inflow_dominant"),
            ((104, 95), "balanced"),
            ((110, 90), "inflow_dominant"),
            ((109, 91), "balanced"),
            ((90, 110), "outflow_dominant"),
        ),
    ),
)
