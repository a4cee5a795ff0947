"""`toolserver doctor`: where settings come from, that secrets stay hidden, and what a recording shows."""

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from toolserver.cli.doctor import (
    Examination,
    LeftAlone,
    RecordedSources,
    RunningServer,
    describe_database,
    describe_drift,
    describe_recording,
    doctor_command,
    report,
    settings_table,
)
from toolserver.cli.source_probe import Probe
from toolserver.settings import KEYS, Settings, SourceSettings
from toolserver.upstream.announcements import Announcement
from toolserver.upstream.drift import Drift
from toolserver.upstream.refusals import HostRefusal


def table(settings=None):
    return {row["setting"]: (row["value"], row["from"]) for row in settings_table(settings or Settings())}


def test_each_setting_says_where_it_comes_from(tmp_path, monkeypatch):
    (tmp_path / "toolserver.toml").write_text("port = 1\n[limits]\ndaily = 5\nspacing_s = 2\n")
    monkeypatch.setenv("TOOLSERVER_LIMITS__DAILY", "6")
    found = table()
    assert found["port"] == ("1", "toolserver.toml")
    assert found["limits.spacing_s"] == ("2.0", "toolserver.toml")
    assert found["limits.daily"] == ("6", "environment")
    assert found["host"] == ("127.0.0.1", "default")


def test_secrets_are_masked_and_keys_are_set_or_not(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_TOKEN", "svc_live_secret")
    monkeypatch.setenv("TOOLSERVER_SOURCES__KEYS", '{"GITHUB_TOKEN": "ghp_secret"}')
    found = table()
    assert found["token"] == ("********", "environment")
    assert found["sources.keys"][0] == "GITHUB_TOKEN=********"
    assert (found["key GITHUB_TOKEN"][0], found["key FRED_API_KEY"][0]) == ("set", "not set")
    assert {f"key {name}" for name in KEYS} <= found.keys()
    assert "secret" not in str(found).replace("ledger.secret", "").replace("facilitator_token", "")


READY = {"storage": True}
GOOD = Probe("A.good", True, "ok", "ok", 90, 12, "yes", "-", "")
BAD = Probe("B.bad", False, "connect", "-", None, None, "yes", "-", "connect: refused")


@pytest.mark.parametrize(
    ("ready", "probes", "status"), [(True, [GOOD, BAD], 0), (False, [GOOD, BAD], 1), (True, [BAD], 1)]
)
def test_the_status_says_whether_something_needs_a_person(capsys, ready, probes, status):
    assert report(Settings(), Examination({"storage": ready}, probes), as_json=False) == status
    out = capsys.readouterr().out
    assert ("NOT READY" in out) is not ready
    assert f"{len(probes) - 1} of {len(probes)} sources answered\n" in out
    assert ("findings need attention" in out) is bool(status)


def test_a_measure_of_the_network_is_no_sign_that_a_source_was_reached(capsys):
    probes = [BAD, replace(GOOD, source="Network.reach", of_network=True)]
    assert report(Settings(), Examination(READY, probes), as_json=False) == 1
    assert "(no_network)" in capsys.readouterr().out


def test_as_text_each_source_is_a_line_with_its_age_and_latency(capsys):
    report(Settings(), Examination(READY, [GOOD, BAD]), as_json=False)
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["A.good"] == ["A.good", "ok", "ok", "90", "s", "12", "yes"]
    assert lines["B.bad"] == ["B.bad", "connect", "unreachable", "-", "-", "yes", "connect:", "refused"]


def test_as_json_there_is_one_document(capsys):
    report(Settings(), Examination(READY, [GOOD]), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "settings",
        "ready",
        "licence",
        "sources",
        "announcements",
        "refusals",
        "advice",
        "server",
        "database",
    ]
    assert document["server"] is document["database"] is None
    assert (document["ready"], document["sources"][0]["source"]) == (READY, "A.good")


@pytest.mark.parametrize(
    ("sources", "decided"), [(SourceSettings(), False), (SourceSettings(licence_policy="any"), True)]
)
def test_the_licence_policy_is_said_with_who_decided_it(capsys, sources, decided):
    report(Settings(sources=sources), Examination(READY), as_json=True)
    licence = json.loads(capsys.readouterr().out)["licence"]
    assert (licence["policy"], licence["decided"], licence["lost"]) == ("any", decided, {})
    report(Settings(sources=sources), Examination(READY), as_json=False)
    assert ("chosen by the operator" in capsys.readouterr().out) is decided


@pytest.mark.parametrize("as_json", [True, False])
def test_what_upstreams_announce_is_listed(capsys, as_json):
    announced = [Announcement("A.good", "sunset", "Fri, 01 May 2026 00:00:00 GMT", 1.0)]
    report(Settings(), Examination(READY, [GOOD], announced), as_json=as_json)
    out = capsys.readouterr().out
    assert "Fri, 01 May 2026" in out
    assert "sunset" in out


@pytest.mark.parametrize("as_json", [True, False])
def test_hosts_that_refuse_us_are_listed(capsys, as_json):
    refused = [HostRefusal("www.cisa.gov", 403, 10.0, 3610.0)]
    report(Settings(), Examination(READY, [GOOD], refused=refused), as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["refusals"] == [refused[0]._asdict()]
    else:
        assert "www.cisa.gov                         refuses us (status 403)" in out


async def test_without_live_no_source_is_requested_and_nothing_is_recorded(tmp_path, capsys):
    await doctor_command(Settings(data_dir=tmp_path), live=False, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["sources"] == []
    assert document["ready"]
    assert all(document["ready"].values())


DRIFTED = replace(
    GOOD,
    source="C.drifted",
    drift=(
        Drift("rows[].price", "absent", "answers change", True),
        Drift("rows[].note", "number instead of string", "read all the same", False),
        Drift("rows[].other", "absent", "not read", False),
    ),
)


def recording(*probes):
    """The examination of a recording of these probes."""
    sources = RecordedSources(list(probes), [], [], {"weather": "ok", "gas": "no data"}, 7)
    return Examination(READY, list(probes), recorded=describe_recording(sources, Path("rec")))


@pytest.mark.parametrize(("probes", "status"), [((GOOD,), 0), ((GOOD, BAD), 1), ((GOOD, DRIFTED), 1)])
def test_a_recording_in_which_a_source_is_unwell_needs_a_person(capsys, probes, status):
    assert report(Settings(), recording(*probes), as_json=False) == status
    out = capsys.readouterr().out
    assert ("(sources_unwell)" in out) is bool(status)
    assert "7 exchanges recorded in rec; 1 of 2 tools returned data: not gas (no data)\n" in out


def test_of_a_source_that_drifted_the_fields_are_named(capsys):
    report(Settings(), recording(GOOD, DRIFTED), as_json=False)
    out = capsys.readouterr().out
    assert "C.drifted                            ok             drift" in out
    assert "    ! rows[].price: absent (answers change)\n" in out
    assert "    - rows[].note: number instead of string (read all the same)\n" in out
    assert "1 ok, 1 drift\n" in out


def test_fields_that_nobody_reads_are_left_out():
    assert [line.split(":")[0] for line in describe_drift(DRIFTED)] == ["! rows[].price", "- rows[].note"]


async def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "old").write_text("")
    with pytest.raises(click.ClickException, match="is not empty"):
        await doctor_command(Settings(data_dir=tmp_path / "data"), live=True, as_json=False, record=tmp_path / "rec")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_a_running_server_skips_is_listed(capsys, as_json):
    server = RunningServer("http://127.0.0.1:9/metrics", True, (LeftAlone("www.cisa.gov", "403", 60.0),))
    report(Settings(), Examination(READY, server=server), as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["server"] == {
            "metrics_url": "http://127.0.0.1:9/metrics",
            "answers": True,
            "left_alone": [{"name": "www.cisa.gov", "status": "403", "left_s": 60.0}],
        }
    else:
        assert "www.cisa.gov                         refuses it (status 403); retried in 60 s" in out


def test_a_source_that_is_requested_in_two_forms_has_a_line_for_each(capsys):
    probes = [replace(GOOD, form="keyed"), replace(BAD, source="A.good", form="keyless")]
    report(Settings(), Examination(READY, probes), as_json=False)
    out = capsys.readouterr().out
    assert "A.good (keyed) " in out
    assert "A.good (keyless) " in out


def test_a_database_on_a_server_is_described_with_its_leases():
    leases = [{"name": "reorg watch", "number": 3, "seconds_left": 9}, {"name": "log", "number": 1, "seconds_left": 0}]
    found = {"server": "PostgreSQL 15.6", "tables": 4, "connections": 7, "leases": leases}
    assert describe_database(None) == []
    assert describe_database(found) == [
        "the ledger is on PostgreSQL 15.6, tables 4, 7 connections",
        "  reorg watch: held by one instance for 9 s more",
        "  log: held by no instance",
    ]
