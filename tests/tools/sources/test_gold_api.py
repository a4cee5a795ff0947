"""Gold-API: the spot price of gold."""

import json
from datetime import UTC, datetime

import pytest

import tools.simulated.gold_api  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated.gold_api import spot
from tools.sources.gold_api import XAU_SPOT, GoldPrice, parse
from toolserver.world.model import World

GOOD = {"currency": "USD", "price": 4100.25, "symbol": "XAU", "updatedAt": "2027-01-15T08:00:00Z"}


def test_a_recorded_answer_parses_to_its_price_and_time(sample):
    found = parse(json.loads(sample("gold/goldapi-XAU.json")), None)

    assert found == GoldPrice(4392.0, datetime(2026, 8, 18, 13, 29, 35, tzinfo=UTC))


def test_the_price_of_gold_is_asked_for():
    assert XAU_SPOT.request.url == "https://api.gold-api.com/price/XAU"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"price": 0}, ValueError),
        ({"price": 499}, ValueError),
        ({"price": 20_001}, ValueError),
        ({"price": None}, ValueError),
        ({"price": "gold"}, ValueError),
        ({"price": float("nan")}, ValueError),
        ({"symbol": "XAG"}, ValueError),
        ({"currency": "EUR"}, ValueError),
        ({"updatedAt": "a few seconds ago"}, ValueError),
        ({"updatedAt": None}, AttributeError),
    ],
)
def test_what_is_no_price_of_gold_in_dollars_is_refused(changed, error):
    with pytest.raises(error):
        parse(GOOD | changed, None)


@pytest.mark.parametrize("body", [{}, {"error": "Something went wrong"}, [], None, "<html>"])
def test_a_body_without_a_price_is_refused(body):
    with pytest.raises((KeyError, AttributeError)):
        parse(body, None)


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_answers_the_price_of_the_world(form):
    found = ask(XAU_SPOT, form=form)

    assert found.usd_per_ounce == spot(World(1, NOW))
    assert (datetime.fromtimestamp(NOW, UTC) - found.updated_at).total_seconds() < 10


@pytest.mark.parametrize("form", ["empty", "error200"])
def test_the_twins_faults_are_no_answers(form):
    with pytest.raises(KeyError):
        ask(XAU_SPOT, form=form)
