"""Feodo Tracker's block list."""

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.feodo  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.feodo import SERVERS, server
from tools.sources.feodo import COMMAND_SERVERS, newest, parse
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

ROW = {
    "ip_address": "192.0.2.1",
    "port": 443,
    "status": "online",
    "malware": "QakBot",
    "first_seen": "2026-03-04 14:28:39",
}


def test_a_recorded_list_parses_to_its_values(sample):
    found = parse(json.loads(sample("feodo/ipblocklist-2026-07.json")), None)
    assert len(found) == 5
    first = found[0]
    assert (str(first.ip), first.port, first.status, first.malware) == ("162.243.103.246", 8080, "offline", "Emotet")
    assert (first.country, first.network) == ("US", "DIGITALOCEAN-ASN")
    assert first.first_seen_at == datetime(2022, 6, 4, 21, 24, 53, tzinfo=UTC)
    assert first.last_online == date(2026, 3, 7)
    assert newest(found) == datetime(2026, 3, 4, 14, 28, 39, tzinfo=UTC)


def test_no_server_at_all_is_an_answer():
    assert parse([], None) == ()
    assert ask(COMMAND_SERVERS, form="empty") == ()


@given(st.lists(st.tuples(st.ip_addresses(v=4), st.integers(1, 65535))))
def test_no_server_is_invented_or_dropped(told):
    rows = [ROW | {"ip_address": str(ip), "port": port} for ip, port in told]
    assert [(s.ip, s.port) for s in parse(rows, None)] == told


@pytest.mark.parametrize("change", [{"last_online": "never"}, {"country": None}, {"as_name": None}, {"port": "443"}])
def test_an_optional_member_that_cannot_be_read_does_not_lose_the_server(change):
    assert parse([ROW | change], None)[0].port == 443


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"error": "x"},
        [{}],
        [1],
        [ROW | {"ip_address": "evil.example"}],
        [ROW | {"port": 99999}],
        [ROW | {"first_seen": ""}],
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


def test_the_twin_lists_the_servers_of_the_world_in_both_forms():
    expected = [server(World(1, NOW), index)["ip_address"] for index in range(SERVERS)]
    assert [str(s.ip) for s in ask(COMMAND_SERVERS)] == expected
    assert [(str(s.ip), s.network) for s in ask(COMMAND_SERVERS, form="drift")] == [(ip, None) for ip in expected]
