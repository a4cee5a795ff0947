"""mempool.space and Blockstream: the state of the Bitcoin network under two addresses."""

import json
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.blockstream
import tools.simulated.mempool  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.parsing.bitcoin import (
    Backlog,
    Fees,
    MiningPower,
    RecentTx,
    parse_backlog,
    parse_height,
    parse_recent,
    satoshi,
    txid,
)
from tools.simulated import bitcoin
from tools.sources import blockstream, mempool
from toolserver.upstream.source import SourceDown, SourceEmpty
from toolserver.world.model import Edits, World

WORLD = World(1, NOW)
TXID = "4b93c138293a7e3dfea6f0a63d944890b5ba571b03cc22d8c66995535e90dce8"
BROKEN = (KeyError, ValueError, TypeError)
ALL = [
    mempool.HEIGHT,
    mempool.FEES,
    mempool.WHOLE_FEES,
    mempool.POWER,
    mempool.BACKLOG,
    mempool.RECENT,
    blockstream.HEIGHT,
    blockstream.FEES,
    blockstream.BACKLOG,
    blockstream.RECENT,
]


def row(**changes):
    return {"txid": TXID, "fee": 18277, "vsize": 2585, "value": 4972029} | changes


def test_recorded_answers_parse_to_their_values(sample):
    def read(name):
        return json.loads(sample(f"mempool/{name}.json"))

    assert mempool.parse_whole_fees(read("fees-recommended"), None) == Fees(3, 1, 1, 1, 1, is_whole=True)
    power = mempool.parse_power(read("hashrate-3d-docs"), None)
    assert power == (pytest.approx(252.0332, abs=1e-4), 31251101365711.12, 7)
    assert parse_backlog(read("mempool-docs"), None) == Backlog(3169, 1891542, 20317481)
    assert parse_recent(read("recent-docs"), None) == (RecentTx(TXID, 18277, 2585, 4972029),)


def test_the_height_is_text():
    assert parse_height("890440", None) == 890440
    assert parse_height("890440\n", None) == 890440
    assert mempool.HEIGHT.plan(None, {}).decode == "text"


def test_an_own_instance_is_asked_instead_of_the_public_one_and_answers_the_same():
    own = {"MEMPOOL_URL": "https://mempool.example/"}
    for source in ALL[:6]:
        public, request = source.plan(None, {}), source.plan(None, own)
        assert request.url == public.url.replace("mempool.space", "mempool.example")
        assert (public.under, request.under, request.decode) == ("", "MEMPOOL_URL", public.decode)
        assert ask(source, keys=own) == ask(source)


@pytest.mark.parametrize("body", ["", "<html>", "799999", "{}", "8e5", "-900000", None])
def test_anything_else_than_a_height_is_a_changed_format(body):
    with pytest.raises(BROKEN):
        parse_height(body, None)


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (mempool.parse_fees, {"fastestFee": 3, "halfHourFee": 1, "hourFee": 1, "economyFee": 1}),
        (mempool.parse_fees, dict.fromkeys(["fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee"], 0)),
        (mempool.parse_fees, []),
        (mempool.parse_power, {"currentHashrate": 0, "currentDifficulty": 1}),
        (mempool.parse_power, {"currentHashrate": 9e20}),
        (mempool.parse_power, {"currentHashrate": 9e40, "currentDifficulty": 1}),
        (parse_backlog, {"count": 0, "vsize": 0, "total_fee": 0}),
        (parse_backlog, {"count": 5, "vsize": 5, "total_fee": -1}),
        (parse_backlog, None),
        (parse_recent, [row(txid="4b93")]),
        (parse_recent, [row(txid=None)]),
        (parse_recent, [row(value=21_000_001 * 10**8)]),
        (parse_recent, [row(value=None)]),
        (parse_recent, [row(fee=0.5)]),
        (parse_recent, {"error": "x"}),
        (blockstream.parse_fees, {"1": 3, "3": 2, "6": 2, "144": 1}),
        (blockstream.parse_fees, {"1": 3, "3": 2, "6": 2, "144": 1, "1008": "soon"}),
    ],
)
def test_missing_impossible_and_foreign_members_are_a_changed_format(parse, body):
    with pytest.raises(BROKEN):
        parse(body, None)


def test_estimates_are_taken_by_the_blocks_to_wait():
    estimates = {str(n): 100.0 for n in range(2, 26)} | {"1": 9.5, "3": 8, "6": 7, "144": 2.5, "504": 2, "1008": "1.01"}
    assert blockstream.parse_fees(estimates, None) == Fees(9.5, 8, 7, 2.5, 1.01)
    with pytest.raises(SourceEmpty):
        blockstream.parse_fees({}, None)


def test_the_requests_of_one_name_are_told_apart_by_their_addresses():
    for source in ALL:
        assert source.name in ("Mempool.network", "Blockstream.network")
    keys = {(source.name, source.request_name) for source in ALL}
    assert len(keys) == len(ALL) == len({source.plan(None, {}).url for source in ALL})
    assert (mempool.POWER.fresh_s, mempool.HEIGHT.fresh_s, mempool.HEIGHT.timeout_s) == (3600, 30, 6)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_twins_say_what_the_world_is(seed):
    world = World(seed, NOW)
    assert ask(mempool.HEIGHT, world=world) == ask(blockstream.HEIGHT, world=world) == bitcoin.height(world)
    assert ask(mempool.FEES, world=world) == ask(blockstream.FEES, world=world) == Fees(*bitcoin.fees(world))
    whole = ask(mempool.WHOLE_FEES, world=world)
    assert whole == Fees(*(max(1, ceil(fee)) for fee in bitcoin.fees(world)), is_whole=True)
    assert ask(mempool.BACKLOG, world=world) == ask(blockstream.BACKLOG, world=world) == bitcoin.waiting(world)
    power = ask(mempool.POWER, world=world)
    assert power == MiningPower(
        pytest.approx(bitcoin.hashrate(world, 7) / 1e18, rel=1e-12),
        pytest.approx(bitcoin.difficulty(world), rel=1e-12),
        7,
    )
    assert 1e20 < power.hashrate_eh_s * 1e18 < 2e21
    newest = tuple(RecentTx(t.txid, t.fee_sat, t.vsize, t.total_sat) for t in bitcoin.newest(world, 10))
    assert ask(mempool.RECENT, world=world) == ask(blockstream.RECENT, world=world) == newest


@pytest.mark.parametrize("source", [s for s in ALL if s.name == "Mempool.network"] + [blockstream.FEES])
def test_the_other_forms_say_the_same(source):
    assert ask(source, form="drift") == ask(source)


@pytest.mark.parametrize("source", ALL)
def test_refusals_are_not_read(source):
    with pytest.raises(SourceDown):
        ask(source, form="limited")


@pytest.mark.parametrize("source", [s for s in ALL if s not in (mempool.RECENT, blockstream.RECENT)])
def test_an_answer_without_anything_in_it_is_none(source):
    with pytest.raises((*BROKEN, SourceEmpty)):
        ask(source, form="empty")


def test_an_empty_list_of_recent_transactions_is_less_than_the_least():
    assert len(ask(mempool.RECENT, form="empty")) < mempool.RECENT.least


def test_the_fee_can_be_pinned_and_whole_fees_are_never_below_one():
    pinned = World(1, NOW, Edits(pins={"btc.fee_sat_vb": [(0, NOW + 1, 0.441)]}))
    assert ask(mempool.FEES, world=pinned) == Fees(0.441, 0.366, 0.313, 0.176, 0.1)
    assert ask(mempool.WHOLE_FEES, world=pinned) == Fees(1, 1, 1, 1, 1, is_whole=True)


@given(st.lists(st.integers(0, 21 * 10**14), max_size=20))
def test_parse_never_invents_or_drops_a_transaction(values):
    found = parse_recent([row(value=value) for value in values], None)
    assert [tx.value_sat for tx in found] == values


def test_amounts_are_whole_and_names_are_hex():
    assert satoshi("123") == satoshi(123.0) == 123
    for wrong in (True, None, -1, "NaN", 1.5, 22 * 10**14):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
            satoshi(wrong)
    assert txid(TXID) == TXID
    with pytest.raises(ValueError, match="not a transaction"):
        txid(TXID.upper())
