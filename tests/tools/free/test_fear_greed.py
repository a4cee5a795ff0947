"""Both Fear & Greed indices, and the tool on them."""

import json
from datetime import UTC, datetime

import pytest

import tools.simulated.alternative_me
import tools.simulated.coinmarketcap  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.free.fear_greed import fear_greed
from tools.sources import alternative_me, coinmarketcap
from toolserver.upstream.source import (
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceLimited,
    SourceRefused,
    SourceUnusable,
)
from toolserver.world.model import ROUTES, Edits, World

KEYS = {"CMC_API_KEY": "sim-key"}


def answer(*days, error=None):
    listed = [{"value": v, "value_classification": label, "timestamp": at} for v, label, at in days]
    return {"name": "Fear and Greed Index", "data": listed, "metadata": {"error": error}}


def test_the_recorded_index_parses_to_its_values(sample):
    read = alternative_me.parse(json.loads(sample("alternative-me/fng-limit2.json")), None)

    assert (read.value, read.label, read.previous_value) == (26, "Fear", 23)
    assert read.updated_at == datetime(2026, 7, 11, tzinfo=UTC)
    assert read.next_update_at == datetime(2026, 7, 12, tzinfo=UTC)


def test_the_days_that_are_listed_are_kept_oldest_first():
    body = answer(("40", "Fear", "1800000000"), ("0", "Extreme Fear", "1799913600"), ("60", "Greed", "1799827200"))
    days = alternative_me.parse(body, None).days
    assert [(int(at.timestamp()), value) for at, value in days] == [
        (1799827200, 60), (1799913600, 0), (1800000000, 40),
    ]  # fmt: skip
    assert len(ask(alternative_me.FEAR_GREED).days) == alternative_me.LISTED


def test_without_a_countdown_the_next_update_is_unknown():
    read = alternative_me.parse(answer(("40", "Fear", "1800000000")), None)
    assert (read.value, read.previous_value, read.next_update_at) == (40, None, None)


def test_an_overdue_update_is_not_announced():
    body = answer(("40", "Fear", "1800000000"))
    body["data"][0]["time_until_update"] = "-310"
    assert alternative_me.parse(body, None).next_update_at is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (answer(), SourceEmpty),
        (answer(("0", "Fear", "1800000000")), SourceChanged),
        (answer(("40", "Fear", "1800000000"), error="Internal error"), SourceChanged),
        (answer(("101", "Extreme Greed", "1800000000")), ValueError),
        (answer(("", "Fear", "1800000000")), ValueError),
        (answer(("40", None, "1800000000")), TypeError),
        (answer(("40", "Fear", "0.4e13")), ValueError),
        ({"data": []}, KeyError),
        ([], TypeError),
        (None, TypeError),
    ],
)
def test_a_failure_never_becomes_a_value(body, error):
    with pytest.raises(error):
        alternative_me.parse(body, None)


def test_a_true_zero_is_extreme_fear():
    assert alternative_me.parse(answer(("0", "Extreme Fear", "1800000000")), None).value == 0


def test_coinmarketcap_is_asked_only_with_a_key_which_stays_in_the_header():
    assert coinmarketcap.request(None, {}) is None
    asked = coinmarketcap.request(None, KEYS)
    assert asked.headers == {"X-CMC_PRO_API_KEY": "sim-key"}
    assert "sim-key" not in asked.url
    with pytest.raises(SourceUnusable):
        ask(coinmarketcap.FEAR_GREED)


@pytest.mark.parametrize("code", [0, "0"])
def test_coinmarketcap_parses_to_its_values(code):
    body = {
        "data": {"value": 40, "value_classification": "Neutral", "update_time": "2024-09-19T02:54:56.017Z"},
        "status": {"error_code": code},
    }
    read = coinmarketcap.parse(body, None)
    assert (read.value, read.label, read.previous_value) == (40, "Neutral", None)
    assert read.updated_at == datetime(2024, 9, 19, 2, 54, 56, 17000, tzinfo=UTC)


@pytest.mark.parametrize(("code", "error"), [(1001, SourceRefused), ("1008", SourceLimited), (500, SourceChanged)])
def test_coinmarketcap_status_decides(code, error):
    with pytest.raises(error):
        coinmarketcap.parse({"status": {"error_code": code}}, None)


def test_both_twins_answer_and_refuse_as_their_upstreams_do():
    assert 0 <= ask(alternative_me.FEAR_GREED).value <= 100
    assert 0 <= ask(coinmarketcap.FEAR_GREED, keys=KEYS).value <= 100
    with pytest.raises(SourceLimited):
        ask(coinmarketcap.FEAR_GREED, keys=KEYS, form="error200")
    with pytest.raises(SourceDown):
        ask(coinmarketcap.FEAR_GREED, keys={"CMC_API_KEY": "other"})


def test_the_drifted_form_is_read_like_the_usual_one():
    usual, drifted = ask(alternative_me.FEAR_GREED), ask(alternative_me.FEAR_GREED, form="drift")
    assert drifted == usual._replace(next_update_at=None)


@pytest.mark.parametrize("now", [NOW, NOW + 86400 * 3, NOW + 86400 * 100.5])
async def test_the_index_equals_the_world(compose, now):
    world = World(1, now)
    made = await compose(fear_greed, world=world)

    assert made.json.items() >= ROUTES.expectations["fear-greed"](world, {}).items()
    as_of = datetime.fromisoformat(made.json["as_of"])
    assert as_of.timestamp() == now // 86400 * 86400
    assert datetime.fromisoformat(made.json["next_update_at"]).timestamp() - as_of.timestamp() == 86400


async def test_a_pinned_mood_is_shown(compose):
    world = World(1, NOW, Edits(pins={"fear_greed": [(NOW - 3600, NOW + 3600, 7)]}))
    made = await compose(fear_greed, world=world)
    assert (made.json["value"], made.json["label"]) == (7, "Extreme Fear")


async def test_with_a_key_the_other_index_steps_in_under_its_own_name(compose):
    made = await compose(fear_greed, down={"AlternativeMe.fear_greed"}, keys=KEYS)

    assert made.json["index"] == "coinmarketcap"
    assert (made.json["previous_value"], made.json["next_update_at"]) == (None, None)
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_without_a_key_the_other_index_is_not_even_listed(compose):
    made = await compose(fear_greed)
    assert [n.source.name for n in made.notes.sources] == ["AlternativeMe.fear_greed"]
    with pytest.raises(SourceError):
        await compose(fear_greed, down={"AlternativeMe.fear_greed"})


async def test_an_error_is_never_a_zero(compose):
    for form in ("empty", "error200"):
        with pytest.raises(SourceError):
            await compose(fear_greed, forms={"AlternativeMe.fear_greed": form})
