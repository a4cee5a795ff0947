"""The simulated economy: its calendars are the real ones, and no publisher is ever late in it."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tools.simulated.currency_api
import tools.simulated.ecb
import tools.simulated.frankfurter
import tools.simulated.freddiemac
import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.size import sized
from tests.tools.desk import ask
from tools.parsing.series import series
from tools.shared.fx import WINDOW
from tools.shared.macro import require_young
from tools.simulated import macro
from tools.sources.bls import TIMESERIES, Years
from tools.sources.currency_api import USD_RATES
from tools.sources.dbnomics import REAL_GDP_GROWTH
from tools.sources.ecb import REFERENCE_RATES_90D
from tools.sources.frankfurter import USD_TIMESERIES, FxWindow
from tools.sources.freddiemac import PMMS_30Y
from tools.sources.nyfed import EFFR
from tools.sources.treasury import PAR_YIELDS, YieldYear
from toolserver.upstream.source import SourceFrozen
from toolserver.world.model import Edits, World

days = st.dates(date(2026, 1, 1), date(2030, 12, 31))  # late in 2025 the figures really were late


@pytest.mark.parametrize(
    ("day", "open_in"),
    [
        ((2026, 7, 3), {"bank", "fixing"}),  # Independence Day on a Saturday: lost to banks, a Friday off for exchanges
        ((2027, 7, 5), {"fixing"}),  # on a Sunday it moves
        ((2026, 11, 26), {"fixing"}),
        ((2026, 10, 12), {"market", "fixing"}),
        ((2026, 5, 25), {"fixing"}),
        ((2026, 5, 1), {"bank", "market"}),
        ((2027, 3, 26), set()),  # Good Friday
        ((2027, 3, 29), {"bank", "market"}),  # Easter Monday
        ((2026, 12, 25), set()),
        ((2027, 1, 16), set()),
    ],
)
def test_holidays_are_the_real_ones(day, open_in):
    calendars = {"bank": macro.bank_day, "market": macro.market_day, "fixing": macro.fixing_day}

    assert {name for name, calendar in calendars.items() if calendar(date(*day))} == open_in


@given(days, st.sampled_from(sorted(macro.LEVELS)))
def test_a_rate_moves_at_most_half_a_percent_a_day(day, name):
    world = World(1, 0.0)
    today = macro.walk(world, f"macro.{name}", day, macro.LEVELS[name])
    before = macro.walk(world, f"macro.{name}", day - timedelta(days=1), macro.LEVELS[name])

    assert abs(today / before - 1) <= 0.005
    assert today == pytest.approx(macro.LEVELS[name], rel=0.06)


def test_a_pinned_value_is_published():
    edits = Edits(pins={"macro.treasury_10y": [(-1e12, 1e12, 5.0)], "macro.cpi": [(-1e12, 1e12, 300.0)]})
    world = World(1, 0.0, edits)

    assert macro.level(world, "treasury_10y", date(2026, 7, 1)) == 5.0
    assert macro.cpi(world, date(2026, 7, 1)) == 300.0


@settings(max_examples=sized(30, fast=10))
@given(days, st.floats(0, 24))
def test_no_publisher_is_ever_older_than_its_limit(day, hour):
    now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=hour)
    world = World(1, now.timestamp())
    queries = [
        (EFFR, None),
        (PMMS_30Y, None),
        (REFERENCE_RATES_90D, None),
        (USD_RATES, None),
        (USD_TIMESERIES, FxWindow(day - WINDOW, day)),
        (PAR_YIELDS, YieldYear(day.year)),
        (TIMESERIES, Years(day.year - 3, day.year)),
        (REAL_GDP_GROWTH, None),
    ]
    for source, query in queries:
        found = ask(source, query, world=world)
        dated = source.stamp(found) if source.stamp else source.newest(found)
        assert dated is None or timedelta(0) <= now - dated <= timedelta(seconds=source.newest_max_s), source


@pytest.mark.parametrize(("days", "is_young"), [(0, True), (14, True), (15, False)])
def test_a_series_that_is_no_longer_written_is_frozen(days, is_young):
    found = series([(date(2026, 1, 1), 4.0), (date(2026, 1, 2), 4.1)])
    today = date(2026, 1, 2) + timedelta(days=days)
    if is_young:
        assert require_young(found, today, 14) == found
    else:
        with pytest.raises(SourceFrozen, match="2026-01-02"):
            require_young(found, today, 14)
