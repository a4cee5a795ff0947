"""Ethereum over JSON-RPC, Chainlink's feeds on it, and the list of exchange wallets."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.ethereum
from tests.tools.desk import NOW, ask, decoded, fetch
from tools.parsing.ethereum_rpc import HOSTS
from tools.shared.wallets import EXCHANGES, WALLETS
from tools.simulated import ethereum_chain, market
from tools.sources.chainlink import FEEDS, GOLD_FEED, PRICE_FEED
from tools.sources.chainlink import parse as parse_round
from tools.sources.ethereum import (
    BLOCK_NUMBER,
    FEE_HISTORY,
    FULL_BLOCK,
    LATEST_BLOCK,
    EtherTransfer,
    block_request,
    number_request,
    parse_block,
    parse_fees,
    parse_number,
)
from toolserver.upstream.source import Post, SourceChanged, SourceDown, SourceEmpty, SourceLimited, SourceRefused
from toolserver.world.model import Edits, World

WORLD = World(1, NOW)
HEAD = 26_400_000
A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
OWN = {"ETH_RPC_URL": "https://ethereum.example/sim-key"}


def said(result):
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def block(*transactions, number="0x10"):
    return said(
        {"number": number, "hash": "0x" + "1" * 64, "timestamp": "0x6553f100", "transactions": list(transactions)}
    )


def moved(value, to=B):
    return {"hash": "0x" + "2" * 64, "from": A.upper().replace("X", "x"), "to": to, "value": value}


def fees(blocks=20, **changes):
    body = {"oldestBlock": "0x64", "baseFeePerGas": ["0x7"] * (blocks + 1), "gasUsedRatio": [0.5] * blocks}
    return said(body | {"reward": [["0x1", "0x2", "0x3"]] * blocks} | changes)


def feed(*words):
    return said("0x" + "".join((word % 2**256).to_bytes(32).hex() for word in words))


def test_the_hosts_are_tried_in_order_and_your_own_node_first():
    assert [post.url for post in number_request(None, {})] == list(HOSTS)
    assert [post.url for post in number_request(None, OWN)] == [OWN["ETH_RPC_URL"], *HOSTS]
    [first, *_] = block_request(255, {})
    assert first.json == {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["0xff", True]}
    assert block_request("latest", {})[0].json["params"] == ["latest", True]


def test_recorded_answers_parse_to_their_values(sample):
    assert parse_number(json.loads(sample("eth-rpc/eth_blockNumber.json")), None) == 0x36
    found = parse_block(json.loads(sample("eth-rpc/eth_getBlockByNumber-full-0xf213f6.json")), 0xF213F6)

    assert (found.number, found.tx_count) == (15_864_822, 67)
    assert found.time == datetime(2022, 10, 31, 1, 41, 35, tzinfo=UTC)
    raw = json.loads(sample("eth-rpc/eth_getBlockByNumber-full-0xf213f6.json"))["result"]["transactions"]
    large = [tx for tx in raw if int(tx["value"], 16) >= 10**18]
    assert [t.hash for t in found.transfers] == [tx["hash"] for tx in large]
    assert [t.value_wei for t in found.transfers] == [int(tx["value"], 16) for tx in large]


def test_a_recorded_block_that_makes_contracts_parses(sample):
    body = json.loads(sample("eth-rpc/eth_getBlockByNumber-testchain.json"))
    assert parse_block(body, "latest").tx_count == 4


def test_a_recorded_unknown_block_is_empty(sample):
    with pytest.raises(SourceEmpty):
        parse_block(json.loads(sample("eth-rpc/eth_getBlockByNumber-notfound.json")), 1000)


def test_a_recorded_fee_history_of_one_block_is_too_short(sample):
    with pytest.raises(SourceEmpty):
        parse_fees(json.loads(sample("eth-rpc/eth_feeHistory.json")), None)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("rate limit exceeded", SourceLimited),
        ("daily quota reached", SourceLimited),
        ({"code": -32005, "message": "x"}, SourceLimited),
        ({"code": 429, "message": "x"}, SourceLimited),
        ({"code": -32000, "message": "Too many requests"}, SourceLimited),
        ({"code": -32601, "message": "no such method"}, SourceRefused),
        ("https://node.example/secret is down", SourceRefused),
    ],
)
def test_an_error_is_an_object_or_a_text_and_is_never_quoted(error, expected):
    with pytest.raises(expected) as caught:
        parse_number({"jsonrpc": "2.0", "id": None, "error": error}, None)
    assert "secret" not in caught.value.reason


@pytest.mark.parametrize("body", [{}, {"id": 1}, [], None, said(54), said("54"), said("0x"), said("0x0"), said({})])
def test_anything_else_than_a_height_is_a_changed_format(body):
    with pytest.raises((KeyError, ValueError, AttributeError)):
        parse_number(body, None)


def test_the_answer_to_another_call_is_not_taken():
    with pytest.raises(SourceChanged):
        parse_number(said("0x36") | {"id": 2}, None)
    with pytest.raises(SourceChanged):
        parse_block(block(number="0x11"), 0x10)


def test_every_transaction_is_counted_and_the_large_ones_are_kept():
    large = hex(123_456_789_012_345_678_901)  # more than a float holds
    found = parse_block(block(moved(large), moved("0x0"), moved(hex(10**18), to=None)), 16)
    assert found.tx_count == 3
    assert found.transfers[0] == EtherTransfer("0x" + "2" * 64, A, B, 123_456_789_012_345_678_901)
    assert (found.transfers[1].to, found.transfers[1].value_wei) == (None, 10**18)


@pytest.mark.parametrize(
    "change", [{"from": None}, {"to": "0x12"}, {"value": 5}, {"value": "5"}, {"to": "0x" + "z" * 40}]
)
def test_a_transaction_in_another_form_is_a_changed_format(change):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        parse_block(block(moved("0x1") | change), 16)


def test_hashes_instead_of_transactions_are_a_changed_format():
    with pytest.raises(TypeError):
        parse_block(block("0x" + "2" * 64), 16)


@given(st.lists(st.integers(0, 10**24), max_size=30))
def test_parse_never_invents_or_drops_transfers(values):
    found = parse_block(block(*(moved(hex(value)) for value in values)), "latest")
    assert found.tx_count == len(values)
    assert [t.value_wei for t in found.transfers] == [value for value in values if value >= 10**18]


def test_fees_name_the_newest_block_and_keep_the_next_base_fee():
    found = parse_fees(fees(), None)
    assert (found.newest_block, len(found.base_fees)) == (119, 21)
    assert found.rewards == ((1, 2, 3),) * 20


@pytest.mark.parametrize("reward", [None, [[]] * 20, [None] * 20])
def test_empty_blocks_have_no_tips(reward):
    assert parse_fees(fees(reward=reward), None).rewards == ()


@pytest.mark.parametrize(
    "changes", [{"baseFeePerGas": ["0x0"] * 21}, {"gasUsedRatio": [0.5]}, {"reward": [["0x1"]] * 20}]
)
def test_fees_that_contradict_themselves_are_a_changed_format(changes):
    with pytest.raises(SourceChanged):
        parse_fees(fees(**changes), None)


def test_a_feed_is_read_as_signed_words():
    found = parse_round(feed(2**70, 9_700_012_345_678, 0, 1_800_000_000, 2**70), "BTC-USD")
    assert found == ("BTC-USD", 97000.12345678, datetime.fromtimestamp(NOW, UTC), 2**70)
    with pytest.raises(SourceEmpty):
        parse_round(feed(1, 0, 0, 1_800_000_000, 1), "BTC-USD")
    with pytest.raises(ValueError, match="positive"):
        parse_round(feed(1, -5, 0, 1_800_000_000, 1), "BTC-USD")
    with pytest.raises(ValueError, match="positive"):
        parse_round(feed(1, 5, 0, 0, 1), "BTC-USD")


@pytest.mark.parametrize("result", ["0x", feed(1, 2, 3)["result"]])
def test_a_call_that_reaches_no_feed_is_a_changed_format(result):
    with pytest.raises(SourceChanged):
        parse_round(said(result), "BTC-USD")


def test_every_simulated_host_answers_alike():
    posts = number_request(None, OWN)
    assert {parse_number(decoded(fetch(WORLD, post), post), None) for post in posts} == {HEAD}
    locked = Post("https://ethereum.example/other", json=posts[0].json)
    assert fetch(WORLD, locked).status == 401
    both = Post(posts[1].url, json=[posts[0].json, {"id": 7, "method": "eth_sign"}])
    [first, second] = decoded(fetch(WORLD, both), both)
    assert (first["result"], second["id"], second["error"]["code"]) == (hex(HEAD), 7, -32601)


def test_the_twins_blocks_follow_each_other_every_twelve_seconds():
    newest, before = ask(LATEST_BLOCK, "latest"), ask(FULL_BLOCK, HEAD - 1)
    assert (newest.number, before.number) == (ask(BLOCK_NUMBER), HEAD - 1)
    assert (newest.time - before.time).total_seconds() == 12
    assert 0 <= NOW - newest.time.timestamp() < 12
    assert ask(FULL_BLOCK, HEAD, form="drift") == newest
    assert ask(FULL_BLOCK, HEAD, world=World(1, NOW + 3600)) == newest
    assert ask(FULL_BLOCK, HEAD, world=World(2, NOW)).hash != newest.hash
    with pytest.raises(SourceEmpty):
        ask(FULL_BLOCK, HEAD + 1)


def test_the_twins_blocks_hold_what_the_world_says():
    numbers = range(HEAD - 29, HEAD + 1)
    blocks = [ask(FULL_BLOCK, number) for number in numbers]
    assert all(120 <= b.tx_count <= 200 for b in blocks)
    for number, each in zip(numbers, blocks, strict=True):
        expected = {(t.sender, t.to, t.value_wei) for t in ethereum_chain.transfers(WORLD, number)}
        large = {t[1:] for t in each.transfers if t.value_wei >= 5 * 10**18}
        assert large == expected
    flows = [[t for t in b.transfers if {t.sender, t.to} & EXCHANGES.keys()] for b in blocks]
    assert all(2 <= len(f) <= 6 for f in flows)
    between = [t for f in flows for t in f if t.sender in EXCHANGES and t.to in EXCHANGES]
    assert len(between) == 3
    assert all(EXCHANGES[t.sender] != EXCHANGES[t.to] for t in between)
    assert sum(t.value_wei >= 100 * 10**18 for b in blocks for t in b.transfers) == 10


def test_quiet_blocks_hold_only_what_was_injected():
    event = {"kind": "eth_transfer", "at": NOW - 5, "value_eth": 250.5, "from": A, "to": WALLETS[0].address.upper()}
    edits = Edits(pins={"eth.quiet": [(0, 1e12, 1)]}, events=[event])
    world = World(1, NOW, edits)
    found = ask(FULL_BLOCK, HEAD, world=world).transfers
    large = [t for t in found if t.value_wei >= 5 * 10**18]
    assert [t[1:] for t in large] == [(A, WALLETS[0].address, 250_500_000_000_000_000_000)]
    assert not [t for t in ask(FULL_BLOCK, HEAD - 1, world=world).transfers if t.value_wei >= 5 * 10**18]


def test_the_twins_fees_and_feeds_are_those_of_the_world():
    found = ask(FEE_HISTORY)
    assert (found.newest_block, len(found.base_fees)) == (HEAD, 21)
    assert all(0.2e9 <= fee <= 30e9 for fee in found.base_fees)
    assert all(low <= middle <= high for low, middle, high in found.rewards)
    assert len(found.rewards) in (18, 19)  # one block in 17 is empty
    assert ask(FEE_HISTORY, form="drift") == found
    for pair, source in [("BTC-USD", PRICE_FEED), ("ETH-USD", PRICE_FEED), ("XAU-USD", GOLD_FEED)]:
        written = ask(source, pair)
        expected = market.price(WORLD, pair[:3], written.updated_at.timestamp())
        assert written.price == pytest.approx(expected, abs=1e-8)
        assert NOW - written.updated_at.timestamp() <= source.newest_max_s
        assert source.gauge.values(written) == {pair: written.price}


def test_the_twin_has_every_member_of_the_recorded_answers(sample):
    recorded = json.loads(sample("eth-rpc/eth_getBlockByNumber-full-0xf213f6.json"))["result"]
    post = block_request("latest", {})[0]
    made = decoded(fetch(WORLD, post), post)["result"]
    assert recorded.keys() <= made.keys()
    by_type = {tx["type"]: tx for tx in made["transactions"]}
    assert all(tx.keys() <= by_type[tx["type"]].keys() for tx in recorded["transactions"])
    history = json.loads(sample("eth-rpc/eth_feeHistory.json"))["result"]
    post = FEE_HISTORY.plan(None, {})[0]
    assert history.keys() == decoded(fetch(WORLD, post), post)["result"].keys()


def test_the_twin_refuses_what_nodes_refuse():
    for source, query in [(BLOCK_NUMBER, None), (LATEST_BLOCK, "latest"), (FEE_HISTORY, None), (PRICE_FEED, "BTC-USD")]:
        for form, error in [("empty", SourceEmpty), ("error200", SourceRefused), ("limited", SourceDown)]:
            with pytest.raises(error):
                ask(source, query, form=form)
    flashbots = number_request(None, {})[3]
    with pytest.raises(SourceLimited):
        parse_number(decoded(fetch(WORLD, flashbots, form="error200"), flashbots), None)
    for method, params in [("eth_call", [{"to": A, "data": "0x"}]), ("eth_getBlockByNumber", ["?", True])]:
        post = Post(HOSTS[0], json={"id": 1, "method": method, "params": params})
        assert "error" in decoded(fetch(WORLD, post), post)


def test_wallets_are_distinct_lower_case_addresses_of_eight_exchanges():
    assert len(EXCHANGES) == len(WALLETS) == 21
    assert all(w.address == w.address.lower() and len(bytes.fromhex(w.address[2:])) == 20 for w in WALLETS)
    assert all(w.label_source.count(";") == 1 for w in WALLETS)  # two lists agree
    names = {"Binance", "Coinbase", "Kraken", "OKX", "Bybit", "Crypto.com", "KuCoin", "Gate.io"}
    assert {w.exchange for w in WALLETS} == set(ethereum_chain.WALLETS) == names
    assert all(EXCHANGES[a] == name for name, known in ethereum_chain.WALLETS.items() for a in known)


def test_feeds_are_the_ones_the_simulated_chain_knows():
    assert {address.lower() for address in FEEDS.values()} == set(tools.simulated.ethereum.FEEDS)
