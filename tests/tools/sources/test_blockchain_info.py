"""Blockchain.com: mining power and the newest transactions; and what the simulated Bitcoin holds."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.blockchain_info  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated import bitcoin
from tools.sources.blockchain_info import STATS, UNCONFIRMED_TXS, Output, parse_stats, parse_unconfirmed
from toolserver.upstream.source import SourceDown
from toolserver.world.model import Edits, World

WORLD = World(1, NOW)
HASH = "ab" * 32
BROKEN = (KeyError, ValueError, TypeError, AttributeError)


def transaction(**changes):
    spent = [{"prev_out": {"addr": "bc1qhome", "value": 12_000_000_000}}, {"prev_out": {"value": 5}}]
    paid = [{"addr": "bc1qother", "value": 10_000_000_000}, {"addr": "bc1qhome", "value": 1_999_990_000}, {"value": 0}]
    return {"hash": HASH, "time": 1_799_999_990, "fee": 10_005, "weight": 561, "inputs": spent, "out": paid} | changes


def read(*rows):
    return parse_unconfirmed({"txs": list(rows)}, None)


# Statistics


def test_recorded_statistics_parse_to_their_values(sample):
    found = parse_stats(json.loads(sample("blockchain-info/stats.json")), None)
    assert found.power == (pytest.approx(1.8410989266292908), 225832872179, 1)
    assert found.at == datetime(2016, 9, 16, 14, 15, 40, tzinfo=UTC)


def test_times_with_an_exponent_and_negative_fees_are_no_trouble():
    body = json.loads(
        '{"timestamp":1.780730885E12,"hash_rate":9.325136155806332E11,"total_fees_btc":-1,"difficulty":1}'
    )
    found = parse_stats(body, None)
    assert found.power.hashrate_eh_s == pytest.approx(932.5136)
    assert found.at.year == 2026


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        {"hash_rate": 0, "difficulty": 1, "timestamp": 1e12},
        {"hash_rate": 9e11, "difficulty": None, "timestamp": 1e12},
        {"hash_rate": 9e11, "difficulty": 1, "timestamp": 1e9 * 1e9},
        {"error": "x", "message": "y"},
    ],
)
def test_anything_else_is_a_changed_format(body):
    with pytest.raises(BROKEN):
        parse_stats(body, None)


def test_the_twin_says_what_the_world_is_in_other_units():
    found = ask(STATS)
    assert found.power.hashrate_eh_s == pytest.approx(bitcoin.hashrate(WORLD, 1) / 1e18)
    assert found.power.difficulty == pytest.approx(bitcoin.difficulty(WORLD))
    assert ask(STATS, form="drift") == found
    for form, error in [("empty", BROKEN), ("error200", BROKEN), ("limited", SourceDown)]:
        with pytest.raises(error):
            ask(STATS, form=form)


# Unconfirmed transactions


def test_a_transaction_is_read_with_who_pays_and_who_is_paid():
    [found] = read(transaction())
    assert (found.hash, found.fee_sat, found.weight) == (HASH, 10_005, 561)
    assert found.at == datetime(2027, 1, 15, 7, 59, 50, tzinfo=UTC)
    assert found.inputs == {"bc1qhome"}
    assert found.outputs == (
        Output("bc1qother", 10_000_000_000),
        Output("bc1qhome", 1_999_990_000),
        Output(None, 0),
    )


def test_fee_and_weight_may_be_missing():
    [found] = read(transaction(fee=None, weight="?"))
    assert (found.fee_sat, found.weight) == (None, None)
    row = transaction()
    del row["fee"], row["weight"]
    assert read(row) == (found,)


@pytest.mark.parametrize(
    "changes",
    [
        {"hash": "abc"},
        {"time": None},
        {"time": 1_799_999_990_000},
        {"inputs": [{"sequence": 1}]},
        {"inputs": None},
        {"inputs": [{"prev_out": None}]},
        {"out": [{"addr": "bc1q"}]},
        {"out": [{"addr": "bc1q", "value": 22e14}]},
        {"out": [{"addr": "bc1q", "value": -5}]},
    ],
)
def test_a_transaction_without_its_money_is_a_changed_format(changes):
    with pytest.raises(BROKEN):
        read(transaction(**changes))


@pytest.mark.parametrize("body", [{}, [], None, {"txs": None}, {"txs": [{}]}, {"error": "internal-server-error"}])
def test_a_body_without_transactions_is_a_changed_format(body):
    with pytest.raises(BROKEN):
        parse_unconfirmed(body, None)


@given(st.lists(st.lists(st.integers(0, 21 * 10**14), max_size=4), max_size=20))
def test_parse_never_invents_or_drops_money(amounts):
    rows = [transaction(out=[{"addr": "a", "value": value} for value in paid]) for paid in amounts]
    assert [[output.value_sat for output in tx.outputs] for tx in read(*rows)] == amounts


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_twin_lists_the_hundred_newest(seed):
    world = World(seed, NOW)
    found, listed = ask(UNCONFIRMED_TXS, world=world), bitcoin.newest(world, 100)

    assert [tx.hash for tx in found] == [tx.txid for tx in listed]
    assert [tx.fee_sat for tx in found] == [tx.fee_sat for tx in listed]
    assert [sum(output.value_sat for output in tx.outputs) for tx in found] == [tx.total_sat for tx in listed]
    assert [tx.inputs for tx in found] == [{spent.address for spent in tx.inputs} for tx in listed]
    assert UNCONFIRMED_TXS.newest(found).timestamp() == int(listed[0].at)
    assert ask(UNCONFIRMED_TXS, world=world, form="drift") == found


def test_the_twins_faults_are_not_read():
    assert len(ask(UNCONFIRMED_TXS, form="empty")) < UNCONFIRMED_TXS.least == 20
    for form, error in [("error200", BROKEN), ("limited", SourceDown)]:
        with pytest.raises(error):
            ask(UNCONFIRMED_TXS, form=form)


# The simulated Bitcoin


@pytest.mark.slow("hours of the simulated Bitcoin")
def test_seven_transactions_a_second_and_a_whale_every_thirty():
    heard = bitcoin.heard(WORLD, NOW - 600)
    assert len(heard) == pytest.approx(4200, abs=60)
    assert len({tx.txid for tx in heard}) == len(heard)
    assert [tx.at for tx in heard] == sorted((tx.at for tx in heard), reverse=True)
    whales = [tx for tx in heard if tx.moved_sat >= 10 * bitcoin.SAT]
    assert len(whales) in (19, 20, 21)
    assert all(0 < tx.moved_sat < tx.total_sat for tx in whales)  # each has change
    keepers = [tx for tx in heard if tx.total_sat >= 10 * bitcoin.SAT > tx.moved_sat]
    assert len(keepers) in (9, 10, 11)
    assert all(tx.fee_sat > 0 for tx in heard)


def test_a_moment_later_the_same_transactions_are_there_and_new_ones_before_them():
    first, later = bitcoin.newest(WORLD, 100), bitcoin.newest(WORLD.at(NOW + 5), 100)
    kept = [tx for tx in later if tx.at <= NOW]
    assert kept == first[: len(kept)]
    assert 25 <= 100 - len(kept) <= 45


def test_an_injected_transaction_is_there_and_quiet_leaves_nothing_else_that_is_large():
    event = {"kind": "btc_tx", "at": NOW - 3, "value_btc": 250.5, "change_btc": 30, "to": "bc1qto", "from": "bc1qfrom"}
    world = World(1, NOW, Edits(pins={"btc.quiet": [(0, NOW + 60, 1)]}, events=[event]))

    [whale] = [tx for tx in bitcoin.newest(world, 100) if tx.total_sat >= 10 * bitcoin.SAT]
    assert (whale.moved_sat, whale.total_sat) == (25_050_000_000, 28_050_000_000)
    assert [output.address for output in whale.outputs] == ["bc1qto", "bc1qfrom"]
    assert len(bitcoin.newest(world, 100)) == 100
    assert not bitcoin.large(world.at(NOW - 4), NOW - 600)
