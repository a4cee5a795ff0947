"""Gas on Ethereum: two explorers, and the tool on them and on the chain's own fees."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.blockscout
import tools.simulated.ethereum
import tools.simulated.etherscan  # noqa: F401 - they register their routes
from tests.tools.desk import NOW, ask
from tools.free.gas import gas, gwei
from tools.shared.gas import GasPrice, from_history, sound
from tools.sources import blockscout, etherscan
from tools.sources.ethereum import FeeHistory
from toolserver.upstream.source import SourceChanged, SourceError, SourceLimited, SourceRefused, SourceUnusable
from toolserver.world.model import ROUTES, Edits, World

AT = datetime.fromtimestamp(NOW, UTC)
KEYS = {"ETHERSCAN_API_KEY": "sim-key"}
CHAIN, BLOCKSCOUT = "Ethereum.fee_history", "Blockscout.gas_prices"


def stats(**prices):
    return {"gas_prices": prices, "gas_price_updated_at": "2027-01-15T07:59:30.303471Z", "coin_price": "3400.1"}


# Blockscout


def test_blockscout_prices_are_read_in_both_forms():
    flat = blockscout.parse(stats(slow=0.03, average=0.05, fast="0.4"), None)
    nested = blockscout.parse(
        stats(slow={"price": 0.03, "time": 1}, average={"price": 0.05}, fast={"price": 0.4}), None
    )
    assert flat == nested == (0.03, 0.05, 0.4, datetime(2027, 1, 15, 7, 59, 30, 303471, UTC))
    assert ask(blockscout.GAS_PRICES) == ask(blockscout.GAS_PRICES, form="drift")


@pytest.mark.parametrize(
    "body",
    [
        stats(slow=0, average=0.05, fast=0.4),
        stats(slow=0.03, average=None, fast=0.4),
        stats(slow=0.03, average=0.05),
        stats(slow=0.03, average=0.05, fast=0.4) | {"gas_price_updated_at": None},
        stats() | {"gas_prices": None},
        {"message": "Something went wrong."},
        [],
        None,
    ],
)
def test_blockscout_without_three_prices_is_a_changed_format(body):
    with pytest.raises((KeyError, ValueError, TypeError, AttributeError)):
        blockscout.parse(body, None)


# Etherscan


def test_the_recorded_oracles_parse_to_their_values(sample):
    new = etherscan.parse(json.loads(sample("etherscan/gasoracle-2025-fractional.json")), None)
    assert new == (0.496839934, 0.496840168, 0.55411917, 0.496839934, 23467872)
    old = etherscan.parse(json.loads(sample("etherscan/gasoracle-2022.json")), None)
    assert old == (8, 9, 9, 7.376342631, 15691953)
    oldest = {"status": "1", "message": "OK", "result": json.loads(sample("etherscan/gasoracle-result-2020.json"))}
    assert etherscan.parse(oldest, None) == (62, 82, 89, None, 11145141)


def test_the_recorded_error_is_a_refusal(sample):
    with pytest.raises(SourceRefused):
        etherscan.parse(json.loads(sample("etherscan/error-200-missing-key.json")), None)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Max calls per sec rate limit reached (3/sec)", SourceLimited),
        ("Invalid API Key (#err2)|secret", SourceRefused),
        ("Error! Missing Or invalid Action name", SourceChanged),
        (None, SourceChanged),
    ],
)
def test_a_text_for_an_oracle_is_an_error_that_repeats_nothing_of_it(text, error):
    with pytest.raises(error) as caught:
        etherscan.parse({"status": "0", "message": "NOTOK", "result": text}, None)
    assert "secret" not in str(caught.value)


def test_etherscan_is_asked_only_with_a_key():
    assert etherscan.request(None, {}) is None
    asked = etherscan.request(None, KEYS)
    assert asked.params["apikey"] == "sim-key"
    assert "sim-key" not in asked.url
    with pytest.raises(SourceUnusable):
        ask(etherscan.GAS_ORACLE)


@pytest.mark.parametrize(
    ("form", "error"), [("auth", SourceRefused), ("limited", SourceLimited), ("error200", SourceChanged)]
)
def test_the_twins_errors_come_with_200(form, error):
    with pytest.raises(error):
        ask(etherscan.GAS_ORACLE, keys=KEYS, form=form)
    with pytest.raises(SourceRefused):
        ask(etherscan.GAS_ORACLE, keys={"ETHERSCAN_API_KEY": "other"})


# The arithmetic


def test_prices_are_the_next_base_fee_plus_the_median_tip():
    history = FeeHistory(100, (9, 9, 500_000_000), ((10, 20, 30), (1_000, 2_000, 3_000), (100, 200, 300)))
    assert from_history(history, AT) == GasPrice(0.5000001, 0.5000002, 0.5000003, 0.5, 100, AT, "fee_history")


def test_blocks_without_transactions_only_give_no_price():
    with pytest.raises(SourceChanged):
        from_history(FeeHistory(100, (9, 9), ()), AT)


def test_prices_out_of_order_are_refused():
    with pytest.raises(SourceChanged):
        sound(GasPrice(2, 1, 3, None, None, AT, "explorer"))


@given(st.lists(st.tuples(*[st.integers(0, 10**12)] * 3).map(sorted).map(tuple), min_size=1, max_size=20))
def test_sorted_tips_always_give_prices_in_order(rewards):
    price = from_history(FeeHistory(1, (7, 7), tuple(rewards)), AT)
    assert sound(price) is price
    assert price.base_fee_gwei <= price.low_gwei


@pytest.mark.parametrize(("price", "shown"), [(0.49683, 0.4968), (12.34567, 12.3457), (0.00001234, 0.000012)])
def test_a_price_never_rounds_to_nothing(price, shown):
    assert gwei(price) == shown


# The tool


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_gas_equals_the_world(compose, seed):
    world = World(seed, NOW)
    made = await compose(gas, world=world)

    assert made.json == ROUTES.expectations["gas"](world, {}) | {"as_of": "2027-01-15T08:00:00Z"}
    assert made.json["low"] <= made.json["standard"] <= made.json["fast"]
    assert made.notes.warnings == []


async def test_fees_below_one_gwei_keep_their_digits(compose):
    world = World(1, NOW, Edits(pins={"gas.base_fee_gwei": [(0, NOW + 60, 0.0312)]}))
    made = await compose(gas, world=world)
    assert made.json["base_fee"] == 0.0312
    assert 0.0312 < made.json["low"] < 1


async def test_blockscout_answers_when_no_node_does_and_says_it_is_an_estimate(compose):
    made = await compose(gas, down={CHAIN})

    assert (made.json["method"], made.json["base_fee"], made.json["block"]) == ("explorer", None, None)
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]
    near = (await compose(gas)).json
    assert made.json["standard"] == pytest.approx(near["standard"], rel=0.5)


async def test_etherscan_answers_with_a_key_when_the_others_do_not(compose):
    made = await compose(gas, down={CHAIN, BLOCKSCOUT}, keys=KEYS)
    assert made.json["method"] == "explorer"
    assert made.json["block"] == ROUTES.expectations["gas"](World(1, NOW), {})["block"]


async def test_without_anyone_there_is_no_usual_price(compose):
    for keys in ({}, {"ETHERSCAN_API_KEY": "other"}):
        with pytest.raises(SourceError):
            await compose(gas, down={CHAIN, BLOCKSCOUT}, keys=keys)
