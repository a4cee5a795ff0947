"""Each finding is provoked alone and seen, and a service without a fault gets none that is urgent."""

import os
from types import SimpleNamespace

import pytest

from toolserver.serving.advice import Advice, describe_verdict, give_advice
from toolserver.serving.data_directory import UntrustedProxyNote
from toolserver.settings import Settings

CALM = {"upstream": {"contact": "you@example.org"}}
SELLING = {"payments": {"enabled": True, "rpc_urls": ["https://rpc.example"], "xpub": "xpub-of-the-owner"}}
DECIDED = {"sources": {"licence_policy": "commercial"}}


def codes(folder, ready=True, reached=(), **given):
    found = give_advice(Settings(data_dir=folder, **{**CALM, **given}), {"storage": ready}, reached)
    return {advice.code: advice.urgent for advice in found}


def test_a_service_without_a_fault_gets_no_advice(tmp_path):
    assert codes(tmp_path, reached=[True, False]) == {}
    assert describe_verdict([]) == "verdict: well"


def test_what_is_not_ready_needs_a_person(tmp_path):
    assert codes(tmp_path, ready=False) == {"not_ready": True}


@pytest.mark.parametrize(("free", "found"), [(5, {"disk_filling": False}), (9, {"disk_filling": False}), (10, {})])
def test_a_disk_that_fills_up_is_advice_as_long_as_things_are_sold(tmp_path, monkeypatch, free, found):
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=free, f_blocks=100))
    assert codes(tmp_path) == found


def test_how_full_the_disk_is_and_what_frees_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=5, f_blocks=100))
    (advice,) = give_advice(Settings(data_dir=tmp_path, **CALM), {}, [])
    assert "is 95 % full; with less than 4 MB free, nothing is sold" in advice.told
    assert "books close" in advice.told


def test_no_network_is_told_only_when_no_source_was_reached(tmp_path):
    assert codes(tmp_path, reached=[False, False]) == {"no_network": True}


def test_sources_of_a_recording_that_are_unwell_are_named(tmp_path):
    (found,) = give_advice(Settings(data_dir=tmp_path, **CALM), {"storage": True}, [True], ["A.one", "B.two"])
    assert (found.code, found.urgent) == ("sources_unwell", True)
    assert "2 sources" in found.told
    assert "A.one, B.two" in found.told


def test_a_missing_contact_is_advice(tmp_path):
    assert codes(tmp_path, upstream={}) == {"no_contact": False}


@pytest.mark.parametrize(
    ("host", "base_url", "found"),
    [
        ("0.0.0.0", None, {"no_tls": True}),
        ("203.0.113.7", "http://data.example", {"no_tls": True}),
        ("0.0.0.0", "https://data.example", {}),
        ("127.0.0.1", None, {}),
    ],
)
def test_a_public_address_needs_tls_in_front(tmp_path, host, base_url, found):
    assert codes(tmp_path, host=host, base_url=base_url) == found


def test_a_proxy_that_was_seen_and_is_not_trusted_needs_a_person(tmp_path):
    UntrustedProxyNote(tmp_path).note("172.18.0.5")
    assert codes(tmp_path) == {"untrusted_proxy": True}
    assert codes(tmp_path, limits={"trusted_proxies": ["172.16.0.0/12"]}) == {}


def test_selling_needs_a_decision_about_licences(tmp_path):
    assert codes(tmp_path, **SELLING) == {"no_licence_decision": True, "one_disk": False}


def test_backups_on_the_disk_of_the_data_are_told(tmp_path):
    (tmp_path / "backups").mkdir()
    assert codes(tmp_path, **SELLING, **DECIDED) == {"one_disk": False}
    (tmp_path / "backups").rmdir()
    (tmp_path / "backups").symlink_to("/proc")  # another disk, as the system counts them
    assert codes(tmp_path, **SELLING, **DECIDED) == {}


def test_the_verdict_counts_what_needs_a_person():
    told = [Advice("a", True, "A."), Advice("b", False, "B.")]
    assert describe_verdict(told) == "verdict: 1 of 2 findings need attention"
    assert describe_verdict(told[1:]) == "verdict: well, with some advice"
