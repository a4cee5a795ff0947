"""Bitcoin Core over JSON-RPC, on bodies as its documentation has them, and the sections that are made of it."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.tools.desk import NOW, ask, compose
from tools.parsing.bitcoin import Backlog, Fees, MiningPower
from tools.premium.crypto_deep import premium_crypto_deep
from tools.premium.whales import premium_whales
from tools.shared.btc_whales import from_node
from tools.simulated import bitcoin
from tools.simulated.bitcoin_core import SimNode, is_parent_waiting, outpoint
from tools.sources import bitcoin_core
from tools.sources.bitcoin_core import KEY, NodeOutput
from toolserver.context.context import TimeSeriesStore
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceFrozen, SourceRefused, SourceUnusable
from toolserver.world.model import World

WORLD = World(1, NOW)
OWN = {KEY: "https://sim-user:sim-password@bitcoin.example"}
A, B = "aa" * 32, "bb" * 32
SOURCES = (
    bitcoin_core.STATE,
    bitcoin_core.FEES,
    bitcoin_core.WAITING_IDS,
    bitcoin_core.WAITING,
    bitcoin_core.OWNERS,
)
QUERIES: dict[Any, Any] = {bitcoin_core.WAITING: (A,), bitcoin_core.OWNERS: ((A, 0),)}

CHAIN = {
    "chain": "main",
    "blocks": 925_000,
    "headers": 925_000,
    "bestblockhash": "00" * 32,
    "difficulty": 146472570619930.8,
    "time": 1_764_320_000,
    "mediantime": 1_764_317_000,
    "verificationprogress": 0.9999987,
    "initialblockdownload": False,
    "pruned": True,
    "warnings": [],
}
MEMPOOL = {
    "loaded": True,
    "size": 41_233,
    "bytes": 20_500_123,
    "usage": 98_800_000,
    "total_fee": 0.31405926,
    "maxmempool": 300_000_000,
    "mempoolminfee": 0.00001000,
    "minrelaytxfee": 0.00001000,
}
TRANSACTION = {
    "txid": A,
    "hash": B,
    "version": 2,
    "vsize": 222,
    "weight": 888,
    "vin": [{"txid": B, "vout": 1, "scriptSig": {"asm": "", "hex": ""}, "sequence": 4294967293}],
    "vout": [
        {"value": 12.34567891, "n": 0, "scriptPubKey": {"address": "bc1qthem", "type": "witness_v0_keyhash"}},
        {"value": 0.29000001, "n": 1, "scriptPubKey": {"address": "bc1qown", "type": "witness_v0_keyhash"}},
        {"value": 0.0, "n": 2, "scriptPubKey": {"asm": "OP_RETURN", "type": "nulldata"}},
    ],
}
ENTRY = {"vsize": 222, "weight": 888, "time": 1_764_320_100, "fees": {"base": 0.00003330}, "depends": []}


def replies(*results: Any) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "result": result, "id": n} for n, result in enumerate(results)]


def error(code: int, n: int = 0) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": "of https://sim-user:secret@bitcoin.example"}, "id": n}


def estimates(*rates: float) -> list[dict[str, Any]]:
    return replies(*({"feerate": rate, "blocks": 2} for rate in rates), MEMPOOL)


def test_user_and_password_travel_in_a_header_and_in_no_address():
    request = bitcoin_core.STATE.plan(None, {KEY: "http://user:pass%40word@127.0.0.1:8332/wallet/x?y=1"})
    assert request.url == "http://127.0.0.1:8332/wallet/x?y=1"
    kind, packed = request.headers["Authorization"].split()
    assert (kind, base64.b64decode(packed)) == ("Basic", b"user:pass@word")
    assert request.under == KEY
    open_node = bitcoin_core.STATE.plan(None, {KEY: "http://127.0.0.1:8332"})
    assert (open_node.url, open_node.headers) == ("http://127.0.0.1:8332/", {})


def test_without_a_node_or_with_a_wrong_password_there_is_no_answer():
    for source in SOURCES:
        with pytest.raises(SourceUnusable):
            ask(source, QUERIES.get(source))
        with pytest.raises(Exception, match="401"):
            raise_reason(source, {KEY: "https://sim-user:wrong@bitcoin.example"})


def raise_reason(source: Any, keys: dict[str, str]) -> None:
    try:
        ask(source, QUERIES.get(source), keys=keys)
    except Exception as failure:
        raise RuntimeError(getattr(failure, "reason", "")) from failure


def test_the_state_is_read_in_satoshi_and_exahashes():
    state = bitcoin_core.parse_state(replies(CHAIN, 1.0482e21, MEMPOOL), None)
    assert state.height == 925_000
    assert state.block_time == datetime.fromtimestamp(1_764_320_000, UTC)
    assert state.power == MiningPower(1048.2, 146472570619930.8, 1)
    assert state.backlog == Backlog(41_233, 20_500_123, 31_405_926)
    assert bitcoin_core.STATE.newest(state) == state.block_time


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"chain": "test"}, SourceChanged),
        ({"initialblockdownload": True}, SourceFrozen),
        ({"blocks": 101}, ValueError),
        ({"difficulty": 0}, ValueError),
        ({"time": "soon"}, ValueError),
    ],
)
def test_a_node_of_another_chain_or_one_that_still_downloads_is_refused(change, failure):
    with pytest.raises(failure):
        bitcoin_core.parse_state(replies(CHAIN | change, 1e21, MEMPOOL), None)


def test_a_node_that_loads_its_mempool_is_not_read():
    with pytest.raises(SourceEmpty):
        bitcoin_core.parse_state(replies(CHAIN, 1e21, MEMPOOL | {"loaded": False}), None)


def test_fees_are_per_virtual_byte_and_none_is_below_what_enters_the_mempool():
    body = estimates(0.00004100, 0.00002300, 0.00001520, 0.00000500)
    assert bitcoin_core.parse_fees(body, None) == Fees(4.1, 2.3, 1.52, 1.0, 1.0)


def test_without_estimates_there_are_no_fees():
    young = {"errors": ["Insufficient data or no feerate found"], "blocks": 2}
    with pytest.raises(SourceEmpty):
        bitcoin_core.parse_fees(replies(young, young, young, young, MEMPOOL), None)


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ([error(-28, n) for n in range(3)], SourceEmpty),
        ([error(-32601, n) for n in range(3)], SourceRefused),
        ({"result": None, "error": {"code": -32600, "message": "x"}, "id": None}, SourceRefused),
        (replies(CHAIN, 1e21), SourceChanged),
        (replies(CHAIN, 1e21, MEMPOOL, MEMPOOL), SourceChanged),
        ([], SourceChanged),
    ],
)
def test_an_error_is_told_by_its_code_and_never_quoted(body, failure):
    with pytest.raises(failure) as caught:
        bitcoin_core.parse_state(body, None)
    assert "secret" not in caught.value.reason


def test_replies_are_matched_by_their_numbers_and_may_have_the_older_form():
    older = [{"result": result, "error": None, "id": n} for n, result in enumerate((CHAIN, 1e21, MEMPOOL))]
    assert bitcoin_core.parse_state(older[::-1], None).height == 925_000
    no_time = [older[0] | {"result": {k: v for k, v in CHAIN.items() if k != "time"}}, *older[1:]]
    assert bitcoin_core.parse_state(no_time, None).block_time == datetime.fromtimestamp(CHAIN["mediantime"], UTC)


def test_a_waiting_transaction_has_outputs_to_the_satoshi_and_what_it_spends():
    (tx,) = bitcoin_core.parse_transactions(replies(TRANSACTION, ENTRY), (A,))
    assert (tx.txid, tx.fee_sat, tx.vsize, tx.spends) == (A, 3330, 222, ((B, 1),))
    assert tx.outputs == (
        NodeOutput("bc1qthem", 1_234_567_891),
        NodeOutput("bc1qown", 29_000_001),
        NodeOutput(None, 0),
    )
    assert tx.at == datetime.fromtimestamp(1_764_320_100, UTC)


def test_transactions_that_no_longer_wait_are_left_out():
    body = [error(-5, 0), error(-5, 1), *({**reply, "id": n} for n, reply in enumerate(replies(TRANSACTION, ENTRY), 2))]
    assert [tx.txid for tx in bitcoin_core.parse_transactions(body, (B, A))] == [A]
    assert bitcoin_core.parse_transactions([error(-5, 0), error(-5, 1)], (B,)) == ()


def test_an_output_that_is_spent_or_waits_itself_is_unknown():
    found = {
        "bestblock": B,
        "confirmations": 3,
        "value": 1.5,
        "scriptPubKey": {"address": "bc1qown"},
        "coinbase": False,
    }
    body = replies(found, None)
    assert bitcoin_core.parse_owners(body, ((A, 0), (B, 1))) == (NodeOutput("bc1qown", 150_000_000), None)


async def test_the_network_comes_from_the_own_node_before_all_explorers():
    made = await compose(premium_crypto_deep, keys=OWN)
    network = made.json["network_btc"]
    count, vsize, fee = bitcoin.waiting(WORLD)
    assert network["block_height"] == bitcoin.height(WORLD)
    assert network["mempool"] == {"count": count, "vsize": vsize, "total_fee_sat": fee}
    assert network["hashrate"]["current_eh_s"] == pytest.approx(bitcoin.hashrate(WORLD, 1) / 1e18, abs=0.01)
    assert network["hashrate"]["mean_days"] == 1
    fees = bitcoin.fees(WORLD)
    assert [network["fees_sat_per_vb"][f"{name}_exact"] for name in ("fastest", "minimum")] == [fees[0], fees[4]]
    assert network["fees_sat_per_vb"]["fastest"] >= network["fees_sat_per_vb"]["economy"] >= 1
    assert {name for name, _ in made.desk.asked} & {"Mempool.network", "Blockstream.network"} == set()
    without = await compose(premium_crypto_deep, keys=OWN, down={"BitcoinCore.network"})
    assert without.json["network_btc"]["block_height"] == network["block_height"]


async def test_large_transactions_come_from_the_own_node_without_their_change():
    history, seen = TimeSeriesStore(), {}
    for step in range(8):
        world = WORLD.at(NOW + 15 * step)
        made = await compose(premium_whales, world=world, keys=OWN, history=history)
        seen |= {row["tx_hash"]: row for row in made.json["btc_whales_unconfirmed"]}
    assert {name for name, _ in made.desk.asked} & {"BlockchainInfo.unconfirmed_txs", "Mempool.network"} == set()
    waiting = SimNode(world).waiting
    removed = [row for row in seen.values() if row["value_btc"] != row["value_btc_total"]]
    assert removed
    for row in seen.values():
        tx = waiting[row["tx_hash"]]
        is_known = not is_parent_waiting(world, tx)
        assert row["value_btc_total"] == tx.total_sat / bitcoin.SAT
        assert row["value_btc"] == (tx.moved_sat if is_known else tx.total_sat) / bitcoin.SAT
        assert (row["fee_sats"], row["vsize"]) == (tx.fee_sat, tx.vsize)


async def test_what_came_since_the_last_reading_is_asked_for_once():
    history = TimeSeriesStore()
    first = await compose(premium_whales, keys=OWN, history=history)
    again = await compose(premium_whales, keys=OWN, history=history)
    later = await compose(premium_whales, world=WORLD.at(NOW + 10), keys=OWN, history=history)
    assert [len(query) for query in asked_for(first)] == [100]
    assert asked_for(again) == []
    (new,) = asked_for(later)
    assert 0 < len(new) <= 100
    assert not set(new) & SimNode(WORLD).waiting.keys()


def asked_for(made: Any) -> list[tuple[str, ...]]:
    """The ids of each request for transactions, and not for the outputs that they spend."""
    queries = [query for name, query in made.desk.asked if name == "BitcoinCore.mempool" and query]
    return [query for query in queries if isinstance(query[0], str)]


def test_change_is_removed_only_if_every_output_that_a_transaction_spends_is_known():
    (tx,) = bitcoin_core.parse_transactions(replies(TRANSACTION, ENTRY), (A,))
    own = from_node(tx, {(B, 1): NodeOutput("bc1qown", 10**10)})
    assert (own.moved_sat, own.total_sat, own.change_removed) == (1_234_567_891, 1_263_567_892, True)
    for owners in ({(B, 1): None}, {}):
        unknown = from_node(tx, owners)
        assert (unknown.moved_sat, unknown.change_removed) == (unknown.total_sat, False)
    nameless = from_node(tx, {(B, 1): NodeOutput(None, 10**10)})
    assert (nameless.moved_sat, nameless.change_removed) == (nameless.total_sat, True)


def test_the_node_itself_says_that_a_parent_waits():
    simulated = SimNode(WORLD)
    waiting = next(tx for tx in simulated.waiting.values() if is_parent_waiting(WORLD, tx))
    confirmed = next(tx for tx in simulated.waiting.values() if not is_parent_waiting(WORLD, tx))
    points = (outpoint(WORLD, waiting, 0), outpoint(WORLD, confirmed, 0))
    spent = confirmed.inputs[0]
    assert ask(bitcoin_core.OWNERS, points, keys=OWN) == (None, NodeOutput(spent.address, spent.value_sat))
