"""METR's time horizons."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.metr  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.benchmarks import MODELS, minutes
from tools.simulated.metr import key_of
from tools.sources.metr import TIME_HORIZONS, TimeHorizon, newest, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world import answers
from toolserver.world.model import World

MODEL = """  {name}:
    metrics:
      p50_horizon_length:
        ci_high: 22.3
        estimate: {estimate}
      p80_horizon_length:
        estimate: 1.5
    release_date: 2024-06-20
"""


def test_the_estimate_is_that_of_half_the_time():
    text = "benchmark_name: x\nresults:\n" + MODEL.format(name="model_a", estimate=11.39)
    assert parse(text, None) == (TimeHorizon("model_a", 11.39, date(2024, 6, 20)),)


@given(st.lists(st.floats(0.001, 9999), min_size=1, max_size=30))
def test_no_model_is_invented_or_dropped(estimates):
    models = "".join(MODEL.format(name=f"m{i}", estimate=e) for i, e in enumerate(estimates))
    assert [h.minutes for h in parse("results:\n" + models, None)] == estimates


def test_a_model_without_an_estimate_is_left_out():
    text = "results:\n  a:\n    metrics:\n      p80_horizon_length:\n        estimate: 3\n"
    assert parse(text, None) == ()


@pytest.mark.parametrize(
    "text", ["", "models:\n", "results:\n  a:\n    score: 1\n", "results:\n" + MODEL.format(name="a", estimate=0)]
)
def test_anything_else_is_refused(text):
    with pytest.raises((LookupError, ValueError)):
        parse(text, None)


def test_the_twin_has_the_horizons_of_the_world():
    world, found = World(1, NOW), ask(TIME_HORIZONS)
    assert found == tuple(
        TimeHorizon(key_of(name), minutes(world, name, able), date.fromisoformat(day)) for name, day, able in MODELS
    )
    assert newest(found) == datetime(2025, 9, 29, tzinfo=UTC)


def test_what_is_not_the_document_is_refused():
    asked = TIME_HORIZONS.request
    reply = fetch(World(1, NOW), asked)
    for wrong in (b"", b"<html></html>", reply.body[:2000], b"[]", answers.zeros(reply, NOW).body[:300]):
        with pytest.raises(SourceError):
            parse_body(TIME_HORIZONS, asked, None, wrong)
    with pytest.raises(SourceEmpty):
        parse_body(TIME_HORIZONS, asked, None, fetch(World(1, NOW), asked, form="empty").body)
    with pytest.raises(SourceChanged):
        parse_body(TIME_HORIZONS, asked, None, fetch(World(1, NOW), asked, form="error200").body)
