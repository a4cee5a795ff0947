"""URLhaus: the export without a key, the API with one."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.urlhaus  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.urlhaus import KEPT_S, urls
from tools.sources.urlhaus import API, EXPORT, MALWARE_URLS, newest, parse, request
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError, SourceRefused
from toolserver.world.model import World

KEY = {"ABUSE_CH_AUTH_KEY": "sim-1"}
HEAD = "# abuse.ch URLhaus Database Dump, recent #\r\n#\r\n# id,dateadded,url,url_status,threat,tags,urlhaus_link\r\n"
ROW = '"7","2026-07-01 10:00:00","{url}","online","malware_download","elf,Mozi","https://urlhaus.abuse.ch/url/7/"\r\n'


def test_without_a_key_the_export_is_asked_and_with_one_the_api():
    assert request(None, {}).url == EXPORT
    keyed = request(None, KEY)
    assert (keyed.url, keyed.headers, keyed.params) == (API, {"Auth-Key": "sim-1"}, {})


def test_a_recorded_answer_of_the_api_parses_to_its_values(sample):
    first, second = parse(json.loads(sample("urlhaus/urls-recent-2021-10.json")), None)
    assert first.url == "http://120.85.169.98:55871/mozi.m"
    assert first.added_at == datetime(2021, 10, 5, 13, 57, 5, tzinfo=UTC)
    assert (first.status, first.threat, first.tags) == ("online", "malware_download", ())
    assert first.reference == "https://urlhaus.abuse.ch/url/1656008/"
    assert second.tags == ("32-bit", "elf", "mips", "Mozi")


def test_a_recorded_refusal_is_a_refusal(sample):
    with pytest.raises(SourceRefused):
        parse(json.loads(sample("urlhaus/error-401-unauthorized.json")), None)


def test_an_export_is_read_by_its_column_names():
    (found,) = parse(HEAD + ROW.format(url="http://192.0.2.1/a?b=1&copy=2"), None)
    assert found.url == "http://192.0.2.1/a?b=1&copy=2"
    assert found.tags == ("elf", "Mozi")
    assert found.added_at == datetime(2026, 7, 1, 10, tzinfo=UTC)


URLS = st.from_regex(r"http://[a-z]{1,10}\.example/[a-z,&;=?\x0b\x1c\x85]{0,20}", fullmatch=True)


@given(st.lists(URLS))
def test_no_row_is_invented_or_dropped(listed):
    assert len(parse(HEAD + "".join(ROW.format(url=url) for url in listed), None)) == len(listed)


@pytest.mark.parametrize(
    "body",
    [None, "", "# nothing but a comment\n", '"1","2026-07-01","http://192.0.2.1/"\n', [], {}, {"query_status": "ok"}],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError)):
        parse(body, None)


@pytest.mark.parametrize("row", ['"7","yesterday","http://192.0.2.1/"\n', '"7"\n'])
def test_a_row_without_what_is_required_is_a_change_of_format(row):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        parse(HEAD + row, None)


@pytest.mark.parametrize(("status", "error"), [("no_results", SourceEmpty), ("http_get_expected", SourceChanged)])
def test_a_query_status_that_is_not_ok_is_an_error(status, error):
    with pytest.raises(error):
        parse({"query_status": status}, None)


def test_a_link_elsewhere_is_not_a_reference():
    (found,) = parse(HEAD + ROW.format(url="http://192.0.2.1/").replace("urlhaus.abuse.ch/url", "evil.example"), None)
    assert found.reference is None


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_export_of_the_twin_holds_what_the_world_holds(form):
    world = World(1, NOW)
    found = ask(MALWARE_URLS, form=form)
    expected = urls(world, NOW - KEPT_S)
    assert [u.url for u in found] == [u.url for u in expected]
    assert newest(found).timestamp() == int(expected[0].at)
    assert NOW - expected[0].at < 3600


def test_the_api_of_the_twin_says_the_same_as_its_export():
    by_key = ask(MALWARE_URLS, keys=KEY)
    assert by_key == ask(MALWARE_URLS)[:25]


def test_the_twin_refuses_other_keys():
    with pytest.raises(SourceDown):
        ask(MALWARE_URLS, keys={"ABUSE_CH_AUTH_KEY": "wrong"})


def test_the_part_of_the_export_that_is_read_ends_with_a_complete_row():
    """The whole export is longer than the part that is read."""
    get = request(None, {})
    body = fetch(World(1, NOW), get).body
    assert len(body) > MALWARE_URLS.max_bytes
    part = parse_body(MALWARE_URLS, get, None, body[: MALWARE_URLS.max_bytes], cut=True)
    assert len(part) > 500
    assert part == ask(MALWARE_URLS)[: len(part)]


def test_an_empty_export_is_no_success():
    get = request(None, {})
    with pytest.raises(SourceEmpty):
        parse_body(MALWARE_URLS, get, None, fetch(World(1, NOW), get, form="empty").body)


def test_a_short_list_that_ends_inside_a_line_is_cut_and_a_long_one_was_cut_by_us():
    rows = "".join(ROW.format(url=f"http://{number}.example/") for number in range(9))
    with pytest.raises(SourceChanged, match="cut"):
        parse(HEAD + rows.rstrip() + '"8","2026', None)
    many = ROW.format(url="http://a.example/") * 3000
    assert len(parse((HEAD + many)[: MALWARE_URLS.max_bytes], None)) > 1000
