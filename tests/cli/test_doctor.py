"""`toolserver doctor`: where settings come from, that secrets stay hidden, and what a recording shows."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import click
import pytest

from toolserver.cli import doctor
from toolserver.cli.doctor import describe_drift, doctor_command, settings_table
from toolserver.cli.record_sources import RecordedSources
from toolserver.cli.running_server import LeftAlone, RunningServer
from toolserver.cli.source_probe import Probe
from toolserver.clock import SystemClock
from toolserver.settings import KEYS, Settings, SourceSettings
from toolserver.upstream.announcements import Announcements
from toolserver.upstream.drift import Drift
from toolserver.upstream.refusals import HostRefusals


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


@dataclass
class Made:
    """A service as far as the command uses it."""

    ready_now: bool

    class fetcher:
        announcements, refusals = Announcements(SystemClock()), HostRefusals(SystemClock())

    @property
    def readiness(self):
        return self

    async def check(self):
        return {"storage": self.ready_now}


@pytest.fixture
def local(monkeypatch):
    def use(ready, probes=()):
        @asynccontextmanager
        async def local_service(settings, background):
            assert not background
            yield Made(ready)

        async def probe(service):
            return list(probes)

        monkeypatch.setattr(doctor, "local_service", local_service)
        monkeypatch.setattr(doctor, "probe_sources", probe)

    return use


GOOD = Probe("A.good", True, "ok", "ok", 90, 12, "yes", "-", "")
BAD = Probe("B.bad", False, "connect", "-", None, None, "yes", "-", "connect: refused")


@pytest.mark.parametrize(
    ("ready", "probes", "status"), [(True, [GOOD, BAD], 0), (False, [GOOD, BAD], 1), (True, [BAD], 1)]
)
async def test_the_status_says_whether_something_needs_a_person(local, capsys, ready, probes, status):
    local(ready, probes)
    assert await doctor_command(Settings(), live=True, as_json=False) == status
    out = capsys.readouterr().out
    assert ("NOT READY" in out) is not ready
    assert f"{len(probes) - 1} of {len(probes)} sources answered\n" in out
    assert ("findings need attention" in out) is bool(status)


async def test_a_measure_of_the_network_is_no_sign_that_a_source_was_reached(local, capsys):
    local(True, [BAD, replace(GOOD, source="Network.reach", of_network=True)])
    assert await doctor_command(Settings(), live=True, as_json=False) == 1
    assert "(no_network)" in capsys.readouterr().out


async def test_as_text_each_source_is_a_line_with_its_age_and_latency(local, capsys):
    local(True, [GOOD, BAD])
    await doctor_command(Settings(), live=True, as_json=False)
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["A.good"] == ["A.good", "ok", "ok", "90", "s", "12", "yes"]
    assert lines["B.bad"] == ["B.bad", "connect", "unreachable", "-", "-", "yes", "connect:", "refused"]


async def test_as_json_there_is_one_document(local, capsys):
    local(True, [GOOD])
    await doctor_command(Settings(), live=True, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {
        "settings",
        "ready",
        "licence",
        "sources",
        "announcements",
        "refusals",
        "server",
        "advice",
        "database",
    }
    assert found["server"] is found["database"] is None
    assert (found["ready"], found["sources"][0]["source"]) == ({"storage": True}, "A.good")


@pytest.mark.parametrize(
    ("sources", "decided"), [(SourceSettings(), False), (SourceSettings(licence_policy="any"), True)]
)
async def test_the_licence_policy_is_told_with_who_decided_it(local, capsys, sources, decided):
    local(True, [])
    await doctor_command(Settings(sources=sources), live=False, as_json=True)
    found = json.loads(capsys.readouterr().out)["licence"]
    assert (found["policy"], found["decided"], found["lost"]) == ("any", decided, {})
    await doctor_command(Settings(sources=sources), live=False, as_json=False)
    assert ("chosen by the operator" in capsys.readouterr().out) is decided


@pytest.mark.parametrize("as_json", [True, False])
async def test_what_upstreams_announce_is_listed(local, capsys, monkeypatch, as_json):
    announcements = Announcements(SystemClock())
    announcements.record("A.good", "https://a.example/x", 200, {"sunset": "Fri, 01 May 2026 00:00:00 GMT"})
    monkeypatch.setattr(Made.fetcher, "announcements", announcements)
    local(True, [GOOD])
    await doctor_command(Settings(), live=True, as_json=as_json)
    out = capsys.readouterr().out
    assert "Fri, 01 May 2026" in out
    assert "sunset" in out


@pytest.mark.parametrize("as_json", [True, False])
async def test_hosts_that_refuse_us_are_listed(local, capsys, monkeypatch, as_json):
    refusals = HostRefusals(SystemClock())
    refusals.record("www.cisa.gov", "CISA.known_exploited", 403)
    monkeypatch.setattr(Made.fetcher, "refusals", refusals)
    local(True, [GOOD])
    await doctor_command(Settings(), live=True, as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        (told,) = json.loads(out)["refusals"]
        assert (told["host"], told["status"], told["until"] - told["seen_at"]) == ("www.cisa.gov", 403, 3600)
    else:
        assert "www.cisa.gov                         refuses us (status 403)" in out


async def test_without_live_no_source_is_requested(local, capsys):
    local(True, [GOOD])
    await doctor_command(Settings(), live=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["sources"] == []


DRIFTED = replace(
    GOOD,
    source="C.drifted",
    drift=(
        Drift("rows[].price", "absent", "answers change", True),
        Drift("rows[].note", "number instead of string", "read all the same", False),
        Drift("rows[].other", "absent", "not read", False),
    ),
)


@pytest.fixture
def recorded(local, monkeypatch, tmp_path):
    """Lets the command record these probes."""
    local(True)

    def use(*probes):
        async def record_sources(settings, folder):
            return RecordedSources(list(probes), [], [], {"weather": "ok", "gas": "no data"}, 7)

        monkeypatch.setattr(doctor, "record_sources", record_sources)
        return doctor_command(Settings(), live=True, as_json=False, record=tmp_path / "rec")

    return use


@pytest.mark.parametrize(("probes", "status"), [((GOOD,), 0), ((GOOD, BAD), 1), ((GOOD, DRIFTED), 1)])
async def test_a_recording_in_which_a_source_is_unwell_needs_a_person(recorded, capsys, probes, status):
    assert await recorded(*probes) == status
    out = capsys.readouterr().out
    assert ("(sources_unwell)" in out) is bool(status)
    assert "7 exchanges recorded in" in out
    assert "1 of 2 tools returned data: not gas (no data)" in out


async def test_of_a_source_that_drifted_the_fields_are_named(recorded, capsys):
    await recorded(GOOD, DRIFTED)
    out = capsys.readouterr().out
    assert "C.drifted                            ok             drift" in out
    assert "    ! rows[].price: absent (answers change)\n" in out
    assert "    - rows[].note: number instead of string (read all the same)\n" in out
    assert "1 ok, 1 drift\n" in out


def test_fields_that_nobody_reads_are_not_told():
    assert [line.split(":")[0] for line in describe_drift(DRIFTED)] == ["! rows[].price", "- rows[].note"]


async def test_a_folder_in_use_is_refused(local, tmp_path):
    local(True)
    (tmp_path / "old").write_text("")
    with pytest.raises(click.ClickException, match="is not empty"):
        await doctor_command(Settings(), live=True, as_json=False, record=tmp_path)


@pytest.mark.parametrize("as_json", [True, False])
async def test_what_a_running_server_leaves_alone_is_listed(local, capsys, monkeypatch, as_json):
    async def ask_running_server(data_dir):
        return RunningServer("http://127.0.0.1:9/metrics", True, (LeftAlone("www.cisa.gov", "403", 60.0),))

    monkeypatch.setattr(doctor, "ask_running_server", ask_running_server)
    local(True)
    await doctor_command(Settings(), live=False, as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["server"] == {
            "metrics_url": "http://127.0.0.1:9/metrics",
            "answers": True,
            "left_alone": [{"name": "www.cisa.gov", "status": "403", "left_s": 60.0}],
        }
    else:
        assert "www.cisa.gov                         refuses it (status 403); retried in 60 s" in out


async def test_a_source_that_is_asked_in_two_ways_has_a_line_for_each(local, capsys):
    local(True, [replace(GOOD, form="keyed"), replace(BAD, source="A.good", form="keyless")])
    await doctor_command(Settings(), live=True, as_json=False)
    out = capsys.readouterr().out
    assert "A.good (keyed) " in out
    assert "A.good (keyless) " in out


def test_a_database_on_a_server_is_described_with_its_leases():
    leases = [{"name": "reorg watch", "number": 3, "seconds_left": 9}, {"name": "log", "number": 1, "seconds_left": 0}]
    found = {"server": "PostgreSQL 15.6", "tables": 4, "connections": 7, "leases": leases}
    assert doctor.describe_database(None) == []
    assert doctor.describe_database(found) == [
        "the ledger is on PostgreSQL 15.6, tables 4, 7 connections",
        "  reorg watch: held by one instance for 9 s more",
        "  log: held by no instance",
    ]
