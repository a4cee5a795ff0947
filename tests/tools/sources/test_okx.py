"""OKX's spot tickers."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.okx  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated import market
from tools.sources.okx import SPOT_TICKERS, parse
from toolserver.upstream.source import SourceChanged, SourceDown, SourceLimited, SourceRefused
from toolserver.world.model import World

ROW = {
    "instId": "BTC-USDT",
    "last": "97000.5",
    "open24h": "96000",
    "high24h": "98000",
    "low24h": "95000",
    "volCcy24h": "1900000000.5",
    "ts": "1800000000000",
}


def answer(*rows):
    return {"code": "0", "msg": "", "data": list(rows)}


def test_the_spot_market_is_asked_for():
    assert SPOT_TICKERS.request.params == {"instType": "SPOT"}


def test_a_row_parses_to_its_values():
    [found] = parse(answer(ROW), None)
    at = datetime.fromtimestamp(1_800_000_000, UTC)
    assert found == ("BTC", "USDT", 97000.5, 96000, 98000, 95000, 1900000000.5, at)


def test_a_recorded_row_parses_but_for_what_was_cut_from_it(sample):
    [row] = json.loads(sample("okx/ticker-BTC-USDT-SWAP-trimmed.json"))["data"]
    [found] = parse(answer(row | {"instId": "BTC-USDT", "ts": "1787160689190"}), None)
    assert (found.last, found.open, found.high, found.low) == (67838.6, 64777.9, 70099.2, 64141.9)


@pytest.mark.parametrize("name", ["error-200-bad-instId", "error-200-missing-instId"])
def test_the_recorded_errors_with_status_200_are_a_changed_format(sample, name):
    with pytest.raises(SourceChanged):
        parse(json.loads(sample(f"okx/{name}.json")), None)


@pytest.mark.parametrize(
    ("code", "error"), [("50011", SourceLimited), ("50013", SourceRefused), (51000, SourceChanged)]
)
def test_errors_with_status_200_are_told_apart(code, error):
    with pytest.raises(error):
        parse({"code": code, "msg": "", "data": []}, None)


@pytest.mark.parametrize("change", [{"last": ""}, {"open24h": ""}, {"high24h": "0"}, {"low24h": 0}])
def test_a_pair_that_was_not_traded_is_left_out(change):
    assert parse(answer(ROW | {"instId": "NEW-USDT"} | change), None) == ()


@pytest.mark.parametrize(
    "body", [{}, {"code": "0"}, [], None, answer({"instId": "BTC-USDT"}), answer(ROW | {"ts": "x"})]
)
def test_anything_else_is_a_changed_format(body):
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse(body, None)


@pytest.mark.parametrize("change", [{"instId": "BTC"}, {"last": "inf"}, {"low24h": "99000"}, {"volCcy24h": "-1"}])
def test_a_row_that_contradicts_itself_is_a_changed_format(change):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        parse(answer(ROW | change), None)


@given(st.lists(st.tuples(st.text("ABCXYZ", min_size=1, max_size=9), st.floats(1e-9, 1e6)), max_size=20))
def test_parse_never_invents_or_drops_pairs(listed):
    rows = [ROW | {"instId": f"{s}-USD", "last": str(p), "low24h": p, "high24h": p} for s, p in listed]
    assert [(t.base, t.last) for t in parse(answer(*rows), None)] == listed


def test_the_twins_tickers_are_those_of_the_world():
    day = market.day(World(1, NOW), "BTC", "okx")
    found = ask(SPOT_TICKERS)

    assert len(found) >= SPOT_TICKERS.least
    bitcoin = next(t for t in found if (t.base, t.quote) == ("BTC", "USDT"))
    assert (bitcoin.last, bitcoin.open, bitcoin.high) == pytest.approx((day.last, day.open, day.high), abs=0.06)
    assert "NEWLY" not in {t.base for t in found}
    assert SPOT_TICKERS.gauge.values(found)["BTC-USD"] == bitcoin.last
    assert NOW - SPOT_TICKERS.newest(found).timestamp() < 5
    assert ask(SPOT_TICKERS, form="drift") == found


def test_the_twin_refuses_what_okx_refuses():
    assert ask(SPOT_TICKERS, form="empty") == ()
    with pytest.raises(SourceRefused):
        ask(SPOT_TICKERS, form="error200")
    for form, word in [("limited", "http_429"), ("geo", "http_403")]:
        with pytest.raises(SourceDown) as caught:
            ask(SPOT_TICKERS, form=form)
        assert caught.value.word == word
    asked = SPOT_TICKERS.request
    for params, code in [({}, "50014"), ({"instType": "X"}, "51000")]:
        reply = fetch(World(1, NOW), type(asked)(asked.url, params=params))
        assert json.loads(reply.body)["code"] == code
