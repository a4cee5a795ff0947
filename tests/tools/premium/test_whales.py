"""Large transfers: bitcoin on its way, Ether in the newest blocks, and what half an hour of watching remembers."""

from datetime import UTC, datetime
from decimal import Decimal

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.blockchain_info
import tools.simulated.blockstream
import tools.simulated.coinbase
import tools.simulated.ethereum
import tools.simulated.kraken
import tools.simulated.large_transfers
import tools.simulated.mempool  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, SimDesk
from tests.tools.selling import sell
from tools.parsing.bitcoin import RecentTx
from tools.premium.whales import premium_whales
from tools.shared import btc_whales, onchain
from tools.shared.btc_whales import SeenTransaction, remember, total_only, without_change
from tools.shared.wallets import EXCHANGES
from tools.simulated import bitcoin, market
from tools.simulated.ethereum_chain import ETHER, block_time, digest, head, transfers
from tools.sources.blockchain_info import Output, UnconfirmedTx
from toolserver.context.context import FallbackReader, TimeSeriesStore, ToolContext
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceDown, SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)
HEAD = head(WORLD)
PRICES = {"Coinbase.product_stats", "Kraken.ticker", "Chainlink.price_feed"}
BTC = {"BlockchainInfo.unconfirmed_txs", "Mempool.network", "Blockstream.network"}
ETH = {"Ethereum.block_number", "Ethereum.full_block"}
LISTS = ("btc_whales_unconfirmed", "eth_whales_latest_block")
QUIET = {"btc.quiet": [(0, NOW + 60, 1)], "eth.quiet": [(0, NOW + 60, 1)]}


def world_with(*events, pins=None, seed=1):
    return World(seed, NOW, Edits(pins=pins or {}, events=[{"at": NOW - 20, **event} for event in events]))


def paid(value, **more):
    return {"kind": "btc_tx", "value_btc": value, "at": NOW - 3, **more}


def sent(value, **more):
    return {"kind": "eth_transfer", "value_eth": value, **more}


def codes(made):
    return sorted({warning.code for warning in made.notes.warnings})


# What is listed


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_both_lists_hold_the_large_transfers_of_the_world(compose, seed):
    world = world_with(paid(77, change_btc=5), seed=seed)
    made = await compose(premium_whales, world=world)

    expected = ROUTES.expectations["pro/whales"](world, {})
    btc, eth = (made.json[name] for name in LISTS)
    assert {w["tx_hash"]: [w["value_btc"], w["value_btc_total"]] for w in btc} == expected["btc"]
    assert {w["tx_hash"]: w["value_eth"] for w in eth} == pytest.approx(expected["eth"], abs=1e-6)
    assert len(btc) >= 1
    assert len(eth) >= 1
    assert made.json["spot_prices"] == {"btc_usd": expected["btc_usd"], "eth_usd": expected["eth_usd"]}
    for whale in btc:
        assert whale["value_usd"] == pytest.approx(whale["value_btc"] * expected["btc_usd"], abs=1)
    for whale in eth:
        assert whale["value_usd"] == pytest.approx(whale["value_eth"] * expected["eth_usd"], abs=1)
    assert [w["value_btc"] for w in btc] == sorted((w["value_btc"] for w in btc), reverse=True)
    assert [w["value_eth"] for w in eth] == sorted((w["value_eth"] for w in eth), reverse=True)
    assert made.notes.warnings == []


async def test_a_bitcoin_whale_is_described_as_it_was_heard_of(compose):
    world = world_with(paid(12_345.5, change_btc=100.25, fee_sat=4321))
    whale = (await compose(premium_whales, world=world)).json["btc_whales_unconfirmed"][0]
    tx = next(tx for tx in bitcoin.newest(world, 100) if tx.fee_sat == 4321)

    assert whale == {
        "tx_hash": tx.txid,
        "value_btc": 12_345.5,
        "value_btc_total": 12_445.75,
        "value_usd": round(Decimal("12345.5") * Decimal(str(round(market.day(world, "BTC", "coinbase").last, 2)))),
        "fee_sats": 4321,
        "vsize": -(-tx.weight // 4),
        "fee_sat_per_vb": round(4321 / -(-tx.weight // 4), 2),
        "first_seen": "2027-01-15T07:59:57Z",
        "confirmed": False,
        "explorer_url": f"https://mempool.space/tx/{tx.txid}",
    }


async def test_an_ether_whale_is_exact_and_named_where_a_list_knows_it(compose):
    binance, kraken = (next(a for a, name in EXCHANGES.items() if name == who) for who in ("Binance", "Kraken"))
    events = [sent(98_765_432.123456, **{"from": binance.upper().replace("X", "x"), "to": kraken}), sent(5000, to=None)]
    made = await compose(premium_whales, world=world_with(*events))

    whale, creation, *_ = made.json["eth_whales_latest_block"]
    assert (whale["value_eth"], whale["from"], whale["to"]) == (98_765_432.123456, binance, kraken)
    assert (whale["from_label"], whale["to_label"], whale["confirmed"]) == ("Binance", "Kraken", True)
    assert (creation["to"], creation["to_label"], creation["from_label"]) == (None, None, None)
    assert whale["block_number"] in range(HEAD - 4, HEAD + 1)
    assert whale["block_time"] == datetime.fromtimestamp(block_time(whale["block_number"]), UTC).strftime("%FT%TZ")
    assert whale["explorer_url"] == f"https://etherscan.io/tx/{whale['tx_hash']}"
    assert "sender" not in whale


async def test_the_five_newest_blocks_are_scanned_and_the_newest_is_named(compose):
    made = await compose(premium_whales)
    blocks = made.json["eth_blocks_scanned"]
    assert [block["number"] for block in blocks] == list(range(HEAD, HEAD - 5, -1))
    assert all(120 <= block["tx_count"] <= 200 for block in blocks)
    assert made.json["eth_block"] == {"number": HEAD, "time": blocks[0]["time"]}
    assert blocks[0]["time"] == "2027-01-15T08:00:00Z"


async def test_sums_are_of_all_that_was_found_and_lists_are_cut(compose):
    many = [paid(10 + n, to=f"bc1q{n}", at=NOW - 0.1 * n) for n in range(30)] + [sent(100 + n) for n in range(60)]
    world = world_with(*many, pins=QUIET)
    made = await compose(premium_whales, world=world)

    btc, eth = (made.json[name] for name in LISTS)
    assert (len(btc), len(eth)) == (25, 50)
    assert (btc[0]["value_btc"], eth[0]["value_eth"]) == (39, 159)
    prices = made.json["spot_prices"]
    btc_sum, eth_sum = sum(10 + n for n in range(30)), sum(100 + n for n in range(60))
    assert made.json["aggregate"] == {
        "btc_whale_count": 30,
        "btc_whale_total_btc": btc_sum,
        "btc_whale_total_usd": round(Decimal(btc_sum) * Decimal(str(prices["btc_usd"]))),
        "eth_whale_count": 60,
        "eth_whale_total_eth": eth_sum,
        "eth_whale_total_usd": round(Decimal(eth_sum) * Decimal(str(prices["eth_usd"]))),
    }
    assert codes(made) == ["truncated"]


async def test_change_that_comes_home_does_not_make_a_whale(compose):
    world = world_with(paid(2, change_btc=900), paid(10, change_btc=900, to="x"), paid(9.99999999, to="y"), pins=QUIET)
    [whale] = (await compose(premium_whales, world=world)).json["btc_whales_unconfirmed"]
    assert (whale["value_btc"], whale["value_btc_total"]) == (10, 910)


async def test_less_than_the_threshold_is_not_listed(compose):
    world = world_with(sent(99.999999), sent(100), sent(100.000001), pins=QUIET)
    listed = (await compose(premium_whales, world=world)).json["eth_whales_latest_block"]
    assert [w["value_eth"] for w in listed] == [100.000001, 100]


# Half an hour of watching


@pytest.mark.slow("half an hour of watching")
async def test_each_look_adds_what_is_new_and_nothing_twice(compose):
    history, looks = TimeSeriesStore(), range(0, 600, 30)
    for after in looks:
        made = await compose(premium_whales, world=WORLD.at(NOW + after), history=history)

    heard = {tx.txid: tx for after in looks for tx in bitcoin.newest(WORLD.at(NOW + after), 100)}
    whales = [tx for tx in heard.values() if tx.moved_sat >= 10 * bitcoin.SAT]
    by_value = sorted(whales, key=lambda tx: -tx.moved_sat)[:25]
    assert [w["tx_hash"] for w in made.json["btc_whales_unconfirmed"]] == [tx.txid for tx in by_value]
    assert made.json["aggregate"]["btc_whale_count"] == len(whales) >= 5
    said = made.json["thresholds"]
    assert said["btc_sample_txs"] == len(heard)
    assert said["btc_window_s"] == pytest.approx(570 + 15, abs=2)
    assert (said["btc_min_btc"], said["eth_min_eth"]) == (10, 100)


async def test_a_look_at_the_same_transactions_changes_nothing(compose):
    history = TimeSeriesStore()
    first = await compose(premium_whales, history=history)
    assert (await compose(premium_whales, history=history)).json == first.json
    assert first.json["thresholds"]["btc_sample_txs"] == 100


async def test_after_half_an_hour_a_transaction_is_forgotten(compose):
    history = TimeSeriesStore()
    await compose(premium_whales, world=world_with(paid(5000, fee_sat=1)), history=history)
    kept = await compose(premium_whales, world=WORLD.at(NOW + 1790), history=history)
    gone = await compose(premium_whales, world=WORLD.at(NOW + 1800), history=history)
    assert kept.json["btc_whales_unconfirmed"][0]["value_btc"] == 5000
    assert 5000 not in [w["value_btc"] for w in gone.json["btc_whales_unconfirmed"]]
    assert kept.json["thresholds"]["btc_window_s"] <= 1800


async def test_a_longer_list_of_blocks_is_asked_for_every_time_but_the_same_blocks(compose):
    one, other = (await compose(premium_whales)).desk, (await compose(premium_whales, world=WORLD.at(NOW + 13))).desk
    seen = [{query for name, query in desk.asked if name == "Ethereum.full_block"} for desk in (one, other)]
    assert len(seen[0] & seen[1]) == 4
    operation = operation_of(premium_whales)
    assert (operation.follow_s, operation.ttl_s, operation.sla_s, operation.credits) == (30, 300, 600, 2)


# Lists with totals only


@pytest.mark.parametrize(
    ("down", "used"),
    [
        ({"BlockchainInfo.unconfirmed_txs"}, "Mempool.network"),
        ({"BlockchainInfo.unconfirmed_txs", "Mempool.network"}, "Blockstream.network"),
    ],
)
async def test_where_only_totals_are_known_change_stays_in_and_is_warned_about(compose, down, used):
    world = world_with(paid(2, change_btc=900, at=NOW - 0.1), pins=QUIET)
    made = await compose(premium_whales, world=world, down=down)

    [whale] = made.json["btc_whales_unconfirmed"]
    assert (whale["value_btc"], whale["value_btc_total"], whale["first_seen"]) == (902, 902, "2027-01-15T08:00:00Z")
    assert whale["fee_sat_per_vb"] == round(whale["fee_sats"] / whale["vsize"], 2)
    assert codes(made) == ["change_not_removed", "fallback_used"]
    assert made.json["thresholds"]["btc_sample_txs"] == 10
    listed = {n.source.name: n.status for n in made.notes.sources if n.section == "btc_whales_unconfirmed"}
    assert listed == {used: "fallback"} | dict.fromkeys(down, "error")


async def test_a_total_is_replaced_when_the_whole_transaction_is_seen_and_never_the_other_way(compose):
    world, history = world_with(paid(20, change_btc=900, at=NOW - 0.1), pins=QUIET), TimeSeriesStore()
    down = {"BlockchainInfo.unconfirmed_txs"}
    first = await compose(premium_whales, world=world, down=down, history=history)
    second = await compose(premium_whales, world=world, history=history)
    third = await compose(premium_whales, world=world, down=down, history=history)
    assert [made.json["btc_whales_unconfirmed"][0]["value_btc"] for made in (first, second, third)] == [920, 20, 20]
    assert [codes(made) for made in (second, third)] == [[], ["fallback_used"]]


# When sources fail


@pytest.mark.parametrize(
    ("down", "lost"),
    [
        (BTC, {"btc_whales_unconfirmed": None}),
        ({"Ethereum.block_number"}, {"eth_whales_latest_block": None, "eth_block": None, "eth_blocks_scanned": []}),
        ({"Ethereum.full_block"}, {"eth_whales_latest_block": None, "eth_block": None, "eth_blocks_scanned": []}),
    ],
)
async def test_one_chain_that_fails_is_null_and_the_other_is_what_it_was(compose, down, lost):
    world = world_with(paid(50))
    whole, made = await compose(premium_whales, world=world), await compose(premium_whales, world=world, down=down)

    names = {*LISTS, "eth_block", "eth_blocks_scanned", "spot_prices"}
    assert {name: made.json[name] for name in lost} == lost
    assert {n: made.json[n] for n in names - set(lost)} == {n: whole.json[n] for n in names - set(lost)}
    gone = "btc_" if "btc_whales_unconfirmed" in lost else "eth_"
    for name, value in made.json["aggregate"].items():
        assert value == (None if name.startswith(gone) else whole.json["aggregate"][name])
    assert codes(made) == ["section_unavailable"]


async def test_without_prices_values_stay_and_dollars_are_null(compose):
    world = world_with(paid(50))
    made = await compose(premium_whales, world=world, down=PRICES)

    assert made.json["spot_prices"] == {"btc_usd": None, "eth_usd": None}
    assert {w["value_usd"] for name in LISTS for w in made.json[name]} == {None}
    assert made.json["aggregate"]["btc_whale_total_usd"] is made.json["aggregate"]["eth_whale_total_usd"] is None
    assert made.json["aggregate"]["btc_whale_total_btc"] >= 50


@pytest.mark.parametrize("count", [1, 2])
async def test_another_venue_gives_the_price(compose, count):
    down = set(["Coinbase.product_stats", "Kraken.ticker"][:count])
    made = await compose(premium_whales, down=down)
    for asset, name in (("BTC", "btc_usd"), ("ETH", "eth_usd")):
        assert made.json["spot_prices"][name] == pytest.approx(market.price(WORLD, asset), rel=0.05)
    used = {n.source.name for n in made.notes.sources if n.section == "spot_prices.eth_usd" and n.used}
    assert used == {["Kraken.ticker", "Chainlink.price_feed"][count - 1]}


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(premium_whales, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_whales, down={"*"})


async def test_an_empty_list_or_an_error_of_the_explorer_leads_to_the_next(compose):
    for form in ("empty", "error200"):
        made = await compose(premium_whales, forms={"BlockchainInfo.unconfirmed_txs": form})
        assert made.json["thresholds"]["btc_sample_txs"] == 10


# What it costs


async def test_nothing_large_anywhere_is_two_empty_lists_and_costs_nothing():
    sale = await sell(premium_whales, world=world_with(pins=QUIET))
    assert [sale.body[name] for name in LISTS] == [[], []]
    assert (sale.paid, sale.outcome.no_charge) == (0, "empty_result")
    assert (sale.body["aggregate"]["btc_whale_count"], sale.body["aggregate"]["eth_whale_count"]) == (0, 0)


@pytest.mark.parametrize(
    ("event", "down", "price"),
    [
        (paid(11), set(), 2),
        (sent(101), set(), 2),
        (paid(11), ETH, 2),
        (paid(11), BTC, 0),
        (sent(101), ETH, 0),
        (sent(101), BTC | PRICES, 2),
    ],
)
async def test_one_whale_is_worth_the_price_and_a_lost_list_beside_an_empty_one_is_not(event, down, price):
    sale = await sell(premium_whales, world=world_with(event, pins=QUIET), down=down)
    assert (sale.paid, sale.outcome.no_charge) == (price, None if price else "empty_result")


async def test_an_answer_lives_half_a_minute_while_it_is_followed():
    rendered = (await sell(premium_whales)).outcome.rendered
    assert rendered.expires_at - rendered.generated_at == 30


async def test_a_chain_that_stands_still_makes_the_answer_stale():
    async def looked(behind_s):
        ctx = ToolContext(SimDesk(WORLD.at(NOW - behind_s)), now=lambda: AT, sla_s=600)
        return await premium_whales(ctx), ctx

    made, ctx = await looked(240)
    assert ctx.notes.stale() is True
    assert ("eth_whales_latest_block", "stale_data") in {(w.section, w.code) for w in ctx.notes.warnings}
    assert made.eth_whales_latest_block
    assert (await looked(170))[1].notes.stale() is False


# The parts


class SlowDesk(SimDesk):
    """Counts how many reads run at once; `lost` blocks cannot be had."""

    lost: frozenset[int] = frozenset()
    running = most = 0

    async def fresh(self, source, query, *, sla_s):
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        self.running -= 1
        if query in self.lost:
            raise SourceDown("arranged", word="timeout")
        return await super().fresh(source, query, sla_s=sla_s)


async def read_blocks(*lost):
    desk = SlowDesk(WORLD)
    desk.lost = frozenset(lost)
    return desk, await onchain.newest_blocks(FallbackReader(desk, "x", lambda: AT, 600))


async def test_blocks_are_read_three_at_a_time_and_come_newest_first():
    desk, chain = await read_blocks()
    assert desk.most == 3
    assert [block.number for block in chain.blocks] == list(range(HEAD, HEAD - 5, -1))
    found = {transfer.hash for _, transfer in chain.transfers if transfer.value_wei >= 5 * ETHER}
    expected = {digest(WORLD, "tx", t.key) for n in range(HEAD - 4, HEAD + 1) for t in transfers(WORLD, n)}
    assert found == expected


async def test_a_block_that_cannot_be_had_is_missing_and_said_to_be():
    _, chain = await read_blocks(HEAD, HEAD - 2)
    assert [block.number for block in chain.blocks] == [HEAD - 1, HEAD - 3, HEAD - 4]
    assert (chain.missing, chain.reason) == (2, "timeout: arranged")
    ctx = ToolContext(SimDesk(WORLD), now=lambda: AT, sla_s=600)
    onchain.judge(ctx, "blocks", chain)
    assert [(w.code, w.message[:6]) for w in ctx.notes.warnings] == [("partial", "2 of 5")]
    with pytest.raises(SourceDown):
        await read_blocks(*range(HEAD - 4, HEAD + 1))


amounts = st.integers(0, 21 * 10**14)
sides = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), amounts), max_size=6)


@given(st.frozensets(st.sampled_from(["a", "b", "x"])), sides)
def test_what_moved_is_the_total_without_what_came_back(inputs, outputs):
    tx = UnconfirmedTx("00" * 32, AT, None, None, inputs, tuple(Output(*side) for side in outputs))
    seen = without_change(tx)
    assert seen.total_sat == sum(value for _, value in outputs)
    assert seen.total_sat - seen.moved_sat == sum(value for name, value in outputs if name in inputs)


def test_a_total_without_a_time_is_first_seen_now_and_stays_so():
    history, tx = TimeSeriesStore(), RecentTx("ab" * 32, 10, 100, 11 * 10**8)
    later = datetime.fromtimestamp(NOW + 60, UTC)
    remember(history, [total_only(tx, AT)], AT)
    window = remember(history, [total_only(tx, later)], later)
    assert window == ((SeenTransaction("ab" * 32, AT, 11 * 10**8, 11 * 10**8, 10, 100, change_removed=False),), 1, 60)
    assert remember(TimeSeriesStore(), [], AT) == ((), 0, 0)


def test_every_source_that_may_be_read_is_named():
    named = {source.name for source in operation_of(premium_whales).sources}
    assert named == PRICES | BTC | ETH | {"BitcoinCore.mempool"}
    assert btc_whales.LEAST_SAT == 10 * bitcoin.SAT
