"""Freddie Mac's mortgage survey."""

from datetime import date

import pytest

import tools.simulated.freddiemac  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import macro
from tools.sources.freddiemac import PMMS_30Y, parse
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

FILE = "date,pmms30,pmms30p,pmms15\r\n4/2/1971,7.33, , \r\n1/7/2027,6.25,,5.4\r\n1/14/2027,6.23,,5.4\r\n"


def test_the_thirty_year_rate_is_read_by_name():
    assert parse(FILE, None)[-1] == (date(2027, 1, 14), 6.23)
    assert len(parse(FILE, None)) == 3


@pytest.mark.parametrize("body", ["", "<html></html>", "date,pmms15\r\n1/7/2027,5.4\r\n", FILE[:-14]])
def test_a_body_that_is_not_the_table_is_a_changed_source(body):
    with pytest.raises(SourceChanged):
        parse(body, None)


@pytest.mark.parametrize(("old", "new"), [("6.23", "0"), ("6.23", "62.3"), ("6.23", "x"), ("1/14/2027", "14.1.2027")])
def test_a_week_without_a_rate_is_left_out(old, new):
    assert parse(FILE.replace(old, new), None) == parse(FILE, None)[:-1]


def test_the_twin_answers_the_worlds_thursdays():
    found = ask(PMMS_30Y)

    assert all(day.weekday() == 3 for day, _ in found)
    assert found[-1] == (date(2027, 1, 14), macro.level(World(1, NOW), "mortgage_30y", date(2027, 1, 14)))
    assert ask(PMMS_30Y, form="drift") == found
    assert ask(PMMS_30Y, form="empty") == ()
