"""DBnomics: real GDP growth by quarter."""

from datetime import date

import pytest

import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.dbnomics import REAL_GDP_GROWTH, parse, quarter
from toolserver.upstream.source import SourceEmpty
from toolserver.world.model import World


def body(periods, values):
    return {"series": {"docs": [{"period": periods, "value": values}], "num_found": 1}}


def test_a_quarter_is_dated_by_its_first_day_and_na_is_a_gap():
    found = parse(body(["2025-Q4", "2026-Q1", "2026-Q2"], [1.4, "NA", 3.8]), None)

    assert found == ((date(2025, 10, 1), 1.4), (date(2026, 4, 1), 3.8))


def test_no_document_is_empty():
    with pytest.raises(SourceEmpty):
        parse({"series": {"docs": []}}, None)
    with pytest.raises(SourceEmpty):
        ask(REAL_GDP_GROWTH, form="empty")


@pytest.mark.parametrize(
    "broken",
    [
        body(["2026-Q1"], []),
        body(["2026"], [1.0]),
        body(["2026-Q5"], [1.0]),
        body(["2026-Q1"], [400]),
        {"series": {}},
        [],
    ],
)
def test_another_shape_is_not_read(broken):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse(broken, None)


@pytest.mark.parametrize(("period", "day"), [("2026-Q1", date(2026, 1, 1)), ("1946-Q4", date(1946, 10, 1))])
def test_quarters_are_dates(period, day):
    assert quarter(period) == day


def test_the_twin_answers_the_worlds_growth():
    found = ask(REAL_GDP_GROWTH)

    assert found[-1] == (date(2026, 7, 1), macro.gdp_growth(World(1, NOW), date(2026, 7, 1)))
    assert len(found) > 100
