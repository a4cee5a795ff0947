"""The volcanoes tool, the Smithsonian's weekly report and USGS's alert levels."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.eonet
import tools.simulated.gdacs
import tools.simulated.volcanoes  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.free.volcanoes import volcanoes
from tools.simulated.disasters import DAY, disasters
from tools.simulated.volcanoes import RAISED, VOLCANOES, published_at
from tools.sources import smithsonian, usgs_volcanoes
from tools.sources.smithsonian import WEEKLY_REPORT
from tools.sources.usgs_volcanoes import ELEVATED_VOLCANOES
from toolserver.upstream.source import SourceChanged, SourceError
from toolserver.world.model import ROUTES, World

FALLBACKS = {"NASA.eonet_events", "GDACS.event_list", "GDACS.rss"}
NAMES = st.from_regex(r"[A-Z][a-z]{1,12}", fullmatch=True)


def rss(*titles, guid="https://volcano.si.edu/reports_weekly.cfm#vn_257040"):
    inside = "".join(
        f"<item><title>{title}</title><guid>{guid}</guid><pubDate>Thu, 24 Sep 2026 07:03:38 -0400</pubDate></item>"
        for title in titles
    )
    return f'<?xml version="1.0" encoding="ISO-8859-1"?><rss><channel>{inside}</channel></rss>'.encode("iso-8859-1")


def test_a_recorded_report_parses_to_its_values_in_its_own_encoding(sample):
    first, second, third = smithsonian.parse(sample("gvp-volcano/WeeklyVolcanoRSS-2026-09-trimmed.xml"), None)
    assert (first.name, first.country, first.vnum) == ("Ambrym", "Vanuatu", "257040")
    assert (first.period, first.category) == ("16 September-22 September 2026", "New Eruptive Activity")
    assert first.published_at == datetime(2026, 9, 24, 11, 3, 38, tzinfo=UTC)
    assert (first.lat, first.lon) == (-16.25, 168.12)
    assert first.summary.startswith("The Vanuatu Meteorology and Geo-Hazards Department (VMGD) reported")
    assert "Geología" in second.summary
    assert (third.name, third.category) == ("Great Sitkin", "Continuing Eruptive Activity")


def test_recorded_elevated_volcanoes_parse_to_their_values(sample):
    raw = json.loads(sample("usgs-hans/getElevatedVolcanoes-2026-07.json"))
    found = usgs_volcanoes.parse(raw, None)
    assert [v.name for v in found] == [v["volcano_name"] for v in raw]
    assert (found[0].vnum, found[0].color, found[0].alert) == ("311120", "ORANGE", "WATCH")
    assert found[0].sent_at == datetime.fromtimestamp(1785181478, UTC)
    assert found[0].url.startswith("https://volcanoes.usgs.gov/hans-public/notice/")


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("Etna (Italy) - Report for 1 May-7 May 2026", ("Etna", "Italy", "1 May-7 May 2026", None)),
        ("A - B (C - D) - Report for X - Y - Z", ("A - B", "C - D", "X", "Y - Z")),
        ("Something else entirely", ("Something else entirely", None, None, None)),
    ],
)
def test_a_title_is_taken_apart_where_it_can_be(title, parts):
    (found,) = smithsonian.parse(rss(title), None)
    assert (found.name, found.country, found.period, found.category) == parts


def test_a_report_without_a_number_or_place_keeps_its_name():
    (found,) = smithsonian.parse(rss("Etna (Italy) - Report for now", guid="elsewhere"), None)
    assert (found.vnum, found.lat, found.summary, found.link) == (None, None, None, None)


@given(st.lists(NAMES))
def test_no_report_is_invented_or_dropped(names):
    assert [r.name for r in smithsonian.parse(rss(*names), None)] == names


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"<rss/>", rss("Etna")[:-9], rss(""), b"<!DOCTYPE a><rss/>"])
def test_a_report_of_another_shape_is_refused(body):
    with pytest.raises(SourceChanged):
        smithsonian.parse(body, None)


@pytest.mark.parametrize("body", [None, {}, {"error": "x"}, [{}], [1], "x"])
def test_a_list_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError)):
        usgs_volcanoes.parse(body, None)


def test_the_twins_tell_the_volcanoes_of_the_world_in_both_forms():
    for form in (None, "drift"):
        assert [r.vnum for r in ask(WEEKLY_REPORT, form=form)] == [v.vnum for v in VOLCANOES]
        assert [v.vnum for v in ask(ELEVATED_VOLCANOES, form=form)] == [vnum for _, vnum in RAISED]
    assert {r.category for r in ask(WEEKLY_REPORT, form="drift")} == {None}
    assert ask(ELEVATED_VOLCANOES, form="empty") == ()
    assert 0 <= NOW - published_at(World(1, NOW)) < 7 * DAY


async def test_reports_carry_the_us_levels_and_those_usgs_alone_lists_come_last(compose):
    made = await compose(volcanoes)

    keys = ("name", "country", "vnum", "us_alert_level")
    assert [{k: v[k] for k in keys} for v in made.json] == ROUTES.expectations["volcanoes"](World(1, NOW), {})
    assert made.json[0]["link"] == "https://volcano.si.edu/volcano.cfm?vn=257040"
    assert all(len(v["summary"]) <= 400 for v in made.json[:-1])
    assert made.json[-1]["link"].startswith("https://volcanoes.usgs.gov/hans-public/notice/")
    assert (made.json[-1]["source"], made.json[-1]["summary"]) == ("USGS", None)
    assert made.notes.warnings == []


async def test_without_the_report_eruptions_are_taken_from_eonet_and_gdacs(compose):
    made = await compose(volcanoes, down={"SmithsonianGVP.weekly_report"})

    names = [v["name"] for v in made.json]
    assert "Erebus" in names
    recent = [d.own_name for d in disasters(World(1, NOW), NOW - 5 * DAY) if d.kind == "VO"]
    assert set(recent) <= set(names)
    assert len(names) == len(set(names))
    assert {v["source"] for v in made.json} == {"NASA EONET", "GDACS", "USGS"} - ({"GDACS"} if not recent else set())
    assert "fallback_used" in {w.code for w in made.notes.warnings}


@pytest.mark.parametrize("down", [{"NASA.eonet_events"}, {"GDACS.event_list", "GDACS.rss"}])
async def test_one_of_the_two_fallbacks_is_enough(compose, down):
    made = await compose(volcanoes, down={"SmithsonianGVP.weekly_report", *down})
    assert {v["source"] for v in made.json} > {"USGS"}


async def test_without_usgs_the_reports_have_no_levels(compose):
    made = await compose(volcanoes, down={"USGS.elevated_volcanoes"})

    assert [v["vnum"] for v in made.json] == [v.vnum for v in VOLCANOES]
    assert {v["us_alert_level"] for v in made.json} == {None}
    assert [(w.section, w.code) for w in made.notes.warnings] == [("data.us", "section_unavailable")]


async def test_with_usgs_alone_its_volcanoes_are_told(compose):
    made = await compose(volcanoes, down={"SmithsonianGVP.weekly_report", *FALLBACKS})
    assert {v["vnum"] for v in made.json} == {vnum for _, vnum in RAISED}


async def test_when_nobody_answers_nothing_is_claimed(compose):
    with pytest.raises(SourceError):
        await compose(volcanoes, down={"*"})
