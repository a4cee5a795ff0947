"""Treasury's par yield curve."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

import tools.simulated.us_statistics  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.sources.treasury import PAR_YIELDS, YieldYear, judged, parse, request
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

THIS_YEAR, LAST_YEAR = YieldYear(2027), YieldYear(2026, past=True)
FILE = """Date,"1 Mo","2 Yr","10 Yr","30 Yr"
01/14/2027,3.85,3.44,4.03,4.70
01/13/2027,3.86,,4.04,4.71
01/12/2027,,3.43,4.05,4.72
"""


def test_the_request_names_the_year_twice_as_the_download_page_does():
    asked = request(THIS_YEAR, {})

    assert asked.url.endswith("/daily-treasury-rates.csv/2027/all")
    assert asked.params["field_tdr_date_value"] == "2027"
    assert asked.params["type"] == "daily_treasury_yield_curve"


def test_both_tenors_are_read_by_name_and_a_blank_is_a_gap():
    curve = parse(FILE, THIS_YEAR)

    assert curve.ten_year == ((date(2027, 1, 12), 4.05), (date(2027, 1, 13), 4.04), (date(2027, 1, 14), 4.03))
    assert curve.two_year == ((date(2027, 1, 12), 3.43), (date(2027, 1, 14), 3.44))


def test_a_file_with_only_its_header_is_a_year_that_has_just_begun():
    curve = parse('Date,"2 Yr","10 Yr"\n', THIS_YEAR)

    assert curve.ten_year == ()
    assert judged(curve) is None


def test_only_the_current_year_is_judged_by_its_age():
    assert judged(parse(FILE, THIS_YEAR)) == datetime(2027, 1, 14, tzinfo=UTC)
    assert judged(parse(FILE.replace("2027", "2026"), LAST_YEAR)) is None


@pytest.mark.parametrize(
    "body",
    ["", "<html><body>Maintenance</body></html>", 'Date,"1 Mo"\n01/14/2027,3.85\n', FILE[:-12]],
    ids=["empty", "html", "tenor gone", "truncated"],
)
def test_a_body_that_is_not_the_table_is_a_changed_source(body):
    with pytest.raises(SourceChanged):
        parse(body, THIS_YEAR)


@pytest.mark.parametrize(
    ("old", "new"),
    [("4.03", "403"), ("4.03", "NaN"), ("4.03", "4.0x"), ("01/14/2027", "soon")],
)
def test_a_day_without_its_yields_is_left_out(old, new):
    whole, found = parse(FILE, THIS_YEAR), parse(FILE.replace(old, new), THIS_YEAR)
    assert len(found.ten_year) == len(whole.ten_year) - 1
    assert set(found.ten_year) < set(whole.ten_year)


@pytest.mark.parametrize(("old", "new"), [("2027", "2026"), ("4.0", "-4.0")])
def test_what_is_no_file_of_that_year_is_refused(old, new):
    with pytest.raises(ValueError):  # noqa: PT011 - each form has its own wording
        parse(FILE.replace(old, new), THIS_YEAR)


def test_the_twin_answers_business_days_only_and_the_same_in_its_drifted_form():
    curve = ask(PAR_YIELDS, LAST_YEAR)

    assert 245 <= len(curve.ten_year) <= 252
    assert all(day.weekday() < 5 for day, _ in curve.ten_year)
    assert date(2026, 11, 26) not in dict(curve.ten_year)  # Thanksgiving
    assert ask(PAR_YIELDS, LAST_YEAR, form="drift") == curve
    assert ask(PAR_YIELDS, THIS_YEAR, form="empty").ten_year == ()


def test_in_the_twin_no_step_is_wider_than_one_percent():
    values = [value for _, value in ask(PAR_YIELDS, LAST_YEAR).ten_year]

    assert all(abs(new / old - 1) <= 0.0125 for old, new in pairwise(values))
    assert max(values) > min(values)


def test_a_day_is_out_in_the_evening():
    evening = datetime(2027, 1, 14, 23, tzinfo=UTC)
    before = ask(PAR_YIELDS, THIS_YEAR, world=World(1, (evening - timedelta(minutes=1)).timestamp()))
    after = ask(PAR_YIELDS, THIS_YEAR, world=World(1, evening.timestamp()))

    assert before.ten_year[-1].date == date(2027, 1, 13)
    assert after.ten_year[-1].date == date(2027, 1, 14)


def test_the_world_starts_a_year_without_rates():
    new_year = World(1, datetime(2027, 1, 2, tzinfo=UTC).timestamp())

    assert ask(PAR_YIELDS, THIS_YEAR, world=new_year).ten_year == ()
    assert ask(PAR_YIELDS, LAST_YEAR, world=new_year).ten_year[-1].date == date(2026, 12, 31)
    assert ask(PAR_YIELDS, THIS_YEAR, world=World(1, NOW)).ten_year[-1].date == date(2027, 1, 14)
