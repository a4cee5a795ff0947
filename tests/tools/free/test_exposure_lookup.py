"""The exposure lookup tool."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import tools.simulated.internetdb  # noqa: F401 - registers its routes
from tests.requirements import proves
from tests.tools.desk import NOW
from tools.free.exposure_lookup import CURATED, cut_lists, exposure_lookup, public_ipv4
from tools.simulated.internetdb import record
from tools.sources.internetdb import HostExposure
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.1.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]
NO_ADDRESS = [
    "",
    " 1.1.1.1",
    "1.1.1.1\n",
    "1.1.1",
    "1.1.1.1.1",
    "0x01.1.1.1",
    "01.1.1.1",
    "16843009",
    "one.one.one.one",
    "::1",
    "::ffff:1.1.1.1",
    "1.1.1.1/32",
    "1.1.1.1:53",
    "1.1.1.256",
    "١.1.1.1",
    "1.1.1.1/../x",
]


@pytest.mark.parametrize("ip", [*PRIVATE, *NO_ADDRESS])
def test_anything_but_a_public_address_is_refused_before_anybody_is_asked(ip):
    with pytest.raises(ValidationError) as caught:
        operation_of(exposure_lookup).arguments.model_validate({"ip": ip})
    assert [error["type"] for error in caught.value.errors()] == ["invalid_or_private_ip"]


@pytest.mark.parametrize("ip", ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "223.255.255.255"])
def test_the_neighbours_of_private_ranges_are_public(ip):
    assert public_ipv4(ip) == ip


@given(st.ip_addresses(v=4))
def test_what_is_accepted_is_global_in_the_standard_librarys_eyes_too(address):
    try:
        accepted = public_ipv4(str(address))
    except ValueError:
        return
    assert IPv4Address(accepted).is_global


async def test_one_address_is_told_as_the_world_has_it(compose):
    ip = next(ip for i in range(50) if record(World(1, NOW), ip := f"93.184.{i}.34"))
    made = await compose(exposure_lookup, {"ip": ip})

    known = record(World(1, NOW), ip)
    assert made.json == {
        "mode": "single",
        "results": [
            {
                "ip": ip,
                "name": None,
                "indexed": True,
                "ports": known["ports"],
                "cves": known["vulns"],
                "hostnames": known["hostnames"],
                "tags": known["tags"],
                "cpes": known["cpes"],
                "checked_at": "2027-01-15T08:00:00Z",
            }
        ],
    }
    assert len(made.desk.asked) == 1


async def test_an_address_without_record_is_an_answer(compose):
    made = await compose(exposure_lookup, {"ip": "93.184.216.34"}, forms={"InternetDB.host": "empty"})

    (result,) = made.json["results"]
    assert result["indexed"] is False
    assert result["ports"] == result["cves"] == result["hostnames"] == []
    assert made.notes.warnings == []


async def test_a_lookup_that_fails_is_no_clean_record(compose):
    with pytest.raises(SourceError):
        await compose(exposure_lookup, {"ip": "1.1.1.1"}, down={"InternetDB.host"})


@proves("exposure.curated")
async def test_without_an_address_the_curated_ones_are_told_by_name(compose):
    made = await compose(exposure_lookup)

    assert made.json["mode"] == "curated"
    shown = dict(list(CURATED.items())[:6])
    assert {r["ip"]: r["name"] for r in made.json["results"]} == shown
    assert made.json["results"][0]["hostnames"] == ["one.one.one.one"]
    assert {n.section for n in made.notes.sources} == {f"data.{ip}" for ip in shown}


@proves("exposure.curated")
async def test_every_hour_has_other_addresses_until_all_24_came_round(compose):
    seen = []
    for hour in range(5):
        made = await compose(exposure_lookup, world=World(1, NOW + 3600 * hour + 1800))
        seen.append([r["ip"] for r in made.json["results"]])

    assert len(CURATED) >= 24
    assert sorted(ip for hour in seen[:4] for ip in hour) == sorted(CURATED)
    assert seen[4] == seen[0]


async def test_a_cold_call_asks_for_one_curated_address_and_says_what_is_missing(compose):
    made = await compose(exposure_lookup, warm=False)

    assert len(made.desk.asked) == 1
    assert [r["ip"] for r in made.json["results"]] == ["1.1.1.1"]
    assert [w.code for w in made.notes.warnings] == ["partial"]


async def test_when_none_of_the_curated_ones_answers_nothing_is_claimed(compose):
    with pytest.raises(SourceError):
        await compose(exposure_lookup, down={"*"})


def test_lists_are_cut_where_the_contract_says():
    many = tuple(f"x{i}" for i in range(99))
    host = HostExposure("1.1.1.1", True, ports=tuple(range(99)), cves=many, hostnames=many, tags=many, cpes=many)
    shown = cut_lists(host, World(1, NOW).time)
    assert [len(v) for v in (shown.ports, shown.cves, shown.hostnames, shown.tags, shown.cpes)] == [50, 50, 20, 20, 30]
