"""Past rounds of Chainlink's feeds, read through Multicall3; requests and answers encoded by the public ABI library."""

import pytest
from eth_abi import decode, encode
from eth_utils import keccak

from tests.tools.desk import NOW, ask, decoded, fetch
from tools.simulated import market
from tools.sources.chainlink import (
    AGGREGATE,
    FEEDS,
    GET_ROUND_DATA,
    MULTICALL,
    PHASE,
    PRICE_FEED,
    ROUND_HISTORY,
    ROUNDS_A_CALL,
    Round,
    RoundSpan,
    parse_span,
    span_of,
    span_request,
)
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceRefused
from toolserver.world.model import World

WORLD = World(1, NOW)
CALLS, RESULTS = "(address,bool,bytes)[]", "(bool,bytes)[]"
ROUND = ["uint80", "int256", "uint256", "uint256", "uint80"]
FIRST = 7 * PHASE + 401
SPAN = RoundSpan("BTC-USD", FIRST, FIRST + 2)


def written(number, dollars, at):
    return True, encode(ROUND, [number, int(dollars * 10**8), int(at), int(at), number])


def said(*results):
    return {"jsonrpc": "2.0", "id": 1, "result": "0x" + encode([RESULTS], [list(results)]).hex()}


def test_the_request_is_what_the_abi_says():
    assert keccak(text=f"aggregate3({CALLS})")[:4] == AGGREGATE
    assert keccak(text="getRoundData(uint80)")[:4] == GET_ROUND_DATA

    call = span_request(SPAN, {})[0].json["params"][0]
    data = bytes.fromhex(call["data"][2:])
    made = [
        (FEEDS["BTC-USD"], True, GET_ROUND_DATA + encode(["uint80"], [number])) for number in range(FIRST, FIRST + 3)
    ]
    assert call["to"] == MULTICALL
    assert data == AGGREGATE + encode([CALLS], [made])
    assert [(target, may_fail) for target, may_fail, _ in decode([CALLS], data[4:])[0]] == [
        (FEEDS["BTC-USD"].lower(), True)
    ] * 3


def test_an_encoded_answer_has_its_rounds_in_order():
    found = parse_span(said(*(written(FIRST + n, 97_000.5 + n, NOW - 3600 + n) for n in range(3))), SPAN)
    assert [(each.number - FIRST, each.price, each.updated_at.timestamp()) for each in found] == [
        (n, 97_000.5 + n, NOW - 3600 + n) for n in range(3)
    ]


def test_a_round_that_failed_or_was_never_answered_is_left_out():
    never = (True, encode(ROUND, [FIRST + 1, 0, 0, 0, 0]))
    found = parse_span(said((False, b""), never, written(FIRST + 2, 97_000, NOW)), SPAN)
    assert [each.number for each in found] == [FIRST + 2]


@pytest.mark.parametrize("count", [2, 4])
def test_another_number_of_results_is_no_answer(count):
    with pytest.raises(SourceChanged):
        parse_span(said(*(written(FIRST + n, 97_000, NOW) for n in range(count))), SPAN)


def test_the_rounds_of_other_numbers_are_no_answer():
    with pytest.raises(ValueError, match="round 1291"):
        parse_span(said(*(written(FIRST + n + 9, 97_000, NOW) for n in range(3))), SPAN)


@pytest.mark.parametrize("cut", [8, 80, 300])
def test_a_cut_answer_loses_its_last_round_and_invents_none(cut):
    whole = said(*(written(FIRST + n, 97_000, NOW) for n in range(3)))
    assert parse_span(whole | {"result": whole["result"][:-cut]}, SPAN) == parse_span(whole, SPAN)[:2]
    with pytest.raises(ValueError, match="too short"):
        parse_span(whole | {"result": "0x"}, SPAN)


@pytest.mark.parametrize(
    ("number", "back", "expected"),
    [
        (450, 0, (401, 450)),
        (450, 1, (201, 400)),
        (450, 2, (1, 200)),
        (450, 3, None),
        (400, 0, (201, 400)),
        (401, 0, (401, 401)),
    ],
)
def test_spans_begin_at_the_same_rounds_whatever_the_latest_is(number, back, expected):
    latest = Round("BTC-USD", 1.0, WORLD.time, 7 * PHASE + number)
    found = span_of(latest, "BTC-USD", back)
    assert (found and (found.first % PHASE, found.last % PHASE)) == expected
    assert found is None or found.last - found.first < ROUNDS_A_CALL


def test_the_simulated_contract_agrees_with_the_abi_and_with_its_world():
    latest = ask(PRICE_FEED, "BTC-USD")
    span = RoundSpan("BTC-USD", latest.number - 2, latest.number + 1)  # the last is not written yet
    post = span_request(span, {})[0]
    results = decode([RESULTS], bytes.fromhex(decoded(fetch(WORLD, post), post)["result"][2:]))[0]
    assert [success for success, _ in results] == [True, True, True, False]

    found = ask(ROUND_HISTORY, span)
    assert [each.number for each in found] == [latest.number - 2, latest.number - 1, latest.number]
    assert found[-1] == latest
    for each in found:
        assert each.price == pytest.approx(market.price(WORLD, "BTC", each.updated_at.timestamp()), abs=1e-8)


@pytest.mark.parametrize(("form", "error"), [("empty", SourceEmpty), ("error200", SourceRefused)])
def test_a_node_that_refuses_gives_no_rounds(form, error):
    with pytest.raises(error):
        ask(ROUND_HISTORY, SPAN, form=form)


def test_the_operators_own_node_is_asked_first_and_only_its_answers_may_be_sold():
    own = {"ETH_RPC_URL": "https://ethereum.example/sim-key"}
    posts = span_request(SPAN, own)
    assert (posts[0].url, posts[0].under) == (own["ETH_RPC_URL"], "ETH_RPC_URL")
    assert not any(post.under for post in posts[1:])
    assert (ROUND_HISTORY.licence.kind, ROUND_HISTORY.terms["ETH_RPC_URL"].licence.kind) == ("unclear", "yes")
