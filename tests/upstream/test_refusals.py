"""Hosts that refuse us are left alone for long and remembered."""

import socket
from dataclasses import replace

import httpx
import pytest

from tests.calls.parts import START
from tests.upstream.test_fetcher import URL, Rig, source_of
from toolserver.clock import ManualClock
from toolserver.upstream.source import Get, HostRefused, SourceDown
from toolserver.upstream.source_health import NAMELESS_S, NO_ADDRESS, HostRefusals

HOST, HOUR, DAY = "www.example", 3600, 86400


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def refusals(clock):
    return HostRefusals(clock)


def is_open(refusals, host=HOST, source="a"):
    try:
        refusals.admit(host, source)
    except HostRefused:
        return False
    return True


def test_a_host_that_refused_is_left_alone_for_an_hour_and_the_second_time_for_a_day(refusals, clock):
    for pause_s in (HOUR, DAY, DAY):
        assert is_open(refusals)
        refusals.record(HOST, "a", 403)
        clock.advance(pause_s - 1)
        assert not is_open(refusals)
        clock.advance(1)
    assert is_open(refusals)
    assert is_open(refusals, "other.example")


def test_a_refusal_is_remembered_for_a_day_after_its_pause(refusals, clock):
    refusals.record(HOST, "a", 451)
    (kept,) = refusals.list_all()
    assert (kept.host, kept.status, kept.until - kept.seen_at) == (HOST, 451, HOUR)
    clock.advance(HOUR + DAY)
    assert refusals.list_all() == [kept]
    clock.advance(1)
    assert refusals.list_all() == []
    refusals.record(HOST, "a", 451)
    assert refusals.list_all()[0].until - refusals.list_all()[0].seen_at == HOUR


def test_a_host_that_answers_again_is_forgotten(refusals):
    refusals.record(HOST, "a", 403)
    refusals.forget(HOST, "a")
    assert is_open(refusals)
    assert refusals.list_all() == []


def test_the_log_has_one_line_when_a_host_begins_to_refuse_and_one_when_it_ends(refusals, clock, caplog):
    refusals.forget(HOST, "a")
    for _ in range(3):
        refusals.record(HOST, "a", 403)
        clock.advance(DAY)
    refusals.forget(HOST, "a")
    told = [(record.message, record.host) for record in caplog.records]
    assert told == [("a host refuses us", HOST), ("a host no longer refuses us", HOST)]


def test_the_error_says_which_host_and_when_it_is_asked_again(refusals, clock):
    refusals.record(HOST, "a", 403)
    clock.advance(600)
    with pytest.raises(HostRefused) as caught:
        refusals.admit(HOST, "a")
    assert not caught.value.was_sent
    assert caught.value.reason == "refused: www.example answered 403; asked again in 50 min"


def test_a_page_that_refuses_closes_its_host_to_no_other_source_and_a_second_one_does(refusals, clock):
    refusals.record(HOST, "a", 403)
    assert is_open(refusals, source="b")
    refusals.forget(HOST, "b")
    assert not is_open(refusals, source="a")
    refusals.record(HOST, "b", 451)
    assert not is_open(refusals, source="c")
    assert len(refusals.list_all()) == 1
    clock.advance(HOUR)
    assert is_open(refusals, source="c")


@pytest.mark.parametrize("also", [None, "b"])
def test_a_host_that_answers_nobody_is_asked_once_a_day_for_all_its_sources(refusals, clock, also):
    refusals.record(HOST, "a", 403)
    clock.advance(HOUR)
    if also is not None:
        refusals.forget(HOST, also)
    refusals.record(HOST, "a", 403)
    assert is_open(refusals, source="b") == (also is not None)
    clock.advance(DAY)
    assert is_open(refusals, source="b")
    assert is_open(refusals, source="a")


def test_a_host_without_an_address_is_asked_once_a_day_from_the_sixth_hour_on(refusals, clock, caplog):
    refusals.record_no_address(HOST, "a")
    clock.advance(NAMELESS_S - 1)
    refusals.record_no_address(HOST, "b")
    assert is_open(refusals)
    clock.advance(1)
    refusals.record_no_address(HOST, "a")
    with pytest.raises(HostRefused, match=r"^www.example has no address; asked again in 1440 min$"):
        refusals.admit(HOST, "b")
    clock.advance(DAY)
    assert is_open(refusals, source="b")
    refusals.record_no_address(HOST, "b")
    assert not is_open(refusals)
    assert refusals.list_closed() == [(HOST, NO_ADDRESS, DAY)]
    refusals.forget(HOST, "c")
    assert is_open(refusals)
    assert [record.message for record in caplog.records] == [
        "a host has no address any more",
        "a host no longer refuses us",
    ]


def test_a_name_that_resolves_again_starts_the_six_hours_anew(refusals, clock):
    refusals.record_no_address(HOST, "a")
    clock.advance(NAMELESS_S)
    refusals.forget(HOST, "b")
    refusals.record_no_address(HOST, "a")
    assert is_open(refusals)


def test_what_is_left_alone_now_is_listed_with_the_seconds_left(refusals, clock):
    refusals.record(HOST, "a", 403)
    clock.advance(600)
    assert refusals.list_closed() == [(HOST, 403, HOUR - 600)]
    clock.advance(HOUR)
    assert refusals.list_closed() == []
    assert len(refusals.list_all()) == 1


def unresolved(number):
    error = httpx.ConnectError("name")
    error.__cause__ = socket.gaierror(number, "name")
    return error


@pytest.mark.parametrize(
    ("number", "is_asked"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)], ids=["no such name", "try again"]
)
async def test_only_a_name_that_does_not_exist_closes_its_host(number, is_asked):
    rig = Rig()
    rig.internet.serves(URL, unresolved(number))
    for _ in range(2):
        with pytest.raises(SourceDown, match=r"does not resolve|ConnectError"):
            await rig.fetch(source_of(Get(URL)))
        rig.clock.advance(NAMELESS_S)
    rig.internet.serves(URL, {"value": 1})
    other = replace(source_of(Get(URL)), name="Test.other")
    if is_asked:
        assert (await rig.fetch(other)).answer.value.value == 1
    else:
        with pytest.raises(HostRefused, match="has no address"):
            await rig.fetch(other)
