"""Solana's nodes, and the network tool on them."""

import json

import pytest

import tools.simulated.solana  # noqa: F401 - it registers its routes
from tests.tools.desk import NOW, ask
from tools.free.chain_network import chain_network, rate
from tools.sources.solana import (
    EPOCH_INFO,
    HOSTS,
    PERFORMANCE_SAMPLES,
    Sample,
    epoch_request,
    parse_epoch,
    parse_samples,
    samples_request,
)
from toolserver.context.context import ToolContext
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import (
    SourceAnswer,
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceFrozen,
    SourceLimited,
    SourceRefused,
)
from toolserver.world.model import ROUTES, World


def said(result, **more):
    return {"jsonrpc": "2.0", "result": result, "id": 1} | more


def row(slot=100, **more):
    return {"numSlots": 150, "numTransactions": 9000, "samplePeriodSecs": 60, "slot": slot} | more


def test_every_host_is_asked_the_same_and_your_own_comes_first():
    own = samples_request(None, {"SOLANA_RPC_URL": "https://solana.example/sim-key"})
    assert [post.url for post in own] == ["https://solana.example/sim-key", *HOSTS]
    assert own[0].json == {"jsonrpc": "2.0", "id": 1, "method": "getRecentPerformanceSamples", "params": [3]}
    assert [post.url for post in epoch_request(None, {})] == list(HOSTS)


def test_recorded_samples_parse_newest_first(sample):
    read = parse_samples(json.loads(sample("solana/getRecentPerformanceSamples-quicknode.json")), None)
    assert read[0] == Sample(335501725, 149, 263299, 69449, 60)
    assert len(read) == 4
    assert rate(read[:1], votes=False) == 1157.5
    assert rate(read[:1], votes=True) == 4388.3


def test_old_recorded_samples_do_not_tell_votes_apart(sample):
    read = parse_samples(json.loads(sample("solana/getRecentPerformanceSamples-docs.json")), None)
    assert read[0] == Sample(348125, 126, 126, None, 60)


def test_samples_are_sorted_whatever_their_order():
    assert [s.slot for s in parse_samples(said([row(100), row(400), row(250)]), None)] == [400, 250, 100]


def test_recorded_epochs_parse_to_their_values(sample):
    assert parse_epoch(json.loads(sample("solana/getEpochInfo-mainnet.json")), None) == (
        433721729,
        1003,
        425729,
        432000,
    )
    with pytest.raises(SourceChanged):  # the answer to another call
        parse_epoch(json.loads(sample("solana/getEpochInfo-docs.json")), None)


def test_a_recorded_error_text_is_a_refusal_that_is_not_repeated(sample):
    for parse in (parse_samples, parse_epoch):
        with pytest.raises(SourceRefused) as caught:
            parse(json.loads(sample("solana/error-string-error.json")), None)
        assert "something" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (said(None), SourceEmpty),
        (said([row()], error={"code": 429, "message": "Too many requests"}), SourceLimited),
        (said([row()], error={"code": -32005, "message": "Node is behind"}), SourceDown),
        (said([row()], id=7), SourceChanged),
        (said([row(), row()]), SourceChanged),
        (said([row(numSlots=0)]), ValueError),
        (said([row(numNonVoteTransactions=9001)]), ValueError),
        (said([{"slot": 1}]), KeyError),
        ([], AttributeError),
        (None, AttributeError),
    ],
)
def test_what_is_no_sample_is_an_error(body, error):
    with pytest.raises(error):
        parse_samples(body, None)


@pytest.mark.parametrize("change", [{"slotIndex": 432001}, {"slotsInEpoch": 0}, {"absoluteSlot": "x"}, {"epoch": None}])
def test_an_impossible_epoch_is_an_error(change):
    info = {"absoluteSlot": 433721729, "epoch": 1003, "slotIndex": 425729, "slotsInEpoch": 432000}
    with pytest.raises(ValueError, match=r".+"):
        parse_epoch(said(info | change), None)


def test_the_twin_answers_at_every_host_and_refuses_a_wrong_key():
    assert len(ask(PERFORMANCE_SAMPLES)) == PERFORMANCE_SAMPLES.least
    own = {"SOLANA_RPC_URL": "https://solana.example/sim-key"}
    assert ask(EPOCH_INFO, keys=own) == ask(EPOCH_INFO)
    with pytest.raises(SourceDown):
        ask(EPOCH_INFO, keys={"SOLANA_RPC_URL": "https://solana.example/other"})


@pytest.mark.parametrize(
    ("form", "error"),
    [("error200", SourceDown), ("status:500", SourceRefused), ("limited", SourceDown), ("geo", SourceDown)],
)
def test_the_twins_faults_are_errors(form, error):
    with pytest.raises(error):
        ask(EPOCH_INFO, form=form)


@pytest.mark.parametrize(("seed", "now"), [(1, NOW), (2, NOW + 59), (3, NOW + 86400 * 30.5)])
async def test_the_network_equals_the_world(compose, seed, now):
    world = World(seed, now)
    made = await compose(chain_network, world=world)

    assert made.json.items() >= ROUTES.expectations["chain-network"](world, {}).items()
    assert made.json["tps"] < made.json["tpsTotal"]
    assert made.notes.warnings == []
    assert {n.status for n in made.notes.sources} == {"live"}


async def test_votes_that_cannot_be_told_apart_are_counted_and_said(compose):
    made = await compose(chain_network, forms={"Solana.performance_samples": "drift"})
    assert made.json["includesVotes"] is True
    assert made.json["tps"] == made.json["tpsTotal"]
    assert [(w.section, w.code) for w in made.notes.warnings] == [
        ("data.tps", "degraded_fallback"),
        ("data.tpsAvg", "degraded_fallback"),
    ]


async def test_samples_of_another_time_are_frozen(compose):
    class Node:
        async def fresh(self, source, query, *, sla_s):
            world = World(1, NOW if source is EPOCH_INFO else NOW - 3000)
            return SourceAnswer(ask(source, world=world), world.time, None, None)

        async def kept(self, source, query):
            return None

    ctx = ToolContext(Node(), now=lambda: World(1, NOW).time, sla_s=30)
    with pytest.raises(SourceFrozen):
        await operation_of(chain_network).function(ctx)


@pytest.mark.parametrize("down", ["Solana.performance_samples", "Solana.epoch_info"])
async def test_half_an_answer_is_none(compose, down):
    with pytest.raises(SourceError):
        await compose(chain_network, down={down})
