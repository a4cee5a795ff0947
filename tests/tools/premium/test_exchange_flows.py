"""Ether to and from exchanges in the newest blocks."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.coinbase
import tools.simulated.ethereum
import tools.simulated.kraken
import tools.simulated.large_transfers  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, SimDesk
from tests.tools.selling import sell
from tools.premium.exchange_flows import Sides, bias, by_exchange, flow_of, premium_exchange_flows, totals
from tools.premium.whales import premium_whales
from tools.shared.wallets import EXCHANGES
from tools.simulated import ethereum_chain
from tools.simulated.ethereum_chain import head
from tools.sources.ethereum import Block, EtherTransfer
from toolserver.context.context import ToolContext
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)
HEAD = head(WORLD)
ETH = 10**18
PRICES = {"Coinbase.product_stats", "Kraken.ticker", "Chainlink.price_feed"}
NAMES = ["Binance", "Bybit", "Coinbase", "Crypto.com", "Gate.io", "Kraken", "KuCoin", "OKX"]
WALLET = {name: [a for a, owner in EXCHANGES.items() if owner == name] for name in NAMES}
STRANGER, OTHER = "0x" + "12" * 20, "0x" + "34" * 20
QUIET = {"eth.quiet": [(0, NOW + 60, 1)]}


def world_with(*moves):
    """A world whose newest blocks hold these transfers `(from, to, ETH)` and no other large ones."""
    events = [{"kind": "eth_transfer", "at": NOW - 30, "from": a, "to": b, "value_eth": value} for a, b, value in moves]
    return World(1, NOW, Edits(pins=QUIET, events=events))


def codes(made):
    return sorted({warning.code for warning in made.notes.warnings})


# What is counted


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_sums_by_exchange_and_over_all_are_those_of_the_world(compose, seed):
    world = World(seed, NOW)
    made = (await compose(premium_exchange_flows, world=world)).json

    expected = ROUTES.expectations["pro/exchange-flows"](world, {})
    flows = {flow["exchange"]: flow for flow in made["flows_by_exchange"]}
    assert sorted(flows) == made["exchanges_tracked"] == NAMES
    for name, (inflow, outflow) in expected["by_exchange"].items():
        flow = flows[name]
        assert (flow["inflow_eth"], flow["outflow_eth"]) == pytest.approx((inflow, outflow), abs=5e-5)
        assert flow["net_eth"] == pytest.approx(inflow - outflow, abs=5e-5)
        assert flow["net_usd"] == pytest.approx((inflow - outflow) * expected["spot_eth_usd"], abs=1)
    aggregate = made["aggregate"]
    for name in ("transfer_count", "inter_exchange_count"):
        assert aggregate[name] == expected[name]
    for name in ("total_inflow_eth", "total_outflow_eth"):
        assert aggregate[name] == pytest.approx(expected[name], abs=5e-5)
    net = expected["total_inflow_eth"] - expected["total_outflow_eth"]
    assert aggregate["net_flow_eth"] == pytest.approx(net, abs=5e-5)
    assert made["spot_eth_usd"] == expected["spot_eth_usd"]
    assert aggregate["transfer_count"] >= 10


@pytest.mark.parametrize("seed", [1, 2])
async def test_blocks_are_the_five_newest_and_exchanges_come_by_size_of_their_net_flow(compose, seed):
    made = await compose(premium_exchange_flows, world=World(seed, NOW))
    numbers = [block["number"] for block in made.json["blocks_scanned"]]
    assert numbers == list(range(HEAD, HEAD - 5, -1))
    order = [(-abs(flow["net_eth"]), flow["exchange"]) for flow in made.json["flows_by_exchange"]]
    assert order == sorted(order)
    assert made.notes.warnings == []
    assert made.json["threshold"]["min_eth"] == 5


async def test_each_transfer_says_which_way_and_with_whom(compose):
    binance, kraken, okx = WALLET["Binance"], WALLET["Kraken"], WALLET["OKX"]
    moves = [
        (STRANGER, binance[0], 60.5),
        (kraken[0], STRANGER, 50.25),
        (okx[0], None, 40),
        (binance[0], kraken[1], 30),
        (binance[0], binance[1], 1000),
        (STRANGER, OTHER, 2000),
        (STRANGER, binance[0], 4.999999),
        (STRANGER, binance[1], 5),
    ]
    made = (await compose(premium_exchange_flows, world=world_with(*moves))).json

    shown = [
        (t["direction"], t["exchange"], t["counterparty"], t["counterparty_exchange"], t["value_eth"])
        for t in made["recent_transfers"]
    ]
    assert shown == [
        ("inflow", "Binance", STRANGER, None, 60.5),
        ("outflow", "Kraken", STRANGER, None, 50.25),
        ("outflow", "OKX", None, None, 40),
        ("inter_exchange", "Binance", kraken[1], "Kraken", 30),
        ("inflow", "Binance", STRANGER, None, 5),
    ]
    spot = Decimal(str(made["spot_eth_usd"]))
    assert made["recent_transfers"][0]["value_usd"] == round(Decimal("60.5") * spot)
    assert made["recent_transfers"][0]["explorer_url"].startswith("https://etherscan.io/tx/0x")
    assert made["aggregate"] == {
        "transfer_count": 4,
        "inter_exchange_count": 1,
        "total_inflow_eth": 65.5,
        "total_outflow_eth": 90.25,
        "net_flow_eth": -24.75,
        "net_flow_usd": round(Decimal("-24.75") * spot),
        "bias": "outflow_dominant",
    }
    flows = {flow["exchange"]: flow for flow in made["flows_by_exchange"]}
    assert list(flows)[:3] == ["Binance", "Kraken", "OKX"]
    assert (flows["Binance"]["inflow_eth"], flows["Binance"]["outflow_eth"], flows["Binance"]["net_eth"]) == (
        65.5,
        0,
        65.5,
    )
    assert (flows["Binance"]["inflow_count"], flows["Kraken"]["outflow_count"], flows["Kraken"]["inflow_count"]) == (
        2,
        1,
        0,
    )


async def test_an_exchange_without_any_flow_has_zeros(compose):
    made = (await compose(premium_exchange_flows, world=world_with((STRANGER, WALLET["Bybit"][0], 7)))).json
    first, *others = made["flows_by_exchange"]
    assert (first["exchange"], first["net_eth"]) == ("Bybit", 7)
    assert [flow["exchange"] for flow in others] == [name for name in NAMES if name != "Bybit"]
    zeros = {"inflow_eth", "outflow_eth", "net_eth", "inflow_count", "outflow_count", "inflow_usd", "outflow_usd"}
    assert {flow[name] for flow in others for name in zeros | {"net_usd"}} == {0}


async def test_at_most_twenty_transfers_are_shown_newest_block_first_and_all_are_counted(compose):
    moves = [(STRANGER, WALLET["OKX"][0], 5 + n) for n in range(30)]
    made = (await compose(premium_exchange_flows, world=world_with(*moves))).json
    assert [t["value_eth"] for t in made["recent_transfers"]] == [34 - n for n in range(20)]
    assert made["aggregate"]["transfer_count"] == 30

    usual = (await compose(premium_exchange_flows)).json["recent_transfers"]
    order = [(-t["block_number"], -t["value_eth"]) for t in usual]
    assert order == sorted(order)


async def test_large_amounts_keep_every_digit_that_is_shown(compose):
    made = await compose(premium_exchange_flows, world=world_with((STRANGER, WALLET["OKX"][0], 123_456_789.1234)))
    assert made.json["aggregate"]["total_inflow_eth"] == 123_456_789.1234


@pytest.mark.parametrize(
    ("came", "went", "said"),
    [
        (14.9, 5, "balanced"),
        (15, 5, "inflow_dominant"),
        (5, 15, "outflow_dominant"),
        (1000, 820, "balanced"),
        (1100, 900, "inflow_dominant"),
        (820, 1010, "outflow_dominant"),
        (0, 0, "balanced"),
    ],
)
def test_balanced_is_within_ten_eth_or_a_tenth_of_what_moved(came, went, said):
    assert bias(Sides((int(came * ETH),), (int(went * ETH),))) == said


# When sources fail


async def test_without_a_price_the_flows_stay_and_dollars_are_null(compose):
    whole, made = await compose(premium_exchange_flows), await compose(premium_exchange_flows, down=PRICES)

    assert made.json["spot_eth_usd"] is None
    assert {t["value_usd"] for t in made.json["recent_transfers"]} == {None}
    assert {f[name] for f in made.json["flows_by_exchange"] for name in ("inflow_usd", "net_usd")} == {None}
    assert made.json["aggregate"] == whole.json["aggregate"] | {"net_flow_usd": None}
    assert codes(made) == ["section_unavailable"]


async def test_kraken_gives_the_price_when_coinbase_does_not(compose):
    made = await compose(premium_exchange_flows, down={"Coinbase.product_stats"})
    assert made.json["spot_eth_usd"] == pytest.approx(
        (await compose(premium_exchange_flows)).json["spot_eth_usd"], rel=0.01
    )
    assert codes(made) == ["fallback_used"]


@pytest.mark.parametrize("down", [{"Ethereum.block_number"}, {"Ethereum.full_block"}, {"*"}])
async def test_without_blocks_there_is_nothing_to_sell(compose, down):
    with pytest.raises(SourceError):
        await compose(premium_exchange_flows, down=down)
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_exchange_flows, down=down)


@pytest.mark.parametrize("form", ["empty", "error200"])
async def test_an_error_of_the_node_is_not_a_quiet_chain(compose, form):
    with pytest.raises(SourceError):
        await compose(premium_exchange_flows, forms={"Ethereum.full_block": form})


async def test_another_form_of_the_same_block_is_the_same_block(compose):
    made = await compose(premium_exchange_flows, forms={"Ethereum.full_block": "drift"})
    assert made.json == (await compose(premium_exchange_flows)).json


# What it costs


@pytest.mark.parametrize(
    ("moves", "price"),
    [
        ([], 0),
        ([(WALLET["OKX"][0], WALLET["OKX"][1], 500), (STRANGER, OTHER, 500)], 0),
        ([(WALLET["OKX"][0], WALLET["Kraken"][0], 5)], 2),
        ([(STRANGER, WALLET["Kraken"][0], 5)], 2),
    ],
)
async def test_without_a_transfer_to_show_nothing_is_charged(moves, price):
    sale = await sell(premium_exchange_flows, world=world_with(*moves))
    assert (sale.paid, sale.outcome.no_charge) == (price, None if price else "empty_result")
    assert len(sale.body["recent_transfers"]) == bool(price)
    assert len(sale.body["flows_by_exchange"]) == 8


async def test_a_chain_that_stands_still_makes_the_answer_stale():
    ctx = ToolContext(SimDesk(WORLD.at(NOW - 240)), now=lambda: AT, sla_s=600)
    await premium_exchange_flows(ctx)
    assert ctx.notes.stale() is True
    assert [(w.section, w.code) for w in ctx.notes.warnings] == [("blocks_scanned", "stale_data")]


def test_it_reads_the_blocks_that_the_whales_read():
    flows, whales = operation_of(premium_exchange_flows), operation_of(premium_whales)
    assert set(flows.sources) < set(whales.sources)
    assert {source.name for source in flows.sources} == PRICES | {"Ethereum.block_number", "Ethereum.full_block"}
    assert (flows.credits, flows.ttl_s, flows.sla_s, flows.follow_s) == (2, 300, 600, 30)


# The rules


addresses = st.sampled_from([STRANGER, OTHER, *WALLET["OKX"][:2], *WALLET["Kraken"]])
transfers = st.lists(
    st.tuples(addresses, st.none() | addresses, st.integers(0, 100 * ETH)).map(lambda t: EtherTransfer("0x", *t)),
    max_size=30,
)


@given(transfers)
def test_every_transfer_counts_once_or_not_at_all(moved):
    block = Block(1, "0x", AT, len(moved), tuple(moved))
    flows = [flow for transfer in moved if (flow := flow_of(block, transfer)) and flow.direction != "internal"]
    counted = totals(flows, None)
    listed = by_exchange(flows, None)

    def owners(t):
        return EXCHANGES.get(t.sender), EXCHANGES.get(t.to or "")

    large = [owners(t) for t in moved if t.value_wei >= 5 * ETH]
    assert counted.transfer_count == sum((a is None) != (b is None) for a, b in large)
    assert counted.inter_exchange_count == sum(None not in (a, b) and a != b for a, b in large)
    assert sum(flow.inflow_count + flow.outflow_count for flow in listed) == counted.transfer_count
    assert sum(flow.net_eth for flow in listed) == pytest.approx(counted.net_flow_eth, abs=1e-3)
    assert counted.net_flow_eth == pytest.approx(counted.total_inflow_eth - counted.total_outflow_eth, abs=2e-4)


def test_the_simulated_wallets_are_all_known():
    assert set(ethereum_chain.WALLETS) == set(NAMES)
