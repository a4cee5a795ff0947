"""InternetDB, where "nothing known" is an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.internetdb  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.internetdb import record
from tools.sources.internetdb import ASKED_HOST, LISTED_HOST, HostExposure, parse, request
from toolserver.upstream.source import SourceChanged, SourceDown, SourceError
from toolserver.world.model import World

EMPTY = {"ip": "1.1.1.1", "ports": [], "vulns": [], "hostnames": [], "tags": [], "cpes": []}


def test_a_recorded_record_parses_to_its_values(sample):
    found = parse(json.loads(sample("shodan-internetdb/found-1.1.1.1-2026.json")), "1.1.1.1")
    assert found == HostExposure(
        "1.1.1.1",
        indexed=True,
        ports=(53, 80, 443, 2082, 2083, 2087, 8880),
        hostnames=("one.one.one.one", "www.pglsgd.kerala.gov.in", "mail.okmanuf.ru"),
        cpes=("cpe:/a:cloudflare:cloudflare",),
    )


def test_the_recorded_answer_for_an_address_without_record_is_an_answer(sample):
    body = json.loads(sample("shodan-internetdb/error-404-no-information.json"))
    assert parse(body, "192.0.2.1") == HostExposure("192.0.2.1", indexed=False)


@given(st.lists(st.integers(1, 65535)), st.lists(st.sampled_from(["CVE-2099-1234", "CVE-2020-99999"])))
def test_no_port_or_vulnerability_is_invented_or_dropped(ports, cves):
    found = parse(EMPTY | {"ports": ports, "vulns": cves}, "1.1.1.1")
    assert (list(found.ports), list(found.cves)) == (ports, cves)


def test_what_is_no_cve_is_not_shown_as_one():
    assert parse(EMPTY | {"vulns": ["MS17-010", "CVE-2099-1234"]}, "1.1.1.1").cves == ("CVE-2099-1234",)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"detail": "Rate limit exceeded"},
        {"detail": [{"msg": "value is not a valid IPv4 address"}]},
        EMPTY | {"ip": "8.8.8.8"},
        EMPTY | {"ports": [99999]},
        EMPTY | {"ports": None},
        EMPTY | {"hostnames": "one.one.one.one"},
        {k: v for k, v in EMPTY.items() if k != "vulns"},
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, "1.1.1.1")


def test_the_twin_tells_what_the_world_holds_and_that_it_holds_nothing():
    world = World(1, NOW)
    asked = [f"93.184.{i}.34" for i in range(20)]
    for ip in asked:
        found, known = ask(ASKED_HOST, ip), record(world, ip)
        assert found.indexed == (known is not None)
        assert list(found.ports) == (known["ports"] if known else [])
        assert ask(ASKED_HOST, ip, form="drift") == found
    assert len({ask(ASKED_HOST, ip).indexed for ip in asked}) == 2


def test_the_faults_of_the_twin_are_no_answers():
    with pytest.raises(SourceChanged):
        ask(ASKED_HOST, "1.1.1.1", form="error200")
    with pytest.raises(SourceDown):
        ask(ASKED_HOST, "1.1.1.1", form="limited")
    assert not ask(LISTED_HOST, "1.1.1.1", form="empty").indexed


def test_what_callers_ask_about_is_never_kept_on_disk():
    assert ASKED_HOST.user_input
    assert not LISTED_HOST.user_input
    assert request("1.1.1.1", {}).url == "https://internetdb.shodan.io/1.1.1.1"
